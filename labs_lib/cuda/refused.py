"""Names of CUDA that are not emulated on a CPU, and what to do instead."""

from __future__ import annotations

_PYTHON = "belongs to host code: allocate and copy with torch, launch with k[grid, block](...)"
_MEMORY = "allocates inside a kernel, which is not emulated: pass a tensor or use __shared__"
_PTX = "is PTX, which only a GPU runs; use CUDA C++ (wmma for the tensor cores) or <labs/mma.h>"
_CLUSTER = "needs blocks that wait for one another, which is not emulated; launch two kernels"
_OLD = "was removed from CUDA: use the form with _sync and a mask, as in __shfl_down_sync"

REFUSED = {
    "<<<": "launches from C++; launch from Python: k[grid, block](arguments)",
    "asm": _PTX,
    "__asm__": _PTX,
    "malloc": _MEMORY,
    "free": _MEMORY,
    "new": _MEMORY,
    "delete": _MEMORY,
    "cooperative_groups": _CLUSTER,
    "cuda::": "names asynchronous copies, barriers and atomics of CUDA's library, which are not "
    "emulated: load and __syncthreads(), or use atomicAdd and its kin",
    "this_grid": _CLUSTER,
    "__cluster_dims__": _CLUSTER,
    "throw": "is not allowed in a kernel",
    "try": "is not allowed in a kernel",
    "__nanosleep": "has no meaning here: threads of a block take turns",
    "clock": "has no meaning here: time a kernel on a GPU",
    "clock64": "has no meaning here: time a kernel on a GPU",
    "__shfl": _OLD,
    "__shfl_up": _OLD,
    "__shfl_down": _OLD,
    "__shfl_xor": _OLD,
    "__ballot": _OLD,
    "__any": _OLD,
    "__all": _OLD,
    "__ldmatrix": _PTX,
    "__match_all_sync": "is not emulated; use __match_any_sync or __all_sync",
    "__vadd4": "is not emulated (packed bytes)",
    "__dp4a": "is not emulated (packed bytes)",
    "thrust": "is host code, not part of a kernel",
    "cub": "is not emulated: write the reduction yourself, that is the exercise",
    "cute": "is not emulated",
    "cutlass": "is not emulated",
    "curand_init": "is not emulated: pass random numbers in a tensor",
}
REFUSED_PREFIXES = [
    ("cudaMalloc", _PYTHON),
    ("cudaMemcpy", _PYTHON),
    ("cudaMemset", _PYTHON),
    ("cudaFree", _PYTHON),
    ("cudaLaunch", _PYTHON),
    ("cudaDevice", _PYTHON),
    ("cudaStream", _PYTHON),
    ("cudaEvent", _PYTHON),
    ("cudaGet", _PYTHON),
    ("tex1D", "reads a texture, which is not emulated; read the tensor"),
    ("tex2D", "reads a texture, which is not emulated; read the tensor"),
    ("tex3D", "reads a texture, which is not emulated; read the tensor"),
    ("surf2D", "writes a surface, which is not emulated; write the tensor"),
    ("__pipeline_", "copies asynchronously, which is not emulated; load and __syncthreads()"),
    ("__nv_fp8", "is an 8-bit float, which is not emulated; use __half or __nv_bfloat16"),
]
