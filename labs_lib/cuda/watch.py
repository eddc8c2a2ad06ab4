"""Which blocks of a traced launch have their accesses logged."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index

from labs_lib.cuda.errors import LaunchError
from labs_lib.cuda.layout import MAX_EVENTS, MAX_WATCHED

DEFAULT_EVENTS = 20_000  # of all watched blocks together


def watched_blocks(given) -> list[tuple[int, int, int]]:
    """One block, or a list of some, each as three numbers: `1`, `(1, 0)`, `[(0, 0), (1, 0)]`.

    Raises: LaunchError for anything else, or for more than 8 blocks.
    """
    several = isinstance(given, list) and any(isinstance(b, Iterable) for b in given)
    blocks = [_block(b) for b in (given if several else [given])]
    unique = list(dict.fromkeys(blocks))
    if not 1 <= len(unique) <= MAX_WATCHED:
        raise LaunchError(f"{len(unique)} blocks to watch; give 1 to {MAX_WATCHED}")
    return unique


def places_in(grid, blocks) -> list[int]:
    """The blocks' places in the grid, x fastest; in a grid without blocks, none.

    Raises: LaunchError for a block outside of the grid.
    """
    if 0 in grid:
        return []
    for block in blocks:
        if any(at >= size for at, size in zip(block, grid, strict=True)):
            last = tuple(size - 1 for size in grid)
            raise LaunchError(f"block {block} is outside of the grid {grid}; the last is {last}")
    return [(z * grid[1] + y) * grid[0] + x for x, y, z in blocks]


def most_events(wanted: int | None, blocks: int) -> int:
    """How many accesses of each of several blocks are kept."""
    blocks = max(1, blocks)
    if wanted is None:
        return DEFAULT_EVENTS // blocks
    try:
        most = index(wanted)
    except TypeError:
        most = 0
    if most < 1:
        raise LaunchError(f"most={wanted!r}: how many accesses of a block to keep, from 1 on")
    return min(most, MAX_EVENTS // blocks)


def _block(given) -> tuple[int, int, int]:
    try:
        parts = tuple(map(index, given if isinstance(given, Iterable) else (given,)))
    except TypeError:
        parts = ()
    if not 1 <= len(parts) <= 3 or min(parts) < 0:
        raise LaunchError(f"block={given!r}: give one to three whole numbers, none below 0")
    x, y, z = (*parts, 0, 0)[:3]
    return x, y, z
