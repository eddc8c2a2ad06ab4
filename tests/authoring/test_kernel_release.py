"""Cells of CUDA are released, reset and submitted as cells of Python are."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import nbformat
import pytest

from labs_lib.authoring.release import ReleaseError, has_answers, plan
from labs_lib.exercises import lab, registry
from labs_lib.notebook.cells import exercise_name, role
from labs_lib.workbook.reset import reset

sys.path.insert(0, str(Path(__file__).parents[1] / "checking"))
kernel_exercises = importlib.import_module("kernel_exercises")
kernel_programs = importlib.import_module("kernel_programs")
KERNEL = "lab90.row_products"
DEMO = "%%cuda\n__global__ void copy(const float* a, float* b) { b[threadIdx.x] = a[threadIdx.x]; }"
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

# 90 · Kernels

```{{code-cell}} ipython3
:tags: [setup]

%load_ext labs_lib.cuda
```

```{{code-cell}} ipython3
{demo}
```

```{{code-cell}} ipython3
# BEGIN SOLUTION
double = lambda x: x + x
# END SOLUTION
```

```{{code-cell}} ipython3
check("lab90.double", double)
```

```{{code-cell}} ipython3
%%cuda
// BEGIN SOLUTION
{right}
// END SOLUTION
```

```{{code-cell}} ipython3
check("lab90.row_products", row_products)
```
"""


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """The notebooks of the small lab, with a demonstration of choice."""
    monkeypatch.setenv("LABS_HOME", str(tmp_path))
    monkeypatch.setitem(registry._modules(), "lab90", kernel_exercises)
    (tmp_path / "solutions").mkdir()
    (tmp_path / "notebooks").mkdir()

    def make(demo=DEMO):
        text = SOURCE.format(demo=demo, right=kernel_programs.RIGHT.strip())
        (tmp_path / "solutions" / "90_kernels.md").write_text(text, encoding="utf-8")
        return plan(lab(90))

    return make


def answer_of(notebook):
    (cell,) = [c for c in notebook.cells if role(c) == "answer" and exercise_name(c) == KERNEL]
    return cell


def test_a_kernels_stub_takes_the_place_of_its_solution_and_nothing_of_it_survives(planned):
    solution, student = planned()
    assert answer_of(student).source == kernel_exercises.STUB.strip("\n")
    assert answer_of(student).source.count("%%cuda") == 1
    text = "\n".join(cell.source for cell in student.cells)
    assert "BEGIN SOLUTION" not in text and "__syncthreads" not in text
    assert "__syncthreads" in answer_of(solution).source


def test_a_line_of_a_kernel_that_survives_in_a_demonstration_stops_the_release(planned):
    with pytest.raises(ReleaseError, match=r"survives.*part\[t\] +\+= part\[t \+ half\]"):
        planned(
            "%%cuda\n__global__ void k(float* part, int t, int half) {\n"
            "            if (t < half) part[t]  += part[t + half];  // said otherwise\n}"
        )


def test_heads_of_loops_and_places_of_threads_are_no_secret(planned):
    planned(
        "%%cuda\n__global__ void k(float* part) {\n"
        "    int row = blockIdx.x, t = threadIdx.x;\n"
        "    for (int half = 32; half > 0; half /= 2) {\n        part[row + t] = half;\n    }\n}"
    )


def test_a_reset_brings_a_kernels_stub_back(planned, tmp_path):
    _, student = planned()
    file = tmp_path / "notebooks" / "90_kernels.ipynb"
    answer_of(student).source = "%%cuda\n" + kernel_programs.RIGHT
    nbformat.write(student, file)
    assert has_answers(file)
    done = reset(KERNEL)
    assert done.backup.exists() and "stub is back" in done.done[0]
    again = nbformat.read(file, as_version=4)
    assert answer_of(again).source == kernel_exercises.STUB.strip("\n")
    assert not has_answers(file)
