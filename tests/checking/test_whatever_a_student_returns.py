"""Whatever a student's function does, a check ends in one of four outcomes and a sentence."""

from __future__ import annotations

import contextlib
import functools
import random
import sys
import warnings

import numpy as np
import pytest
import torch

from labs_lib.checking.check import graded_text
from labs_lib.checking.observe import observe, observe_all
from labs_lib.checking.oracle import LiveOracle, Mistake
from labs_lib.checking.verdict import ERROR, FAIL, NOT_ATTEMPTED, PASS, judge
from labs_lib.exercises import exercise
from labs_lib.exercises.inputs import uniform
from labs_lib.exercises.kit import Case, Exercise, Rule
from labs_lib.exercises.measure import operators

MEAN = exercise("lab00.first_tensor")
calls = []


def double_cases(rng):
    return [Case("two by three", (uniform(rng, 2, 3),)), Case("four", (uniform(rng, 4),))]


DOUBLE = Exercise(
    "lab00.double", "twice", "def double(x):\n    raise NotImplementedError", cases=double_cases
)


class Fixed:
    """An oracle with one reference and no mistakes."""

    def __init__(self, reference):
        self.reference = reference

    def judge(self, item, got):
        return observe_all(item, self.reference, 0)

    def mistakes(self, item, got):
        return iter(())

    def because(self, item, got):
        return ""


def verdict(program, oracle=None):
    return judge(DOUBLE, program, oracle or Fixed(lambda x: x * 2))


def says(program, oracle=None):
    return str(verdict(program, oracle))


class Equal:
    """Claims to equal everything."""

    def __eq__(self, other):
        return True

    __hash__ = None


class EqualTensor(torch.Tensor):
    """A tensor that claims to equal everything."""

    def __eq__(self, other):
        return True

    def allclose(self, *args, **kwargs):
        return True

    __hash__ = torch.Tensor.__hash__


def keeps_state(x):
    calls.append(1)
    return x * 2 + len(calls)


def mutates(x):
    x *= 2
    return x


def endless(x):
    return endless(x)


def noisy(x):
    print("right!", file=sys.stderr)
    print("PASS")
    warnings.warn("careful", stacklevel=1)
    return x * 2


def not_done(x):
    raise NotImplementedError


def shows_its_name(function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapped


class Doubler:
    """Has a method that doubles."""

    def double(self, x, times=2):
        return x * times


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x * 2,
        lambda x: x + x,
        lambda x: (x.double() * 2).to(x.dtype),
        lambda x, factor=2: x * factor,
        lambda x, *args, **kwargs: x.clone().mul_(2),
        Doubler().double,
        shows_its_name(lambda x: 2 * x),
        functools.partial(torch.mul, other=2),
        noisy,
    ],
)
def test_odd_but_right_programs_are_accepted(program):
    assert verdict(program).outcome == PASS, says(program)


@pytest.mark.parametrize(
    ("program", "outcome", "sentence"),
    [
        (None, NOT_ATTEMPTED, "write double"),
        (not_done, NOT_ATTEMPTED, "write double"),
        (3, FAIL, "a function is asked"),
        (lambda x: None, FAIL, "None"),
        (lambda: 1, ERROR, "TypeError"),
        (lambda x, y: x, ERROR, "TypeError"),
        (lambda x: (x * 2).tolist(), FAIL, "wanted is a tensor"),
        (lambda x: (x * 2).numpy(), FAIL, "torch's own operations"),
        (lambda x: (x * 2).double(), FAIL, "dtype float64"),
        (lambda x: (x * 2)[None], FAIL, "shape"),
        (lambda x: x * 2 + torch.nan, FAIL, "NaN"),
        (lambda x: Equal(), FAIL, "object of type Equal"),
        (lambda x: x.as_subclass(EqualTensor), FAIL, "element"),
        (lambda x: (x * 2, x), FAIL, "2 values"),
        (lambda x: [], FAIL, "empty collection"),
        (lambda x: x, FAIL, "elements differ"),
        (keeps_state, FAIL, "elements differ"),
        (mutates, FAIL, "changed its input x"),
        (endless, ERROR, "calls itself"),
        (lambda x: sys.exit(0), ERROR, "SystemExit"),
        (lambda x: 1 / 0, ERROR, "ZeroDivisionError"),
        (lambda x: input(), ERROR, "raised"),
        (lambda x: 10**400, FAIL, "a whole number of more than 300 digits"),
    ],
)
def test_everything_else_ends_in_an_outcome_and_a_sentence(program, outcome, sentence):
    found = verdict(program)
    assert found.outcome == outcome, str(found)
    assert sentence in str(found)


def test_nan_where_the_reference_has_one_and_the_student_has_none_is_wrong():
    wanted_nan = Fixed(lambda x: x * torch.nan)
    assert verdict(lambda x: x * 2, wanted_nan).outcome == FAIL
    assert verdict(lambda x: x * torch.nan, wanted_nan).outcome == PASS


def test_state_kept_between_calls_is_found_although_each_first_call_is_right():
    seen = {}

    def caches(x):
        return seen.setdefault(tuple(x.shape), x * 2 if not seen.get("late") else x)

    def drifts(x):
        seen["n"] = seen.get("n", 0) + 1
        return x * 2 if seen["n"] <= 2 else x * 3

    assert verdict(caches).outcome == PASS
    assert "two different results" in says(drifts)


def test_a_view_of_an_input_is_kept_as_it_was():
    case = Case("view", (torch.ones(3),))
    seen = []

    def view(x):
        seen.append(x)
        return x[:2]

    observation = observe(DOUBLE, view, case)
    seen[0].zero_()
    assert observation.leaves[""].value.tolist() == [1.0, 1.0]


def test_an_endless_loop_ends_in_a_sentence(monkeypatch):
    from labs_lib.checking import observe as module

    monkeypatch.setattr(module, "CALL_SECONDS", 0.2)

    started = []

    def loops(x):
        started.append(x)
        while True:
            with contextlib.suppress(Exception):
                pass

    found = verdict(loops)
    assert found.outcome == ERROR
    assert "loop without an end" in str(found)
    assert len(started) == 1  # nobody waits for it again in every other case


def test_the_stop_button_ends_the_whole_check():
    started = []

    def stopped(x):
        started.append(x)
        raise KeyboardInterrupt

    assert verdict(stopped).outcome == ERROR and len(started) == 1


def test_a_number_that_no_float_holds_is_told_and_printed_in_a_graded_run():
    item = exercise("lab04.attention_params")
    told = str(judge(item, lambda *sizes: 10**5000, LiveOracle()))
    assert "a whole number of more than 300 digits; wanted is a number" in " ".join(told.split())
    assert "more than 300 digits" in graded_text(item, lambda *sizes: 10**5000, {"seed": 1})


def test_checks_leave_the_global_random_state_as_they_found_it():
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)

    def draws(x):
        torch.rand(3)
        np.random.rand()
        random.random()
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        return x * 2

    verdict(draws)
    after = random.random(), np.random.rand(), torch.rand(1).item()
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    assert after == (random.random(), np.random.rand(), torch.rand(1).item())
    assert torch.get_default_dtype() is torch.float32
    assert torch.is_grad_enabled()


def test_a_known_mistake_is_named_although_it_is_made_in_place_and_a_right_value_never():
    class Oracle(Fixed):
        def mistakes(self, item, got):
            yield Mistake("tripled", "three times", observe_all(item, lambda x: x * 3, 0))
            yield Mistake("breaks_a_rule", "too much memory", observe_all(item, lambda x: x * 2, 0))

    oracle = Oracle(lambda x: x * 2)
    assert verdict(lambda x: x.mul_(3), oracle).mistake == "tripled"
    right = verdict(lambda x: x.mul_(2), oracle)
    assert right.mistake == "" and "changed its input x" in str(right)


def test_a_known_mistake_that_ends_in_an_exception_is_named():
    class Oracle(Fixed):
        def mistakes(self, item, got):
            stops = observe_all(item, lambda x: x @ x[:1], 0)
            yield Mistake("no_transpose", "k stands as it came", stops)

    oracle = Oracle(lambda x: x * 2)
    found = verdict(lambda x: torch.matmul(x, x[:1]), oracle)
    assert found.outcome == ERROR
    assert found.mistake == "no_transpose" and "k stands as it came" in str(found)
    assert verdict(lambda x: 1 / 0, oracle).mistake == ""


def test_nested_lists_are_not_told_number_by_number():
    assert len(says(lambda x: torch.zeros(12, 12).tolist())) < 300


def test_a_lost_gradient_is_named():
    lost = judge(MEAN, lambda x: x.detach().mean(-1), LiveOracle())
    assert lost.outcome == FAIL
    assert "gradient is lost" in str(lost)


@pytest.mark.parametrize("value", [np.array([None]), np.array([b"a"])])
def test_arrays_of_anything_are_printed_in_a_graded_run(value):
    assert f"array {value.dtype} [1]" in graded_text(DOUBLE, lambda x: value, {"seed": 1})


def test_none_where_a_gradient_is_asked_is_told_as_none():
    found = judge(MEAN, lambda x: None if x.requires_grad else x.mean(-1), LiveOracle())
    assert "you returned None" in str(found) and "gradient" not in str(found)


def test_a_notebooks_global_is_named_as_a_likely_cause():
    space = {"rows": 2, "torch": torch}
    exec("def double(x):\n    return (x * 2)[:rows]", space)
    assert "reads rows from the notebook" in str(
        judge(DOUBLE, space["double"], Fixed(lambda x: x * 2))
    )


def test_a_global_with_the_name_of_an_attribute_is_no_cause():
    space = {"tensor": torch.ones(2), "torch": torch}
    exec("def double(x):\n    return torch.tensor(x.tolist())", space)
    said = str(judge(DOUBLE, space["double"], Fixed(lambda x: x * 2)))
    assert "from the notebook" not in said


def test_a_broken_rule_is_said_although_the_values_are_right():
    def one_product(program):
        return operators(program, torch.ones(3, 3))["mm"] <= 1

    item = Exercise(
        "lab00.square",
        "square",
        "def square(x):\n    raise NotImplementedError",
        cases=lambda rng: [Case("3", (uniform(rng, 3, 3),)), Case("4", (uniform(rng, 4, 4),))],
        rules=(Rule("one-product", "one product", one_product, "You multiply more than once."),),
    )
    oracle = Fixed(lambda x: x @ x)
    assert judge(item, lambda x: x @ x, oracle).outcome == PASS

    def by_rows(x):
        return torch.stack([row @ x for row in x])

    found = judge(item, by_rows, oracle)
    assert found.outcome == FAIL
    assert "more than once" in str(found)


@pytest.mark.parametrize(
    "spelling", ["F.softmax(x)", "torch.nn.functional.softmax(x)", "softmax(x)"]
)
def test_a_forbidden_function_is_found_in_the_answers_text(spelling):
    item = Exercise(
        "lab00.double",
        "twice",
        DOUBLE.stub,
        cases=double_cases,
        forbidden=("torch.nn.functional.softmax",),
    )
    source = f"def double(x):\n    {spelling}\n    return x * 2\n"
    found = judge(item, lambda x: x * 2, Fixed(lambda x: x * 2), source=source)
    assert found.outcome == FAIL
    assert "asks you to write yourself" in str(found)


@pytest.mark.parametrize(
    ("value", "outcome"),
    [("b", PASS), (" B ", PASS), ("a", FAIL), ("z", FAIL), (None, NOT_ATTEMPTED), (2, FAIL)],
)
def test_choices_are_read_kindly_and_wrong_ones_explained(value, outcome):
    class Oracle(Fixed):
        def mistakes(self, item, got):
            yield Mistake("a", "a is too small", observe_all(item, "a", 0))

    item = Exercise(
        "lab00.q", "q", "q = None", kind="choice", points=0, choices={"a": "one", "b": "two"}
    )
    found = judge(item, value, Oracle("b"))
    assert found.outcome == outcome, str(found)
    assert value != "a" or "too small" in str(found)
    assert value != "z" or "not one of the choices: a, b" in str(found)


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (64, PASS),
        (64.0, PASS),
        (np.int64(64), PASS),
        (np.array(64.0), PASS),
        (torch.tensor(64), PASS),
        (64.5, FAIL),
        ("64", FAIL),
        (True, FAIL),
        ([64], FAIL),
        (None, NOT_ATTEMPTED),
    ],
)
def test_numbers_may_be_of_any_numeric_type(value, outcome):
    item = Exercise("lab00.n", "n", "n = None", kind="number", unit="numbers")
    assert judge(item, value, Fixed(64)).outcome == outcome
