"""A compiler's error is shown at the cell's own line, with a caret and a plain hint."""

from __future__ import annotations

import pytest

from labs_lib import cuda
from labs_lib.cuda.diagnose import explain

CASES = {
    "missing semicolon": ("x[0] = 1\n    x[1] = 2;", 3, "`;` is missing"),
    "misspelled name": ("x[0] = threadIdx.x;\n    y[0] = 2;", 4, "misspelled"),
    "misspelled builtin": ("x[0] = threadidx.x;", 3, "threadIdx"),
    "write to const": ("x[0] = 1;\n\n    c[0] = 2;", 5, "const"),
    "after shared": ("__shared__ float a[3],\n  b[4];\n    a[0] = z;", 5, "misspelled"),
    "array of an unknown size": ("float row[n];\n    x[0] = row[0];", 3, "when the kernel is"),
    "missing brace": ("if (n) { x[0] = 1;", 2, "closing brace"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_first_error_has_the_cells_own_line(make, name):
    body, line, hint = CASES[name]
    with pytest.raises(cuda.CompileError) as caught:
        make(body, params="float* x, const float* c, int n")
    assert caught.value.line == line
    first = str(caught.value).split("\n")[0]
    assert first.startswith(f"line {line}: ") and hint in str(caught.value)
    assert "/" not in first, "no path of ours in a student's message"
    assert caught.value.log, "the whole log is kept"


def test_the_caret_stands_below_the_fault(make):
    with pytest.raises(cuda.CompileError) as caught:
        make("__shared__ float a[3]; a[0] = wrong;")
    _, source, caret, *_ = str(caught.value).split("\n")
    assert source[caret.index("^") :].startswith("wrong")


def test_a_failed_build_is_not_kept_and_the_mended_cell_runs(make):
    import torch

    with pytest.raises(cuda.CompileError):
        make("x[0] = oops;")
    x = torch.zeros(1)
    make("x[0] = 5;")[1, 1](x, 1)
    assert x.item() == 5


def test_nvccs_form_of_an_error_is_understood():
    source = "__global__ void k(float* x) {\n  x[0] = y;\n}"
    log = 'cell.cu(2): error: identifier "y" is undefined\n    x[0] = y;\n1 error detected\n'
    problem = explain(log, source, source, "cell.cu")
    assert problem.line == 2
    assert str(problem).split("\n")[:3] == [
        'line 2: identifier "y" is undefined', "    x[0] = y;", "           ^",
    ]  # fmt: skip


def test_a_log_without_a_line_of_the_cell_is_still_told():
    problem = explain("ld: error: no space left on device", "a", "a", "cell.cu")
    assert problem.line is None and "no space left" in str(problem)
