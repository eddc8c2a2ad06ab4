"""The notebooks as a student gets them: they run to the end, and exactly their checks fail."""

from __future__ import annotations

import time

import nbformat
import pytest

from labs_lib.exercises import exercises, labs
from labs_lib.paths import home
from labs_lib.workbook.run_checks import run_checks

LABS = [pytest.param(lab, id=lab.name) for lab in labs()]
SLOWEST = 90.0


def student_file(lab):
    return home() / "notebooks" / f"{lab.stem}.ipynb"


@pytest.mark.parametrize("lab", LABS)
def test_every_lab_has_a_notebook_without_any_output(lab):
    notebook = nbformat.read(student_file(lab), as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None), cell.id
    assert notebook.metadata.kernelspec.name == "python3"


def test_every_notebook_belongs_to_a_lab():
    known = {f"{lab.stem}.ipynb" for lab in labs()}
    for folder in ("notebooks", "solutions"):
        assert {p.name for p in (home() / folder).glob("*.ipynb")} == known


@pytest.mark.slow
@pytest.mark.parametrize("lab", LABS)
def test_untouched_notebook_runs_and_exactly_its_checks_fail(lab):
    begin = time.monotonic()
    report = run_checks(student_file(lab), lab)
    assert report.notes == [], "a cell that is no check fails"
    assert [(one.exercise, one.outcome) for one in report.outcomes] == [
        (item.name, "NOT ATTEMPTED") for item in exercises(lab.number)
    ]
    assert time.monotonic() - begin < SLOWEST


def test_no_notebook_uses_a_front_end_that_is_not_everywhere():
    for folder in ("notebooks", "solutions"):
        for file in (home() / folder).glob("*.ipynb"):
            sources = [c.source for c in nbformat.read(file, as_version=4).cells]
            assert not [s for s in sources if "%matplotlib" in s], file.name
