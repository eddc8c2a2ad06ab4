"""The house as data, and its picture: `python -m labs_lib.authoring.house` draws it anew.

A room is a module or package of `labs_lib`. It may import its own parts and rooms of lower floors.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from ..notebook.atomic import write_text
from ..paths import home

# From the ground up. On the ground floor, where each room is small, neighbours may be imported too.
FLOORS = [
    "__init__ errors paths config arithmetic plots notebook claims withheld nbval_plugin",
    "attention cuda models training",
    "exercises",
    "answers",
    "checking",
    "widgets workbook",
    "authoring",
    "grading",
    "bench",
    "cli",
]

WORDS = {
    "__init__": "the version",
    "errors": "a command's one sentence",
    "paths": "where things lie",
    "config": "a layer's sizes",
    "arithmetic": "what they cost",
    "plots": "pictures of tensors",
    "notebook": "cells; reading, matching, merging",
    "claims": "what lessons say",
    "withheld": "what a handout keeps back",
    "nbval_plugin": "a check fails under nbval",
    "attention": "the references, step by step",
    "cuda": "kernels, compiled and traced, with or without a GPU",
    "models": "two pretrained models",
    "training": "tiny models, and their records",
    "exercises": "what is asked: stub, cases, rules, hints; no answer",
    "answers": "reference, wrong and right programs; loaded by name only: handouts can lack them",
    "checking": "a student's program in, one of four outcomes out; hints, progress",
    "bench": "speeds, beside a peer",
    "widgets": "what a student moves",
    "workbook": "check, reset, update, submit, doctor",
    "authoring": "one source, two notebooks; handouts",
    "grading": "intake, transplant, sandbox, judge, report",
    "cli": "`labs`: one command",
}

_BESIDE = {
    "cli": "everybody's door",
    "grading": "instructors",
    "authoring": "instructors, authors",
    "bench": "students",
    "answers": "contributors",
    "exercises": "contributors",
}
_WIDTH, _LEFT, _RIGHT, _TOP, _HEIGHT, _GAP = 1080, 40, 150, 66, 62, 10
_STYLE = (
    "text{font-family:system-ui,sans-serif;fill:#1b1f24}.n{font-size:14px;font-weight:600}"
    ".w{font-size:11px;fill:#424a53}.s{font-size:12px;fill:#424a53}.t{font-size:17px;font-weight:600}"
)
_COLOURS = ("#e7ebf1", "#dde8e4", "#e4e6d2", "#f1e3cf", "#e4e6d2", "#dde8e4", "#e7ebf1", "#e7ebf1")


def picture() -> str:
    """The picture of the floors as SVG, the door on top."""
    floors = list(reversed(FLOORS))
    tall = [2 if len(rooms.split()) > 5 else 1 for rooms in floors]
    height = _TOP + sum(tall) * (_HEIGHT + _GAP) + 40
    title = "The house: a room imports what stands below it, never what stands above"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{title}</title>",
        f"<desc>{escape(_described())}</desc>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text class="t" x="{_LEFT}" y="34">{title}</text>',
    ]
    y = _TOP
    for number, rooms in enumerate(floors):
        parts += _floor(rooms.split(), y, tall[number], _COLOURS[number % len(_COLOURS)])
        y += tall[number] * (_HEIGHT + _GAP)
    parts += _arrow(_TOP, y - _GAP)
    parts.append(f'<text class="s" x="{_LEFT}" y="{y + 16}">{_footer()}</text>')
    return "\n".join([*parts, "</svg>", ""])


def draw(file: Path) -> bool:
    """Write the picture; return whether that changed the file."""
    made = picture()
    if file.is_file() and file.read_text(encoding="utf-8") == made:
        return False
    write_text(file, made)
    return True


def _floor(rooms: list[str], y: int, rows: int, colour: str) -> list[str]:
    """The boxes of a floor in one or two rows, and who works there."""
    per_row = -(-len(rooms) // rows)
    wide = (_WIDTH - _LEFT - _RIGHT - (per_row - 1) * _GAP) / per_row
    parts = []
    for number, name in enumerate(rooms):
        row, column = divmod(number, per_row)
        x, top = _LEFT + column * (wide + _GAP), y + row * (_HEIGHT + _GAP)
        parts += _room(name, x, top, wide, colour)
    beside = next((_BESIDE[name] for name in rooms if name in _BESIDE), "")
    if beside:
        x, middle = _WIDTH - _RIGHT + 14, y + _HEIGHT // 2 + 4
        parts.append(f'<text class="s" x="{x}" y="{middle}">{beside}</text>')
    return parts


def _room(name: str, x: float, y: float, wide: float, colour: str) -> list[str]:
    dashed = ' stroke-dasharray="6 4"' if name == "answers" else ""
    parts = [
        f'<rect x="{x:.0f}" y="{y}" width="{wide:.0f}" height="{_HEIGHT}" rx="5" '
        f'fill="{colour}" stroke="#57606a"{dashed}/>',
        f'<text class="n" x="{x + 9:.0f}" y="{y + 19}">{escape(name)}</text>',
    ]
    for number, line in enumerate(_lines(WORDS[name], int((wide - 14) / 5.7))[:2]):
        parts.append(f'<text class="w" x="{x + 9:.0f}" y="{y + 36 + 14 * number}">{line}</text>')
    return parts


def _lines(words: str, most: int) -> list[str]:
    lines = [""]
    for word in escape(words).split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _arrow(top: int, bottom: int) -> list[str]:
    x = _LEFT - 20
    return [
        f'<path d="M{x} {top} V{bottom - 8}" stroke="#57606a" stroke-width="2"/>',
        f'<path d="M{x - 5} {bottom - 10} L{x} {bottom} L{x + 5} {bottom - 10} Z" fill="#57606a"/>',
    ]


def _footer() -> str:
    return (
        "models and training leave attention alone; exercises never call a reference; "
        "attention, arithmetic and cuda need no Jupyter"
    )


def _described() -> str:
    return "Floors from the top: " + "; ".join(", ".join(f.split()) for f in reversed(FLOORS))


if __name__ == "__main__":
    changed = draw(home() / "docs" / "images" / "house.svg")
    print("docs/images/house.svg was drawn anew" if changed else "docs/images/house.svg is fine")
