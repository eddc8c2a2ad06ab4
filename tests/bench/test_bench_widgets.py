"""The bench of the explorers knows them all, takes the right percentile, says what is missing."""

from __future__ import annotations

import pytest

from labs_lib.bench import browser, widgets
from labs_lib.bench.rows import Unavailable
from labs_lib.widgets import front


def test_every_explorer_is_measured():
    drawn = {file.stem for file in front.FOLDER.glob("*.mjs")} - set(front.SHARED)
    assert drawn == {module for module, _, _ in widgets.EXPLORERS}


def test_the_percentile_is_a_time_that_was_measured():
    times = [float(t) for t in range(1, 41)]
    assert widgets.percentile(times[::-1]) == 38.0
    assert widgets.percentile(times, 0.5) == 20.0
    assert widgets.percentile([7.0]) == 7.0


def test_without_a_browser_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(browser, "_program", lambda: None)
    with pytest.raises(Unavailable, match=r"apt install chromium|pip install playwright"):
        widgets.rows()
