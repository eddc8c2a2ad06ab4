"""What lab 06 asks: descriptions of heads, silence, importance, pruning, and int8."""

from __future__ import annotations

import math

import pytest
import torch

from labs_lib.attention.int8 import quantise_int8
from labs_lib.attention.measures import attention_entropy, previous_token_score, sink_score
from labs_lib.attention.silencing import ablate_head, head_importance, prune
from labs_lib.attention.single_head import scaled_dot_product_attention


def test_entropy_is_nothing_for_one_key_and_the_logarithm_of_their_number_for_equal_keys():
    weights = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    assert attention_entropy(weights).tolist() == pytest.approx([0.0, math.log(4)])


def test_padding_changes_no_score():
    weights = torch.rand(1, 3, 5, 5)
    padded = torch.nn.functional.pad(weights, (0, 2, 0, 2), value=0.7)
    real = torch.tensor([[True] * 5 + [False] * 2])
    torch.testing.assert_close(previous_token_score(padded, real), previous_token_score(weights))


def test_a_head_that_only_looks_at_the_first_token_has_a_sink_score_of_one():
    weights = torch.zeros(2, 2, 6, 6)
    weights[:, 0, :, 0] = 1.0
    weights[:, 1] = torch.eye(6)
    assert sink_score(weights).tolist() == [1.0, 0.0]


def test_a_pruned_layer_says_what_the_ablated_one_says():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    W = [torch.randn(12, 12, dtype=torch.float64) for _ in range(4)]

    def heads(matrices, n_head):
        return [(x @ m).unflatten(-1, (n_head, -1)).transpose(1, 2) for m in matrices[:3]]

    ablated = ablate_head(*heads(W, 3), W[3], 1)
    fewer = prune(*W, 3, [1])
    answer = scaled_dot_product_attention(*heads(fewer, 2)).transpose(1, 2).flatten(2) @ fewer[3]
    torch.testing.assert_close(answer, ablated)


def test_a_layer_may_lose_all_of_its_heads():
    W = torch.rand(6, 6)
    shapes = [[*one.shape] for one in prune(W, W, W, W, 3, [0, 1, 2])]
    assert shapes == [[6, 0], [6, 0], [6, 0], [0, 6]]


def test_slopes_of_examples_that_pull_both_ways_do_not_cancel():
    def loss_of(gate, pull):
        return pull * gate[0]

    assert head_importance(loss_of, [0.5, -0.5], 2).tolist() == [0.5, 0.0]


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_int8_misses_no_number_by_more_than_half_a_step(axis):
    torch.manual_seed(1)
    x = torch.randn(6, 4) * torch.tensor([1.0, 100.0, 0.01, 5.0])
    q, scale = quantise_int8(x, axis)
    assert q.dtype == torch.int8
    assert bool(((q * scale - x).abs() <= scale * 0.5001).all())
