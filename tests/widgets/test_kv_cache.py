"""The panel of lab 08 counts real tensors, and its counts are those of the formulas."""

from __future__ import annotations

import pytest

from labs_lib.arithmetic import kv_bytes
from labs_lib.config import AttentionConfig, LatentAttention
from labs_lib.widgets.kv_cache import bytes_per_token, in_words, kv_cache


@pytest.mark.parametrize(
    ("d_model", "n_head", "n_kv_head"), [(8192, 64, 8), (96, 8, 8), (64, 4, 1)]
)
def test_counts_are_those_of_the_formulas(d_model, n_head, n_kv_head):
    sizes = bytes_per_token(AttentionConfig(d_model, n_head, n_kv_head), 60, 512, 64)
    latent = LatentAttention(d_model, n_head, 512, 128, 64, 128)
    assert sizes == {
        "MHA": kv_bytes(AttentionConfig(d_model, n_head), 60),
        "GQA": kv_bytes(AttentionConfig(d_model, n_head, n_kv_head), 60),
        "MQA": kv_bytes(AttentionConfig(d_model, n_head, 1), 60),
        "MLA": kv_bytes(latent, 60),
    }


def test_at_first_it_shows_what_fits_of_llama_3_8b_on_80_gib():
    panel = kv_cache()
    assert panel.legal and not panel.failed
    assert "GQA 131,072 B" in panel.message and "GQA 532,480" in panel.message
    assert "25.0%" in panel.figure.axes[0].get_title(loc="left")


def test_heads_and_width_are_live():
    panel = kv_cache()
    panel.set(n_head=64, d_model=8192, n_layer=80)
    assert "MHA 2,621,440 B" in panel.message and "GQA 327,680 B" in panel.message
    panel.set(weights=129)
    assert "no room on a card of 80 GiB" in panel.message and not panel.failed


@pytest.mark.parametrize(
    ("setting", "offered", "said"),
    [
        ({"n_head": 24}, ["d_model = 4080", "d_model = 4104", "n_head = 16", "n_head = 32"], "24"),
        ({"n_kv_head": 5}, ["n_kv_head = 4", "n_kv_head = 8"], "n_kv_head=5 does not divide"),
        ({"n_kv_head": 64}, ["n_kv_head = 32"], "n_kv_head=64 does not divide"),
        ({"rotary": 63}, ["rotary = 62", "rotary = 64"], "rotary=63 is odd"),
    ],
)
def test_what_is_not_allowed_is_explained_with_its_nearest_neighbours(setting, offered, said):
    panel = kv_cache()
    panel.set(**setting)
    assert [f"{name} = {value}" for name, value in panel.offers] == offered
    assert not panel.legal and not panel.failed and said in panel.message
    panel.set(**dict(panel.offers[-1:]))
    assert panel.legal and not panel.offers


def stub(*sizes):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (lambda L, h, kv, d, t: {"bytes": 4 * L * kv * d * t}, "131,072 B: the same"),
        (lambda L, h, kv, d, t: {"bytes": 2 * L * kv * d * t}, "65,536 B a token, counted are"),
        (stub, "Write kv_bytes"),
        (lambda *sizes: None, "Your kv_bytes gave None; wanted is a dictionary"),
        (lambda *sizes: {"GB": 1}, "Your kv_bytes gave {'GB': 1}; wanted is a dictionary"),
    ],
)
def test_a_students_function_is_compared_with_what_is_counted(own, said):
    panel = kv_cache(own)
    assert said in panel.message and not panel.failed


def test_extreme_sizes_are_counted_without_any_memory():
    panel = kv_cache()
    panel.set(n_head=128, n_kv_head=128, d_model=16384, n_layer=128, rank=2048, rotary=256)
    assert panel.legal and not panel.failed
    panel.set(n_head=1, n_kv_head=1, d_model=8, n_layer=1, rank=8, rotary=2, card=4, weights=4)
    assert panel.legal and not panel.failed and "no room" in panel.message


def test_bytes_are_told_in_binary_units():
    assert [in_words(n) for n in (512, 2048, 2_621_440)] == ["512 B", "2 KiB", "2.5 MiB"]
