import pytest
import torch
from torch import nn
from torch.nn import functional as F

from labs_lib.attention.fused import fused_multi_head, unstack_from_fused_qkv
from labs_lib.attention.heads import split_heads
from labs_lib.attention.multi_head import (
    MultiHeadAttention,
    apply_w_o,
    concat_heads,
    fold_w_o,
    folded_multi_head,
    per_head_contributions,
    without_w_o,
)
from labs_lib.attention.per_head import per_head_attention
from labs_lib.attention.single_head import causal_mask
from labs_lib.config import AttentionConfig

SEQ = 7


def layer(config, numbers, dtype, **more):
    """A layer whose weights and biases are all set to known, distinct numbers."""
    module = MultiHeadAttention(config, **more).to(dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(numbers(*parameter.shape, std=0.5))
    return module


def torch_layer(ours):
    """torch's own module with the weights of ours."""
    c = ours.config
    theirs = nn.MultiheadAttention(c.d_model, c.n_head, bias=c.bias, batch_first=True)
    theirs = theirs.to(ours.W_Q.dtype)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.W_Q, ours.W_K, ours.W_V], dim=1).T)
        theirs.out_proj.weight.copy_(ours.W_O.T)
        if c.bias:
            theirs.in_proj_bias.copy_(torch.cat([ours.b_Q, ours.b_K, ours.b_V]))
            theirs.out_proj.bias.copy_(ours.b_O)
    return theirs


def paired_gradients(ours, theirs):
    """Each gradient of torch's module beside the one of ours that it must equal."""
    in_proj = torch.cat([ours.W_Q.grad, ours.W_K.grad, ours.W_V.grad], dim=1).T
    yield theirs.in_proj_weight.grad, in_proj
    yield theirs.out_proj.weight.grad, ours.W_O.grad.T
    if ours.config.bias:
        in_bias = torch.cat([ours.b_Q.grad, ours.b_K.grad, ours.b_V.grad])
        yield theirs.in_proj_bias.grad, in_bias
        yield theirs.out_proj.bias.grad, ours.b_O.grad


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_the_layer_equals_torch_s_with_copied_weights(numbers, close, dtype, bias, masked):
    ours = layer(AttentionConfig(12, 3, bias=bias), numbers, dtype)
    theirs = torch_layer(ours)
    x, context = numbers(2, SEQ, 12, grad=True), numbers(2, 9, 12)
    mask = causal_mask(SEQ, 9) if masked else None
    hidden = None if mask is None else ~mask  # torch's module says True = may not attend
    got = ours(x, context, mask)
    wanted, _ = theirs(x, context, context, attn_mask=hidden)
    close(got, wanted, scale=10)
    upstream = numbers(*got.shape)
    got.backward(upstream)
    x_grad, x.grad = x.grad, None
    wanted.backward(upstream)
    close(x_grad, x.grad, scale=100)
    for a, b in paired_gradients(ours, theirs):
        close(b, a, scale=1000)


@pytest.mark.parametrize("n_kv_head", [6, 3, 2, 1])
def test_shared_heads_equal_torch_s_grouped_attention(numbers, close, dtype, n_kv_head):
    ours = layer(AttentionConfig(24, 6, n_kv_head), numbers, dtype)
    x, mask = numbers(2, SEQ, 24), causal_mask(SEQ)
    q = split_heads(x @ ours.W_Q, 6)
    k, v = split_heads(x @ ours.W_K, n_kv_head), split_heads(x @ ours.W_V, n_kv_head)
    wanted = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    close(ours(x, mask=mask), wanted.transpose(1, 2).flatten(2) @ ours.W_O, scale=10)


@pytest.mark.parametrize("n_kv_head", [3, 1])
def test_the_layer_equals_the_loop_over_heads(numbers, close, dtype, n_kv_head):
    ours = layer(AttentionConfig(12, 3, n_kv_head), numbers, dtype)
    W_QKV = torch.cat([ours.W_Q, ours.W_K, ours.W_V], dim=1)
    x, mask = numbers(2, SEQ, 12), causal_mask(SEQ)
    heads = per_head_attention(x, *unstack_from_fused_qkv(W_QKV, 3, n_kv_head), mask)
    close(ours(x, mask=mask), apply_w_o(concat_heads(heads), ours.W_O), scale=10)


def test_heads_need_not_be_as_wide_as_the_model_nor_as_the_input(numbers, close, dtype):
    config = AttentionConfig(96, 3, head_dim=64, d_in=10)
    ours = layer(config, numbers, dtype)
    x = numbers(2, SEQ, 10)
    out = ours(x, mask=causal_mask(SEQ))
    assert out.shape == (2, SEQ, 96)
    fused = fused_multi_head(x, ours.W_Q, ours.W_K, ours.W_V, 3, causal_mask(SEQ))
    close(out, fused @ ours.W_O, scale=10)


@pytest.mark.parametrize(("n_kv_head", "wanted"), [(8, 1_048_576), (2, 655_360), (1, 589_824)])
def test_parameters_shrink_with_shared_heads(n_kv_head, wanted):
    module = MultiHeadAttention(AttentionConfig(512, 8, n_kv_head))
    assert sum(p.numel() for p in module.parameters()) == wanted


def test_a_width_that_does_not_split_is_fine_with_an_explicit_head_dim():
    module = MultiHeadAttention(AttentionConfig(510, 8, head_dim=64))
    assert module(torch.ones(1, 3, 510)).shape == (1, 3, 510)
    with pytest.raises(ValueError, match="d_model=510"):
        AttentionConfig(510, 8)


def test_no_token_sees_a_later_one(numbers, dtype):
    ours = layer(AttentionConfig(12, 3, bias=True), numbers, dtype)
    x = numbers(2, SEQ, 12)
    before = ours(x, mask=causal_mask(SEQ))
    x[:, 4:] += 10
    after = ours(x, mask=causal_mask(SEQ))
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


def test_a_token_that_sees_nothing_outputs_the_bias_alone(numbers, close, dtype):
    ours = layer(AttentionConfig(12, 3, bias=True), numbers, dtype)
    out = ours(numbers(2, SEQ, 12), numbers(2, 3, 12), causal_mask(SEQ, 3))
    close(out[:, :4], ours.b_O.expand(2, 4, 12))
    out.square().sum().backward()
    assert all(p.grad.isfinite().all() for p in ours.parameters())


def test_concatenation_computes_nothing(numbers):
    heads = numbers(2, 3, SEQ, 4)
    concat = concat_heads(heads)
    assert concat.shape == (2, SEQ, 12)
    assert torch.equal(split_heads(concat, 3), heads)
    with pytest.raises(RuntimeError):
        heads.transpose(1, 2).view(2, SEQ, 12)


def test_contributions_of_the_heads_sum_to_the_output(numbers, close):
    heads, W_O = numbers(2, 3, SEQ, 4), numbers(12, 10)
    parts = per_head_contributions(heads, W_O)
    assert parts.shape == (2, 3, SEQ, 10)
    close(parts.sum(1), apply_w_o(concat_heads(heads), W_O), scale=10)
    for h in range(3):
        close(parts[:, h], heads[:, h] @ W_O[4 * h : 4 * h + 4], scale=10)


def test_a_head_s_contribution_does_not_depend_on_the_others(numbers, close):
    heads, W_O = numbers(2, 3, SEQ, 4), numbers(12, 10)
    before = per_head_contributions(heads, W_O)
    muted = heads.clone()
    muted[:, 1] = 0
    after = per_head_contributions(muted, W_O)
    assert torch.equal(before[:, [0, 2]], after[:, [0, 2]])
    lost = apply_w_o(concat_heads(heads), W_O) - apply_w_o(concat_heads(muted), W_O)
    close(lost, before[:, 1], scale=10)


def test_folding_w_o_into_the_values_changes_nothing(numbers, close):
    W_Q, W_K, W_V = (numbers(10, 12, std=0.5) for _ in range(3))
    W_O, x, mask = numbers(12, 10, std=0.5), numbers(2, SEQ, 10), causal_mask(SEQ)
    W_VO = fold_w_o(W_V, W_O, 3)
    assert W_VO.shape == (3, 10, 10)
    assert torch.linalg.matrix_rank(W_VO).tolist() == [4, 4, 4]
    whole = fused_multi_head(x, W_Q, W_K, W_V, 3, mask) @ W_O
    close(folded_multi_head(x, W_Q, W_K, W_VO, mask), whole, scale=10)


def test_without_w_o_a_head_writes_only_its_own_slice(numbers, close):
    W_Q, W_K, W_V = (numbers(12, 12, std=0.5) for _ in range(3))
    x = numbers(2, SEQ, 12)
    before = without_w_o(x, W_Q, W_K, W_V, 3)
    close(before, fused_multi_head(x, W_Q, W_K, W_V, 3))
    W_V[:, 4:8] = 0
    after = without_w_o(x, W_Q, W_K, W_V, 3)
    assert after[..., 4:8].count_nonzero() == 0
    close(after[..., [0, 1, 2, 3, 8, 9, 10, 11]], before[..., [0, 1, 2, 3, 8, 9, 10, 11]])


def test_without_w_o_the_heads_must_be_as_wide_as_the_model(numbers):
    W = [numbers(10, 12) for _ in range(3)]
    with pytest.raises(ValueError, match="heads are 12 wide and x is 10"):
        without_w_o(numbers(2, SEQ, 10), *W, 3)


def test_another_attention_may_take_the_place_of_ours(numbers, close, dtype):
    ours = layer(AttentionConfig(12, 3, 1), numbers, dtype)
    swapped = MultiHeadAttention(
        ours.config, attend=lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, mask)
    ).to(dtype)
    swapped.load_state_dict(ours.state_dict())
    x, mask = numbers(2, SEQ, 12), causal_mask(SEQ)
    close(swapped(x, mask=mask), ours(x, mask=mask), scale=10)


def test_layers_stack_without_end(numbers, dtype):
    x = numbers(1, SEQ, 12)
    for _ in range(12):
        x = layer(AttentionConfig(12, 3), numbers, dtype)(x)
    assert x.shape == (1, SEQ, 12)
    assert x.isfinite().all()
