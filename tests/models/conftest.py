"""The pretrained models, fetched once into the user's cache; without them, one sentence."""

from __future__ import annotations

import os

import pytest

from labs_lib.models import cache, fetch, load


@pytest.fixture(scope="session")
def minilm():
    return loaded("minilm")


@pytest.fixture(scope="session")
def smollm2():
    return loaded("smollm2")


def loaded(name):
    """The model; skips where it can't be fetched, or shouldn't be (`make test MODELS=0`)."""
    found = cache.status(name)
    if found.state in (cache.MISSING, cache.BROKEN):
        if os.environ.get("MODELS") == "0":
            pytest.skip(f"{found.entry.title} is not here, and MODELS=0 asks not to fetch it")
        try:
            fetch.get(name)
        except fetch.FetchError as error:
            pytest.skip(str(error))
    return load(name)
