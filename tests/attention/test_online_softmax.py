import itertools
import math
from functools import reduce

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scores_rows import exact, hard_rows

from labs_lib.attention.online_softmax import (
    SoftmaxState,
    attention_one_pass,
    block_state,
    finish,
    log_sum_exp,
    merge_softmax_states,
    online_softmax,
    rescale,
    safe_softmax,
    two_pass_softmax,
)
from labs_lib.attention.single_head import causal_mask
from labs_lib.attention.single_head import scaled_dot_product_attention as sdpa

HARD = list(hard_rows())
TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-14}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("n", [1, 2, 17, 31, 33, 64, 65, 97])
def test_three_passes_two_and_one_give_the_softmax_of_the_definition(name, n, dtype):
    row = hard_rows(n)[name].to(dtype)
    weights, lse = exact(row)
    limit = TOLERANCE[dtype]
    for made in (safe_softmax(row), two_pass_softmax(row, 16)):
        torch.testing.assert_close(made, torch.tensor(weights, dtype=dtype), rtol=0, atol=limit)
    assert float(log_sum_exp(row)) == pytest.approx(lse, rel=2 * limit)
    v = torch.linspace(-1, 1, n * 3, dtype=dtype).view(n, 3)
    wanted = torch.tensor(weights, dtype=dtype) @ v
    for block in (1, 5, 16, 200):
        states = map(block_state, row.split(block), v.split(block))
        out, merged = finish(reduce(merge_softmax_states, states))
        torch.testing.assert_close(out, wanted, rtol=0, atol=2 * limit)
        assert float(merged) == pytest.approx(lse, rel=2 * limit)


def test_one_pass_keeps_the_maximum_and_the_sum_below_it(dtype):
    row = hard_rows(64)["rising"].to(dtype)
    m, l = online_softmax(row.split(16))
    assert m == row.max()
    torch.testing.assert_close(l, (row - row.max()).exp().sum())
    m, l = online_softmax(hard_rows(64)["no key at all"].split(16))
    assert (float(m), float(l)) == (-math.inf, 0.0)


def test_one_pass_asks_for_each_block_once():
    asked = []

    def stream():
        for block in range(4):
            asked.append(block)
            yield torch.full((2, 3), float(block))

    m, l = online_softmax(stream())
    assert asked == [0, 1, 2, 3]
    assert m.tolist() == [3.0, 3.0]
    assert l[0] == pytest.approx(3 * sum(math.exp(-b) for b in range(4)))


def test_no_block_at_all_is_refused_in_words():
    with pytest.raises(ValueError, match="at least one"):
        online_softmax([])


def states_of(numbers, parts=5, rows=4, n=9, d_v=3):
    made = []
    for part in range(parts):
        scores = numbers(rows, n, std=20.0) + 30 * part
        scores[part % rows] = -math.inf
        made.append(block_state(scores, numbers(rows, n, d_v)))
    return made


def test_states_merge_in_every_order_and_in_every_tree(numbers, dtype):
    states = states_of(numbers, parts=4)
    wanted = finish(reduce(merge_softmax_states, states))
    for a, b, c, d in itertools.permutations(states):
        merge = merge_softmax_states
        for whole in (merge(merge(a, b), merge(c, d)), merge(a, merge(b, merge(c, d)))):
            for got, want in zip(finish(whole), wanted, strict=True):
                torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


def test_a_state_of_nothing_changes_no_other_state(numbers):
    state = states_of(numbers, parts=1)[0]
    nothing = SoftmaxState(
        torch.full_like(state.m, -math.inf), torch.zeros_like(state.l), torch.zeros_like(state.o)
    )
    for merged in (merge_softmax_states(state, nothing), merge_softmax_states(nothing, state)):
        assert all(torch.equal(got, want) for got, want in zip(merged, state, strict=True))
    out, lse = finish(merge_softmax_states(nothing, nothing))
    assert out.count_nonzero() == 0
    assert lse.tolist() == [-math.inf] * 4


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    cuts=st.lists(st.integers(0, 40), max_size=8),
    scale=st.sampled_from([0.1, 5.0, 100.0, 2e4]),
    seed=st.integers(0, 999),
)
def test_however_a_row_is_cut_the_result_is_the_same(cuts, scale, seed):
    noise = torch.Generator().manual_seed(seed)
    scores = (torch.rand(3, 40, generator=noise) - 0.5) * scale
    v = torch.rand(40, 2, generator=noise)
    edges = [0, *sorted(cuts), 40]  # equal neighbours are an empty block
    states = [block_state(scores[:, a:b], v[a:b]) for a, b in itertools.pairwise(edges)]
    out, lse = finish(reduce(merge_softmax_states, states))
    torch.testing.assert_close(out, scores.softmax(-1) @ v, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(lse, scores.logsumexp(-1), rtol=1e-5, atol=1e-5)


def test_rescaling_moves_what_was_collected_to_the_new_maximum(numbers, dtype):
    m_old, l, o = numbers(5), numbers(5).abs(), numbers(5, 3)
    m_new = m_old + numbers(5).abs()
    factor = (m_old - m_new).exp()
    got = rescale(m_old, m_new, l, o)
    torch.testing.assert_close(got[0], l * factor)
    torch.testing.assert_close(got[1], o * factor[:, None])
    nothing = torch.full((5,), -math.inf, dtype=dtype)
    for still in (nothing, m_new):
        l_new, o_new = rescale(nothing, still, torch.zeros_like(l), torch.zeros_like(o))
        assert l_new.count_nonzero() == o_new.count_nonzero() == 0


@pytest.mark.parametrize(("seq_q", "seq_k"), [(7, 7), (3, 17), (17, 3), (1, 33), (5, 1)])
@pytest.mark.parametrize("masked", [False, True])
def test_one_pass_over_vectors_equals_attention(numbers, close, seq_q, seq_k, masked):
    q, k, v = numbers(2, 3, seq_q, 4), numbers(2, 3, seq_k, 4), numbers(2, 3, seq_k, 5)
    mask = causal_mask(seq_q, seq_k) if masked else None
    for block in (1, 4, 64):
        out, lse = attention_one_pass(q, k, v, mask, block)
        close(out, sdpa(q, k, v, mask), scale=10)
        scores = q @ k.mT / 2
        hidden = scores if mask is None else scores.masked_fill(~mask, -math.inf)
        close(lse, hidden.logsumexp(-1), scale=10)


def test_gradients_of_one_pass_equal_those_of_attention(numbers, dtype):
    q, k, v = (numbers(2, 3, 7, 4, grad=True) for _ in range(3))
    upstream = numbers(2, 3, 7, 4)
    mask = causal_mask(7)
    ours = torch.autograd.grad(attention_one_pass(q, k, v, mask, 3)[0], (q, k, v), upstream)
    theirs = torch.autograd.grad(sdpa(q, k, v, mask), (q, k, v), upstream)
    limit = {torch.float32: 1e-4, torch.float64: 1e-12}[dtype]
    for got, want in zip(ours, theirs, strict=True):
        torch.testing.assert_close(got, want, rtol=limit, atol=limit)


@pytest.mark.parametrize(("dtype", "limit"), [(torch.float16, 2e-3), (torch.bfloat16, 2e-2)])
def test_narrow_inputs_are_added_up_in_float32(dtype, limit):
    torch.manual_seed(0)
    q, k = torch.full((1, 1, 1, 8), 2.0), torch.full((1, 1, 5000, 8), 2.0)
    v = torch.rand(1, 1, 5000, 4) + 1
    out, lse = attention_one_pass(*(t.to(dtype) for t in (q, k, v)))
    assert out.dtype == dtype
    assert lse.dtype == torch.float32
    torch.testing.assert_close(out.float(), v.to(dtype).float().mean(2, True), rtol=limit, atol=0)
    row = torch.zeros(5000, dtype=dtype)  # a sum of ones in float16 stops at 2048
    assert float(safe_softmax(row).float().sum()) == pytest.approx(1.0, rel=5e-2)


def test_equal_within_rounding_and_not_to_the_last_digit(numbers, dtype):
    q, k, v = numbers(1, 1, 256, 16), numbers(1, 1, 512, 16), numbers(1, 1, 512, 16)
    plain, online = (q @ k.mT / 4).softmax(-1) @ v, attention_one_pass(q, k, v, block=16)[0]
    difference = (plain - online).abs()
    assert 0 < difference.max() < {torch.float32: 5e-6, torch.float64: 1e-14}[dtype]
    assert (difference == 0).double().mean() < 0.9


@pytest.mark.parametrize("block", [0, -1])
def test_a_block_without_a_key_is_refused(numbers, block):
    q = numbers(1, 1, 3, 4)
    with pytest.raises(ValueError, match=f"block={block}"):
        attention_one_pass(q, q, q, block=block)
