"""What a traced run found wrong, in words with lines, threads and blocks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from labs_lib.cuda import faults
from labs_lib.cuda.layout import SHARED

RACE, CROSS_BLOCK, UNINITIALISED, ABSENT, ORDER = 1, 2, 3, 4, 5
LATE = 4  # of a finding's `how`: the first access is a copy that has not arrived


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: `kind`, a sentence, and where it was first seen.

    `line`, `thread`, `block` are of the access that showed it; `other_*` of the one that it
    clashes with. `harmless` marks threads that wrote equal values.
    """

    kind: str
    message: str
    line: int | None = None
    thread: tuple | None = None
    block: tuple | None = None
    other_line: int | None = None
    other_thread: tuple | None = None
    other_block: tuple | None = None
    where: str | None = None
    count: int = 1
    harmless: bool = False

    def to_dict(self) -> dict:
        """The finding as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict) -> Finding:
        """The finding that `to_dict` was made from."""
        made: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        return cls(**made)


def read(report, regions, lines: dict[int, int | None]) -> list[Finding]:
    """The findings of a report; `lines` maps addresses to lines of the cell."""
    made = []
    for f in report["findings"][: int(report["n_findings"])]:
        make = {RACE: _race, CROSS_BLOCK: _cross, UNINITIALISED: _uninitialised}
        make |= {ABSENT: _absent, ORDER: _order}
        made.append(make[int(f["kind"])](f, _where(report, regions, f), lines))
    return made


def addresses(report) -> list[int]:
    """Addresses whose lines the findings need."""
    found = report["findings"][: int(report["n_findings"])]
    wanted = [f for f in found if int(f["kind"]) not in (ABSENT, ORDER)]
    return [int(f[k]) - 1 for f in wanted for k in ("pc_a", "pc_b") if f[k]]


def from_fault(problem) -> Finding:
    """A fault that ended the run, as a finding."""
    return Finding(
        problem.kind, str(problem), line=problem.line, thread=problem.thread, block=problem.block
    )


def _where(report, regions, f) -> str:
    index, offset = int(f["region"]), int(f["offset"])
    if index == SHARED:
        for name in report["names"][: int(report["n_names"])]:
            at = offset - int(name["offset"])
            if 0 <= at < int(name["size"]):
                return f"{name['name'].decode()} (byte {at} of {int(name['size'])}, shared)"
        return f"byte {offset} of the dynamic shared memory"
    if 0 <= index < len(regions):
        touched = faults.element(regions[index], offset)
        return f"{touched.name}[{touched.at}]"
    return ""


def _pair(f, lines) -> dict:
    thread, block = faults.places(f["b"])
    other_thread, other_block = faults.places(f["a"])
    return {
        "line": lines.get(int(f["pc_b"]) - 1),
        "thread": thread,
        "block": block,
        "other_line": lines.get(int(f["pc_a"]) - 1),
        "other_thread": other_thread,
        "other_block": other_block,
        "count": int(f["count"]),
    }


def _at(line: int | None) -> str:
    """Where no line is known, as on a machine without addr2line, that is said."""
    return f"in line {line}" if line else "in a line that isn't known"


_VERBS = {1: ("writes", "reads"), 2: ("reads", "writes"), 3: ("writes", "writes too")}


def _race(f, where, lines) -> Finding:
    pair = _pair(f, lines)
    if int(f["how"]) & LATE:
        return _too_early(f, where, pair)
    first, second = _VERBS[int(f["how"])]
    same = bool(f["same"])
    message = (
        f"Race on {where}: thread {pair['other_thread']} {first} it {_at(pair['other_line'])}, "
        f"thread {pair['thread']} {second} {_at(pair['line'])}, and no "
        f"barrier stands between (block {pair['block']})."
    )
    if same:
        message += " Both write the same value, which today's GPUs bear."
    return Finding("race", message, where=where, harmless=same, **pair)


def _too_early(f, where, pair) -> Finding:
    does = "writes" if int(f["how"]) & 2 else "reads"
    message = (
        f"Race on {where}: thread {pair['thread']} {does} it {_at(pair['line'])} while the "
        f"copy that thread {pair['other_thread']} began {_at(pair['other_line'])} is under way "
        f"(block {pair['block']}). Its group must be waited for before a __syncthreads() in "
        "between, and who still reads the old content needs one before the copy begins."
    )
    return Finding("race", message, where=where, **pair)


def _cross(f, where, lines) -> Finding:
    pair = _pair(f, lines)
    first, second = _VERBS[int(f["how"])]
    same = bool(f["same"])
    message = (
        f"Blocks clash on {where}: block {pair['other_block']} {first} it "
        f"{_at(pair['other_line'])}, block {pair['block']} {second} {_at(pair['line'])}. "
        "Blocks run in any order and at once; give each its own place, or use an atomic."
    )
    return Finding("cross-block", message, where=where, harmless=same, **pair)


def _uninitialised(f, where, lines) -> Finding:
    pair = _pair(f, lines)
    for key in ("other_line", "other_thread", "other_block"):
        pair.pop(key)
    message = (
        f"Thread {pair['thread']} of block {pair['block']} reads {where} {_at(pair['line'])} "
        "before any thread has written it."
    )
    return Finding("uninitialised", message, where=where, **pair)


def _absent(f, where, lines) -> Finding:
    thread, block = faults.places(f["b"])
    gone, _ = faults.places(f["a"])
    line, lanes = int(f["pc_b"]), int(f["offset"]) & 0xFFFFFFFF
    message = (
        f"The warp operation of line {line} names lanes that have ended ({lanes:#010x}, first "
        f"thread {gone}); what they bring is undefined."
    )
    return Finding(
        "absent-lanes", message, line, thread, block, other_thread=gone, count=int(f["count"])
    )


def _order(f, where, lines) -> Finding:
    how = {1: "backwards", 2: "shuffled"}.get(int(f["how"]), "in another order")
    message = (
        f"The result depends on the order of blocks: with blocks run {how}, {where} comes out "
        "different."
    )
    return Finding("block-order", message, where=where)
