"""The panel of lab 06: every head of both models, with the models and without."""

from __future__ import annotations

import pytest

from labs_lib.models import cache
from labs_lib.models.roles import ROLES
from labs_lib.widgets import head_atlas as atlas


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


@pytest.mark.skipif(cache.status("minilm").state != cache.OK, reason="MiniLM is not here")
def test_silence_moves_the_output():
    panel = atlas.head_atlas()
    before = panel.picture
    panel.it = atlas.SILENT
    assert "it moves the output by at most" in panel.message
    assert panel.picture != before and not panel.failed
