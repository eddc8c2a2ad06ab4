"""The ladder of kernels beside torch on a GPU: time by CUDA events, share of the chip's peak."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch
import torch.nn.functional as F

from labs_lib.bench.chips import Chip, chip
from labs_lib.bench.rows import Row, Unavailable
from labs_lib.bench.timing import must_equal
from labs_lib.cuda import compilers
from labs_lib.cuda.ladder import RUNGS
from labs_lib.cuda.rung import Rung
from labs_lib.cuda.trials import Trial, trial
from labs_lib.withheld import Withheld

REPEATS, WARM_UP = 15, 3
Timer = Callable[[Callable[[], object]], float]

SIZES = {
    "scores": {"n_q": 4096, "n_k": 4096, "head_dim": 128},
    "softmax": {"rows": 8192, "cols": 8192},
    "transpose": {"rows": 8192, "cols": 8192},
    "attention": {"batch": 4, "n_head": 16, "n_q": 1024, "n_k": 1024, "head_dim": 64, "causal": 0},
}
SIZES["flash"] = SIZES["attention"] | {"n_kv_head": 16}


def rows() -> list[Row]:
    """Every rung of the forward pass beside torch. Raises: Unavailable without a GPU or nvcc."""
    if not torch.cuda.is_available():
        raise Unavailable("there is no GPU here.")
    if compilers.nvcc() is None:
        raise Unavailable("there is a GPU here, but no nvcc; install the CUDA toolkit.")
    return measured(event_seconds, torch.device("cuda"), chip(torch.cuda.get_device_name(0)))


def measured(
    timer: Timer, device: torch.device, here: Chip | None, sizes: dict | None = None
) -> list[Row]:
    """The rows of the table. `timer` gives the seconds of a call. Raises: WrongResult."""
    made: list[Row] = []
    for rung in RUNGS:
        given = (sizes or SIZES).get(rung.family)
        if given is None:
            continue
        try:
            kernel = rung.compile()
        except Withheld:
            continue
        made += _beside(rung, kernel, given, timer, device, here)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return made


def _beside(rung: Rung, kernel, sizes: dict, timer: Timer, device, here: Chip | None) -> list[Row]:
    case = trial(rung, sizes, device=device.type)
    launch = kernel[rung.geometry(sizes)]
    took = timer(lambda: launch(*case.arguments))
    for name, out in case.outputs.items():
        must_equal(out, case.wanted[name], f"{rung.name}, {name}", atol=2e-3, rtol=2e-3)
    half = case.arguments[0].dtype == torch.float16
    peak = (here.half if half else here.single) if here else None
    return [
        Row(
            rung.name,
            took,
            peer,
            timer(run),
            work=work(rung.family, sizes),
            moved=moved(case),
            peak=peak,
            bandwidth=here.bandwidth if here else None,
        )
        for peer, run in peers(rung.family, case)
    ]


def peers(family: str, case: Trial) -> list[tuple[str, Callable[[], object]]]:
    """What torch does for the same problem."""
    a = case.arguments
    if family == "scores":
        q = a[0]
        keys = a[1] if a[1].shape[0] == a[4] and a[1].shape[1] == a[5] else a[1].T
        return [("torch: matmul", lambda: q @ keys.T)]
    if family == "softmax":
        return [("torch: softmax", lambda: a[0].softmax(-1))]
    if family == "transpose":
        return [("torch: T.contiguous", lambda: a[0].T.contiguous())]
    return _attention_peers(*a[:3], causal=bool(a[-1]))


def _attention_peers(q, k, v, *, causal: bool) -> list[tuple[str, Callable[[], object]]]:
    if q.device.type != "cuda":
        return [("torch: SDPA", lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal))]
    from torch.nn.attention import SDPBackend, sdpa_kernel

    half = [x.half() for x in (q, k, v)]  # flash and cuDNN take halves only
    own = "half" if q.dtype == torch.float16 else "float32"

    def run(backend, tensors):
        def call():
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(*tensors, is_causal=causal)

        return call

    made = []
    for name, backend, tensors in (
        (f"torch: SDPA {own}", SDPBackend.EFFICIENT_ATTENTION, [q, k, v]),
        ("torch: flash half", SDPBackend.FLASH_ATTENTION, half),
        ("torch: cuDNN half", SDPBackend.CUDNN_ATTENTION, half),
    ):
        call = run(backend, tensors)
        try:
            call()
        except RuntimeError:
            continue  # not for this GPU or this build of torch
        made.append((name, call))
    return made


def work(family: str, sizes: dict) -> float | None:
    """Floating-point operations of the two products; None where moving bytes is all."""
    if family == "scores":
        return 2.0 * sizes["n_q"] * sizes["n_k"] * sizes["head_dim"]
    if family in ("attention", "flash"):
        heads = sizes["batch"] * sizes["n_head"]
        seen = 0.5 if sizes["causal"] else 1.0
        return 4.0 * seen * heads * sizes["n_q"] * sizes["n_k"] * sizes["head_dim"]
    return None


def moved(case: Trial) -> float:
    """The bytes that must cross to the chip at least: each tensor once."""
    tensors = [a for a in case.arguments if isinstance(a, torch.Tensor)]
    return float(sum(t.numel() * t.element_size() for t in tensors))


def event_seconds(run: Callable[[], object]) -> float:
    """The median time of a call on the GPU's own clock, with a cold L2 cache."""
    for _ in range(WARM_UP):
        run()
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    times = []
    for _ in range(REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.zero_()
        torch.cuda._sleep(20_000_000)  # the queue is full before the clock starts
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return statistics.median(times)
