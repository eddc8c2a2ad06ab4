"""The explorer of lab 07: words, jumps, heads too narrow, and a machine without the model."""

from __future__ import annotations

import pytest
import torch

from labs_lib.widgets import induction as panel_of
from labs_lib.widgets.jumps import _code


@pytest.fixture
def without_models(tmp_path, monkeypatch):
    """A machine on which no model is."""
    monkeypatch.setenv("LABS_MODELS", str(tmp_path))
    panel_of._load.cache_clear()
    yield
    panel_of._load.cache_clear()


def test_the_built_head_jumps_behind_the_last_copy():
    panel = panel_of.induction()
    assert not panel.failed and panel.picture.startswith(b"\x89PNG")
    assert "“Vlorin” stood at place 7; what came next, “Teskapp”, gets 1.00" in panel.message


def test_a_word_that_is_new_has_nothing_to_copy():
    panel = panel_of.induction(place=3)
    assert "for the first time" in panel.message


def test_heads_of_few_numbers_take_words_for_each_other():
    words = panel_of.words_of("a b c d e f g h a")
    wide, narrow = (float(panel_of.built_weights(words, n)[-1, 1]) for n in (64, 1))
    assert wide > 0.9 > 0.5 > narrow


def test_built_weights_are_causal_rows_that_add_up_to_one():
    weights = panel_of.built_weights(list("abcab"), 8)
    torch.testing.assert_close(weights.sum(-1), torch.ones(5))
    assert not weights.triu(1).any()


def test_chinese_letters_are_words_and_the_two_places_of_the_lesson_share_the_weight():
    words = panel_of.words_of("张三是医生。李四是老师。张三是")
    assert len(words) == 15 and panel_of.last_time(words, 14) == 8
    row = panel_of.built_weights(words, 64)[-1]
    assert float(row[3]) > 0.4 and float(row[9]) > 0.4
    assert not panel_of.induction("张三是医生。李四是老师。张三是").failed


@pytest.mark.parametrize("text", ["", "one", "  ", "?!"])
def test_short_texts_are_asked_to_be_longer_and_never_fail(text):
    assert not panel_of.induction(text).failed


def test_a_code_is_a_direction_that_only_the_word_decides():
    one, other = (_code(word, 64) for word in ("Vlorin", "Teskapp"))
    assert one @ one == pytest.approx(1.0) and abs(one @ other) < 0.4
    assert (one == _code("Vlorin", 64)).all()
    assert _code("été", 4) == pytest.approx([-0.5583, -0.0507, -0.2621, 0.7855], abs=1e-4)


def test_a_share_that_is_as_large_is_not_called_larger():
    assert (
        "gets 0.50. As much goes to “医” (place 3)."
        in panel_of.induction("张三是医生。李四是老师。张三是").message
    )


def test_only_another_text_than_the_recorded_one_is_asked_of_the_model(monkeypatch):
    asked = []
    monkeypatch.setattr(panel_of, "_loaded", lambda: asked.append(1) or "no model is here")
    shown = panel_of.induction()
    shown.head = panel_of.TRAINED
    shown.set(place=3, n_head=8)
    assert asked == [] and shown.own is None
    shown.text = "the cat and the"
    assert "no model is here" in shown.own["message"] and shown.own["empty"]
    shown.place = 2
    assert len(asked) == 1


def test_illegal_settings_are_explained():
    panel = panel_of.induction()
    panel.n_head = 7
    assert not panel.legal and "Not allowed" in panel.message


def test_without_the_model_its_recorded_weights_are_shown(without_models):
    panel = panel_of.induction()
    panel.head = panel_of.TRAINED
    assert "Recorded: SmolLM2" in panel.message and not panel.failed
    panel.text = "another text and another text"
    assert "`labs models get" in panel.message and not panel.failed
