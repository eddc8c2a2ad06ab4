import math
import warnings

import pytest
import torch
from torch.nn import functional as F

from labs_lib.attention.single_head import (
    attention_scores,
    attention_weights,
    causal_mask,
    scaled_dot_product_attention,
)

SIZES = [(7, 7), (3, 7), (7, 3), (1, 5), (5, 1)]


def loop_attention(q, k, v, mask):
    """What is meant, number by number."""
    out = torch.zeros(q.shape[0], v.shape[1], dtype=q.dtype)
    for i in range(q.shape[0]):
        seen = [j for j in range(k.shape[0]) if mask is None or mask[i, j]]
        raw = [math.exp(float(q[i] @ k[j]) / math.sqrt(q.shape[1])) for j in seen]
        for j, e in zip(seen, raw, strict=True):
            out[i] += e / sum(raw) * v[j]
    return out


@pytest.mark.parametrize(("seq_q", "seq_k"), SIZES)
@pytest.mark.parametrize("masked", [False, True])
def test_one_head_equals_the_formula_number_by_number(numbers, close, seq_q, seq_k, masked):
    q, k, v = numbers(seq_q, 4), numbers(seq_k, 4), numbers(seq_k, 5)
    mask = causal_mask(seq_q, seq_k) if masked else None
    close(scaled_dot_product_attention(q, k, v, mask), loop_attention(q, k, v, mask))


@pytest.mark.parametrize(("seq_q", "seq_k"), [(7, 7), (3, 7), (1, 5)])
@pytest.mark.parametrize("masked", [False, True])
def test_output_and_gradients_equal_torch(numbers, close, seq_q, seq_k, masked):
    q = numbers(2, 3, seq_q, 4, grad=True)
    k, v = numbers(2, 3, seq_k, 4, grad=True), numbers(2, 3, seq_k, 4, grad=True)
    mask = causal_mask(seq_q, seq_k) if masked else None
    upstream = numbers(2, 3, seq_q, 4)
    ours = scaled_dot_product_attention(q, k, v, mask)
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    close(ours, theirs)
    grads = zip(
        torch.autograd.grad(ours, (q, k, v), upstream),
        torch.autograd.grad(theirs, (q, k, v), upstream),
        strict=True,
    )
    for got, wanted in grads:
        close(got, wanted, scale=10)


def test_scores_are_scaled_by_the_width_of_the_head_not_of_the_model(numbers, close):
    q, k = numbers(2, 3, 7, 16), numbers(2, 3, 7, 16)
    close(attention_scores(q, k), torch.einsum("bhid,bhjd->bhij", q, k) / 4)


def test_a_query_is_not_compared_with_keys_of_another_width(numbers):
    with pytest.raises(ValueError, match="head_dim 4 and k has 5"):
        attention_scores(numbers(7, 4), numbers(7, 5))


@pytest.mark.parametrize(("seq_q", "seq_k"), [*SIZES, (2, 9), (9, 2), (4, 4)])
def test_the_causal_mask_is_aligned_at_the_newest_token(seq_q, seq_k):
    mask = causal_mask(seq_q, seq_k)
    wanted = [[j <= i + seq_k - seq_q for j in range(seq_k)] for i in range(seq_q)]
    assert mask.dtype == torch.bool
    assert mask.tolist() == wanted
    assert mask[-1].all()


def test_the_causal_mask_is_square_by_default():
    assert causal_mask(4).tolist() == causal_mask(4, 4).tolist()


def test_weights_of_a_row_sum_to_one_and_hidden_keys_get_none(numbers, close):
    mask = causal_mask(7)
    weights = attention_weights(numbers(2, 3, 7, 7), mask)
    close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert weights.masked_select(~mask).count_nonzero() == 0


def test_a_row_that_sees_nothing_is_zero_in_value_and_gradient(numbers):
    q = numbers(1, 2, 7, 4, grad=True)
    k, v = numbers(1, 2, 3, 4, grad=True), numbers(1, 2, 3, 4, grad=True)
    out = scaled_dot_product_attention(q, k, v, causal_mask(7, 3))
    assert out[:, :, :4].count_nonzero() == 0
    assert out[:, :, 4:].count_nonzero() == out[:, :, 4:].numel()
    out.square().sum().backward()
    for grad in (q.grad, k.grad, v.grad):
        assert grad.isfinite().all()
        assert grad.count_nonzero() > 0
    assert q.grad[:, :, :4].count_nonzero() == 0


def test_a_row_that_sees_nothing_makes_no_nan_even_on_the_way(numbers):
    scores = numbers(7, 3, grad=True)
    with warnings.catch_warnings(action="ignore"), torch.autograd.detect_anomaly():
        attention_weights(scores, causal_mask(7, 3)).square().sum().backward()
    assert scores.grad[:4].count_nonzero() == 0


def test_no_visible_key_at_all_gives_zeros(numbers):
    q, k, v = numbers(2, 4), numbers(3, 4), numbers(3, 4)
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    assert scaled_dot_product_attention(q, k, v, nothing).tolist() == [[0.0] * 4] * 2
    assert scaled_dot_product_attention(q, k[:0], v[:0]).tolist() == [[0.0] * 4] * 2


def test_a_mask_per_sequence_hides_its_padding(numbers, close):
    q, k, v = (numbers(2, 3, 7, 4) for _ in range(3))
    lengths = torch.tensor([5, 7])
    mask = (torch.arange(7) < lengths[:, None])[:, None, None]  # [batch, 1, 1, seq_k]
    out = scaled_dot_product_attention(q, k, v, mask)
    close(out[0], scaled_dot_product_attention(q[0], k[0, :, :5], v[0, :, :5]))
    close(out[1], scaled_dot_product_attention(q[1], k[1], v[1]))


def test_hidden_keys_cannot_leak_even_when_they_are_huge(numbers, close):
    q, k, v = (numbers(2, 3, 7, 4) for _ in range(3))
    before = scaled_dot_product_attention(q, k, v, causal_mask(7))
    k[:, :, 4:], v[:, :, 4:] = 1e30, 1e30
    after = scaled_dot_product_attention(q, k, v, causal_mask(7))
    assert torch.equal(before[:, :, :4], after[:, :, :4])


def test_large_scores_neither_overflow_nor_vanish(numbers):
    scores = torch.tensor([[6e4, 6e4], [-6e4, -6e4], [300.0, 0.0]])
    assert attention_weights(scores).tolist() == [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]


def test_strided_inputs_give_the_same_numbers(numbers, close):
    packed = numbers(2, 7, 3, 3, 4)  # [batch, seq, q k or v, n_head, head_dim]
    q, k, v = packed.permute(2, 0, 3, 1, 4)
    assert not q.is_contiguous()
    strided = scaled_dot_product_attention(q, k, v, causal_mask(7))
    copied = scaled_dot_product_attention(*(t.contiguous() for t in (q, k, v)), causal_mask(7))
    close(strided, copied)


def test_inputs_are_left_as_they_were(numbers):
    q, k, v = (numbers(2, 7, 4) for _ in range(3))
    copies = [t.clone() for t in (q, k, v)]
    mask = causal_mask(7)
    scaled_dot_product_attention(q, k, v, mask)
    assert all(torch.equal(t, copy) for t, copy in zip((q, k, v), copies, strict=True))
    assert torch.equal(mask, causal_mask(7))


def test_a_mask_of_numbers_is_refused(numbers):
    with pytest.raises(TypeError, match=r"torch\.bool"):
        attention_weights(numbers(7, 7), torch.zeros(7, 7))
