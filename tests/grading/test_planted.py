"""Each wrong program costs exactly the exercises that it is planted in; each right one costs none.

Student n hands in every lab with wrong program n in the even (or the odd) exercises and a right
program in the others. The programs come from the answers by name, so here alone the fenced kernel
sees the whole library.
"""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest
from pupils import dump

import labs_lib
from labs_lib.answers import answer
from labs_lib.checking.syntax import read
from labs_lib.checking.verdict import source_of
from labs_lib.exercises import exercises, labs
from labs_lib.grading import key as room
from labs_lib.grading.course import Course, stub_of
from labs_lib.grading.grade import grade
from labs_lib.grading.sandbox import Limits
from labs_lib.notebook.cells import exercise_name, role

pytestmark = pytest.mark.slow

NUMBERS = [lab.number for lab in labs() if Course(lab).file.is_file()]
MOST = max(len(answer(item.name).wrong) for item in exercises())


def program(item, wrong, number):
    """The text of a cell that takes a program from the answers; empty where there is none."""
    known = answer(item.name)
    if item.kind != "function":
        value = known.wrong[number % len(known.wrong)].program if wrong else known.reference
        return f"{item.short} = {value!r}"
    if wrong:
        if number >= len(known.wrong):
            return ""
        text = _take(item, f"wrong[{number}].program")
        reading = read(source_of(known.wrong[number].program), item.forbidden)
        return text + "".join(f"\n# a text that names it\n{n}" for n in _names(item, reading))
    choices = ["reference", *(f"right[{n}].program" for n in range(len(known.right)))]
    return _take(item, choices[number % len(choices)])


def _take(item, which):
    return f"from labs_lib.answers import answer\n{item.short} = answer({item.name!r}).{which}"


def _names(item, reading):
    return [name.rpartition(".")[2] for name in reading.forbidden]


def plant(number, parity):
    """A student's notebooks, and the exercises in which a wrong program was planted."""
    notebooks, wrong = {}, set()
    for lab in NUMBERS:
        whole = stub_of(Course(next(one for one in labs() if one.number == lab)))
        for index, item in enumerate(exercises(lab)):
            text = program(item, True, number) if index % 2 == parity else ""
            if text:
                wrong.add(item.name)
            cell = next(
                c for c in whole.cells if role(c) == "answer" and exercise_name(c) == item.name
            )
            cell.source = text or program(item, False, number)
        notebooks[f"{lab:02d}.ipynb"] = dump(whole)
    return notebooks, wrong


def whole_library(target, from_lab, **_):
    shutil.copytree(
        Path(labs_lib.__file__).parent,
        target / "labs_lib",
        ignore=shutil.ignore_patterns("__pycache__", "grading", "authoring"),
    )


def test_planted_programs_cost_exactly_their_exercises(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "build_library", whole_library)
    planted = {}
    for number in range(MOST):
        for parity in (0, 1):
            student = f"student {number} {parity}"
            notebooks, planted[student] = plant(number, parity)
            (tmp_path / "in" / student).mkdir(parents=True)
            for name, content in notebooks.items():
                (tmp_path / "in" / student / name).write_bytes(content)
    report = grade(
        tmp_path / "in",
        tmp_path / "out",
        labs=NUMBERS,
        limits=Limits(cell_s=60, notebook_s=600),
        stream=io.StringIO(),
    )
    for row in report.rows:
        lost = {one.exercise: one for one in row.outcomes if one.status != "pass"}
        assert set(lost) == planted[row.student], [
            (row.student, name, lost[name].status if name in lost else "pass", lost.get(name))
            for name in set(lost) ^ planted[row.student]
        ]
        assert {one.status for one in lost.values()} <= {"fail", "error"}
    assert set().union(*planted.values()) == {
        item.name for number in NUMBERS for item in exercises(number)
    }
