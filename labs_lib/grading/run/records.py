"""What is known about each cell of a run, one JSON line at a time."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

STATUSES = (
    "ok",
    "mismatch",
    "error",
    "timeout",
    "memory",
    "crash",
    "output-flood",
    "infrastructure",
    "not-run",
)
STDOUT_CHARS = 100_000
TEXT_CHARS = 2_000
TRACEBACK_CHARS = 4_000
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True)
class CellRun:
    """One code cell of a run.

    index      its number among the code cells, from 0, as nbval counts
    exercise   the exercise it belongs to; None for set-up
    role       setup, answer, check or demo
    status     one of `STATUSES`
    stdout     what the student's kernel printed, cut in the middle when it is long
    ename, evalue, traceback   the Python error, if one was shown; no colours, cut
    seconds    wall time, with whatever had to be repaired before
    reason     a sentence for every status but ok; it never holds an expected value
    cause      for not-run: the status that stopped the exercise (timeout, crash, ...)
    alone      the check was repeated in a fresh kernel without the other exercises
    """

    index: int
    exercise: str | None
    role: str
    status: str
    stdout: str = ""
    ename: str = ""
    evalue: str = ""
    traceback: str = ""
    seconds: float = 0.0
    reason: str = ""
    cause: str = ""
    alone: bool = False

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status={self.status!r} is not one of {', '.join(STATUSES)}")


def append(path: Path, kind: str, **values: Any) -> None:
    """Add one line at once, so that a killed run keeps every line before."""
    line = json.dumps({"kind": kind, **values}, ensure_ascii=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def append_cell(path: Path, cell: CellRun) -> None:
    """Add the result of one cell."""
    append(path, "cell", **asdict(cell))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of the last attempt; a line that a kill cut off is left out."""
    lines: list[dict[str, Any]] = []
    if not Path(path).exists():
        return lines
    with open(path, encoding="utf-8", errors="replace") as file:
        for text in file:
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if line.get("kind") == "attempt":
                lines = []
            lines.append(line)
    return lines


def read_results(path: Path) -> list[CellRun]:
    """The cells that the last attempt finished, by number."""
    cells = {}
    for line in read_lines(path):
        if line.pop("kind") == "cell":
            cell = CellRun(**line)
            cells[cell.index] = cell
    return [cells[index] for index in sorted(cells)]


def cut(text: str, limit: int) -> str:
    """`text` as a file can hold it, without its middle where it is longer than `limit`."""
    text = storable(text)
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


def storable(text: str) -> str:
    """`text` with a question mark for every lone surrogate, which no UTF-8 file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def plain(text: str) -> str:
    """`text` without terminal colours."""
    return _ESCAPE.sub("", text)
