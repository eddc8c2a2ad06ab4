"""Shared heads: the same numbers as repeated ones, without repeating a key or a value."""

import pytest
import torch
from torch.nn import functional as F

from labs_lib.attention.grouped import grouped_query_attention, mha_to_gqa
from labs_lib.attention.heads import split_heads
from labs_lib.attention.multi_head import MultiHeadAttention
from labs_lib.attention.single_head import causal_mask, scaled_dot_product_attention
from labs_lib.config import AttentionConfig
from labs_lib.exercises.measure import largest_allocation

GROUPS = [(6, 3), (6, 2), (6, 1), (4, 4), (1, 1)]


def inputs(numbers, n_head, n_kv_head, seq_q=5, seq_k=7, d_v=3):
    q = numbers(2, n_head, seq_q, 4, grad=True)
    k, v = numbers(2, n_kv_head, seq_k, 4, grad=True), numbers(2, n_kv_head, seq_k, d_v, grad=True)
    return q, k, v


@pytest.mark.parametrize(("n_head", "n_kv_head"), GROUPS)
@pytest.mark.parametrize("masked", [False, True])
def test_equals_repeated_heads_in_value_and_gradient(numbers, close, n_head, n_kv_head, masked):
    q, k, v = leaves = inputs(numbers, n_head, n_kv_head)
    mask = causal_mask(5, 7) if masked else None
    group = n_head // n_kv_head
    repeated = (t.repeat_interleave(group, dim=1) for t in (k, v))
    wanted = scaled_dot_product_attention(q, *repeated, mask)
    got = grouped_query_attention(q, k, v, mask)
    close(got, wanted)
    upstream = numbers(*wanted.shape)
    slopes = (torch.autograd.grad(out, leaves, upstream) for out in (got, wanted))
    for a, b in zip(*slopes, strict=True):
        close(a, b, scale=100)


def test_equals_torchs_grouped_attention(numbers, close):
    q, k, v = inputs(numbers, 6, 2)
    mask = causal_mask(5, 7)
    wanted = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    close(grouped_query_attention(q, k, v, mask), wanted)


def test_a_mask_for_each_text_and_head_is_its_own_and_an_empty_row_gives_zeros(numbers, close):
    q, k, v = inputs(numbers, 6, 3)
    mask = numbers(2, 6, 5, 7) > -1
    mask[1, 4, 2] = False
    got = grouped_query_attention(q, k, v, mask)
    assert got[1, 4, 2].count_nonzero() == 0 and got.isfinite().all()
    repeated = (t.repeat_interleave(2, dim=1) for t in (k, v))
    close(got, scaled_dot_product_attention(q, *repeated, mask))


def test_keys_and_values_are_never_repeated(numbers):
    q, k, v = numbers(1, 8, 1, 16), numbers(1, 2, 512, 16), numbers(1, 2, 512, 16)
    scores = 8 * 512
    assert largest_allocation(grouped_query_attention, q, k, v) == scores < k.numel()


def test_query_head_h_reads_head_h_over_group_and_no_other(numbers):
    q, k, v = inputs(numbers, 6, 3)
    out = grouped_query_attention(q, k, v)
    for h in range(6):
        slope = torch.autograd.grad(out[:, h].sum(), v, retain_graph=True)[0]
        touched = slope.abs().amax(dim=(0, 2, 3)) > 0
        assert touched.nonzero().flatten().tolist() == [h // 2]


@pytest.mark.parametrize("n_kv_head", [4, 5, 12])
def test_groups_that_do_not_divide_are_refused_with_what_is_allowed(numbers, n_kv_head):
    q, k, v = inputs(numbers, 6, n_kv_head)
    with pytest.raises(ValueError, match=f"n_kv_head={n_kv_head} does not divide n_head=6; 1, 2"):
        grouped_query_attention(q, k, v)


def test_keys_and_values_of_different_heads_or_widths_are_refused(numbers):
    q, k, v = inputs(numbers, 6, 3)
    with pytest.raises(ValueError, match="must agree"):
        grouped_query_attention(q, k, v[:, :2])
    with pytest.raises(ValueError, match="head_dim 4 and k has 3"):
        grouped_query_attention(q, k[..., :3], v)


@pytest.mark.parametrize("n_kv_head", [8, 4, 2, 1])
def test_pooled_weights_give_the_mean_of_the_groups_keys(numbers, close, n_kv_head):
    W_K, W_V, x = numbers(12, 32, std=0.3), numbers(12, 40, std=0.3), numbers(2, 5, 12)
    fewer = mha_to_gqa(W_K, W_V, 8, n_kv_head)
    for W, pooled in zip((W_K, W_V), fewer, strict=True):
        before, after = split_heads(x @ W, 8), split_heads(x @ pooled, n_kv_head)
        close(after, before.unflatten(1, (n_kv_head, -1)).mean(dim=2))


def test_heads_that_were_equal_lose_nothing_by_pooling(numbers, close):
    layer = MultiHeadAttention(AttentionConfig(24, 6)).to(numbers(1).dtype)
    fewer = MultiHeadAttention(AttentionConfig(24, 6, 2)).to(numbers(1).dtype)
    x, mask = numbers(2, 5, 24, std=1.0), causal_mask(5)
    with torch.no_grad():
        for W in (layer.W_K, layer.W_V):
            heads = W.view(24, 2, 3, 4)
            heads.copy_(heads[:, :, :1].clone().expand_as(heads))
        fewer.W_Q.copy_(layer.W_Q)
        fewer.W_O.copy_(layer.W_O)
        for W, pooled in zip(
            (fewer.W_K, fewer.W_V), mha_to_gqa(layer.W_K, layer.W_V, 6, 2), strict=True
        ):
            W.copy_(pooled)
    close(fewer(x, mask=mask), layer(x, mask=mask))


@pytest.mark.parametrize(("columns", "n_kv_head"), [(32, 3), (32, 0), (30, 4)])
def test_sizes_that_do_not_fit_cannot_be_pooled(columns, n_kv_head):
    with pytest.raises(ValueError, match=r"divide|equal width|not allowed"):
        mha_to_gqa(torch.ones(5, columns), torch.ones(5, columns), 8, n_kv_head)
