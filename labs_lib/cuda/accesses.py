"""The accesses of a traced block, one by one, and as warps do them: 32 lanes at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from labs_lib.cuda.layout import SHARED
from labs_lib.cuda.memory import SECTOR, phase

WARP, BANKS, WORD = 32, 32, 4  # lanes; banks, each a word of 4 bytes wide
COLUMNS = ("block", "thread", "step", "site", "offset", "size", "turn")


@dataclass(frozen=True)
class Event:
    """One access by a thread: which line did what to which element.

    `step` counts the barriers before it; events of one thread stand in the order of the program.
    `index` is an element of a tensor, or a byte of the block's shared memory, where `name` is the
    variable and `index` counts from its start. `offset` and `size` are in bytes. `turn` is equal
    for the lanes of a warp that do the same in the same turn of their loops.
    """

    thread: int
    step: int
    line: int | None
    what: str
    name: str
    index: int
    offset: int
    size: int
    turn: int
    block: tuple[int, int, int]


@dataclass(frozen=True)
class Site:
    """A place of the source that touches one tensor or variable.

    `item` is an element's bytes, `phase` those from the start of a sector to the first element.
    """

    line: int | None
    what: str
    name: str
    shared: bool
    item: int
    phase: int = 0


@dataclass(frozen=True)
class Request:
    """What a warp does in one instruction: the byte offset that each lane touches, `size` each."""

    block: tuple[int, int, int]
    warp: int
    step: int
    site: Site
    size: int
    lanes: dict[int, int]

    @property
    def words(self) -> list[int]:
        """The words of 4 bytes that are touched, counted from the start, each once."""
        spans = (range(at // WORD, (at + self.size - 1) // WORD + 1) for at in self._offsets)
        return sorted({word for span in spans for word in span})

    @property
    def sectors(self) -> list[int]:
        """The pieces of 32 bytes that are touched, counted from the start, each once."""
        starts = {at + self.site.phase for at in self._offsets}
        spans = (range(at // SECTOR, (at + self.size - 1) // SECTOR + 1) for at in starts)
        return sorted({sector for span in spans for sector in span})

    @property
    def passes(self) -> int:
        """How often the banks of shared memory are visited; wide accesses go by parts of a warp."""
        return sum(max(part.values(), default=0) for part in self._parts())

    @property
    def clashes(self) -> dict[int, int]:
        """For each bank that is visited, how many different words of it are wanted at once."""
        banks: dict[int, int] = {}
        for part in self._parts():
            banks |= {bank: max(n, banks.get(bank, 0)) for bank, n in part.items()}
        return banks

    def _parts(self) -> list[dict[int, int]]:
        """For each part of the warp that goes at once: bank -> how many words of it are wanted."""
        together = WARP if self.size <= 4 else WARP // 2 if self.size <= 8 else WARP // 4
        parts = []
        for start in range(0, WARP, together):
            lanes = {i: at for i, at in self.lanes.items() if start <= i < start + together}
            words = Request(self.block, self.warp, self.step, self.site, self.size, lanes).words
            parts.append(dict(Counter(word % BANKS for word in words)))
        return parts

    @property
    def _offsets(self) -> set[int]:
        return set(self.lanes.values())


class Log:
    """The first accesses of the watched blocks, in each thread's own order.

    `blocks` are those watched; `whole` says for each whether all of its accesses are here;
    `sites` the places of the source; `rows` is int [accesses, 7], see COLUMNS.
    """

    def __init__(
        self,
        blocks: Iterable[tuple[int, int, int]] = (),
        whole: Iterable[bool] = (),
        sites: Iterable[Site] = (),
        rows: np.ndarray | None = None,
    ):
        self.blocks, self.whole, self.sites = list(blocks), list(whole), list(sites)
        self.rows = np.zeros((0, len(COLUMNS)), np.int64) if rows is None else rows

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other) -> bool:
        return isinstance(other, Log) and self.to_dict() == other.to_dict()

    __hash__ = None

    @cached_property
    def events(self) -> list[Event]:
        """Every access, spelled out."""
        made = []
        for block, thread, step, number, offset, size, turn in self.rows.tolist():
            site = self.sites[number]
            fields = (site.line, site.what, site.name, offset // site.item)
            made.append(Event(thread, step, *fields, offset, size, turn, self.blocks[block]))
        return made

    def warps(self, block: tuple[int, int, int]) -> list[int]:
        """The warps of a watched block that the log knows."""
        return sorted({int(t) // WARP for t in self._of_block(block)[:, 1]})

    def requests(self, block: Sequence[int], warp: int) -> list[Request]:
        """What a warp of a watched block did, one instruction after the other.

        Raises: KeyError for a block that was not watched.
        """
        x, y, z = block
        at = (x, y, z)
        rows = self._of_block(at)
        rows = rows[rows[:, 1] // WARP == warp]
        made = []
        for step, part in groupby(rows[np.argsort(rows[:, 2], kind="stable")].tolist(), _step):
            for group in _together(list(part)):
                site, size = self.sites[group[0][3]], max(row[5] for row in group)
                lanes = {row[1] % WARP: row[4] for row in group}
                made.append(Request(at, warp, step, site, size, lanes))
        return made

    def _of_block(self, block: tuple[int, int, int]) -> np.ndarray:
        if block not in self.blocks:
            known = ", ".join(map(str, self.blocks)) or "none"
            raise KeyError(
                f"block {block} was not watched; watched: {known}. "
                "k.trace.steps(block=...)[grid, block](...) watches others"
            )
        return self.rows[self.rows[:, 0] == self.blocks.index(block)]

    def to_dict(self) -> dict:
        """Everything as plain data: `columns` has one list for each of COLUMNS."""
        return {
            "blocks": [list(b) for b in self.blocks],
            "whole": list(self.whole),
            "sites": [[s.line, s.what, s.name, s.shared, s.item, s.phase] for s in self.sites],
            "columns": dict(zip(COLUMNS, self.rows.T.tolist(), strict=True)),
        }

    @classmethod
    def from_dict(cls, data: dict) -> Log:
        """The log that `to_dict` was made from."""
        rows = np.array([data["columns"][name] for name in COLUMNS], np.int64).T
        sites = [Site(*s) for s in data["sites"]]
        return cls([(x, y, z) for x, y, z in data["blocks"]], data["whole"], sites, rows)


def make_log(report, regions, where, what, grid, watched) -> Log:
    """The log of a runner's report; `where` maps addresses to lines, `what` codes to words."""
    events = report["events"][: int(report["n_events"])]
    places = _Places(report, regions, where, what)
    number, offset = places.of(events["site"].astype(np.int64), events["offset"].astype(np.int64))
    turn = _by_first_use(events["turn"])
    names = (events["watched"], events["thread"], events["step"], number, offset, events["size"])
    rows = np.stack([*(n.astype(np.int64) for n in names), turn], 1)
    whole = [not int(report["cut"]) >> i & 1 for i in range(len(watched))]
    for i in (i for i, all_there in enumerate(whole) if not all_there):
        rows = _without_half_a_warp(rows, i)
    return Log([place_of(b, grid) for b in watched], whole, places.sites, rows)


def _without_half_a_warp(rows: np.ndarray, block: int) -> np.ndarray:
    """Drops what a warp did after its last barrier where the log ended before all its lanes did."""
    own = rows[:, 0] == block
    if not own.any():
        return rows
    _, thread, step = rows[own][-1][:3]
    last = own & (rows[:, 1] // WARP == thread // WARP) & (rows[:, 2] == step)
    return rows if (last == own).all() else rows[~last]


class _Places:
    """Finds for a site of the runner and an offset which tensor or variable that is, and where."""

    def __init__(self, report, regions, where, what):
        self.report, self.regions, self.where, self.what = report, regions, where, what
        self.sites: list[Site] = []
        self.numbers: dict[Site, int] = {}

    def of(self, site: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        number, at = np.zeros_like(site), np.zeros_like(offset)
        for one in np.unique(site).tolist():
            mine = np.flatnonzero(site == one)
            s = self.report["sites"][one]
            for name, start, size, shared, *more in self._pieces(int(s["region"])):
                inside = mine[(offset[mine] >= start) & (offset[mine] < start + size)]
                if len(inside):
                    line = self.where.get(int(s["pc"]) - 1)
                    made = Site(line, self.what(int(s["how"])), name, shared, *more)
                    number[inside] = self._number(made)
                    at[inside] = offset[inside] - start
                    mine = mine[~np.isin(mine, inside)]
        return number, at

    def _pieces(self, index: int):
        """(name, first byte, bytes, shared, item, phase) of all that a region holds."""
        if index != SHARED:
            region = self.regions[index]
            for name, t in zip(region.names, region.tensors, strict=True):
                item = t.element_size()
                yield name, t.data_ptr() - region.low, t.numel() * item, False, item, phase(t)
            return
        for name in self.report["names"][: int(self.report["n_names"])]:
            yield name["name"].decode(), int(name["offset"]), int(name["size"]), True, 1, 0
        yield "dynamic", 0, 1 << 62, True, 1, 0

    def _number(self, site: Site) -> int:
        if site not in self.numbers:
            self.numbers[site] = len(self.sites)
            self.sites.append(site)
        return self.numbers[site]


def _by_first_use(values: np.ndarray) -> np.ndarray:
    """Equal values get equal numbers, from 0 in the order in which they first occur."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse.reshape(-1)]


def place_of(linear: int, size: Sequence[int]) -> tuple[int, int, int]:
    """The place (x, y, z) of a block in its grid, or a thread in its block, by its number."""
    wide, high = size[:2]
    return linear % wide, linear // wide % high, linear // (wide * high)


def _step(row: list[int]) -> int:
    return row[2]


def _together(rows: list[list[int]]) -> list[list[list[int]]]:
    """Rows of one warp between two barriers, as groups of lanes that go together.

    A lane's own groups stay in its order; what only other lanes do is put in where they do it.
    """
    groups: dict[tuple, list] = {}
    order: list[tuple] = []
    for _, lane in groupby(sorted(rows, key=lambda r: r[1]), lambda r: r[1]):
        before, seen = None, {}
        for row in lane:
            key = (row[3], row[6])
            seen[key] = seen.get(key, 0) + 1  # the same again: a goto, or a loop without a count
            key = (*key, seen[key])
            if key not in groups:
                groups[key] = []
                at = len(order) if before == (order[-1] if order else None) else None
                at = at if at is not None else (order.index(before) + 1 if before else 0)
                order.insert(at, key)
            groups[key].append(row)
            before = key
    return [groups[key] for key in order]
