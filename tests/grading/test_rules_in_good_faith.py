"""Where a rule is measured the values count too: whoever does nothing there keeps no rule."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from labs_lib.answers import answer
from labs_lib.checking.render import render
from labs_lib.checking.verdict import rules_kept
from labs_lib.exercises import exercise, exercises, labs
from labs_lib.grading.expected.places import places_of_rules
from labs_lib.grading.expected.printed import Printed, explain

RULED = [
    item.name
    for lab in labs()
    for item in exercises(lab.number)
    if item.kind == "function" and item.rules
]
WITH_NUMBERS = [name for name in RULED if name != "lab02.HeadConfig"]  # which makes an object
SEED = 2**61 + 5


@cache
def places(name):
    item, known = exercise(name), answer(name)
    kept = rules_kept(item, known.reference, SEED)
    return places_of_rules(item, known, SEED, kept, np.random.default_rng(1))


def printed(name, program):
    """What a graded check prints of a program's rules."""
    return render(exercise(name), [], rules_kept(exercise(name), program, SEED), places(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", RULED)
def test_right_programs_print_the_same_where_rules_are_measured(name):
    expected = printed(name, answer(name).reference)
    assert "broken" not in expected
    for one in answer(name).right:
        assert printed(name, one.program) == expected, one.name


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_a_program_that_does_nothing_where_a_rule_is_measured_does_not_keep_it(name):
    """It may know the call by its number, its sizes or by what measures: nothing is gained."""
    expected = printed(name, answer(name).reference)
    assert all(Printed(expected).returned.values())
    for nothing in (lambda *args: None, lambda *args: args[0], lambda *args: []):
        assert printed(name, nothing) != expected


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_what_is_returned_for_a_rule_is_new_in_every_run(name):
    """But for `split_heads`, which moves numbers that are known: nobody gains by these."""
    first, second = (
        [one.returned for one in rules_kept(exercise(name), answer(name).reference, seed).values()]
        for seed in (1, 2)
    )
    assert repr(first) != repr(second) or name == "lab02.split_heads"


def test_a_student_is_told_where_the_values_differ():
    item = exercise("lab08.grouped_query_attention")
    expected = printed(item.name, answer(item.name).reference)
    head, _, tail = expected.partition("\n")
    want = f"{head}\ncase 1\n  value: number 1\n{tail}"
    status, lines, _ = explain(item, want[: want.rindex("  [0]")] + "  [0]: none", want, ())
    assert status == "fail" and item.rules[0].text in lines[0]
