"""The rule of lab 03: no loop over heads, measured by what the program computes."""

from __future__ import annotations

import pytest
import torch

from labs_lib.answers import answer
from labs_lib.exercises import exercise
from labs_lib.exercises.lab03_cases import has_no_loop_over_heads

FUSED = answer("lab03.fused_multi_head")


def _loop_without_products(x, W_Q, W_K, W_V, n_head, mask=None):
    q, k, v = (x @ W for W in (W_Q, W_K, W_V))
    heads = []
    for a, b, c in zip(*(t.chunk(n_head, -1) for t in (q, k, v)), strict=True):
        scores = (a[:, :, None] * b[:, None]).sum(-1) / a.shape[-1] ** 0.5
        heads.append((scores.softmax(-1)[..., None] * c[:, None]).sum(2))
    return torch.cat(heads, dim=-1)


def _loop_around_torchs_attention(x, W_Q, W_K, W_V, n_head, mask=None):
    q, k, v = (x @ W for W in (W_Q, W_K, W_V))
    triples = zip(*(t[:, None].chunk(n_head, -1) for t in (q, k, v)), strict=True)
    attend = torch.nn.functional.scaled_dot_product_attention
    return torch.cat([attend(*triple)[:, 0] for triple in triples], dim=-1)


@pytest.mark.parametrize("program", [_loop_without_products, _loop_around_torchs_attention])
def test_a_hidden_loop_over_heads_breaks_the_rule(program):
    case = exercise("lab03.fused_multi_head").make_cases(5)[0]
    torch.testing.assert_close(program(*case.args), FUSED.reference(*case.args))
    assert not has_no_loop_over_heads(program)


@pytest.mark.parametrize("right", FUSED.right, ids=lambda right: right.name)
def test_every_right_program_keeps_the_rule(right):
    assert has_no_loop_over_heads(right.program)
