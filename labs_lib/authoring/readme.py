"""The README's table of labs, made from the exercises: `python -m labs_lib.authoring.readme`."""

from __future__ import annotations

from pathlib import Path

from ..exercises import exercises, labs
from ..exercises.kit import Lab
from ..notebook.atomic import write_text
from ..paths import home

BEGIN, END = "<!-- labs: begin -->", "<!-- labs: end -->"


def table() -> str:
    """A Markdown table with a row for each lab: question, minutes, exercises, quiz, points."""
    lines = [
        "| | Lab | The question | Minutes | Exercises | Quiz | Points |",
        "|---|---|---|--:|--:|--:|--:|",
        *(_row(lab) for lab in labs()),
        _total(),
    ]
    return "\n".join(lines)


def with_table(text: str) -> str:
    """The README's text with the table between its two markers made anew.

    Raises:
        ValueError: if the markers aren't there once each, in order.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"the README needs {BEGIN} and {END} once each, in this order")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def update(file: Path) -> bool:
    """Write the table into the README; return whether that changed it."""
    text = file.read_text(encoding="utf-8")
    made = with_table(text)
    if made != text:
        write_text(file, made)
    return made != text


def _row(lab: Lab) -> str:
    items = exercises(lab.number)
    quiz = sum(item.points == 0 for item in items)
    points = sum(item.points for item in items)
    link = f"[{lab.title}](notebooks/{lab.stem}.ipynb)"
    question = lab.question.replace("|", r"\|")
    return (
        f"| {lab.number:02d} | {link} | {question} | {lab.minutes} | {len(items) - quiz} "
        f"| {quiz} | {points} |"
    )


def _total() -> str:
    items = exercises()
    quiz = sum(item.points == 0 for item in items)
    minutes = sum(lab.minutes for lab in labs())
    points = sum(item.points for item in items)
    return f"| | | | {minutes} | {len(items) - quiz} | {quiz} | {points} |"


if __name__ == "__main__":
    changed = update(home() / "README.md")
    print("README.md: the table of labs was brought up to date" if changed else "README.md is fine")
