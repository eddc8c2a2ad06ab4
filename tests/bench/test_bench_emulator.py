"""The emulator's own bench: what it times computes the truth, with numba and without it."""

from __future__ import annotations

import importlib.util

import pytest

from labs_lib import cuda
from labs_lib.bench import emulator
from labs_lib.bench.rows import Row, Unavailable
from labs_lib.cuda.timing import seconds


@pytest.mark.parametrize("make", [emulator.product, emulator.flash], ids=["product", "flash"])
def test_what_is_timed_computes_the_truth_in_every_round(make):
    problem = make()
    launch = cuda.compile(problem.source)[problem.geometry]
    took = seconds(launch, *problem.arguments, rounds=5)
    problem.check()
    assert 1e-6 < took < 5
    trace = cuda.compile(problem.source).trace[problem.geometry](*problem.arguments)
    assert trace.clean, trace


def test_two_workers_share_the_rounds():
    problem = emulator.product()
    launch = cuda.compile(problem.source)[problem.geometry]
    seconds(launch, *problem.arguments, rounds=7, workers=2)
    problem.check()


def test_without_numba_the_figures_stand_alone_and_a_sentence_says_why(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Unavailable, match="pip install numba"):
        emulator.numba_seconds()
    rows = emulator.compared(emulator.flash(), None)
    assert all(isinstance(row, Row) and row.ratio is None for row in rows)


def test_the_bar_is_on_the_kernels_own_time():
    rows = emulator.compared(emulator.flash(), 10.0)
    assert rows[0].faster == 2000 and rows[0].met and rows[0].work == 4 * 64**3
    assert rows[0].seconds < rows[1].seconds and rows[1].faster is None


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
def test_numbas_simulator_runs_the_same_kernels_and_gets_the_same():
    found = emulator.numba_seconds()
    assert set(found) == {"product", "flash"} and min(found.values()) > 0.01
