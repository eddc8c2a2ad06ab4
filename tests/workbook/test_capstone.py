"""Lab 12's kernel: your own comes first, another takes its place, and which it is is said."""

from __future__ import annotations

import nbformat
import pytest
import torch
from rich.console import Console

from labs_lib import cuda
from labs_lib.answers import answer
from labs_lib.checking import progress
from labs_lib.exercises import lab
from labs_lib.models.layer import sdpa
from labs_lib.workbook import own_kernel
from labs_lib.workbook.capstone import report, unwritten
from labs_lib.workbook.own_kernel import (
    COURSES,
    KERNEL,
    LADDERS,
    YOURS,
    flash_kernel,
    traffic_of,
)
from labs_lib.workbook.run_checks import run_checks, show

needs_compiler = pytest.mark.skipif(not cuda.available().host, reason="no C++ compiler")


def largest_difference(kernel, n_q, n_k):
    """Between a kernel, put in by lab 12's own function, and torch's attention."""
    attend = answer("lab12.kernel_attention").reference(kernel, 2)
    torch.manual_seed(0)
    q = torch.rand(1, 6, n_q, 64) - 0.5
    k, v = ((torch.rand(1, 2, n_k, 64) - 0.5).repeat_interleave(3, dim=1) for _ in range(2))
    mask = torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)
    return float((attend(q, k, v, mask) - sdpa(q, k, v, mask)).abs().max())


@needs_compiler
def test_own_kernel_runs_if_it_has_passed(course):
    source = answer(KERNEL).reference.replace("#define ROWS 64", "// mine\n#define ROWS 64")
    progress.update(KERNEL, passed=True, source=source)
    chosen = flash_kernel()
    assert chosen.whose == YOURS and "// mine" in chosen.kernel.source
    assert largest_difference(chosen.kernel, 7, 7) < 1e-5
    assert largest_difference(chosen.kernel, 1, 70) < 1e-5


@needs_compiler
def test_without_it_the_librarys_takes_its_place_and_says_so(course):
    chosen = flash_kernel()
    assert chosen.whose == LADDERS
    assert chosen.sentence.startswith(f"{KERNEL} has not passed yet.")
    assert "takes its place" in chosen.sentence
    assert largest_difference(chosen.kernel, 35, 80) < 1e-5
    moved = traffic_of(chosen.kernel, *torch.rand(3, 1, 2, 3, 64))
    assert moved["counted"] == moved["lab 11's formula, tiles"]


@needs_compiler
def test_kernel_that_no_longer_compiles_stops_nobody(course):
    progress.update(KERNEL, passed=True, source="__global__ void flash_kernel(float* q) { nonsense")
    chosen = flash_kernel()
    assert chosen.whose == LADDERS and "can't be used" in chosen.sentence


@needs_compiler
def test_in_solutions_it_is_the_solutions_kernel(course, monkeypatch):
    monkeypatch.setenv("LABS_STATE", "off")
    assert flash_kernel().whose == COURSES


def test_without_a_compiler_there_is_one_sentence(course, monkeypatch):
    monkeypatch.setattr(own_kernel.cuda, "available", lambda: cuda.Available(None, None, None))
    chosen = flash_kernel()
    assert chosen.kernel is None and chosen.sentence.count(".") == 1
    assert "no C++ compiler" in report(kernel=chosen).sections[1].text


def test_where_the_kernel_is_withheld_and_unsolved_that_is_said(course, monkeypatch):
    def withheld():
        raise own_kernel.Withheld("flash_forward.cu is yours to write")

    monkeypatch.setattr(own_kernel, "FromTheLadder", withheld)
    chosen = flash_kernel()
    assert chosen.kernel is None and "Write it in lab 11" in chosen.sentence


def test_report_tells_what_has_passed_and_is_kept_beside_the_notebooks(course):
    progress.update("lab00.first_tensor", passed=True)
    progress.update("lab01.causal_mask", passed=True)
    made = report(
        traffic={"counted": 1234567}, speed={"a step": 29.4}, written={"kernel": "Paris"}, words="!"
    )
    text = repr(made)
    assert "1,234,567 B" in text and "29 times as long" in text and "Paris" in text
    rows = {s.title: s.rows for s in made.sections}
    assert rows["Checks"][0][1].startswith("1 of ")
    assert dict(rows["Pieces"])["lab01.causal_mask"] == "passed by you"
    assert dict(rows["Pieces"])["lab02.split_heads"] == "the course's own piece"
    assert (course.notebooks / "12_your_attention_speaks.report.json").is_file()
    assert (course.notebooks / "12_your_attention_speaks.report.html").is_file()


def test_stubs_are_told_from_what_is_written_without_a_word(capsys):
    def stub(x, y):
        raise NotImplementedError

    def written(x, y=1):
        print("here I am")
        return x + y

    assert unwritten(stub, written) == ["stub"]
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_labs_check_ends_with_what_a_told_cell_prints(course, capsys):
    notebook = nbformat.read(course.file, as_version=4)
    for source, tags in (("print('Paris')", ["told"]), ("print('quiet')", [])):
        notebook.cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": tags}))
    nbformat.write(notebook, course.file)
    found = run_checks(course.file, lab(0))
    assert found.told == ["Paris"]
    show(found, Console(highlight=False))
    assert capsys.readouterr().out.splitlines()[-1].strip() == "Paris"
