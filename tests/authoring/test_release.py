"""One source, two notebooks: nothing drifts, nothing leaks, no student's answer is lost."""

from __future__ import annotations

import json

import nbformat
import pytest

from labs_lib.answers import answer
from labs_lib.authoring.release import (
    ReleaseError,
    execute,
    plan,
    release,
    solution_file,
    student_file,
)
from labs_lib.authoring.source import source_hash
from labs_lib.exercises import exercises, labs
from labs_lib.exercises import lab as find_lab
from labs_lib.notebook.cells import KEY, exercise_name, role

SOURCE = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# 00 · Start here

```{code-cell} ipython3
:tags: [setup]

import torch
from labs_lib.checking import begin_lab, check
begin_lab("lab00")
```

```{code-cell} ipython3
# BEGIN SOLUTION
def first_tensor(x):
    total = x.sum(dim=-1, keepdim=False)
    return total / x.shape[-1]
# END SOLUTION
```

```{code-cell} ipython3
check("lab00.first_tensor", first_tensor)
```
"""
CHECK = 'check("lab00.first_tensor", first_tensor)'
SOURCE += "".join(
    f"""
```{{code-cell}} ipython3
# BEGIN SOLUTION
{item.called} = {answer(item.name).reference!r}
# END SOLUTION
```

```{{code-cell}} ipython3
check("{item.name}", {item.called})
```
"""
    for item in exercises(0)
    if not item.is_program
)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of one lab; returns a function that writes its source."""
    monkeypatch.setenv("LABS_HOME", str(tmp_path))
    (tmp_path / "solutions").mkdir()

    def write(text=SOURCE):
        (tmp_path / "solutions" / "00_start_here.md").write_text(text, encoding="utf-8")
        return tmp_path

    write()
    return write


def quiet(*args):
    """Say nothing."""


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.stem)
def test_notebooks_do_not_drift_from_their_source(lab):
    solution, student = plan(lab)
    stored = nbformat.read(solution_file(lab), as_version=4)
    assert stored.metadata[KEY]["source"] == source_hash(lab), "run `labs release`"
    assert [(c["id"], c.source, c.metadata) for c in stored.cells] == [
        (c["id"], c.source, c.metadata) for c in solution.cells
    ]
    handed = nbformat.read(student_file(lab), as_version=4)
    assert handed == student


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.stem)
def test_stored_checks_of_a_solution_ran_and_passed(lab):
    for cell in nbformat.read(solution_file(lab), as_version=4).cells:
        if role(cell) == "check":
            assert cell.execution_count
            assert "".join(o.get("text", "") for o in cell.outputs).startswith("PASS")


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.stem)
def test_notebooks_stay_small_and_are_never_paired(lab):
    for file in (solution_file(lab), student_file(lab)):
        assert file.stat().st_size < 1_000_000
        metadata = json.loads(file.read_text(encoding="utf-8"))["metadata"]
        assert set(metadata) == {"kernelspec", "language_info", "labs"}
        assert metadata["kernelspec"]["name"] == "python3"


@pytest.mark.slow
def test_release_executes_only_what_changed_and_keeps_a_students_answers(course):
    root = course()
    said = []
    written = release([0], say=said.append)
    assert [f.parent.name for f in written] == ["solutions", "notebooks"]
    assert release([0], say=quiet) == []

    student = root / "notebooks" / "00_start_here.ipynb"
    mine = student.read_text(encoding="utf-8").replace("raise NotImplementedError", "return 1")
    student.write_text(mine, encoding="utf-8")
    course(SOURCE.replace("# 00 · Start here", "# 00 · A new title"))
    with pytest.raises(ReleaseError, match="holds a student's answers"):
        release([0], say=quiet)
    assert student.read_text(encoding="utf-8") == mine
    release([0], force=True, say=quiet)
    assert "A new title" in student.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            SOURCE.replace("# BEGIN SOLUTION\n", "").replace("# END SOLUTION\n", ""),
            "no answer cell",
        ),
        (SOURCE.replace("# END SOLUTION\n", ""), "END SOLUTION"),
        (SOURCE.replace(CHECK, "pass"), "followed by no check cell"),
        (SOURCE.replace("lab00.first_tensor", "lab00.other"), "each exercise of lab00"),
        (SOURCE + f"\n```{{code-cell}} ipython3\n{CHECK}\n```\n", "no answer cell"),
        (
            SOURCE + "\n```{code-cell} ipython3\ntotal = x.sum(dim=-1, keepdim=False)\n```\n",
            "survives",
        ),
        (SOURCE + "\nTry `x`:\n\n    total = x.sum(dim = -1, keepdim = False)\n", "survives"),
    ],
)
def test_release_refuses_a_source_without_markers_or_with_a_leak(course, text, says):
    root = course(text)
    with pytest.raises(ReleaseError, match=says):
        release([0], say=quiet)
    assert not (root / "notebooks").exists()


@pytest.mark.slow
def test_release_refuses_a_solution_that_does_not_pass(course):
    course(SOURCE.replace("return total / x.shape[-1]", "return total"))
    lab = find_lab(0)
    with pytest.raises(ReleaseError, match="FAIL"):
        execute(lab, plan(lab)[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "says"),
    [("import time; time.sleep(60)", "after 1 seconds"), ("import os; os._exit(1)", "ended")],
)
def test_a_cell_that_never_ends_or_ends_the_kernel_is_told_with_its_lab(monkeypatch, code, says):
    monkeypatch.setattr("labs_lib.authoring.release.CELL_SECONDS", 1)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    with pytest.raises(ReleaseError, match=f"00_start_here.md(.|\n)*{says}"):
        execute(find_lab(0), notebook)


def test_student_notebook_gets_the_stub_and_stable_ids(course):
    course()
    first, second = plan(find_lab(0)), plan(find_lab(0))
    assert first == second
    answers = [c for c in first[1].cells if role(c) == "answer"]
    assert [exercise_name(c) for c in answers] == [item.name for item in exercises(0)]
    assert "NotImplementedError" in answers[0].source
    assert "keepdim" not in nbformat.writes(first[1])
    assert answers[0]["id"] == "lab00-first_tensor-answer-1"
