"""The bundled kernels as a ladder: what each teaches, how it is launched, which bytes it moves.

rung = ladder.rung("scores_tiled")
k = rung.compile()
k[rung.geometry(sizes)](q, keys, s, n_q, n_k, head_dim, scale)
rung.traffic(sizes)  # {"q": (bytes read, bytes written), ...}, equal to what a trace counts
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from labs_lib.cuda import kernel
from labs_lib.cuda.errors import LaunchError
from labs_lib.withheld import Withheld

FOLDER = Path(__file__).parent / "kernels"
ARCHS = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100")
Sizes = Mapping[str, int]


class Geometry(NamedTuple):
    """What stands between the brackets of a launch: `k[geometry](...)`."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int = 0


@dataclass(frozen=True)
class Rung:
    """One kernel of the ladder.

    Grid, dynamic shared memory and traffic are written as formulas of the sizes, and computed from
    that very text. In them `tiles(n, w)` is n / w rounded up, and `fetched(rows, keys)` the number
    of keys that blocks of so many queries fetch in tiles of so many keys, all blocks of one head
    together. `traffic` maps a tensor to the bytes that are read from it and written to it; `needs`
    are conditions on the sizes.
    """

    name: str
    family: str
    teaches: str
    grid: tuple[str, ...]
    block: tuple[int, ...]
    formulas: Mapping[str, tuple[str, str]]
    shared: str = "0"
    needs: tuple[str, ...] = ()
    file: str = ""
    archs: tuple[str, ...] = ARCHS

    def geometry(self, sizes: Sizes) -> Geometry:
        """Grid, block and bytes of dynamic shared memory.

        Raises: LaunchError for sizes that the kernel can't take.
        """
        names = _names(sizes)
        for condition in self.needs:
            if not _value(condition, names):
                given = ", ".join(f"{name}={size}" for name, size in sizes.items())
                raise LaunchError(f"{self.name} needs {condition}; given: {given}")
        grid = tuple(_value(text, names) for text in self.grid)
        return Geometry(grid, self.block, _value(self.shared, names))

    def traffic(self, sizes: Sizes) -> dict[str, tuple[int, int]]:
        """Bytes read and written for each tensor, as the source asks for them."""
        names = _names(sizes)
        return {
            tensor: (_value(read, names), _value(written, names))
            for tensor, (read, written) in self.formulas.items()
        }

    @property
    def source(self) -> str:
        """The CUDA C++ of its file. Raises: Withheld where this copy keeps the file back."""
        path = FOLDER / (self.file or f"{self.name}.cu")
        if not path.exists():
            raise Withheld(f"{path.name} is yours to write; this copy of the course keeps it back.")
        return path.read_text(encoding="utf-8")

    def compile(self, *, arch: str | None = None) -> kernel.Kernel:
        """The compiled kernel. Raises: Withheld; BuildError without a compiler."""
        made = kernel.compile(self.source, arch=arch, name=self.file or f"{self.name}.cu")
        return made if isinstance(made, kernel.Kernel) else made[self.name]


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


def _value(text: str, names: dict) -> int:
    return eval(text, {"__builtins__": {}}, names)  # the formulas of this very file


def _names(sizes: Sizes) -> dict:
    """What a formula may name."""

    def tiles(n: int, wide: int) -> int:
        return -(-n // wide)

    def fetched(rows: int, keys: int) -> int:
        n_q, n_k, total = sizes["n_q"], sizes["n_k"], 0
        for first in range(0, n_q, rows):
            seen = min(first + rows, n_q) + n_k - n_q if sizes["causal"] else n_k
            total += min(n_k, tiles(max(0, seen), keys) * keys)
        return total

    return {**sizes, "tiles": tiles, "fetched": fetched}


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
        size=2,
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
            "q": ("4 * batch * n_head * n_q * head_dim", "0"),
            "k": ("4 * batch * n_head * head_dim * fetched(8, 32)", "0"),
            "v": ("4 * batch * n_head * head_dim * fetched(8, 32)", "0"),
            "o": ("0", "4 * batch * n_head * n_q * head_dim"),
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
            "q": ("4 * batch * n_head * n_q * head_dim", "0"),
            "k": ("4 * batch * n_head * head_dim * fetched(32, 32)", "0"),
            "v": ("4 * batch * n_head * head_dim * fetched(32, 32)", "0"),
            "o": ("0", "4 * batch * n_head * n_q * head_dim"),
            "lse": ("0", "4 * batch * n_head * n_q"),
        },
        shared="4 * 32 * (2 * head_dim + (head_dim | 1) + 32)",
        needs=(*_NARROW, "n_kv_head > 0 and n_head % n_kv_head == 0"),
    ),
)  # fmt: skip
NAMES = tuple(r.name for r in RUNGS)
