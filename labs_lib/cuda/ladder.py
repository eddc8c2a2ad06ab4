"""The bundled kernels as a ladder: what each teaches, how it is launched, which bytes it moves.

rung = ladder.rung("scores_tiled")
k = rung.compile()
k[rung.geometry(sizes)](q, keys, s, n_q, n_k, head_dim, scale)
rung.traffic(sizes)  # {"q": (bytes read, bytes written), ...}, equal to what a trace counts
"""

from __future__ import annotations

from labs_lib.cuda import kernel
from labs_lib.cuda.rung import ARCHS, FOLDER, Rung

__all__ = ["ARCHS", "FOLDER", "NAMES", "RUNGS", "compile", "rung", "source"]


def rung(name: str) -> Rung:
    """The rung of that name. Raises: KeyError that lists the names."""
    found = next((r for r in RUNGS if r.name == name), None)
    if found is None:
        raise KeyError(f"no kernel {name!r} in the ladder; there are: {', '.join(NAMES)}")
    return found


def source(name: str) -> str:
    """The CUDA C++ of a rung."""
    return rung(name).source


def compile(name: str) -> kernel.Kernel:
    """A rung's kernel, compiled."""
    return rung(name).compile()


def _scores(name: str, rows: int, keys: int, block, teaches: str, **more) -> Rung:
    """A kernel whose blocks make rows x keys scores from tiles in shared memory."""
    size = more.pop("size", 4)
    formulas = {
        "q": (f"{size} * n_q * head_dim * tiles(n_k, {keys})", "0"),
        "k": (f"{size} * n_k * head_dim * tiles(n_q, {rows})", "0"),
        "s": ("0", "4 * n_q * n_k"),
    }
    grid = (f"tiles(n_k, {keys})", f"tiles(n_q, {rows})")
    return Rung(name, "scores", teaches, grid, block, formulas, **more)


_EACH_SCORE = ("4 * n_q * n_k * head_dim", "0")
_MOVED = {"a": ("4 * rows * cols", "0"), "b": ("0", "4 * rows * cols")}
_NARROW = ("head_dim <= 128",)
_GROUPED = (*_NARROW, "n_kv_head > 0 and n_head % n_kv_head == 0")
_ROWS, _QUERIES = "batch * n_head * n_q", "batch * n_head * n_q * head_dim"
_KEYS = "batch * n_kv_head * n_k * head_dim"
_SOFTMAX = {"s": ("3 * 4 * rows * cols", "0"), "p": ("0", "4 * rows * cols")}


def _transpose(name: str, teaches: str) -> Rung:
    return Rung(name, "transpose", teaches, ("tiles(cols, 32)", "tiles(rows, 32)"), (32, 8), _MOVED)


RUNGS = (
    Rung(
        "scores_naive",
        "scores",
        "One thread a score: each row of k is fetched from global memory once for every query.",
        ("tiles(n_k, 16)", "tiles(n_q, 16)"),
        (16, 16),
        {"q": _EACH_SCORE, "k": _EACH_SCORE, "s": ("0", "4 * n_q * n_k")},
    ),
    Rung(
        "scores_coalesced",
        "scores",
        "The same bytes in fewer sectors: the lanes of a warp read neighbouring floats.",
        ("tiles(n_k, 32)", "tiles(n_q, 8)"),
        (32, 8),
        {"q": _EACH_SCORE, "k_t": _EACH_SCORE, "s": ("0", "4 * n_q * n_k")},
    ),
    _scores(
        "scores_tiled", 16, 16, (16, 16),
        "Tiles in shared memory: the bytes from global memory fall by the tile's width.",
    ),
    _scores(
        "scores_register_tiles", 64, 64, (16, 16),
        "Tiles in registers: 4 x 4 scores a thread, a quarter of the reads of shared memory.",
    ),
    _scores(
        "scores_tensor_cores", 32, 32, (128,),
        "A warp multiplies 16 x 16 halves at once; zeros fill what is no multiple of 16.",
        size=2, half=True,
    ),
    Rung(
        "softmax_rows",
        "softmax",
        "A block takes a row and reduces by a tree in shared memory, with a barrier a level.",
        ("rows",),
        (256,),
        _SOFTMAX,
    ),
    Rung(
        "softmax_rows_warp",
        "softmax",
        "A warp takes a row and reduces by shuffles: no shared memory and no barrier.",
        ("tiles(rows, 4)",),
        (32, 4),
        _SOFTMAX,
    ),
    _transpose("transpose_naive", "Neighbours read, but written a row apart: 32 sectors a warp."),
    _transpose(
        "transpose_tiled",
        "A tile in shared memory makes both sides neighbours; its columns lie in one bank.",
    ),
    _transpose(
        "transpose_without_conflicts", "One float more a row, and a column lies in 32 banks."
    ),
    Rung(
        "attention_per_head_blocks",
        "attention",
        "One block a (batch, head) pair: no score ever reaches global memory, few blocks at work.",
        ("n_head", "batch"),
        (256,),
        {
            "q": (f"4 * {_QUERIES}", "0"),
            "k": ("4 * batch * n_head * head_dim * fetched(8, 32)", "0"),
            "v": ("4 * batch * n_head * head_dim * fetched(8, 32)", "0"),
            "o": ("0", f"4 * {_QUERIES}"),
        },
        needs=_NARROW,
    ),
    Rung(
        "flash_forward",
        "flash",
        "Blocks along the sequence too, and k and v read once for every 32 queries, not every 8.",
        ("tiles(n_q, 32)", "n_head", "batch"),
        (256,),
        {
            "q": (f"4 * {_QUERIES}", "0"),
            "k": ("4 * batch * n_head * head_dim * fetched(32, 32)", "0"),
            "v": ("4 * batch * n_head * head_dim * fetched(32, 32)", "0"),
            "o": ("0", f"4 * {_QUERIES}"),
            "lse": ("0", f"4 * {_ROWS}"),
        },
        shared="4 * 32 * (2 * head_dim + (head_dim | 1) + 32)",
        needs=_GROUPED,
    ),
    Rung(
        "flash_forward_mma",
        "flash",
        "Scores and weighted sums on tensor cores, in half; maxima and sums stay in float.",
        ("tiles(n_q, 64)", "n_head", "batch"),
        (128,),
        {
            "q": (f"2 * {_QUERIES}", "0"),
            "k": ("2 * batch * n_head * head_dim * fetched(64, 32)", "0"),
            "v": ("2 * batch * n_head * head_dim * fetched(64, 32)", "0"),
            "o": ("0", f"2 * {_QUERIES}"),
            "lse": ("0", f"4 * {_ROWS}"),
        },
        shared="256 * (16 * tiles(head_dim, 16) + 8) + 15616",
        needs=_GROUPED,
        half=True,
    ),
    Rung(
        "flash_backward_delta",
        "flash_backward_delta",
        "What all gradients of a row share, once: the sum of d_o times o.",
        ("tiles(batch * n_head * n_q, 8)",),
        (256,),
        {
            "o": (f"4 * {_QUERIES}", "0"),
            "d_o": (f"4 * {_QUERIES}", "0"),
            "delta": ("0", f"4 * {_ROWS}"),
        },
        file="flash_backward.cu",
    ),
    Rung(
        "flash_backward_q",
        "flash_backward_q",
        "Weights are made again from lse, and no gradient is summed by two blocks: d_q.",
        ("tiles(n_q, 16)", "n_head", "batch"),
        (256,),
        {
            "q": (f"4 * {_QUERIES}", "0"),
            "k": ("4 * batch * n_head * head_dim * fetched(16, 32)", "0"),
            "v": ("4 * batch * n_head * head_dim * fetched(16, 32)", "0"),
            "d_o": (f"4 * {_QUERIES}", "0"),
            "lse": (f"4 * {_ROWS}", "0"),
            "delta": (f"4 * {_ROWS}", "0"),
            "d_q": ("0", f"4 * {_QUERIES}"),
        },
        shared="4 * (32 * head_dim + 64 * (head_dim | 1) + 512)",
        needs=_GROUPED,
        file="flash_backward.cu",
    ),
    Rung(
        "flash_backward_kv",
        "flash_backward_kv",
        "Blocks along the keys, which walk over all queries that share them: d_k and d_v.",
        ("tiles(n_k, 16)", "n_kv_head", "batch"),
        (256,),
        {
            "q": ("4 * batch * n_head * head_dim * asked(16)", "0"),
            "k": (f"4 * {_KEYS}", "0"),
            "v": (f"4 * {_KEYS}", "0"),
            "d_o": ("4 * batch * n_head * head_dim * asked(16)", "0"),
            "lse": ("4 * batch * n_head * asked(16)", "0"),
            "delta": ("4 * batch * n_head * asked(16)", "0"),
            "d_k": ("0", f"4 * {_KEYS}"),
            "d_v": ("0", f"4 * {_KEYS}"),
        },
        shared="4 * (32 * head_dim + 64 * (head_dim | 1) + 1088)",
        needs=_GROUPED,
        file="flash_backward.cu",
    ),
)  # fmt: skip
NAMES = tuple(r.name for r in RUNGS)
