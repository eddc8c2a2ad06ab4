"""The small lab of `tests/checking/kernel_exercises.py` as a whole course, ready to be graded."""

from __future__ import annotations

import importlib
import io
import sys
from pathlib import Path

import nbformat

from labs_lib.authoring import handout
from labs_lib.exercises import lab, registry
from labs_lib.grading.course import Course, stub_of
from labs_lib.grading.expected import key as keys
from labs_lib.grading.grade import grade
from labs_lib.grading.intake import candidates
from labs_lib.notebook.cells import KEY, cell_id, exercise_name, role

CHECKING = Path(__file__).parents[1] / "checking"
sys.path.insert(0, str(CHECKING))
kernel_exercises = importlib.import_module("kernel_exercises")
kernel_programs = importlib.import_module("kernel_programs")
KERNEL, DOUBLE = "lab90.row_products", "lab90.double"
RIGHT, ANSWER = kernel_programs.RIGHT, kernel_programs.ANSWER
SETUP = """import torch
from labs_lib.checking import begin_lab, check
%load_ext labs_lib.cuda
begin_lab("lab90")"""
SOLUTIONS = {DOUBLE: "def double(x):\n    return x + x", KERNEL: f"%%cuda\n{RIGHT}"}


def install(home, monkeypatch):
    """Make the course's only lab the small one; its handout is the real library with it."""
    monkeypatch.setenv("LABS_HOME", str(home))
    monkeypatch.setitem(registry._modules(), "lab90", kernel_exercises)
    monkeypatch.setitem(sys.modules, "labs_lib.answers.lab90", kernel_programs)
    monkeypatch.setattr(keys, "build_library", _library)
    monkeypatch.setattr(candidates, "_every", candidates._every.__wrapped__)
    (home / "solutions").mkdir(parents=True)
    nbformat.write(_notebook(SOLUTIONS), home / "solutions" / "90_kernels.ipynb")
    return Course(lab(90))


def _library(target, from_lab, *, for_grading):
    handout.build_library(target, lab(0), for_grading=for_grading)
    folder = target / "labs_lib" / "exercises"
    text = (CHECKING / "kernel_exercises.py").read_text(encoding="utf-8")
    (folder / "lab90.py").write_text(text, encoding="utf-8")


def _notebook(answers):
    cells = [_cell(SETUP, "setup", "lab90", 1)]
    for item in kernel_exercises.EXERCISES:
        text = answers[item.name]
        begin, end = ("//", "//") if text.startswith("%%") else ("#", "#")
        head, body = text.split("\n", 1) if begin == "//" else ("", text)
        body = f"{begin} BEGIN SOLUTION\n{body}\n{end} END SOLUTION"
        cells.append(_cell(f"{head}\n{body}".strip("\n"), "answer", item.name, 1))
        cells.append(_cell(f'check("{item.name}", {item.called})', "check", item.name, 1))
    return nbformat.v4.new_notebook(cells=cells, metadata={KEY: {"lab": "lab90"}})


def _cell(source, kind, name, number):
    label = {"role": kind} | ({"exercise": name} if "." in name else {})
    cell = nbformat.v4.new_code_cell(source, metadata={KEY: label})
    cell["id"] = cell_id(name, kind, number)
    return cell


def handed_in(course, **answers):
    """The student's notebook with answers by the exercise's short name; else the course's own."""
    whole = stub_of(course)
    for cell in whole.cells:
        if role(cell) == "answer":
            name = exercise_name(cell)
            cell.source = answers.get(name.partition(".")[2], SOLUTIONS[name])
    return whole


def graded(course, folder, notebooks, **more):
    """Outcomes by student and exercise for notebooks by student."""
    for student, whole in notebooks.items():
        (folder / "in" / student).mkdir(parents=True)
        nbformat.write(whole, folder / "in" / student / "90_kernels.ipynb")
    report = grade(folder / "in", folder / "out", labs="90", stream=io.StringIO(), **more)
    return {row.student: {o.exercise: o for o in row.outcomes} for row in report.rows}
