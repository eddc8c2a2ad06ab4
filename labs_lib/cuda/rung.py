"""A rung of the ladder of kernels: its file, its launch, and the bytes that it moves."""

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
    together; `asked(keys)` is the number of queries that blocks of so many keys fetch. `traffic`
    maps a tensor to the bytes that are read from it and written to it; `needs` are conditions on
    the sizes.
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
    half: bool = False  # takes half, not float

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


def _value(text: str, names: dict) -> int:
    return eval(text, {"__builtins__": {}}, names)  # formulas of the ladder, not of a user


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

    def asked(keys: int) -> int:
        n_q, n_k = sizes["n_q"], sizes["n_k"]
        above = n_k - n_q if sizes["causal"] else n_k  # query i sees the keys up to i + above
        return sum(n_q - min(n_q, max(0, first - above)) for first in range(0, n_k, keys))

    return {**sizes, "tiles": tiles, "fetched": fetched, "asked": asked}
