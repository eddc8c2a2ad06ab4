"""What a run shows nobody, and what no submission can steer."""

from __future__ import annotations

import json
import os

import nbformat
import pytest
from fences import LEVELS
from runs import cell, exercise, notebook, of, right, run

from labs_lib.grading.run import CellRun, run_notebook
from labs_lib.grading.run.observe import padded
from labs_lib.grading.run.records import cut
from labs_lib.grading.run.runner import _complete
from labs_lib.grading.sandbox import Policy

SECRET = "expected-4711"


@pytest.mark.parametrize("name", LEVELS)
def test_what_is_expected_lies_in_no_file_and_no_report(tmp_path, name):
    spy = f"""
        import os, pathlib
        found = []
        def look(folder):
            for path in pathlib.Path(folder).rglob("*"):
                try:
                    if b"{SECRET[:5]}" + b"{SECRET[5:]}" in path.read_bytes():
                        found.append(str(path))
                except OSError:
                    pass
        look({str(tmp_path)!r})
        def spy():
            return found
    """
    shows = exercise("spy", spy, expected=f"spy {SECRET}\n")
    numbers = exercise("number", "def number():\n    return 8", expected=f"number {SECRET}\n")
    several = exercise("several", "def several():\n    return 8", expected=f"several {SECRET}\n")
    several[1].outputs.append(
        nbformat.v4.new_output("execute_result", data={"text/plain": SECRET}, execution_count=1)
    )
    old = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(tmp_path)
    try:
        runs = run(tmp_path, shows, numbers, several, name=name, readable=(tmp_path,))
    finally:
        os.environ.pop("TMPDIR") if old is None else os.environ.update(TMPDIR=old)
    assert of(runs, "spy").stdout == "spy []\n"
    assert [one.status for one in runs if one.role == "check"] == ["mismatch"] * 3
    kept = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir())
    assert "number 8" in kept and SECRET not in kept
    assert SECRET not in json.dumps([one.reason + one.traceback for one in runs])


@pytest.mark.parametrize("fault", ["tag", "outputs"])
def test_a_check_that_nbval_would_wave_through_is_refused(tmp_path, fault):
    source = notebook(right("one"))
    if fault == "tag":
        source.cells[-1].metadata["tags"] = []
    else:
        source.cells[-1].outputs = []
    with pytest.raises(ValueError, match=r"check cell 2 .* nbval would pass it"):
        run_notebook(source, policy=Policy(), out=tmp_path / "out")


JUNIT = "<testsuites><testsuite>{}</testsuite></testsuites>"


@pytest.mark.parametrize(
    "case",
    [
        '<testcase name="Cell 0"><skipped message="xfail"/></testcase>',
        '<testcase name="Cell 0"><failure message="differs"/></testcase>',
        '<testcase name="Cell 0"/><testcase name="Cell 0"/>',
        "",
    ],
)
def test_a_pass_needs_a_test_that_ran_once_and_passed(tmp_path, case):
    line = {"kind": "cell", "index": 0, "exercise": "one", "role": "check", "status": "ok"}
    (tmp_path / "cells.jsonl").write_text(json.dumps(line) + '\n{"kind": "ce', encoding="utf-8")
    cells = [cell("print(1)", "check", "one", "1\n")]
    (tmp_path / "junit.xml").write_text(JUNIT.format('<testcase name="Cell 0"/>'), encoding="utf-8")
    assert _complete(cells, tmp_path, None)[0].status == "ok"
    (tmp_path / "junit.xml").write_text(JUNIT.format(case), encoding="utf-8")
    assert _complete(cells, tmp_path, None)[0].status == "infrastructure"


def test_no_submission_file_steers_pytest(tmp_path, monkeypatch):
    (tmp_path / "conftest.py").write_text("raise SystemExit('loaded')", encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts=--collect-only\n", encoding="utf-8")
    nbformat.write(notebook(right("one")), tmp_path / "given.ipynb")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    monkeypatch.chdir(tmp_path)
    runs = run_notebook(tmp_path / "given.ipynb", policy=Policy(), out=tmp_path / "out")
    assert of(runs, "one").status == "ok"


def test_long_texts_are_cut_in_the_middle():
    assert cut("x" * 10, 10) == "x" * 10
    assert cut("a" * 50 + "b" * 50, 20) == "a" * 10 + "\n[80 characters left out]\n" + "b" * 10


def test_strewn_text_is_told_from_a_different_value():
    expected = [{"output_type": "stream", "name": "stdout", "text": "max 1.25\n"}]
    assert padded(expected, "ma.x 1..25\n.")
    assert not padded(expected, "max 1.25\n")
    assert not padded(expected, "max 1.26\nmax 1.24\n")


def test_an_unknown_status_is_refused_by_name():
    with pytest.raises(ValueError, match="status='passed' is not one of ok, mismatch"):
        CellRun(0, None, "setup", "passed")
