"""Each wrong program costs exactly the exercises that it is planted in; each right one costs none.

The programs come from the answers by name, so here alone the fenced kernel sees the whole library.
One long notebook per lab holds wrong programs of each exercise, with the right ones spread between
them: every third, since each costs a cell of a real run. What all of them print is told apart in
`test_places`.
"""

from __future__ import annotations

import io
import shutil
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from pupils import dump

import labs_lib
from labs_lib.answers import answer
from labs_lib.checking.syntax import read
from labs_lib.checking.verdict import source_of
from labs_lib.exercises import exercise, labs
from labs_lib.grading.course import Course, stub_of
from labs_lib.grading.expected import key as room
from labs_lib.grading.grade import grade
from labs_lib.grading.judge import judge
from labs_lib.grading.reading.transplant import CHECK_TAG
from labs_lib.grading.run import run_notebook
from labs_lib.grading.sandbox import Limits
from labs_lib.notebook.cells import exercise_name, role
from labs_lib.notebook.matching import Answer, Piece

pytestmark = pytest.mark.slow

COURSES = [Course(lab) for lab in labs()]
PLANTED = """from labs_lib.answers import answer
take = lambda name: answer(bytes.fromhex(name).decode())
"""
SLOWLY = Limits(cell_s=60, notebook_s=900, cpu_s=900)


@pytest.fixture(autouse=True)
def _the_whole_library(monkeypatch):
    def copied(target, from_lab, **_):
        shutil.copytree(
            Path(labs_lib.__file__).parent,
            target / "labs_lib",
            ignore=shutil.ignore_patterns("__pycache__", "grading", "authoring"),
        )
        (target / "labs_lib" / "plots" / "planted.py").write_text(PLANTED, encoding="utf-8")

    monkeypatch.setattr(room, "build_library", copied)


def right(item, number):
    """The text of a cell with one of the right programs, in turn."""
    known = answer(item.name)
    if item.kind == "kernel":
        programs = [known.reference, *(one.program for one in known.right)]
        return f"%%cuda\n{programs[number % len(programs)]}"
    if item.kind != "function":
        return f"{item.called} = {known.reference!r}"
    which = ["reference", *(f"right[{n}].program" for n in range(len(known.right)))]
    return _take(item, which[number % len(which)])


def wrong(item, number):
    """The text of a cell with a wrong program, and the names that its own text would show."""
    program = answer(item.name).wrong[number].program
    if item.kind == "kernel":
        return f"%%cuda\n{program}"
    if item.kind != "function":
        return f"{item.called} = {program!r}"
    names = read(source_of(program), item.forbidden).forbidden
    shown = "".join(f"\n_ = lambda: torch.{name.rpartition('.')[2]}" for name in names)
    return _take(item, f"wrong[{number}].program") + shown


def _take(item, which):
    """Take a program by a module that raises no doubt, and by its exercise's name in hex: as plain
    text that would be a trace of a forbidden one."""
    name = item.name.encode().hex()
    return f'from labs_lib.plots import planted\n{item.called} = planted.take("{name}").{which}'


def _cell(text, label, expected=None):
    cell = nbformat.v4.new_code_cell(text, metadata={"labs": label})
    if expected is not None:
        cell.metadata["tags"], cell.execution_count = [CHECK_TAG], 1
        cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=expected)]
    return cell


def turns(item):
    """Which programs stand in the notebook, in order: (whether it is right, its number)."""
    known = answer(item.name)
    step = 6 if item.kind == "kernel" else 3  # a kernel costs a compiler and many launches
    bad = range(0, len(known.wrong), step)
    good = range(min(1 + len(known.right), len(bad) if item.kind == "kernel" else 99))
    placed = [((n + 1) / (len(bad) + 1), False, number) for n, number in enumerate(bad)]
    placed += [((n + 1) / len(good), True, n) for n in good]  # the last one ends the row
    return [turn[1:] for turn in sorted(placed)]


@pytest.mark.parametrize("course", COURSES, ids=lambda course: course.lab.name)
def test_planted_wrong_programs_fail_and_every_right_one_among_them_passes(
    course, tmp_path, monkeypatch
):
    # That each solution prints what its references do, the class at the end of this file shows.
    monkeypatch.setattr(room, "_confirm", lambda *_: None)
    key = room.make_key(course, 77, tmp_path, limits=SLOWLY)
    setup = [c.source for c in course.notebook.cells if role(c) == "setup"]
    cells = [_cell(text, {"role": "setup"}) for text in setup]
    texts, passes = {}, {}
    for item in course.exercises:
        for good, number in turns(item):
            label = f"{item.name} {number} {good}"
            texts[label], passes[label] = (right if good else wrong)(item, number), good
            mark = {"exercise": label}
            cells.append(_cell(texts[label], mark | {"role": "answer"}))
            check = f"check({item.name!r}, {item.called})"
            cells.append(_cell(check, mark | {"role": "check"}, key.expected[item.name]))
    runs = run_notebook(
        nbformat.v4.new_notebook(cells=cells), policy=key.policy, out=tmp_path / "run"
    )
    for label, good in passes.items():
        item = exercise(label.partition(" ")[0])
        mine = [replace(run, exercise=item.name) for run in runs if run.exercise == label]
        answers = {e.name: Answer(e.name) for e in course.exercises}
        answers[item.name] = Answer(item.name, (Piece(texts[label], 1, ""),), attempted=True)
        one = next(o for o in judge(key, answers, mine) if o.exercise == item.name)
        assert (one.status == "pass") == good, (label, one)
        assert one.status in ("pass", "fail", "error"), (label, one)
        assert good or one.lines, label


def test_wrong_programs_in_every_second_exercise_cost_exactly_those(tmp_path):
    planted = {"ann": set(), "bob": set()}
    for parity, (student, taken) in enumerate(planted.items()):
        (tmp_path / "in" / student).mkdir(parents=True)
        for course in COURSES:
            whole = stub_of(course)
            cells = {exercise_name(cell): cell for cell in whole.cells if role(cell) == "answer"}
            for index, item in enumerate(course.exercises):
                bad = index % 2 == parity
                cells[item.name].source = wrong(item, 0) if bad else right(item, 0)
                taken |= {item.name} if bad else set()
            file = tmp_path / "in" / student / f"{course.lab.number:02d}.ipynb"
            file.write_bytes(dump(whole))
    rows = grade(tmp_path / "in", tmp_path / "out", limits=SLOWLY, stream=io.StringIO()).rows
    assert [row.student for row in rows] == list(planted)
    for row in rows:
        taken = planted[row.student]
        lost = {one.exercise: one for one in row.outcomes if one.status != "pass"}
        assert set(lost) == taken, [lost.get(name, name) for name in set(lost) ^ taken]
        assert row.total == sum(o.maximum for o in row.outcomes if o.exercise not in taken)
