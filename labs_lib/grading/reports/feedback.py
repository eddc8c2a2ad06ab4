"""One page of feedback per student: one HTML file, with all that a student wrote escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import groupby
from typing import Protocol

from ...workbook.own_report import OwnReport, fragment
from ...workbook.plain_pages import escaped, plain_page
from ..intake.lateness import Late, number
from ..judge import Outcome

_WORDS = {
    "pass": ("pass", "right"),
    "fail": ("bad", "not right"),
    "error": ("bad", "error"),
    "timeout": ("bad", "too slow"),
    "memory": ("bad", "too much memory"),
    "crash": ("bad", "crash"),
    "not-attempted": ("open", "not attempted"),
    "wrong-assignment": ("open", "another lab's"),
    "unreadable": ("bad", "unreadable"),
    "needs-review": ("open", "under review"),
    "infrastructure": ("open", "to be run again"),
}
_HINTED = ("fail", "error", "timeout", "memory")


class Run(Protocol):
    """What a page needs to know of the whole run."""

    @property
    def maximum(self) -> int: ...
    @property
    def fence(self) -> str: ...
    @property
    def titles(self) -> Mapping[str, str]: ...
    @property
    def own(self) -> Mapping[str, OwnReport]: ...
    @property
    def hints(self) -> Mapping[str, str]: ...


class Student(Protocol):
    """What a page tells of one student."""

    @property
    def student(self) -> str: ...
    @property
    def outcomes(self) -> Sequence[Outcome]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def files(self) -> Sequence[str]: ...
    @property
    def late(self) -> Mapping[str, Late]: ...
    @property
    def comment(self) -> str: ...
    @property
    def total(self) -> float: ...


def page(row: Student, run: Run) -> str:
    """The page of one student."""
    undecided = sum(1 for one in row.outcomes if one.points is None)
    waiting = f" ({undecided} still to be decided)" if undecided else ""
    labs = [
        _lab(lab, list(own), row.late.get(lab), run)
        for lab, own in groupby(row.outcomes, key=lambda one: one.exercise.partition(".")[0])
    ]
    title = f"Feedback for {row.student}"
    return plain_page(
        title,
        _style(),
        f"<h1>{escaped(title)}</h1>",
        f'<p class="total">{number(row.total)} of {run.maximum} points{waiting}</p>',
        _paragraph("said", row.comment),
        _list("Handed in", row.files),
        _list("Noticed", row.notes),
        *labs,
        _own(run.own.get(row.student)),
        f'<p class="quiet fence">{escaped(run.fence)}</p>',
    )


def _lab(lab: str, outcomes: Sequence[Outcome], late: Late | None, run: Run) -> str:
    points = sum(one.points or 0 for one in outcomes) - (late.points if late else 0)
    maximum = sum(one.maximum for one in outcomes)
    title = escaped(run.titles.get(lab, lab))
    told = f"{number(max(0, points))} of {maximum} points"
    return "\n".join(
        [
            f'<h2>{title} <span class="quiet">{told}</span></h2>',
            _paragraph("quiet", late.told if late else ""),
            *(_exercise(one, run.hints.get(one.exercise, "")) for one in outcomes),
        ]
    )


def _exercise(one: Outcome, hint: str) -> str:
    kind, word = _WORDS[one.status]
    if one.mark is not None:
        kind, word = ("pass" if one.is_right else "open"), "marked by hand"
    points = "?" if one.points is None else number(one.points)
    told = f" · {points} of {one.maximum}" if one.maximum else ""
    wrong = one.status in _HINTED and not one.is_right
    how = f"Found by {one.how}. " if one.how else ""
    return "\n".join(
        [
            f'<h3><span class="mark {kind}">{escaped(word)}</span> {escaped(one.exercise)}'
            f'<span class="quiet">{told}</span></h3>',
            _paragraph("said", one.comment),
            _paragraph("said", "\n".join(one.lines)),
            _paragraph("quiet", f"Hint: {hint}" if hint and wrong else ""),
            _paragraph("quiet", how + " ".join(map(_sentence, one.notes))),
        ]
    )


def _paragraph(kind: str, text: str) -> str:
    return f'<p class="{kind}">{escaped(text)}</p>' if text.strip() else ""


def _own(report: OwnReport | None) -> str:
    """What a student's own notebook says of itself: shown, escaped, and said to count nothing."""
    if report is None:
        return ""
    said = "Made on the student's own machine and not checked: it counts for no marks."
    return f'<section class="own">{fragment(report)}<p class="quiet">{escaped(said)}</p></section>'


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:]


def _list(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    rows = "".join(f"<li>{escaped(item)}</li>" for item in items)
    return f'<p class="quiet">{title}:</p><ul class="quiet">{rows}</ul>'


@cache
def _style() -> str:
    return (resources.files("labs_lib.grading.reports") / "feedback.css").read_text(
        encoding="utf-8"
    )
