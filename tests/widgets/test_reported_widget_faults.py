"""Faults that others reported of widgets and notebooks, and that this course must not have."""

from __future__ import annotations

import gc
import re
import tracemalloc
from pathlib import Path

import ipywidgets
import matplotlib.pyplot as plt
import nbformat
import pytest

from labs_lib.widgets import front
from labs_lib.widgets.flash_tiles import flash_tiles
from labs_lib.widgets.kv_cache import kv_cache

ROOT = Path(__file__).parents[2]
SOLVED = sorted((ROOT / "solutions").glob("*.ipynb"))
SCRIPTS = sorted(front.FOLDER.glob("*.mjs"))


def stem(file):
    return file.stem


def test_five_hundred_moves_leave_no_figure_no_widget_and_no_memory():
    """ipywidgets 2304, ipympl 4 and 370: output, figures and widgets that grow with each move."""
    shown = kv_cache(lambda n_layer, n_head, n_kv_head, head_dim, tokens: {"bytes": n_kv_head})

    def move(times):
        for i in range(times):
            shown.n_kv_head = (8, 16)[i % 2]
            shown.card = 80 + i % 7
        return shown.message

    tracemalloc.start()
    move(20)
    gc.collect()
    before = len(ipywidgets.widget.Widget.widgets or {})
    start = tracemalloc.get_traced_memory()[0]
    move(500)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - start
    tracemalloc.stop()
    assert grown < 50_000, f"{grown:,} bytes more after 500 moves"
    assert len(ipywidgets.widget.Widget.widgets or {}) == before
    assert plt.get_fignums() == []


def test_showing_it_twice_makes_one_picture_each_time():
    """ipywidgets 1904: a figure that is shown beside its widget."""
    for _ in range(2):
        bundle, _ = flash_tiles()._repr_mimebundle_()
        assert len([kind for kind in bundle if kind.startswith("image/")]) == 1
    assert plt.get_fignums() == []


@pytest.mark.parametrize("file", SCRIPTS, ids=stem)
def test_no_control_is_made_that_loses_its_keys_to_jupyterlab(file):
    """jupyterlab 12500: arrow keys on a slider move cells, unless the slider itself says no."""
    made = re.findall(r"createElement\((.*?)\)", file.read_text(encoding="utf-8"))
    assert set(made) <= ({"tag"} if file.stem == "controls" else {'"canvas"'})


@pytest.mark.parametrize("file", SOLVED, ids=stem)
def test_what_is_stored_is_short_and_shown_without_a_widget_manager(file):
    """notebook 3572, ipywidgets 3823: huge outputs, and "model not found" where nothing runs."""
    notebook = nbformat.read(file, as_version=4)
    assert "widgets" not in notebook.metadata
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {"text/plain": output.get("text", "")})
            assert not [kind for kind in data if "widget" in kind or "javascript" in kind]
            assert len(str(data.get("text/plain", ""))) < 8000
            assert not re.search(r" at 0x[0-9a-f]+>", str(data.get("text/plain", "")))


def test_the_first_lab_says_to_wait_for_idle():
    """Run All before the kernel is ready runs nothing, and says nothing."""
    text = (ROOT / "solutions" / "00_start_here.md").read_text(encoding="utf-8")
    assert "*Idle* before you run" in " ".join(text.split())
