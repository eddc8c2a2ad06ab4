"""A model's cache grows by itself, or keeps each layer in a cache that somebody else wrote."""

from __future__ import annotations

import pytest
import torch

from labs_lib.attention.cache import KVCache as OneLayer
from labs_lib.models import KVCache
from labs_lib.models import kv_cache as room
from labs_lib.models.layer import sdpa
from labs_lib.withheld import Withheld


def passes():
    torch.manual_seed(0)
    return [(torch.randn(2, 3, new, 4), torch.randn(2, 3, new, 4)) for new in (5, 1, 2)]


def filled(cache):
    for layer in (0, 1):
        kept = [cache.append(layer, k, v) for k, v in passes()][-1]
    return kept


def test_a_cache_of_each_layer_keeps_what_one_that_grows_keeps():
    grown, given = KVCache(), KVCache(lambda *shape, dtype: OneLayer(*shape, 16, dtype=dtype))
    for one, other in zip(filled(grown), filled(given), strict=True):
        assert torch.equal(one, other)
    assert len(grown) == len(given) == 8
    assert grown.bytes == given.bytes == 2 * 2 * 2 * 3 * 8 * 4 * 4


def test_another_number_of_texts_is_refused():
    cache = KVCache()
    filled(cache)
    with pytest.raises(ValueError, match=r"begin with a new KVCache\(\)"):
        cache.append(0, torch.zeros(1, 3, 1, 4), torch.zeros(1, 3, 1, 4))


def test_a_copy_that_leaves_the_cache_to_its_student_writes_without_one(monkeypatch):
    def kept_back(*_, **__):
        raise Withheld("labs_lib.models.kv_cache._Growing answers lab08")

    monkeypatch.setattr(room, "_Growing", kept_back)
    assert room.growing() is None


def test_more_keys_than_values_are_refused_before_torch_reads_beyond_an_end():
    q, k = torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 5, 4)
    with pytest.raises(ValueError, match="k has 5 tokens and v has 1"):
        sdpa(q, k, k[:, :, :1], torch.ones(1, 5, dtype=torch.bool))
    with pytest.raises(ValueError, match="k has 1 tokens and v has 5"):
        sdpa(q, k[:, :, :1], k, torch.ones(1, 1, dtype=torch.bool))
