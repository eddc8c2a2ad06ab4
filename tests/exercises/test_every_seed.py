"""Graded runs draw inputs anew: at other seeds, too, wrong stays wrong and right stays right."""

from __future__ import annotations

import pytest

from labs_lib.answers import answer
from labs_lib.checking.observe import observe_all
from labs_lib.checking.oracle import matches
from labs_lib.checking.syntax import read
from labs_lib.checking.verdict import rules_kept, source_of
from labs_lib.exercises import exercises

FUNCTIONS = [item for item in exercises() if item.kind == "function"]
SEEDS = (1, 20_24, 987_654_321)


def caught_otherwise(item, program):
    """Whether a program with right values breaks a rule or uses what its text must not."""
    found = read(source_of(program), item.forbidden)
    return bool(found.forbidden) or not all(rules_kept(item, program).values())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("item", FUNCTIONS, ids=lambda item: item.name)
def test_no_wrong_program_survives_another_seed_and_every_right_one_does(item, seed):
    want = observe_all(item, answer(item.name).reference, seed)
    for wrong in answer(item.name).wrong:
        equal = matches(item, want, observe_all(item, wrong.program, seed))
        assert not equal or caught_otherwise(item, wrong.program), wrong.name
    for right in answer(item.name).right:
        assert matches(item, want, observe_all(item, right.program, seed)), right.name
