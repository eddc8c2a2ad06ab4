"""The bench of attention on the CPU: its table, its slopes, and memory that is really measured."""

from __future__ import annotations

import pytest

from labs_lib.bench import attention
from labs_lib.bench.attention import METHODS, Point, bars, draw, slopes, table
from labs_lib.bench.rows import WrongResult

GROWTH = {"naive": (2e-9, 8, 2), "blocked": (1.5e-9, 2000, 1), "torch SDPA": (1e-9, 1000, 1)}
POINTS = [
    Point(method, n, seconds * n**2, size * n**power)
    for n in (1024, 4096, 16384)
    for method, (seconds, size, power) in GROWTH.items()
]


def test_slopes_are_the_powers_of_n():
    for method, found in slopes(POINTS).items():
        assert found["time"] == pytest.approx(2.0)
        assert found["memory"] == pytest.approx(GROWTH[method][2])


def test_bars_are_held_at_the_largest_n():
    assert bars(POINTS)["our time / torch SDPA's"] == pytest.approx(1.5)
    assert bars(POINTS)["memory of the naive / ours"] == pytest.approx(8 * 16384 / 2000)
    *rows, saving, _, _, _ = table(POINTS)
    assert [row.met for row in rows] == [None, None, True]
    assert rows[-1].verdict == "> 0.5 ×: yes"
    assert "1/66" in saving and saving.endswith("yes.")


def test_a_bar_that_is_missed_is_told():
    slow = [Point(p.method, p.n, p.seconds * (p.method == "blocked") + p.seconds, p.extra_bytes)
            for p in POINTS if p.method != "naive"]  # fmt: skip
    whole = [Point("naive", p.n, p.seconds, 49 * p.extra_bytes) for p in slow[::2]]
    *rows, saving, _, _, _ = table([*whole, *slow])
    assert rows[-1].verdict == "> 0.5 ×: NO"
    assert saving.endswith("NO.")


def test_the_picture_has_a_line_for_each_method():
    fig = draw(POINTS)
    assert [len(ax.lines) for ax in fig.axes] == [len(METHODS)] * 2


def test_a_wrong_result_gets_no_figure(monkeypatch):
    monkeypatch.setitem(attention.METHODS, "blocked", lambda q, k, v: v)
    monkeypatch.setattr(attention, "_extra_bytes", lambda *asked: 1)
    with pytest.raises(WrongResult, match="blocked, 64 tokens"):
        attention.measure([64], repeats=1)


@pytest.mark.slow
def test_memory_is_that_of_a_process_of_its_own():
    whole, tiles = (attention._extra_bytes(m, 2048, 64) for m in ("naive", "blocked"))
    assert whole > 2 * 2048**2 * 4
    assert 2048 * 64 * 4 <= tiles < whole / 4
