import dataclasses

import numpy as np
import pytest

from labs_lib.config import (
    MAX_WIDTH,
    AttentionConfig,
    divisors,
    nearest_d_model,
    nearest_n_head,
)


@pytest.mark.parametrize(
    ("d_model", "n_head", "head_dim"), [(384, 12, 32), (768, 12, 64), (1536, 24, 64), (512, 8, 64)]
)
def test_head_dim_follows_from_the_split(d_model, n_head, head_dim):
    config = AttentionConfig(d_model, n_head)
    assert (config.head_dim, config.n_kv_head, config.d_in) == (head_dim, n_head, d_model)
    assert (config.width, config.kv_width, config.group_size) == (d_model, d_model, 1)
    assert config.kind == "MHA"


@pytest.mark.parametrize(("n_kv_head", "kind"), [(64, "MHA"), (8, "GQA"), (1, "MQA")])
def test_shared_heads_have_a_name_and_a_group_size(n_kv_head, kind):
    config = AttentionConfig(8192, 64, n_kv_head)
    assert config.kind == kind
    assert config.group_size == 64 // n_kv_head
    assert config.kv_width == n_kv_head * 128


def test_one_head_is_not_called_shared():
    assert AttentionConfig(64, 1).kind == "MHA"


def test_an_explicit_head_dim_lifts_the_divisibility():
    config = AttentionConfig(18432, 48, 1, head_dim=256)
    assert config.width == 12_288
    assert AttentionConfig(510, 8, head_dim=64).width == 512


def test_a_width_that_does_not_split_names_the_nearest_of_both_kinds():
    with pytest.raises(ValueError) as caught:
        AttentionConfig(770, 12)
    text = str(caught.value)
    said = "d_model=770 can't be shared out evenly among n_head=12 heads; 768 and 780 can."
    assert text.startswith(said)
    assert "n_head=11 or 14 would do" in text
    assert "head_dim" in text


def test_every_offer_in_a_refusal_is_legal():
    refused = 0
    for d_model in range(1, 60):
        for n_head in range(1, 60):
            if d_model % n_head == 0:
                AttentionConfig(d_model, n_head)
                continue
            refused += 1
            with pytest.raises(ValueError):
                AttentionConfig(d_model, n_head)
            widths, counts = nearest_d_model(d_model, n_head), nearest_n_head(d_model, n_head)
            assert widths
            assert counts
            assert all(AttentionConfig(width, n_head) for width in widths)
            assert all(AttentionConfig(d_model, count) for count in counts)
    assert refused > 3000


def test_nearest_is_the_nearest_on_each_side():
    assert nearest_d_model(770, 12) == (768, 780)
    assert nearest_d_model(768, 12) == (768,)
    assert nearest_d_model(8, 12) == (12,)
    assert nearest_d_model(MAX_WIDTH - 1, 3) == (MAX_WIDTH - 1,)
    assert nearest_d_model(MAX_WIDTH, 3) == (MAX_WIDTH - 1,)
    assert nearest_n_head(770, 12) == (11, 14)
    assert nearest_n_head(770, 11) == (11,)
    assert nearest_n_head(7, 12) == (7,)


@pytest.mark.parametrize("n", [1, 2, 12, 49, 97, 720, 770, 5140, MAX_WIDTH])
def test_divisors_are_all_and_in_order(n):
    assert divisors(n) == tuple(d for d in range(1, n + 1) if n % d == 0)


@pytest.mark.parametrize("n_kv_head", [3, 5, 6, 7, 16])
def test_key_value_heads_that_cannot_be_shared_name_the_divisors(n_kv_head):
    with pytest.raises(ValueError, match="does not divide n_head=8; 1, 2, 4 and 8 do, nearest: "):
        AttentionConfig(512, 8, n_kv_head)


def test_zero_key_value_heads_do_not_silently_mean_all():
    with pytest.raises(ValueError, match="n_kv_head=0"):
        AttentionConfig(512, 8, 0)


FIELDS = ["d_model", "n_head", "n_kv_head", "head_dim", "d_in"]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [0, -1, -768, MAX_WIDTH + 1, 10**12])
def test_a_size_outside_the_limits_is_refused_and_the_limit_named(field, value):
    sizes = {"d_model": 768, "n_head": 12, field: value}
    with pytest.raises(ValueError, match=f"{field}={value} is not allowed.*1 to 1,048,576"):
        AttentionConfig(**sizes)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [True, False, 8.0, "8", b"8", [8], float("nan"), np.float64(8)])
def test_what_is_not_an_integer_is_refused_by_type(field, value):
    sizes = {"d_model": 768, "n_head": 12, field: value}
    with pytest.raises(TypeError, match=f"{field}="):
        AttentionConfig(**sizes)


@pytest.mark.parametrize("field", ["d_model", "n_head"])
def test_none_is_refused_where_a_size_is_needed(field):
    with pytest.raises(TypeError, match=f"{field}=None is a NoneType"):
        AttentionConfig(**{"d_model": 768, "n_head": 12, field: None})


@pytest.mark.parametrize("bias", [1, 0, None, "yes"])
def test_bias_is_true_or_false(bias):
    with pytest.raises(TypeError, match="bias="):
        AttentionConfig(768, 12, bias=bias)


def test_heads_too_wide_together_are_refused():
    with pytest.raises(ValueError, match="head_dim=1024 is the most"):
        AttentionConfig(768, 1024, head_dim=1025)


def test_numpy_integers_become_plain_ones():
    config = AttentionConfig(np.int64(768), np.int32(12))
    assert type(config.d_model) is int
    assert type(config.n_head) is int
    assert config == AttentionConfig(768, 12)


def test_a_configuration_cannot_be_changed_afterwards():
    config = AttentionConfig(768, 12)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.n_head = 7
    assert {config: "usable as a key"}[AttentionConfig(768, 12, 12, 64)] == "usable as a key"
