"""One page of feedback per student: one HTML file, with all that a student wrote escaped."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import groupby
from typing import Protocol

from ..workbook.own_report import OwnReport, fragment
from .judge import Outcome

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


class Run(Protocol):
    """What a page needs to know of the whole run."""

    maximum: int
    fence: str
    titles: dict[str, str]
    own: Mapping[str, OwnReport]


def page(
    student: str,
    outcomes: Sequence[Outcome],
    notes: Sequence[str],
    files: Sequence[str],
    run: Run,
) -> str:
    """The page of one student."""
    total = sum(one.points or 0 for one in outcomes)
    undecided = sum(1 for one in outcomes if one.points is None)
    waiting = f" ({undecided} still to be decided)" if undecided else ""
    labs = [
        _lab(lab, list(own), run)
        for lab, own in groupby(outcomes, key=lambda one: one.exercise.partition(".")[0])
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Feedback for {_text(student)}</title>",
            f"<style>{_style()}</style></head><body>",
            f"<h1>Feedback for {_text(student)}</h1>",
            f'<p class="total">{total} of {run.maximum} points{waiting}</p>',
            _list("Handed in", files),
            _list("Noticed", notes),
            *labs,
            _own(run.own.get(student)),
            f'<p class="quiet fence">{_text(run.fence)}</p>',
            "</body></html>\n",
        ]
    )


def _lab(lab: str, outcomes: Sequence[Outcome], run: Run) -> str:
    points = sum(one.points or 0 for one in outcomes)
    maximum = sum(one.maximum for one in outcomes)
    title = _text(run.titles.get(lab, lab))
    head = f'<h2>{title} <span class="quiet">{points} of {maximum} points</span></h2>'
    return "\n".join([head, *(_exercise(one) for one in outcomes)])


def _exercise(one: Outcome) -> str:
    kind, word = _WORDS[one.status]
    points = "" if not one.maximum else f" · {'?' if one.points is None else one.points} of "
    points += f"{one.maximum}" if one.maximum else ""
    lines = [
        f'<h3><span class="mark {kind}">{_text(word)}</span> {_text(one.exercise)}'
        f'<span class="quiet">{points}</span></h3>'
    ]
    if one.lines:
        lines.append(f'<p class="said">{_text(chr(10).join(one.lines))}</p>')
    if one.how or one.notes:
        how = f"Found by {one.how}. " if one.how else ""
        lines.append(f'<p class="quiet">{_text(how + " ".join(map(_sentence, one.notes)))}</p>')
    return "\n".join(lines)


def _own(report: OwnReport | None) -> str:
    """What a student's own notebook says of itself: shown, escaped, and said to count nothing."""
    if report is None:
        return ""
    said = "Made on the student's own machine and not checked: it counts for no marks."
    return f'<section class="own">{fragment(report)}<p class="quiet">{_text(said)}</p></section>'


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:]


def _list(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    rows = "".join(f"<li>{_text(item)}</li>" for item in items)
    return f'<p class="quiet">{title}:</p><ul class="quiet">{rows}</ul>'


def _text(value: str) -> str:
    """Escaped, and without characters that a page must not hold."""
    kept = "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in value
    )
    return html.escape(kept, quote=True)


@cache
def _style() -> str:
    return (resources.files(__package__) / "feedback.css").read_text(encoding="utf-8")
