"""What lab 07 asks: sequences that repeat, scores of heads, smeared keys, and silence."""

from __future__ import annotations

import math

import pytest
import torch

from labs_lib.attention.induction import (
    ablate_and_copy,
    composition_score,
    induction_score,
    repeated_sequence,
    smear_keys,
)


def test_a_head_that_looks_behind_the_last_copy_scores_one_and_one_that_finds_the_copy_nothing():
    tokens, copied = repeated_sequence(torch.tensor([[4, 1, 3, 0, 2]]), 2)
    weights = torch.zeros(1, 2, 10, 10)
    weights[0, 0, range(5, 10), range(1, 6)] = 1.0
    weights[0, 1, range(5, 10), range(5)] = 1.0
    assert induction_score(weights, tokens).tolist() == [1.0, 0.0]
    assert copied.nonzero().flatten().tolist() == [6, 7, 8, 9]


def test_only_the_last_of_several_copies_counts():
    tokens = torch.tensor([[5, 1, 5, 2, 5]])
    weights = torch.zeros(1, 1, 5, 5)
    weights[0, 0, 4, 1], weights[0, 0, 4, 3] = 0.9, 0.1
    weights[0, 0, 2, 1] = 0.5
    assert induction_score(weights, tokens).tolist() == pytest.approx([0.3])


def test_padding_changes_no_induction_score():
    torch.manual_seed(0)
    tokens = torch.tensor([[3, 1, 3, 2, 1]])
    weights = torch.rand(1, 3, 5, 5).tril()
    padded = torch.nn.functional.pad(weights, (0, 3, 0, 3), value=0.5)
    longer = torch.nn.functional.pad(tokens, (0, 3))
    real = torch.arange(8)[None] < 5
    torch.testing.assert_close(
        induction_score(padded, longer, real), induction_score(weights, tokens)
    )


def test_a_smeared_key_knows_nothing_of_what_follows():
    torch.manual_seed(0)
    k, own = torch.randn(1, 2, 6, 4), torch.tensor([0.3, 0.8])
    changed = k.clone()
    changed[:, :, 4:] += 1.0
    assert torch.equal(smear_keys(k, own)[:, :, :4], smear_keys(changed, own)[:, :, :4])
    torch.testing.assert_close(smear_keys(k, torch.ones(2)), k)


def test_smearing_is_the_weights_of_a_previous_token_head_put_on_keys():
    torch.manual_seed(0)
    k = torch.randn(1, 1, 5, 3)
    before = torch.eye(5).roll(1, dims=0)
    before[0] = torch.eye(5)[0]
    torch.testing.assert_close(smear_keys(k, torch.zeros(1)), before @ k)


def test_a_head_composes_with_the_one_that_writes_what_it_reads_and_with_no_other():
    torch.manual_seed(0)
    W_Q, W_V = torch.randn(8, 4), torch.randn(8, 4)
    W_K, W_O = torch.zeros(8, 4), torch.zeros(4, 8)
    W_O[:2, :4], W_O[2:, 4:] = torch.randn(2, 4), torch.randn(2, 4)
    W_K[4:, :2], W_K[:4, 2:] = torch.randn(4, 2), torch.randn(4, 2)
    scores = composition_score(W_Q, W_K, W_V, W_O, 2)
    assert scores[0, 0] == scores[1, 1] == 0
    assert scores[0, 1] > 0.1 and scores[1, 0] > 0.1


def test_composition_does_not_depend_on_how_loud_the_heads_are():
    torch.manual_seed(0)
    W = [torch.randn(6, 4, dtype=torch.float64) for _ in range(3)]
    W_O = torch.randn(4, 6, dtype=torch.float64)
    louder = composition_score(W[0], 5 * W[1], 3 * W[2], W_O, 2)
    torch.testing.assert_close(louder, composition_score(*W, W_O, 2))
    assert bool((louder <= 1).all())


def test_with_all_heads_silent_every_token_costs_the_same():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 8, 4) for _ in range(3))
    tokens = torch.randint(0, 11, (2, 4)).repeat(1, 2)
    lost = ablate_and_copy(q, k, v, lambda heads: heads.sum((1, 3))[..., None].expand(-1, -1, 11),
                           tokens, [0, 1, 2])  # fmt: skip
    assert float(lost) == pytest.approx(math.log(11))
