"""What others reported of widgets in JupyterLab: shown twice, off the screen, keys."""

from __future__ import annotations

import pytest

from labs_lib.bench.browser import Notebook

pytestmark = pytest.mark.slow
SHOW = "from labs_lib.widgets.flash_tiles import flash_tiles\nflash_tiles()"
CURRENT = "window.jupyterapp.shell.currentWidget"


@pytest.fixture(scope="module")
def long_notebook(chromium, lab):
    """A notebook whose explorer stands far below what the window shows when all cells are run."""
    folder, address = lab
    cells = ["print('\\n' * 60)", "print('\\n' * 60)", SHOW]
    opened = Notebook(chromium, address, folder, "long.ipynb", cells)
    opened.page.evaluate(f"{CURRENT}.content.activeCellIndex = 0")
    opened.run()
    yield opened
    opened.page.close()


def test_an_explorer_that_was_off_the_screen_is_drawn_when_it_comes_into_view(long_notebook):
    """vscode-jupyter 17132, jupyterlab 16630: no size is known while nobody sees it."""
    explorer = long_notebook.explorer(2)
    canvas = explorer.locator("canvas[data-rev]")
    assert canvas.bounding_box()["width"] > 500
    painted = "c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
    assert canvas.evaluate(painted) > 8, "an empty picture"


def test_a_cell_that_runs_twice_shows_one_explorer_which_is_the_new_one(long_notebook):
    """ipywidgets 1904, ipympl 402: two figures, or the old one that nothing moves."""
    cell = long_notebook.page.locator('.jp-CodeCell[data-windowed-list-index="2"]')
    select = f"{CURRENT}.content.activeCellIndex = 2"
    for _ in range(2):
        long_notebook.page.evaluate(select)
        long_notebook.command("notebook:run-cell")
    explorer = long_notebook.explorer(2)
    assert cell.locator(".labs-explorer").count() == 1
    assert cell.locator(".jp-OutputArea-child").count() == 1
    explorer.get_by_label("step", exact=True).focus()
    long_notebook.pressed(explorer.locator("canvas"), "ArrowRight")
    assert "keys from 768 on" in explorer.get_by_role("status").inner_text()


def test_every_control_keeps_its_keys_from_jupyterlab(long_notebook):
    """jupyterlab 12500: the arrow keys move cells unless the element itself says no."""
    kept = "all => all.map(e => e.hasAttribute('data-lm-suppress-shortcuts'))"
    controls = long_notebook.explorer(2).locator("input, select, button")
    assert controls.count() > 12
    assert all(controls.evaluate_all(kept))
    assert long_notebook.strays == [] and long_notebook.errors == []
