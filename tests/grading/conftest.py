"""Kernels, started in each way that this machine has."""

from __future__ import annotations

import pytest
from fences import FENCES, WAYS, Starter


@pytest.fixture(params=WAYS)
def start(request, tmp_path, monkeypatch):
    """Every way to start a kernel that this machine has."""
    return Starter(request.param, tmp_path / "jupyter", monkeypatch)


@pytest.fixture(params=FENCES or ["process-limits"])
def start_fenced(request, tmp_path, monkeypatch):
    """The ways that have a fence."""
    return Starter(request.param, tmp_path / "jupyter", monkeypatch)
