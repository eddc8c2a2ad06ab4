"""The panel of lab 12 shows the shapes that a layer has, and counts what torch counts."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from labs_lib.answers import answer
from labs_lib.attention.rotary import rotate
from labs_lib.config import AttentionConfig
from labs_lib.widgets.pipeline import in_words, pipeline, steps


@pytest.mark.parametrize(("n_head", "n_kv_head", "new", "past"), [(6, 2, 5, 0), (4, 4, 1, 9)])
def test_shapes_and_operations_are_those_of_a_real_layer(n_head, n_kv_head, new, past):
    config = AttentionConfig(48, n_head, n_kv_head)
    seen, kv = {}, config.kv_width
    W = {"W_Q": torch.rand(48, config.width), "W_K": torch.rand(48, kv),
         "W_V": torch.rand(48, kv), "W_O": torch.rand(config.width, 48)}  # fmt: skip

    def attend(q, k, v, mask):
        heads = (q @ k.mT).masked_fill(~mask, -torch.inf).softmax(-1) @ v
        seen["q"], seen["heads"] = tuple(q.shape), tuple(heads.shape)
        return heads

    layer = answer("lab12.assemble").reference
    cache = None if not past else tuple(torch.rand(1, n_kv_head, past, 48 // n_head) for _ in "kv")
    with FlopCounterMode(display=False) as counter:
        out, (k, v) = layer(torch.rand(1, new, 48), W, n_head, n_kv_head, rotate, attend, cache)
    done = steps(config, new, past)
    assert sum(step.flops for step in done) == counter.get_total_flops()
    assert dict(done[1].out) == {"q": seen["q"], "k": tuple(k.shape), "v": tuple(v.shape)}
    assert done[2].out["heads"] == seen["heads"] and done[4].out["out"] == tuple(out.shape)
    assert sum(step.products for step in done) == 6


def test_heads_width_and_shared_heads_are_live():
    panel = pipeline()
    assert "9 query heads of 64, 3 of keys and values (GQA)" in panel.message
    panel.set(n_head=12, d_model=768, n_kv_head=12, new=1, past=1023)
    assert "12 query heads of 64, 12 of keys and values (MHA)" in panel.message
    assert "1,572,864 numbers are in the layer's cache" in panel.message and not panel.failed


@pytest.mark.parametrize(
    ("setting", "offered"),
    [
        ({"n_head": 10}, ["d_model = 570", "d_model = 580", "n_head = 9", "n_head = 12"]),
        ({"n_kv_head": 4}, ["n_kv_head = 3", "n_kv_head = 9"]),
        ({"n_kv_head": 30}, ["n_kv_head = 9"]),
    ],
)
def test_what_is_not_allowed_is_explained_with_its_nearest_neighbours(setting, offered):
    panel = pipeline()
    panel.set(**setting)
    assert [f"{name} = {value}" for name, value in panel.offers] == offered
    assert not panel.legal and not panel.failed and "Not allowed" in panel.message
    panel.set(**dict(panel.offers[-1:]))
    assert panel.legal and not panel.offers


def test_small_and_large_counts_have_their_units():
    counts = (7, 1500, 12_500_000, 3 * 10**9)
    assert [in_words(n) for n in counts] == ["7", "1.5 k", "12.5 M", "3 G"]
