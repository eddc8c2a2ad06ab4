"""The widgets of labs 00 and 01 say what is so at every setting; all tell a student's error."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch

from labs_lib.attention.single_head import scaled_dot_product_attention
from labs_lib.widgets.attention_row import SCALES, attention_row
from labs_lib.widgets.fused_slices import fused_slices
from labs_lib.widgets.head_split import head_split
from labs_lib.widgets.kernel_view import kernel_view
from labs_lib.widgets.kv_cache import kv_cache
from labs_lib.widgets.ledger import ledger
from labs_lib.widgets.online_softmax import play_row
from labs_lib.widgets.tour import tour
from labs_lib.widgets.w_o_mixing import w_o_mixing


def percent(panel):
    """The numbers above the bars of the weights, in order of the keys."""
    return [float(text.get_text()) for text in panel.figure.axes[1].texts]


def score_std(panel):
    return float(re.search(r"standard deviation ([\d.]+)", panel.message)[1])


def test_the_tour_starts_at_twelve_heads_of_64_and_says_so():
    panel = tour()
    assert panel.message == "12 heads of head_dim 64: 12 × 64 = 768."
    panel.n_head = 5
    assert not panel.legal
    panel.set(n_head=1)
    assert panel.message == "1 head of head_dim 768: 1 × 768 = 768."


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("causal", [True, False])
def test_every_row_adds_up_to_a_hundred_percent(scale, causal):
    panel = attention_row()
    for query in (0, 3, 6):
        panel.set(scale=scale, causal=causal, query=query, pull=2.5)
        assert not panel.failed
        assert sum(percent(panel)) == pytest.approx(100, abs=0.4)
        assert len(percent(panel)) == (query + 1 if causal else 7)


def test_without_the_scale_the_scores_spread_as_the_root_of_head_dim():
    panel = attention_row()
    spreads = {}
    for scale in ("none", "1/√head_dim"):
        panel.set(scale=scale, n_head=12, d_model=768)
        narrow = score_std(panel)
        panel.set(n_head=1)
        spreads[scale] = score_std(panel) / narrow
    assert spreads["none"] == pytest.approx(math.sqrt(12) * spreads["1/√head_dim"], rel=0.02)


def test_pulling_a_key_towards_the_query_raises_its_score_by_as_much():
    panel = attention_row()
    before = panel.figure.axes[0].patches[1].get_height()
    panel.set(pull=3.0)
    assert panel.figure.axes[0].patches[1].get_height() == pytest.approx(before + 3.0)


@pytest.mark.parametrize("scale", SCALES)
def test_a_students_own_function_gives_the_same_row(scale):
    own, plain = attention_row(scaled_dot_product_attention), attention_row()
    for panel in (own, plain):
        panel.set(scale=scale, causal=True, query=4, pull=-2.0)
    assert own.message == plain.message
    assert percent(own) == percent(plain)


def test_a_stub_is_said_to_be_one_and_a_wrong_function_shows_its_own_row():
    def stub(q, k, v, mask=None):
        raise NotImplementedError

    def even(q, k, v, mask=None):
        return v.mean(-2, keepdim=True)

    def broken(q, k, v, mask=None):
        return torch.zeros(3)

    def unscaled(q, k, v, mask=None):
        return (q @ k.mT).softmax(-1) @ v

    assert "not written yet" in attention_row(stub).message
    assert percent(attention_row(even)) == [14.3] * 7
    assert attention_row(broken).failed
    assert attention_row(broken).message.startswith("Your function raised RuntimeError: ")
    assert attention_row(broken).own["message"].startswith("Your function raised RuntimeError: ")
    for wrong in (even, unscaled):
        assert attention_row(wrong).message.endswith(
            "Your function's row differs from the course's."
        )


PANELS = {
    panel.__name__: panel
    for panel in (attention_row, fused_slices, kernel_view, kv_cache, ledger, play_row, w_o_mixing)
} | {"head_split": lambda own: head_split(split=own)}


@pytest.mark.parametrize("name", PANELS)
def test_what_a_students_function_raises_is_told_as_its_own(name):
    def broken(*given, **more):
        raise IndexError("no such place")

    panel, said = PANELS[name](broken), "Your function raised IndexError: no such place"
    assert panel.failed and panel.message == said
    assert panel.own["failed"] and panel.own["message"] == said


def test_its_inputs_are_the_same_every_time():
    one, other = attention_row(), attention_row()
    assert one.picture == other.picture
    assert np.array_equal(one.draw.tokens, other.draw.tokens)
