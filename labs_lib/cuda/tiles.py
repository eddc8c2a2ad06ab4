"""What became of each element of a tensor in a traced launch, on a grid that can be drawn."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

MOST_ROWS, MOST_COLUMNS = 64, 64
CELL = ("reads", "writes", "block", "thread", "many", "framed")
NOBODY, ONE, THREADS, BLOCKS = -1, 0, 1, 2


@dataclass(frozen=True)
class Tiles:
    """A tensor as a grid of boxes; a box is `high` rows by `wide` columns of elements.

    `shape` is [rows, columns] of the tensor seen as a matrix, its last axis across. For each box,
    row by row: `elements` in it, how often they were `reads` and `writes` in all, the `block`
    (its number in the grid, x fastest) and the `thread` of it that wrote there last, or read first
    where nobody wrote (-1: nobody did), and `who`: 0 that thread alone, 1 other threads of its
    block too, 2 other blocks too, -1 nobody. Atomics count as writes. `framed` has, in a box that
    the watched blocks touch, bit i where block i of them read, 8 + i where it wrote, and 16 + i and
    24 + i where its first warp did.
    """

    name: str
    shape: tuple[int, int]
    item: int
    high: int
    wide: int
    elements: list[list[int]]
    reads: list[list[int]]
    writes: list[list[int]]
    block: list[list[int]]
    thread: list[list[int]]
    who: list[list[int]]
    framed: list[list[int]]

    def touched_by(self, watched: int, what: str, *, first_warp: bool = False) -> np.ndarray:
        """Bool [rows, columns] of boxes that a watched block, or its first warp, reads or writes.

        `watched` is the block's place in the trace's `log.blocks`; `what` is read or write.
        """
        bit = watched + (0 if what == "read" else 8) + (16 if first_warp else 0)
        return (np.array(self.framed) >> bit & 1).astype(bool)

    @property
    def exact(self) -> bool:
        """Whether each box is one element."""
        return self.high == self.wide == 1

    def to_dict(self) -> dict:
        """Everything as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict) -> Tiles:
        """The tiles that `to_dict` was made from."""
        values: dict[str, Any] = {**data, "shape": tuple(data["shape"])}
        return cls(**values)


def make_tiles(regions) -> dict[str, Tiles]:
    """For each tensor of a traced launch what became of its elements."""
    made = {}
    for region in regions:
        for name, tensor in zip(region.names, region.tensors, strict=True):
            made[name] = _tiles(name, region, tensor)
    return made


def untouched(name: str, tensor) -> Tiles:
    """The tiles of a tensor that no thread touched, as in an empty launch."""
    shape = _shape(tensor)
    nobody = (np.zeros(0, np.int64) for _ in range(7))
    return _boxed(name, tensor.numel(), shape, tensor.element_size(), 1, *nobody)


def _tiles(name: str, region, tensor) -> Tiles:
    """`region.seen` has a cell for each element, or for 2**region.bin of them."""
    shape, item = _shape(tensor), tensor.element_size()
    start, shift = tensor.data_ptr() - region.low, region.unit + region.bin
    first, last = start >> shift, (start + tensor.numel() * item - 1) >> shift
    cells = region.seen[first : last + 1]
    at = np.maximum((np.arange(first, last + 1) << shift) - start, 0) // item
    columns = [cells[n].astype(np.int64) for n in CELL]
    cell = max(1, (1 << shift) // item)
    return _boxed(name, tensor.numel(), shape, item, cell, at, *columns)


def _boxed(name, n, shape, item, cell, at, reads, writes, block, thread, many, framed) -> Tiles:
    rows, columns = shape
    high, wide = _step(rows, MOST_ROWS), max(cell, _step(columns, MOST_COLUMNS))
    grid = (-(-rows // high), -(-columns // wide))
    box = (at // columns // high) * grid[1] + at % columns // wide
    count = grid[0] * grid[1]

    def total(values):
        return np.bincount(box, values, count).astype(np.int64).reshape(grid).tolist()

    # The last cell of a box that anybody touched speaks for it.
    touched = block > 0
    speaker = np.full(count, -1)
    speaker[box[touched]] = np.flatnonzero(touched)
    known = speaker >= 0
    mine = np.where(known, speaker, 0)
    several = np.zeros(count, np.int64)
    np.maximum.at(several, box[touched], np.where(many & 2, BLOCKS, many & 1)[touched])
    if len(at):
        other = touched & (block != block[mine][box])
        several[box[other]] = BLOCKS
        other = touched & (thread != thread[mine][box]) & (several[box] == ONE)
        several[box[other]] = THREADS

    def told(values):
        picked = values[mine] if len(values) else np.zeros(count, np.int64)
        return np.where(known, picked, NOBODY).reshape(grid).tolist()

    inside = np.minimum(np.full(grid[0], high), rows - np.arange(grid[0]) * high)
    across = np.minimum(np.full(grid[1], wide), columns - np.arange(grid[1]) * wide)
    who = np.where(known, several, NOBODY).reshape(grid).tolist()
    elements = np.outer(inside, across)
    absent = np.arange(columns - (rows * columns - n), columns)  # a folded vector's last row
    np.subtract.at(elements[-1], absent // wide, 1)
    frames = np.zeros(count, np.int64)
    np.bitwise_or.at(frames, box, framed)
    sums = (elements.tolist(), total(reads), total(writes))
    told_ = (told(block - 1), told(thread), who, frames.reshape(grid).tolist())
    return Tiles(name, shape, item, high, wide, *sums, *told_)


def _shape(tensor) -> tuple[int, int]:
    """The tensor as a matrix: the last axis across, all others down; a long vector is folded."""
    if tensor.ndim > 1 and tensor.numel():
        columns = tensor.shape[-1]
        return tensor.numel() // columns, columns
    n = max(1, tensor.numel())
    if n <= MOST_COLUMNS:
        return 1, n
    columns = next((c for c in (64, 48, 32, 33, 40, 50, 60, 30) if n % c == 0), MOST_COLUMNS)
    return -(-n // columns), columns


def _step(length: int, most: int) -> int:
    """How many rows (columns) go into a box: a power of two, so that tiles keep their borders."""
    step = 1
    while -(-length // step) > most:
        step *= 2
    return step
