import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from labs_lib.attention.fused import (
    fused_multi_head,
    stack_projections,
    unstack_from_fused_qkv,
    unstack_projection,
)
from labs_lib.attention.heads import merge_heads
from labs_lib.attention.per_head import per_head_attention, per_head_qkv
from labs_lib.attention.single_head import causal_mask, scaled_dot_product_attention

N_HEAD, D_MODEL, HEAD_DIM, SEQ = 3, 10, 4, 7


@pytest.fixture
def weights(numbers):
    return [numbers(N_HEAD, D_MODEL, HEAD_DIM, std=0.5, grad=True) for _ in range(3)]


def test_each_head_is_one_head_on_the_whole_input(numbers, weights, close):
    x, mask = numbers(2, SEQ, D_MODEL), causal_mask(SEQ)
    heads = per_head_attention(x, *weights, mask)
    assert heads.shape == (2, N_HEAD, SEQ, HEAD_DIM)
    for h in range(N_HEAD):
        W_Q, W_K, W_V = (W[h] for W in weights)
        close(heads[:, h], scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V, mask))


def test_a_head_reads_every_input_number(numbers, weights):
    x = numbers(1, SEQ, D_MODEL, grad=True)
    q, _, _ = per_head_qkv(x, *weights)
    q[0, 1].sum().backward()
    assert x.grad.count_nonzero() == SEQ * D_MODEL


@pytest.mark.parametrize("masked", [False, True])
def test_fused_equals_the_loop_in_value_and_gradient(numbers, weights, close, masked):
    x = numbers(2, SEQ, D_MODEL, grad=True)
    mask = causal_mask(SEQ) if masked else None
    loop = merge_heads(per_head_attention(x, *weights, mask))
    fused = fused_multi_head(x, *(stack_projections(W) for W in weights), N_HEAD, mask)
    close(fused, loop)
    upstream, leaves = numbers(*loop.shape), (x, *weights)
    wanted = torch.autograd.grad(loop, leaves, upstream)
    got = torch.autograd.grad(fused, leaves, upstream)
    for a, b in zip(got, wanted, strict=True):
        close(a, b, scale=100)


def test_a_mask_for_each_head_is_that_head_s(numbers, weights, close):
    x = numbers(2, SEQ, D_MODEL)
    mask = torch.stack([causal_mask(SEQ), causal_mask(SEQ).T, torch.eye(SEQ, dtype=torch.bool)])
    loop = merge_heads(per_head_attention(x, *weights, mask))
    fused = fused_multi_head(x, *(stack_projections(W) for W in weights), N_HEAD, mask)
    close(fused, loop)


def test_a_row_that_sees_nothing_is_zero_in_the_loop_and_fused(numbers, weights):
    x, mask = numbers(2, SEQ, D_MODEL), causal_mask(SEQ)
    mask[0] = False
    loop = merge_heads(per_head_attention(x, *weights, mask))
    fused = fused_multi_head(x, *(stack_projections(W) for W in weights), N_HEAD, mask)
    for out in (loop, fused):
        assert out[:, 0].count_nonzero() == 0
        assert out[:, 1:].isfinite().all()


def test_values_may_be_wider_than_keys(numbers, close):
    x = numbers(2, SEQ, D_MODEL)
    W_Q, W_K = numbers(N_HEAD, D_MODEL, 4), numbers(N_HEAD, D_MODEL, 4)
    W_V = numbers(N_HEAD, D_MODEL, 6)
    loop = merge_heads(per_head_attention(x, W_Q, W_K, W_V))
    fused = fused_multi_head(x, *map(stack_projections, (W_Q, W_K, W_V)), N_HEAD)
    assert fused.shape == (2, SEQ, N_HEAD * 6)
    close(fused, loop, scale=10)


def test_a_strided_input_gives_the_same_numbers(numbers, weights, close):
    x = numbers(SEQ, 2, D_MODEL).transpose(0, 1)
    assert not x.is_contiguous()
    stacked = [stack_projections(W) for W in weights]
    close(fused_multi_head(x, *stacked, 3), fused_multi_head(x.contiguous(), *stacked, 3))


def test_block_h_of_the_fused_matrix_is_the_matrix_of_head_h(numbers):
    W = numbers(N_HEAD, D_MODEL, HEAD_DIM)
    stacked = stack_projections(W)
    for h in range(N_HEAD):
        assert torch.equal(stacked[:, h * HEAD_DIM : (h + 1) * HEAD_DIM], W[h])
    assert torch.equal(unstack_projection(stacked, N_HEAD), W)


@pytest.mark.parametrize(("n_head", "n_kv_head"), [(3, None), (6, 2), (4, 1)])
def test_a_fused_qkv_matrix_comes_apart_as_it_was_put_together(numbers, close, n_head, n_kv_head):
    n_kv = n_head if n_kv_head is None else n_kv_head
    parts = [numbers(n, D_MODEL, HEAD_DIM, std=0.5) for n in (n_head, n_kv, n_kv)]
    W_QKV = torch.cat([stack_projections(W) for W in parts], dim=1)
    found = unstack_from_fused_qkv(W_QKV, n_head, n_kv_head)
    for got, wanted in zip(found, parts, strict=True):
        assert torch.equal(got, wanted)
    x = numbers(2, SEQ, D_MODEL)
    fused = (x @ W_QKV).split([n * HEAD_DIM for n in (n_head, n_kv, n_kv)], dim=-1)
    for flat, heads in zip(fused, per_head_qkv(x, *found), strict=True):
        close(flat, merge_heads(heads))


@pytest.mark.parametrize(("n_head", "n_kv_head"), [(5, None), (3, 2), (0, 1), (3, 0)])
def test_a_fused_matrix_of_broken_heads_is_refused(n_head, n_kv_head):
    with pytest.raises(ValueError, match="W_QKV has 36 columns"):
        unstack_from_fused_qkv(torch.empty(D_MODEL, 36), n_head, n_kv_head)


def test_query_heads_share_neighbouring_key_value_heads(numbers, close):
    x = numbers(2, SEQ, D_MODEL)
    W_Q = numbers(6, D_MODEL, HEAD_DIM, std=0.5)
    W_K, W_V = numbers(2, D_MODEL, HEAD_DIM, std=0.5), numbers(2, D_MODEL, HEAD_DIM)
    shared = per_head_attention(x, W_Q, W_K, W_V)
    owner = [0, 0, 0, 1, 1, 1]
    close(shared, per_head_attention(x, W_Q, W_K[owner], W_V[owner]))
    with pytest.raises(ValueError, match="n_kv_head=2 does not divide n_head=5"):
        per_head_attention(x, W_Q[:5], W_K, W_V)


def test_the_number_of_products_does_not_depend_on_n_head(numbers):
    x = numbers(2, SEQ, 12)
    W = [numbers(12, 12) for _ in range(3)]
    calls = {}
    for n_head in (1, 3, 12):
        with torch.profiler.profile() as profile:
            fused_multi_head(x, *W, n_head)
        names = [event.name for event in profile.events()]
        calls[n_head] = sum(names.count(f"aten::{op}") for op in ("mm", "bmm"))
    assert calls == {1: 5, 3: 5, 12: 5}


def test_the_products_cost_the_same_whatever_n_head_is(numbers):
    x, W = numbers(2, SEQ, 12), [numbers(12, 12) for _ in range(3)]
    flops = set()
    for n_head in (1, 3, 12):
        with FlopCounterMode(display=False) as counter:
            fused_multi_head(x, *W, n_head)
        flops.add(counter.get_total_flops())
    assert flops == {3 * 2 * 2 * SEQ * 12 * 12 + 2 * 2 * 2 * SEQ * SEQ * 12}
