"""Every exercise against all of its programs: wrong ones rejected and named, right ones pass."""

from __future__ import annotations

import ast

import pytest
from observed import observe_once

from labs_lib.answers import answer
from labs_lib.checking.kernels import KernelRuns, untouched
from labs_lib.checking.oracle import LiveOracle
from labs_lib.checking.verdict import ERROR, FAIL, NOT_ATTEMPTED, PASS, judge
from labs_lib.exercises import exercises

ALL = exercises()
ORACLE = LiveOracle()


def programs(which):
    return [
        pytest.param(item, program, id=f"{item.name}-{program.name}")
        for item in ALL
        for program in getattr(answer(item.name), which)
    ]


@pytest.mark.parametrize("item", ALL, ids=lambda item: item.name)
def test_reference_passes_its_own_check(item):
    verdict = judge(item, answer(item.name).reference, ORACLE)
    assert verdict.outcome == PASS, str(verdict)


@pytest.mark.parametrize(("item", "wrong"), programs("wrong"))
def test_wrong_program_is_rejected_and_named(item, wrong, monkeypatch):
    if item.kind == "kernel":
        observe_once(monkeypatch, item, wrong)
    verdict = judge(item, wrong.program, ORACLE)
    assert verdict.outcome != PASS, f"{wrong.name} passes {item.name}"
    named = verdict.mistake == wrong.name or any(
        line in verdict.lines for line in wrong.says.split("\n")
    )
    assert named, f"{wrong.name} is rejected but not recognised:\n{verdict}"


@pytest.mark.parametrize(("item", "right"), programs("right"))
def test_right_program_is_accepted(item, right):
    verdict = judge(item, right.program, ORACLE)
    assert verdict.outcome == PASS, str(verdict)


@pytest.mark.parametrize("item", ALL, ids=lambda item: item.name)
def test_stub_reads_as_not_attempted_and_never_as_wrong(item):
    import torch

    if item.kind == "kernel":
        assert judge(item, item.stub, ORACLE).outcome == NOT_ATTEMPTED
        return
    space = {"torch": torch, "Tensor": torch.Tensor}
    exec(compile(item.stub, "<stub>", "exec"), space)
    verdict = judge(item, space[item.called], ORACLE)
    assert verdict.outcome == NOT_ATTEMPTED


@pytest.mark.parametrize("item", ALL, ids=lambda item: item.name)
def test_every_exercise_can_be_got_wrong_and_every_wrong_choice_is_explained(item):
    wrong = answer(item.name).wrong
    assert wrong, "an exercise without a wrong program proves nothing"
    assert all(w.says.strip() for w in wrong)
    if item.kind == "choice":
        reference = answer(item.name).reference
        assert {w.program for w in wrong} | {reference} == set(item.choices)
        assert answer(item.name).because


@pytest.mark.parametrize("item", [e for e in ALL if e.is_program], ids=lambda e: e.name)
def test_cases_are_equal_for_equal_seeds_and_differ_between_seeds(item):
    def text(seed):
        return [repr((case.args, sorted(case.kwargs.items()))) for case in item.make_cases(seed)]

    assert text(3) == text(3)
    assert text(3) != text(4)
    assert len(text(3)) == len(text(4))


@pytest.mark.parametrize("item", ALL, ids=lambda item: item.name)
def test_stub_holds_no_answer(item):
    if item.kind == "kernel":
        assert untouched(item, item.stub), "a kernel's stub has an empty body"
        return
    tree = ast.parse(item.stub)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body = [n for n in node.body if not _is_docstring(n)]
            assert isinstance(body[-1], (ast.Raise, ast.FunctionDef, ast.Pass)), item.name


@pytest.mark.parametrize("item", [e for e in ALL if e.is_program], ids=lambda e: e.name)
def test_wrong_types_get_a_sentence_and_never_an_exception(item):
    for value in (3, [1, 2], "text", object()):
        text = item.kind == "kernel" and isinstance(value, str)  # which may hold a kernel
        assert judge(item, value, ORACLE).outcome == (ERROR if text else FAIL)


@pytest.mark.parametrize("item", ALL, ids=lambda e: e.name)
def test_no_two_wrong_programs_of_an_exercise_share_a_name(item):
    names = [wrong.name for wrong in answer(item.name).wrong]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("item", [e for e in ALL if e.kind == "kernel"], ids=lambda e: e.name)
def test_a_kernel_has_at_most_24_small_launches(item):
    runs = KernelRuns(item, answer(item.name).reference, 0)
    runs.everything()
    assert len(runs.cases) <= 24


def _is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
