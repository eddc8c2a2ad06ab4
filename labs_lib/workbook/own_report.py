"""A student's one-page report: what their own notebook says of itself, kept beside it.

It is for reading. Nothing in it counts for marks, and whoever shows it escapes every word of it: a
report that comes back from a student is data of sections, never markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..notebook.atomic import write_text
from ..paths import home, state
from .plain_pages import escaped, plain_page

SUFFIX = ".report.json"
FORMAT = 1
MOST_BYTES = 256 * 2**10
MOST_SECTIONS, MOST_ROWS, MOST_CELLS, MOST_CHARS = 20, 60, 6, 4000
_STYLE = (
    "body{font-family:sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}"
    "td{padding:.1rem 1rem .1rem 0;vertical-align:top}"
)


@dataclass(frozen=True)
class Section:
    """A heading, text below it, and rows of a table of two columns or more."""

    title: str
    text: str = ""
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class OwnReport:
    """A report; in a notebook it shows itself."""

    title: str
    sections: tuple[Section, ...]

    def _repr_html_(self) -> str:
        return fragment(self)

    def __repr__(self) -> str:
        lines = [self.title]
        for section in self.sections:
            lines += ["", section.title, *([section.text] if section.text else [])]
            lines += [f"  {'  '.join(row)}" for row in section.rows]
        return "\n".join(lines)


def save(report: OwnReport, stem: str) -> Path | None:
    """Keep a report beside the notebooks, as data for `labs submit` and as a page for its writer.

    Returns the page, or None where nothing is to be kept: in a graded run and in `solutions/`.
    """
    folder = home() / "notebooks"
    if state() is None or not folder.is_dir():
        return None
    data = {
        "format": FORMAT,
        "title": report.title,
        "sections": [
            {"title": s.title, "text": s.text, "rows": [list(row) for row in s.rows]}
            for s in report.sections
        ],
    }
    text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    write_text(folder / f"{stem}{SUFFIX}", text)
    page_file = folder / f"{stem}.report.html"
    write_text(page_file, page(report))
    return page_file


def read(content: bytes) -> OwnReport:
    """The report in a file's bytes, whoever wrote them; all that is too much is cut.

    Raises:
        ValueError: if it is no report.
    """
    if len(content) > MOST_BYTES:
        raise ValueError(f"the report has more than {MOST_BYTES >> 10} KiB")
    try:
        data = json.loads(content.decode("utf-8"))
        found = data["sections"]
        if not isinstance(found, list):
            raise TypeError("sections")
        sections = tuple(_section(one) for one in found[:MOST_SECTIONS])
        return OwnReport(_words(data.get("title", "")), sections)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is no report of this course ({type(error).__name__})") from None


def fragment(report: OwnReport) -> str:
    """The report as HTML without a page around it; everything in it is escaped."""
    parts = [f"<h2>{escaped(report.title)}</h2>"]
    for section in report.sections:
        parts.append(f"<h3>{escaped(section.title)}</h3>")
        if section.text:
            parts.append(f'<p style="white-space:pre-wrap">{escaped(section.text)}</p>')
        if section.rows:
            parts.append(_table(section.rows))
    return "\n".join(parts)


def page(report: OwnReport) -> str:
    """The report as one HTML file that loads nothing and runs nothing."""
    return plain_page(report.title, _STYLE, fragment(report))


def _table(rows: Sequence[Iterable[str]]) -> str:
    lines = [
        "<tr>" + "".join(f"<td>{escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows
    ]
    return f"<table>{''.join(lines)}</table>"


def _section(data: Any) -> Section:
    rows = data.get("rows", [])
    rows = rows[:MOST_ROWS] if isinstance(rows, list) else []
    return Section(
        _words(data.get("title", "")),
        _words(data.get("text", "")),
        tuple(
            tuple(_words(cell) for cell in row[:MOST_CELLS])
            for row in rows
            if isinstance(row, list)
        ),
    )


def _words(value: Any) -> str:
    return value[:MOST_CHARS] if isinstance(value, str) else ""
