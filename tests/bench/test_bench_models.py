"""How long a model takes to load is shown where one is, and told as missing where none is."""

import pytest

from labs_lib.bench import models
from labs_lib.bench.rows import Unavailable


def test_each_model_that_is_here_is_loaded_and_held_to_its_bar(monkeypatch):
    loaded = []
    monkeypatch.setattr(models, "available", lambda name: name == "minilm")
    monkeypatch.setattr(models, "load", loaded.append)
    (row,) = models.rows()
    assert row.what == "minilm, loaded" and row.within == 3.0 and row.met
    assert set(loaded) == {"minilm"}


def test_without_a_model_the_way_to_one_is_told(monkeypatch):
    monkeypatch.setattr(models, "available", lambda name: False)
    with pytest.raises(Unavailable, match="labs models get"):
        models.rows()
