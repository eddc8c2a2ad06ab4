"""Lab 05: its cases tell right from wrong at every seed, and what its rules measure."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from labs_lib.answers import answer
from labs_lib.answers.lab05.layer import Parts
from labs_lib.checking.oracle import LiveOracle
from labs_lib.checking.verdict import judge
from labs_lib.exercises import exercise
from labs_lib.exercises.lab05_cases import put_weights
from labs_lib.exercises.lab05_rules import computes_nothing, multiplies_once


@pytest.mark.parametrize(
    "program",
    [
        lambda heads: heads.transpose(1, 2).flatten(2) * 1.0,
        lambda heads: heads.transpose(1, 2).flatten(2) + 0.0,
        lambda heads: torch.einsum(
            "bhtd,hde->bte", heads, torch.eye(15).view(3, 5, 15).to(heads.dtype)
        ),
    ],
)
def test_arithmetic_that_changes_no_number_is_seen(program):
    heads = torch.rand(2, 3, 4, 5)
    torch.testing.assert_close(program(heads), heads.transpose(1, 2).flatten(2))
    assert not computes_nothing(program)


def test_products_with_zeros_are_counted():
    def padded(heads, W_O):
        concat = heads.transpose(1, 2).flatten(2)
        owner = torch.arange(W_O.shape[0]) // heads.shape[3]
        return torch.stack([(concat * (owner == h)) @ W_O for h in range(heads.shape[1])], 1)

    assert multiplies_once(answer("lab05.per_head_contributions").reference)
    assert not multiplies_once(padded)


LAYER = exercise("lab05.multi_head_attention")


def said(layer):
    return "\n".join(judge(LAYER, layer, LiveOracle()).lines)


def test_weights_of_another_shape_are_named_by_both_shapes():
    weights = {name: torch.rand(24, 12) for name in ("W_Q", "W_K", "W_V", "W_O")}
    layer = nn.Module()
    layer.W_Q = nn.Parameter(torch.rand(12, 24))
    with pytest.raises(ValueError, match=r"W_Q is \[12, 24\]; wanted is \[24, 12\]"):
        put_weights(layer, weights)


def test_a_missing_weight_is_named_with_the_way_out():
    class Other(Parts):
        def make(self, d_model, kv_width):
            super().make(d_model, kv_width)
            self.output = self.W_O
            del self.W_O

    told = said(Other)
    assert "no weight called W_O" in told and "load(W_Q, W_K, W_V, W_O)" in told


def test_an_unfinished_forward_is_not_attempted():
    class Half(Parts):
        def forward(self, x, context=None, mask=None):
            raise NotImplementedError

    assert judge(LAYER, Half, LiveOracle()).outcome == "NOT ATTEMPTED"


def test_weights_are_copied_and_never_shared_between_layers():
    weights = {name: torch.rand(4, 4) for name in ("W_Q", "W_K", "W_V", "W_O")}
    linear = nn.Module()
    for name in weights:
        setattr(linear, name, nn.Linear(4, 4))
    put_weights(linear, weights)
    for name, W in weights.items():
        kept = getattr(linear, name)
        assert torch.equal(kept.weight, W.T) and not kept.bias.any()
