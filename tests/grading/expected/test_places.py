"""The places that a graded check prints are safe, cover every row, and tell every mistake apart."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from labs_lib.answers import Answer, Right, Wrong, answer
from labs_lib.checking.check import graded_text
from labs_lib.checking.observe import observe_all
from labs_lib.checking.syntax import read
from labs_lib.checking.verdict import source_of
from labs_lib.exercises import exercise, exercises
from labs_lib.exercises.inputs import uniform
from labs_lib.exercises.kit import Case, Exercise
from labs_lib.grading.expected.places import choose
from labs_lib.grading.expected.rounding import PlacesError
from labs_lib.grading.reading.structure import structure
from labs_lib.grading.run.records import STDOUT_CHARS
from labs_lib.notebook.matching import Answer as Matched
from labs_lib.notebook.matching import Piece

ALL = exercises()
SEEDS = (1, 2**61 - 1)


def text(item, program, run):
    return graded_text(item, program, run)


# One seed for each exercise, as `test_planted` has its own; the largest for a lab's first function.
FIRST = {item.lab: item for item in reversed(ALL) if item.kind == "function"}
RUNS = [(item, SEEDS[0]) for item in ALL] + [(item, SEEDS[1]) for item in FIRST.values()]

# What these keep from run to run is their mistake: a second run in a process prints something else.
REMEMBERS = ("a_list_on_the_class", "a_list_for_all_caches")


@cache
def chosen_for(name, seed):
    return choose(exercise(name), answer(name), seed)


@pytest.mark.parametrize(("item", "seed"), RUNS, ids=lambda one: getattr(one, "name", one))
def test_right_programs_print_the_same_and_wrong_ones_do_not(item, seed):
    known = answer(item.name)
    chosen = chosen_for(item.name, seed)
    run = {"seed": seed, "places": {item.name: chosen.places}}
    expected = text(item, known.reference, run)
    assert chosen.expected == expected
    assert len(expected) < STDOUT_CHARS
    for right in known.right:
        assert text(item, right.program, run) == expected, right.name
    for wrong, seen, whole in looked_at_again(item, chosen, seed):
        printed = text(item, wrong.program, run)
        if whole and wrong.name not in REMEMBERS:
            assert seen.text(chosen.places) == printed, wrong.name
        if printed == expected:
            found = read(source_of(wrong.program), item.forbidden).forbidden
            assert found, f"{wrong.name} prints what the reference prints"


def looked_at_again(item, chosen, seed):
    """Wrong programs whose whole check is run: `choose` has run each until it printed something
    else, `test_planted` grades every third function, and a kernel's launches are dear."""
    for number, (wrong, seen) in enumerate(chosen.wrong):
        if not item.is_program or (item.kind == "function" and number % 3 and seed == SEEDS[0]):
            yield wrong, seen, number % 3 < 2


@pytest.mark.parametrize("item", [e for e in ALL if e.is_program], ids=lambda e: e.name)
def test_every_row_has_a_place(item):
    known = answer(item.name)
    places = chosen_for(item.name, SEEDS[0]).places
    for index, observation in enumerate(observe_all(item, known.reference, SEEDS[0])):
        for path, leaf in observation.leaves.items():
            if leaf.kind == "tensor" and leaf.value.dtype.kind == "f" and leaf.value.size:
                at = set(places[str(index)][path]["at"])
                width = leaf.shape[-1]
                if width >= 4:
                    rows = np.arange(leaf.value.size).reshape(-1, width)
                    assert all(at & set(row.tolist()) for row in rows)


def small(cases, name="lab90.f", **changes):
    return Exercise(name=name, title="", stub="def f(x): ...", cases=cases, **changes)


def inputs(rng):
    return [Case("one", (uniform(rng, 6, 9),)), Case("two", (uniform(rng, 3, 5),))]


def test_places_keep_away_from_rounding_boundaries():
    item = small(inputs)
    known = Answer(lambda x: x * 3, (Wrong("w", lambda x: x, "s"),))
    for seed in range(20):
        places = choose(item, known, seed).places
        run = {"seed": seed, "places": {item.name: places}}
        expected = text(item, known.reference, run)
        for factor in (1e-5, -1e-5):
            near = text(item, lambda x, f=factor: x * 3 * (1 + f * 0.9), run)
            assert near == expected


def test_a_mistake_at_one_element_gets_a_place_of_its_own():
    def one_off(x):
        out = x * 3
        return out + torch.nn.functional.one_hot(torch.tensor(7), out.numel()).reshape(out.shape)

    item = small(lambda rng: [Case("wide", (uniform(rng, 1, 400),))])
    known = Answer(lambda x: x * 3, (Wrong("one_off", one_off, "s"),))
    told = 0
    for seed in range(12):
        try:
            places = choose(item, known, seed).places
        except PlacesError:
            continue  # the element itself lies at a boundary on this seed
        assert 7 in places["0"][""]["at"]
        told += 1
    assert told >= 6


def raises(x):
    raise ValueError("no")


def large(x, more=0.0):
    return x.reshape(-1) * 0 + 12_345_678.5 + more


@pytest.mark.parametrize(
    ("reference", "wrong", "right", "says"),
    [
        (lambda x: x, lambda x: x.clone(), None, "can't be told"),
        (raises, lambda x: x, None, "raises"),
        (lambda x: x.add_(1), lambda x: x, None, "changes its input"),
        (large, lambda x: x, lambda x: large(x, 0.4), "round"),
    ],
)
def test_an_exercise_that_can_not_be_graded_says_why(reference, wrong, right, says):
    item = small(lambda rng: [Case("one", (uniform(rng, 2, 8),))])
    odd = (Right("off", right),) if right else ()
    with pytest.raises(PlacesError, match=says):
        choose(item, Answer(reference, (Wrong("w", wrong, "s"),), odd), 3)


def test_float64_answers_computed_in_float32_are_told_apart():
    item = small(lambda rng: [Case("double", (uniform(rng, 3, 8, dtype=torch.float64),))])
    known = Answer(
        lambda x: x.softmax(-1),
        (Wrong("single", lambda x: x.float().softmax(-1).double(), "s"),),
        (Right("exp", lambda x: x.exp() / x.exp().sum(-1, keepdim=True)),),
    )
    for seed in range(10):
        run = {"seed": seed, "places": {item.name: choose(item, known, seed).places}}
        assert text(item, known.right[0].program, run) == text(item, known.reference, run)


def test_a_scratch_comparison_is_no_forbidden_answer_but_a_helper_is_doubt():
    item = small(inputs, forbidden=("torch.nn.functional.softmax",))

    def found(*pieces):
        parts = tuple(Piece(source, n, "") for n, source in enumerate(pieces))
        return structure(item, {item.name: Matched(item.name, parts, attempted=True)})

    own = "def f(x):\n    return x.exp()"
    assert found(own, "F.softmax(x, -1)") == found(own)
    assert not found(own).forbidden and not found(own).doubts
    assert found("def f(x):\n    return F.softmax(x, -1)").forbidden
    helped = found("def g(x):\n    return F.softmax(x, -1)", "def f(x):\n    return g(x)")
    assert not helped.forbidden and helped.doubts
    assert found(own, "get_ipython().x = 1").doubts
    assert found(own, "torch.exp = F.softmax").doubts
