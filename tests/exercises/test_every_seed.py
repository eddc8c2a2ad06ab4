"""Graded runs draw inputs anew: at other seeds, too, wrong stays wrong and right stays right."""

from __future__ import annotations

import pytest

from labs_lib.answers import answer
from labs_lib.checking.kernels import KernelRuns, built
from labs_lib.checking.kernels import read as read_kernel
from labs_lib.checking.observe import observe_all
from labs_lib.checking.oracle import matches
from labs_lib.checking.syntax import read
from labs_lib.checking.verdict import rules_kept, source_of
from labs_lib.exercises import exercises

FUNCTIONS = [item for item in exercises() if item.kind == "function"]
KERNELS = [item for item in exercises() if item.kind == "kernel"]
SEEDS = (1, 20_24, 987_654_321)


def caught_otherwise(item, program):
    """Whether a program with right values breaks a rule or uses what its text must not."""
    found = read(source_of(program), item.forbidden)
    return bool(found.forbidden) or not all(rules_kept(item, program).values())


@pytest.mark.parametrize("seed", SEEDS[1:])
@pytest.mark.parametrize("item", KERNELS, ids=lambda item: item.name)
def test_no_wrong_kernel_survives_another_seed_and_every_right_one_does(item, seed):
    """A wrong kernel is launched until it differs; most do in their first case."""
    known = answer(item.name)
    want = observe_all(item, known.reference, seed)
    for wrong, _ in zip(known.wrong, built([w.program for w in known.wrong]), strict=True):
        if matches(item, want, KernelRuns(item, wrong.program, seed)):
            text = read_kernel(wrong.program, item.forbidden)
            broken = not all(rules_kept(item, wrong.program).values())
            assert text.forbidden or broken, wrong.name
    for right in known.right:
        assert matches(item, want, KernelRuns(item, right.program, seed)), right.name


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("item", FUNCTIONS, ids=lambda item: item.name)
def test_no_wrong_program_survives_another_seed_and_every_right_one_does(item, seed):
    want = observe_all(item, answer(item.name).reference, seed)
    for wrong in answer(item.name).wrong:
        equal = matches(item, want, observe_all(item, wrong.program, seed))
        assert not equal or caught_otherwise(item, wrong.program), wrong.name
    for right in answer(item.name).right:
        assert matches(item, want, observe_all(item, right.program, seed)), right.name
