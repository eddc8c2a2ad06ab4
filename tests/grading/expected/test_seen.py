"""Wrong programs are run as far as they decide something, and print what they always would."""

from __future__ import annotations

import random

import pytest
import torch

from labs_lib.answers import Answer, Wrong, answer
from labs_lib.checking.observe import observe_all
from labs_lib.checking.render import case_lines
from labs_lib.exercises import exercise
from labs_lib.exercises.inputs import uniform
from labs_lib.exercises.kit import Case, Exercise
from labs_lib.grading.expected.places import choose
from labs_lib.grading.expected.printed import Printed, explain
from labs_lib.grading.expected.seen import Seen, mistakes_of

SEED = 5
CASES = 6


def cases(rng):
    return [Case(str(n), (uniform(rng, 4, 6),)) for n in range(CASES)]


def item(**more):
    return Exercise(name="lab90.f", title="", stub="def f(x): ...", cases=cases, **more)


def counting(rule):
    def program(x):
        program.calls += 1
        return rule(program.calls, x)

    program.calls = 0
    return program


def test_a_wrong_program_runs_until_it_prints_something_else():
    at_once = counting(lambda call, x: x * 2)
    later = counting(lambda call, x: x * (2 if call == 3 else 3))
    known = Answer(lambda x: x * 3, (Wrong("at_once", at_once, "s"), Wrong("later", later, "s")))
    choose(item(), known, SEED)
    assert (at_once.calls, later.calls) == (1, 3)


def test_what_is_not_as_asked_is_reported_in_its_own_words():
    named = "the layer keeps no weight called W_O; it has out"
    chosen = choose(item(), Answer(lambda x: x * 3, ()), SEED)
    printed = Seen(item(), lambda x: {"not as asked": named}, SEED).text(chosen.places)
    status, lines, _ = explain(item(), printed, chosen.expected, ())
    assert status == "fail" and lines[0].endswith(f"” {named}") and "value" not in lines[0]


def test_no_mistake_runs_before_an_answer_failed():
    wrong = counting(lambda call, x: x * 2)
    known = Answer(lambda x: x * 3, (Wrong("twice", wrong, "That is twice."),))
    chosen = choose(item(), known, SEED)
    before = wrong.calls
    mistakes = mistakes_of(item(), known, SEED, chosen.places)
    assert wrong.calls == before
    twice = Seen(item(), lambda x: x * 2, SEED).text(chosen.places)
    status, lines, name = explain(item(), twice, chosen.expected, mistakes)
    assert (status, lines[0], name) == ("fail", "That is twice.", "twice")
    assert wrong.calls == before + CASES + 1


@pytest.mark.parametrize(
    "rule",
    [
        lambda call, x: x * call,
        lambda call, x: x * torch.rand(()) + random.random(),
        lambda call, x: x if call != 2 else 1 / 0,
    ],
    ids=["keeps-count", "by-chance", "raises-once"],
)
def test_a_program_prints_the_same_looked_at_bit_by_bit(rule):
    whole = observe_all(item(), counting(rule), SEED)
    seen = Seen(item(), counting(rule), SEED)
    for index in (2, 0, 6, 4):
        assert seen.lines(index, {}) == case_lines(whole[index], {})


def test_a_named_mistake_of_the_course_is_still_named():
    asked, known = exercise("lab02.split_heads"), answer("lab02.split_heads")
    chosen = choose(asked, known, SEED)
    for wrong in known.wrong:
        printed = Seen(asked, wrong.program, SEED).text(chosen.places)
        mistakes = mistakes_of(asked, known, SEED, chosen.places)
        _, _, name = explain(asked, printed, chosen.expected, mistakes)
        alike = [w.name for w, text in chosen.mistakes if text == printed]
        by_rule_alone = Printed(printed).cases == Printed(chosen.expected).cases
        assert name == "" if by_rule_alone else name in alike
