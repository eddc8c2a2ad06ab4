"""`%%cuda` makes a cell's kernels names of the notebook."""

from __future__ import annotations

import pytest
import torch

from labs_lib import cuda
from labs_lib.cuda import compilers


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


@pytest.mark.parametrize("words", ["--trace", "one two", "--arch=sm_90", "my-kernels"])
def test_words_that_mean_nothing_are_refused_before_anything_is_built(shell, capsys, words):
    assert not shell.run_cell(f"%%cuda {words}\n{CELL}").success
    shown = capsys.readouterr()
    text = shown.out + shown.err
    assert "%%cuda takes --arch, --only, --traced" in text and f"not {words}" in text
    assert "one" not in shell.user_ns


def test_an_option_without_a_value_is_told(shell, capsys):
    assert not shell.run_cell("%%cuda --arch\n" + CELL).success
    assert "--arch sm_90" in capsys.readouterr().out


def test_only_with_a_template_or_an_unknown_name_says_what_to_do(shell, capsys):
    text = CELL + "template <int N> __global__ void wide(float* x) { x[0] = N; }"
    for name, way in (("wide", 'choose kernels["wide<...>"]'), ("three", "there are: one, two, ")):
        assert not shell.run_cell(f"%%cuda --only {name}\n{text}").success
        shown = capsys.readouterr()
        assert way in shown.out + shown.err


def test_a_cell_that_fails_leaves_no_older_kernel_bound(shell, capsys):
    for broken in ("__global__ void one(float* x) { x[0] = y; }", "void one(float* x) {}",
                   "__global__ one(float* x) { x[0] = 1; }", "__global__ void one("):  # fmt: skip
        assert shell.run_cell("%%cuda\n" + CELL).success
        assert not shell.run_cell("%%cuda\n" + broken).success
        assert "one" not in shell.user_ns and "two" in shell.user_ns, broken


def test_a_comment_unbinds_nothing(shell):
    assert shell.run_cell("%%cuda\n" + CELL).success
    assert shell.run_cell("%%cuda\n// faster than one\n__global__ void three(float* x) {}").success
    assert {"one", "two", "three"} <= set(shell.user_ns)


def test_one_kernel_alone_can_be_kept(shell, capsys):
    assert shell.run_cell("%%cuda --only two\n" + CELL).success
    assert "two" in shell.user_ns and "one" not in shell.user_ns
    assert not shell.run_cell("%%cuda --only three\n" + CELL).success
    assert "no kernel called three" in capsys.readouterr().out


def test_a_kernel_hides_no_function(shell, capsys):
    shell.user_ns["check"] = lambda *_: "checked"
    for name in ("check", "print"):
        assert not shell.run_cell(f"%%cuda\n__global__ void {name}(float* x) {{}}").success
        assert f"{name} is the name of a function" in capsys.readouterr().out
    assert shell.user_ns["check"]() == "checked" and "print" not in shell.user_ns
    shell.user_ns["scores"] = torch.zeros(1)  # a tensor may make room
    assert shell.run_cell("%%cuda\n__global__ void scores(float* x) {}").success


def test_an_error_has_its_own_name(shell):
    error = shell.run_cell("%%cuda\n__global__ void k(float* x) { x[0] = y; }").error_in_exec
    assert type(error).__name__ == "CompileError"


def test_without_a_compiler_a_cell_says_so_and_the_notebook_goes_on(shell, capsys, monkeypatch):
    monkeypatch.setattr(compilers, "host_compiler", lambda: None)
    new = CELL.replace("= 2", "= 2.5f")  # what was built before needs no compiler
    assert shell.run_cell("%%cuda\n" + new).success
    assert "g++" in capsys.readouterr().out
    with pytest.raises(cuda.BuildError, match="g\\+\\+"):
        shell.user_ns["two"][1, 4](torch.zeros(4))
    assert not shell.run_cell("%%cuda\nint main() { return 0; }").success, "no kernel is told, too"
