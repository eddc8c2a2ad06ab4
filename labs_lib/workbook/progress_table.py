"""`labs progress`: what is done, lab by lab, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from ..checking import progress
from ..exercises import exercises, labs
from ..exercises.kit import Exercise

STYLES = {"passed": "green", "not attempted": "dim"}


@dataclass(frozen=True)
class Row:
    """One exercise: its state, how often it was tried, how many hints were shown, its points."""

    lab: str
    exercise: str
    title: str
    state: str
    tries: int
    hints: int
    points: int

    @property
    def passed(self) -> bool:
        """Whether its check passed at some time."""
        return self.state == "passed"


def rows(which: str | int | None = None) -> list[Row]:
    """The state of every exercise of one lab, or of the course.

    Raises:
        UnknownLab: if there is no such lab.
    """
    return [_row(item, progress.entry(item.name)) for item in exercises(which)]


def show(which: str | int | None = None, console: Console | None = None) -> None:
    """Print a table per lab and the total.

    Raises:
        UnknownLab: if there is no such lab.
    """
    console = console or Console(highlight=False)
    found = rows(which)
    if progress.folder() is None:
        console.print("Progress is switched off here (LABS_STATE=off, or the solutions' folder).")
    for lab in labs():
        mine = [row for row in found if row.lab == lab.name]
        if mine:
            console.print(_table(f"{lab.number:02d} · {lab.title}", mine))
    done = sum(row.passed for row in found)
    points = sum(row.points for row in found if row.passed)
    total = sum(row.points for row in found)
    console.print(
        f"{done} of {len(found)} exercises and quiz questions passed, {points} of {total} points"
    )


def _row(item: Exercise, entry: dict[str, Any]) -> Row:
    outcome = entry.get("outcome")
    if entry.get("passed") is True:
        state = "passed"
    elif isinstance(outcome, str) and outcome:
        state = outcome.lower()
    else:
        state = "not attempted"
    return Row(
        item.lab,
        item.name,
        item.title,
        state,
        progress.count(entry, "tries"),
        progress.count(entry, "hints"),
        item.points,
    )


def _table(title: str, found: list[Row]) -> Table:
    done = sum(row.passed for row in found)
    table = Table(title=f"{title}   {done}/{len(found)}", title_justify="left", box=None)
    table.add_column("exercise", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("tries", justify="right")
    table.add_column("hints", justify="right")
    table.add_column("points", justify="right")
    for row in found:
        state = f"[{STYLES.get(row.state, 'yellow')}]{row.state}[/]"
        points = str(row.points) if row.points else ""
        table.add_row(row.exercise, state, str(row.tries), str(row.hints or ""), points)
    return table
