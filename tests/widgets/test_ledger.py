"""The panel of lab 04 counts real layers, and its counts are those of the formulas."""

from __future__ import annotations

import pytest

from labs_lib.arithmetic import (
    ModelShape,
    attention_flops,
    kv_bytes,
    mlp_flops,
    model_flops,
    model_params,
    params_by_part,
    score_bytes,
    softmax_work,
    weight_bytes,
)
from labs_lib.attention.latent import MultiHeadLatentAttention
from labs_lib.config import AttentionConfig, LatentAttention
from labs_lib.widgets.ledger import LATENT, counted, ledger, short

SIZES = [
    (AttentionConfig(768, 12), 12, 1024, 8449, False),
    (AttentionConfig(96, 8, 2), 3, 7, 501, True),
    (AttentionConfig(64, 4, 1), 1, 1, 256, True),
]


@pytest.mark.parametrize(("config", "n_layer", "context", "vocab", "tied"), SIZES)
def test_counts_are_those_of_the_formulas(config, n_layer, context, vocab, tied):
    rows = counted(config, n_layer, context, vocab, tied)
    shape = ModelShape(config, n_layer, vocab, 4 * config.d_model, tied=tied, n_position=context)
    parts, flops = params_by_part(shape), model_flops(shape, 1, context)
    layer = attention_flops(config, 1, context)
    between = layer["QK^T"] + layer["AV"]
    assert rows["parameters"] == {
        "attention": parts["attention"], "MLP": parts["mlp"], "embeddings": parts["embeddings"],
    }  # fmt: skip
    assert rows["operations"] == {
        "projections": flops["attention"] - n_layer * between,
        "scores": n_layer * between,
        "softmax": n_layer * softmax_work(config, 1, context),
        "MLP": n_layer * mlp_flops(config.d_model, 4 * config.d_model, context),
        "logits": flops["logits"],
    }
    assert rows["bytes"] == {
        "weights": weight_bytes(model_params(shape)),
        "cache": kv_bytes(config, n_layer, context),
        "scores": score_bytes(config, 1, context),
    }


def test_at_first_it_shows_the_98_7_million_of_andrea_120m():
    panel = ledger()
    assert panel.legal and not panel.failed
    title = panel.figure.axes[0].get_title(loc="left")
    assert title == "Attention has 28.7 % of the parameters and 43.0 % of the operations"
    assert "98.7 M" in panel.figure.axes[0].get_yticklabels()[0].get_text()


def test_keys_and_values_follow_the_heads_until_they_are_shared():
    panel = ledger()
    panel.n_head = 8
    assert (panel.n_kv_head, panel.legal) == (8, True)
    panel.n_kv_head = 2
    panel.n_head = 16
    assert panel.n_kv_head == 2 and "GQA" in panel.message
    panel.set(n_head=2)
    panel.set(n_head=32, d_model=4096)
    assert panel.n_kv_head == 32 and panel.legal


@pytest.mark.parametrize(
    ("n_kv_head", "offered"),
    [(5, ["n_kv_head = 4", "n_kv_head = 6"]), (100, ["n_kv_head = 12"]), (12, [])],
)
def test_groups_that_do_not_fit_are_explained_with_their_nearest_neighbours(n_kv_head, offered):
    panel = ledger()
    panel.n_kv_head = n_kv_head
    assert [f"{name} = {value}" for name, value in panel.offers] == offered
    assert panel.legal is not bool(offered) and not panel.failed
    if offered:
        assert f"n_kv_head={n_kv_head} does not divide n_head=12" in panel.message
        panel.set(**dict([panel.offers[0]]))
        assert panel.legal and not panel.offers


@pytest.mark.parametrize(("n_head", "rank", "rotary"), [(12, 512, 64), (1, 8, 2), (48, 96, 256)])
def test_a_latent_is_counted_as_the_layer_of_lab_08_has_it(n_head, rank, rotary):
    config = LatentAttention(768, n_head, rank, 768 // n_head, rotary, 768 // n_head)
    rows = counted(config, 2, 5, 300, True)
    layer = MultiHeadLatentAttention(config)
    assert rows["parameters"]["attention"] == 2 * sum(p.numel() for p in layer.parameters())
    assert rows["bytes"]["cache"] == 2 * 5 * 2 * (rank + rotary)
    panel = ledger(n_head=n_head, n_layer=2, context=5, vocab=300, tied=True)
    panel.set(cached=LATENT, rank=rank, rotary=rotary, n_kv_head=5)
    assert panel.legal and f"MLA with a latent of {rank}" in panel.message
    assert f"cache {short(20 * (rank + rotary), 'B')}" in panel.message


def test_an_illegal_width_is_explained_before_the_groups_are():
    panel = ledger()
    panel.set(n_head=7, n_kv_head=5)
    assert "763 or 770" in panel.message and not panel.failed
    assert {name for name, _ in panel.offers} == {"d_model", "n_head"}


def stub(d_model, n_head, n_kv_head, head_dim, bias=False):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (lambda d, h, kv, hd: 2 * d * hd * (h + kv), "2,359,296: the same"),
        (lambda d, h, kv, hd: 3 * d * d, "says 1,769,472 a layer, a real layer has 2,359,296: not"),
        (lambda d, h, kv, hd: None, "says None a layer"),
        (stub, "Write attention_params"),
        (None, "bytes: weights 197.4 MB"),
    ],
)
def test_a_students_function_is_compared_with_a_real_layer(own, said):
    panel = ledger(own)
    assert said in panel.message and not panel.failed


def test_a_failing_function_is_shown_in_the_panel():
    panel = ledger(lambda *sizes: sizes[9])
    assert panel.failed and "IndexError" in panel.message


def test_extreme_sizes_are_counted_without_any_memory():
    panel = ledger()
    panel.set(n_head=128, n_kv_head=128, d_model=16384, n_layer=128, context=131072, vocab=262144)
    assert panel.legal and not panel.failed and "TB" in panel.message
    panel.set(n_head=1, n_kv_head=1, d_model=8, n_layer=1, context=1, vocab=256)
    assert "one head, MHA" in panel.message and not panel.failed


def test_counts_are_shortened_with_their_size_and_unit():
    assert [short(n, "B") for n in (999, 12_345, 2_359_296, 8 * 10**12)] == [
        "999 B", "12,345 B", "2.359 MB", "8 TB",
    ]  # fmt: skip
    assert short(16_384) == "16,384"
