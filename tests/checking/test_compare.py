"""What a difference is told as; a number is never within tolerance of infinity or of NaN."""

from __future__ import annotations

import math

import pytest
import torch

from labs_lib.checking.compare import difference
from labs_lib.checking.observe import Observation, flatten
from labs_lib.exercises import exercise

ITEM = exercise("lab00.first_tensor")
VALUES = [0.0, -1e30, math.inf, -math.inf, math.nan]


def differs(want, got):
    return bool(difference(ITEM, Observation(flatten(want)), Observation(flatten(got))))


def test_numbers_that_differ_never_read_the_same():
    want = torch.tensor([0.4554521, 2.0], dtype=torch.float64)
    lines = difference(ITEM, Observation(flatten(want)), Observation(flatten(want + 4e-9)))
    assert "is 0.455452104; wanted is 0.4554521 " in lines[0]
    lines = difference(ITEM, Observation(flatten(want)), Observation(flatten(want + 1)))
    assert "is 1.45545; wanted is 0.455452 " in lines[0]


@pytest.mark.parametrize("want", VALUES)
@pytest.mark.parametrize("got", VALUES)
def test_infinity_and_nan_equal_only_themselves(want, got):
    same = want == got or (math.isnan(want) and math.isnan(got))
    assert differs(want, got) != same
    assert differs(torch.tensor([1.0, want]), torch.tensor([1.0, got])) != same


@pytest.mark.parametrize("want", [torch.ones(2), (1.0, 2.0)])
def test_a_forgotten_return_is_named(want):
    lines = difference(ITEM, Observation(flatten(want)), Observation(flatten(None)))
    assert "ends without return" in lines[0]


def test_an_input_that_no_gradient_reaches_is_named():
    reached, lost = ({"gradient of W": one} for one in (torch.ones(2), None))
    want, got = ({f"{p[2:-2]}": leaf for p, leaf in flatten(t).items()} for t in (reached, lost))
    lines = difference(ITEM, Observation(want), Observation(got))
    assert lines[0] == "The values are right, but no gradient of W arrives." and len(lines) == 3


REFUSED = {"refused with": "ValueError", "made instead": "nothing"}


@pytest.mark.parametrize(
    ("want", "got", "told"),
    [
        (
            REFUSED,
            {"refused with": "no error", "made instead": "a head_dim of 85"},
            "this was accepted and gave a head_dim of 85; it should be refused with ValueError",
        ),
        (
            REFUSED,
            {"refused with": "TypeError", "made instead": "nothing"},
            "this ended with TypeError; it should be refused with ValueError",
        ),
        (
            {"refused with": "ValueError"},
            {"refused with": "no error"},
            "this was accepted; it should be refused with ValueError",
        ),
        (
            {"a legal pair is": "taken"},
            {"a legal pair is": "refused with ValueError"},
            "a legal pair is refused with ValueError; it should be taken",
        ),
        ({"head_dim": 64}, {"head_dim": 32}, "head_dim: got 32, wanted 64"),
        ({"a": {"b": "one"}}, {"a": {"b": "two"}}, "a, b: two; wanted is one"),
        ((1, 2), (1, 3), "result[1]: got 3, wanted 2"),
        ((1, 2), (1, 2, 3), "you returned 3 values; wanted is 2 values"),
        (
            {"q": 1, "k": 2},
            (1, 2),
            "you returned 2 values without names; wanted is a dictionary of q, k",
        ),
        ((1, 2), ((1, 2), 2), "result[0]: you returned 2 values; wanted is a number: 1"),
        (
            {"out": torch.ones(2, 3), "heads": 3},
            {"out": (1, 2), "heads": 3},
            "out: you returned 2 values; wanted is a tensor of shape [2, 3], float32",
        ),
        (
            {"refused with": "no error"},
            {"refused with": "ValueError"},
            "this ended with ValueError; it should be accepted",
        ),
        (
            {"append 3": {"length": 2}},
            {"append 3": {"refused with": "TypeError"}},
            "append 3: this was refused with TypeError; it should be accepted",
        ),
        (
            {"append 2": {"refused with": "ValueError"}},
            {"append 2": {"refused with": "no error", "length": 2}},
            "append 2: this was accepted; it should be refused with ValueError",
        ),
        (
            {"append 2": {"refused with": "ValueError"}},
            {"append 2": {"refused with": "no error"}},
            "append 2 was accepted; it should be refused with ValueError",
        ),
    ],
)
def test_a_difference_is_told_in_words_and_not_by_keys_and_brackets(want, got, told):
    lines = difference(ITEM, Observation(flatten(want)), Observation(flatten(got)))
    assert lines == [told]
