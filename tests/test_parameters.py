"""The parameters of each formula are those of a real module."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from layers_to_count import GRID, MLP, Latent, Model, configs, latents, shapes
from torch import nn

from labs_lib.arithmetic import (
    ModelShape,
    attention_params,
    latent_params,
    mlp_params,
    model_params,
    param_share,
    params_by_part,
)
from labs_lib.attention.multi_head import MultiHeadAttention
from labs_lib.config import AttentionConfig, LatentAttention


def numel(module):
    return sum(p.numel() for p in module.parameters())


@GRID
@given(configs())
def test_attention_parameters_are_those_of_the_module(config):
    module = MultiHeadAttention(config)
    assert attention_params(config) == numel(module)
    if config.bias:
        assert attention_params(config, "qkv") == numel(module) - module.b_O.numel()
        assert attention_params(config, "none") == sum(
            p.numel() for p in module.parameters() if p.dim() == 2
        )


@GRID
@given(latents())
def test_latent_parameters_are_those_of_the_module(config):
    module = Latent(config)
    assert latent_params(config) == numel(module)
    norms = sum(m.weight.numel() for m in module.modules() if isinstance(m, nn.RMSNorm))
    assert latent_params(config, norms=False) == numel(module) - norms


@GRID
@given(st.integers(1, 20), st.integers(1, 40), st.booleans(), st.booleans())
def test_mlp_parameters_are_those_of_the_module(d_model, d_ff, gated, bias):
    assert mlp_params(d_model, d_ff, gated, bias) == numel(MLP(d_model, d_ff, gated, bias))


@GRID
@given(shapes())
def test_model_parameters_are_those_of_a_real_model_part_by_part(shape):
    model, parts = Model(shape), params_by_part(shape)
    assert model_params(shape) == numel(model)
    assert parts["attention"] == numel(model.attends)
    assert parts["mlp"] == numel(model.mlps)
    assert parts["norms"] == numel(model.norms) + numel(model.final) + numel(model.qk_norms)
    assert sum(param_share(shape).values()) == pytest.approx(1)


def test_a_stack_of_latent_attention_is_counted_with_its_own_layers():
    latent = LatentAttention.named("deepseek-v2-lite")
    shape = ModelShape(latent, n_layer=2, vocab=5, d_ff=3)
    assert params_by_part(shape)["attention"] == 2 * latent_params(latent)


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (AttentionConfig(768, 12), 2_359_296),
        (AttentionConfig(768, 12, bias=True), 2_359_296 + 3072),
        (AttentionConfig(512, 8), 1_048_576),
        (AttentionConfig(512, 1), 1_048_576),
        (AttentionConfig(512, 8, 2), 655_360),
        (AttentionConfig(512, 8, 1), 589_824),
        (AttentionConfig(96, 8, head_dim=64), 4 * 96 * 512),
    ],
)
def test_attention_parameters_of_the_lessons(config, wanted):
    assert attention_params(config) == wanted


def test_about_a_quarter_is_true_of_gpt2_small_and_not_of_andrea():
    assert param_share(ModelShape.named("andrea-120m"))["attention"] == pytest.approx(
        0.287, abs=1e-3
    )
    assert param_share(ModelShape.named("gpt2-small"))["attention"] == pytest.approx(
        0.228, abs=1e-3
    )
    quarter = ModelShape(AttentionConfig(768, 12), 12, 35_840, 3072, tied=True, n_position=1024)
    share = param_share(quarter)["attention"]
    assert share == pytest.approx(0.25, abs=0.002)


@pytest.mark.parametrize(("field", "value"), [("attention_bias", "some"), ("norm", "layer")])
def test_an_unknown_word_in_a_shape_is_refused(field, value):
    with pytest.raises(ValueError, match=f"{field}='{value}' is not known"):
        ModelShape(AttentionConfig(8, 2), 1, 5, 8, **{field: value})
    with pytest.raises(ValueError, match="n_layer=0"):
        ModelShape(AttentionConfig(8, 2), 0, 5, 8)
