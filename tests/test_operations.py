"""The floating-point operations of each formula are those that torch counts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from layers_to_count import GRID, Latent, Model, configs, counted, latents, shapes
from torch.utils._python_dispatch import TorchDispatchMode

from labs_lib.arithmetic import (
    ModelShape,
    attention_flops,
    attention_params,
    cached_elements,
    latent_flops,
    mlp_flops,
    model_flops,
    score_bytes,
    softmax_work,
)
from labs_lib.attention.multi_head import MultiHeadAttention
from labs_lib.config import AttentionConfig, LatentAttention


@GRID
@given(configs(), st.integers(1, 3), st.integers(1, 6), st.integers(1, 6))
def test_attention_flops_are_those_that_torch_counts(config, batch, seq, seq_k):
    module = MultiHeadAttention(config).to("meta")
    x = torch.empty(batch, seq, config.d_in, device="meta")
    context = torch.empty(batch, seq_k, config.d_in, device="meta")
    flops = attention_flops(config, batch, seq, seq_k)
    assert len(flops) == 6
    assert sum(flops.values()) == counted(lambda: module(x, context))
    assert flops["Q"] == counted(lambda: x @ module.W_Q)
    assert flops["K"] == flops["V"] == counted(lambda: context @ module.W_V)
    q = torch.empty(batch, config.n_head, seq, config.head_dim, device="meta")
    k = torch.empty(batch, config.n_head, seq_k, config.head_dim, device="meta")
    assert flops["QK^T"] == flops["AV"] == counted(lambda: q @ k.mT)


def test_the_lesson_formula_for_all_six_products():
    batch, seq, d_model = 2, 10, 768
    total = sum(attention_flops(AttentionConfig(d_model, 12), batch, seq).values())
    assert total == 8 * batch * seq * d_model**2 + 4 * batch * seq**2 * d_model


@GRID
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 6), st.integers(1, 6))
def test_softmax_work_is_that_of_the_elementwise_steps(batch, n_head, seq, seq_k):
    class Elements(TorchDispatchMode):
        done = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.done += max(a.numel() for a in args if isinstance(a, torch.Tensor))
            return func(*args, **(kwargs or {}))

    scores = torch.rand(batch, n_head, seq, seq_k)
    with Elements() as mode:
        shifted = torch.sub(scores, torch.amax(scores, -1, keepdim=True))
        exps = torch.exp(shifted)
        weights = torch.div(exps, torch.sum(exps, -1, keepdim=True))
    torch.testing.assert_close(weights, scores.softmax(-1))
    assert softmax_work(AttentionConfig(n_head, n_head), batch, seq, seq_k) == mode.done


def test_only_the_softmax_grows_with_the_number_of_heads():
    one, eight = AttentionConfig(512, 1), AttentionConfig(512, 8)
    assert attention_flops(one, 1, 100) == attention_flops(eight, 1, 100)
    assert attention_params(one) == attention_params(eight)
    assert softmax_work(eight, 1, 100) == 8 * softmax_work(one, 1, 100)
    assert score_bytes(eight, 1, 100) == 8 * score_bytes(one, 1, 100)


@GRID
@given(shapes(), st.integers(1, 2), st.integers(1, 5))
def test_model_flops_are_those_that_torch_counts(shape, batch, seq):
    model = Model(shape).to("meta")
    tokens = torch.zeros(batch, seq, dtype=torch.long, device="meta")
    flops = model_flops(shape, batch, seq)
    assert sum(flops.values()) == counted(lambda: model(tokens))
    d_model = shape.attention.d_model
    x = torch.empty(batch * seq, d_model, device="meta")
    assert mlp_flops(d_model, shape.d_ff, batch * seq, shape.gated) == counted(
        lambda: model.mlps[0](x)
    )


@GRID
@given(latents(), st.integers(1, 2), st.integers(1, 4), st.integers(0, 5), st.booleans())
def test_latent_flops_are_those_that_torch_counts(config, batch, seq, past, absorbed):
    module = Latent(config).to("meta")
    x = torch.empty(batch, seq, config.d_model, device="meta")
    cache = torch.empty(batch, past, cached_elements(config), device="meta")
    flops = latent_flops(config, batch, seq, seq + past, absorbed)
    assert sum(flops.values()) == counted(lambda: module(x, cache, absorbed))


def test_both_orders_of_latent_attention_give_the_same_numbers():
    torch.manual_seed(0)
    config = LatentAttention(12, 3, 5, 4, 2, 6, q_lora_rank=7)
    module = Latent(config).double()
    x, cache = torch.rand(2, 3, 12).double(), torch.rand(2, 4, 7).double()
    torch.testing.assert_close(module(x, cache, True), module(x, cache, False))


def test_absorbing_saves_most_when_one_token_meets_a_long_cache():
    config = LatentAttention.named("deepseek-v2")
    formed = sum(latent_flops(config, 1, 1, 4096, absorbed=False).values())
    absorbed = sum(latent_flops(config, 1, 1, 4096, absorbed=True).values())
    assert formed / absorbed > 50


def test_model_flops_do_not_guess_the_order_of_latent_products():
    shape = ModelShape(LatentAttention.named("deepseek-v3"), 1, 5, 3)
    with pytest.raises(TypeError, match="latent_flops"):
        model_flops(shape, 1, 1)
