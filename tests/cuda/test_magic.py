"""`%%cuda` makes a cell's kernels names of the notebook."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "labs_lib.cuda")
    yield shell
    InteractiveShell.clear_instance()


CELL = """__global__ void one(float* x) { x[threadIdx.x] = 1; }
__global__ void two(float* x) { x[threadIdx.x] = 2; }
"""


def test_the_kernels_of_a_cell_become_names(shell, capsys):
    done = shell.run_cell("%%cuda both --arch sm_90\n" + CELL)
    assert done.success and capsys.readouterr().out == ""
    x = torch.zeros(4)
    shell.user_ns["two"][1, 4](x)
    assert (x == 2).all()
    assert shell.user_ns["both"].arch == "sm_90" and list(shell.user_ns["both"]) == ["one", "two"]


def test_a_compiler_error_is_shown_without_a_traceback(shell, capsys):
    done = shell.run_cell("%%cuda\n__global__ void k(float* x) {\n    x[0] = y;\n}\n")
    assert not done.success
    shown = capsys.readouterr()
    text = shown.out + shown.err
    assert "line 2: " in text and "^" in text and "Traceback" not in text
    assert "one" not in shell.user_ns


def test_an_option_without_a_value_is_told(shell, capsys):
    assert not shell.run_cell("%%cuda --arch\n" + CELL).success
    assert "--arch sm_90" in capsys.readouterr().out
