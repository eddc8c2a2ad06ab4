"""What all tests share: one torch thread, and folders of state that are nobody's."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("LABS_GRADING_CACHE", str(tmp_path / "keys made ahead"))
    monkeypatch.delenv("LABS_RUN", raising=False)
    monkeypatch.delenv("LABS_NBVAL", raising=False)


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    import torch

    torch.set_num_threads(1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """`--dist loadfile` hands out our pieces; what else is asked for stays xdist's."""
    if config.getvalue("dist") != "loadfile":
        return None
    from pieces import DearestFirst

    return DearestFirst(config, log)
