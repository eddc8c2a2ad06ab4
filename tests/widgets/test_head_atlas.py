"""The atlas of lab 06: every head of both models, with the models and without."""

from __future__ import annotations

import pytest

from labs_lib.models import BrokenModel, on_disk
from labs_lib.models.roles import ROLES
from labs_lib.widgets import head_atlas as atlas
from labs_lib.widgets import head_facts


@pytest.fixture
def without_models(tmp_path, monkeypatch):
    """A machine on which no model is."""
    monkeypatch.setenv("LABS_MODELS", str(tmp_path))
    atlas._load.cache_clear()
    atlas._output.cache_clear()
    yield
    atlas._load.cache_clear()
    atlas._output.cache_clear()


@pytest.mark.parametrize("model", ["minilm", "smollm2"])
@pytest.mark.parametrize("role", ROLES)
def test_every_role_is_drawn_without_the_models(without_models, model, role):
    panel = atlas.head_atlas(model=model, role=role)
    assert not panel.failed and panel.picture.startswith(b"\x89PNG")
    assert "n_head" in panel.message and "d_model" in panel.message
    if (model, role) == ("smollm2", "next"):
        assert "only what came before" in panel.message
    else:
        assert "`labs models get" in panel.message and "Recorded" in panel.message


def test_minilm_s_head_that_looks_one_token_back_is_where_the_panel_opens(without_models):
    assert "Head 2 of layer 0 gives 0.99" in atlas.head_atlas().message


def test_a_head_that_does_not_exist_is_explained(without_models):
    panel = atlas.head_atlas()
    panel.layer = 6
    assert "layers are 0 to 5" in panel.message and not panel.failed
    panel.set(model="smollm2", head=9)
    assert "heads 0 to 8" in panel.message and not panel.failed


def test_all_weights_that_the_browser_gets_are_143_kilobytes(without_models):
    sent = atlas.head_atlas().data
    assert sum(len(facts["weights"]) for facts in sent.values()) == 142_704
    assert 2 * (6 * 12 * 16**2 + 30 * 9 * 14**2) == 142_704


def test_each_row_that_is_sent_adds_up_to_one():
    for facts in atlas.head_atlas().draw.__self__.facts.values():
        rows = facts.weights.astype(int).sum(axis=-1)
        assert abs(rows - 65535).max() <= len(facts.tokens)


def test_a_row_is_read_out_with_its_largest_weights(without_models):
    shown = atlas.head_atlas("smollm2", layer=18, head=6)
    assert "Here “the” (13) gives 0.64 to “cabinet” (4), 0.35 to “The” (0)" in shown.message
    shown.set(model="minilm", layer=0, head=2, place=0)
    assert "Here “[CLS]” (0) gives 1.00 to “[CLS]” (0)." in shown.message


def test_python_is_asked_for_a_silent_head_and_for_nothing_else(monkeypatch):
    ran = []
    monkeypatch.setattr(atlas, "_output", lambda *asked: ran.append(asked) or (["a", "b"], [1, 0]))
    monkeypatch.setattr(head_facts, "require", lambda model: None)
    shown = atlas.head_atlas()
    shown.set(layer=3, head=5, role="first", place=2)
    shown.model = "smollm2"
    assert ran == [] and shown.own is None
    shown.it = atlas.SILENT
    assert ran == [("smollm2", ()), ("smollm2", ((3, 5),))]
    assert (shown.own["whole"], shown.own["now"]) == ([1, 0], [1, 0])
    shown.set(role="next", place=4)
    assert len(ran) == 2, "what a row looks like is no question to the model"
    shown.layer = 29
    assert ran[2:] == [("smollm2", ()), ("smollm2", ((29, 5),))]


def test_a_model_that_breaks_after_the_explorer_was_made_is_named(monkeypatch):
    def broken(*_):
        raise BrokenModel("model.safetensors can't be read; fetch it anew")

    monkeypatch.setattr(atlas, "_output", broken)
    monkeypatch.setattr(head_facts, "require", lambda model: None)
    shown = atlas.head_atlas(it=atlas.SILENT)
    assert "fetch it anew" in shown.message and not shown.failed
    assert shown.own["why"] == "model.safetensors can't be read; fetch it anew"


@pytest.mark.skipif(on_disk.status("minilm").state != on_disk.OK, reason="MiniLM is not here")
def test_silence_moves_the_output():
    panel = atlas.head_atlas()
    before = panel.picture
    panel.it = atlas.SILENT
    assert "it moves the output by at most" in panel.message
    assert panel.picture != before and not panel.failed
