"""Names of CUDA that are not emulated on a CPU, and what to do instead."""

from __future__ import annotations

from collections.abc import Sequence

from labs_lib.cuda.errors import CompileError
from labs_lib.cuda.tokens import Token

_PYTHON = "belongs to host code: allocate and copy with torch, launch with k[grid, block](...)"
_MEMORY = "allocates inside a kernel, which is not emulated: pass a tensor or use __shared__"
_PTX = "is PTX, which only a GPU runs; use CUDA C++ (wmma for the tensor cores) or <labs/mma.h>"
_CLUSTER = "needs blocks that wait for one another, which is not emulated; launch two kernels"
_QUOTIENT = "is not emulated: use remainder, and round(x / y) for the quotient"
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
    "remquo": _QUOTIENT,
    "remquof": _QUOTIENT,
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


def refuse(tokens: Sequence[Token]) -> None:
    """Raises CompileError at the first name that has no meaning on a CPU."""
    for i, token in enumerate(tokens):
        if token.kind not in ("word", "mark"):
            continue
        after = tokens[i + 1].text if i + 1 < len(tokens) else ""
        why = REFUSED.get(
            f"{token.text}::" if after in ("::", ":") else "", REFUSED.get(token.text)
        )
        if why is None:
            why = next((w for p, w in REFUSED_PREFIXES if token.text.startswith(p)), None)
        before = tokens[i - 1].text if i else ""
        declared = before == "operator" or (token.text == "delete" and before == "=")
        if why is None or declared or before in (".", "->"):
            continue
        raise CompileError(f"line {token.line}: `{token.text}` {why}", line=token.line)
