"""Explorers in a real JupyterLab: drawn, moved by the keyboard, equal to Python, without a kernel.

All tests use one page. What is asked of each explorer is asked of one after the other, so that the
page is scrolled once (conftest.py); the last tests take the kernel away.
"""

from __future__ import annotations

import json

import pytest
from explorer_page import back_to_the_first_setting, knob, sentence, shown, soon
from explorer_table import EXPLORERS

from labs_lib.bench.browser import Notebook
from labs_lib.models import available

pytestmark = pytest.mark.slow
CURRENT = "window.jupyterapp.shell.currentWidget"
KERNEL = f"{CURRENT}.context.sessionContext.session.kernel"
TWO_FRAMES = "() => new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))"
FITS = "e => e.scrollWidth <= e.clientWidth"
PAINTED = "c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
KEPT = "all => all.every(e => e.hasAttribute('data-lm-suppress-shortcuts'))"
BUSY = """
import os, time
end = time.monotonic() + 15
while not (waited := os.path.exists({!r})) and time.monotonic() < end:
    time.sleep(0.01)
"""
LARGE = ("tour", "head_atlas", "flash_tiles", "kernel_view")  # the first, and the largest pictures


def each(rows):
    return pytest.mark.parametrize("row", list(rows), ids=lambda row: row.name)


BY_NAME = each(EXPLORERS)
PLAIN = each(row for row in EXPLORERS if not row.own)
MISFITS = each(row for row in EXPLORERS if row.illegal and not row.own)


def named(name):
    return next(row for row in EXPLORERS if row.name == name)


def test_an_explorer_that_was_off_the_screen_is_drawn_when_it_comes_into_view(notebook):
    """vscode-jupyter 17132, jupyterlab 16630: no size is known while nobody sees it."""
    canvas = shown(notebook, EXPLORERS[-1]).locator("canvas[data-rev]")
    assert canvas.bounding_box()["width"] > 500
    assert canvas.evaluate(PAINTED) > 8, "an empty picture"


def test_a_cell_that_runs_twice_shows_one_explorer_which_is_the_new_one(notebook):
    """ipywidgets 1904, ipympl 402: two figures, or the old one that nothing moves."""
    row = named("flash_tiles")
    number = EXPLORERS.index(row)
    for _ in range(2):
        notebook.page.evaluate(f"{CURRENT}.content.activeCellIndex = {number}")
        notebook.command("notebook:run-cell")
    explorer = shown(notebook, row)
    cell = notebook.page.locator(f'.jp-CodeCell[data-windowed-list-index="{number}"]')
    assert cell.locator(".labs-explorer").count() == 1
    assert cell.locator(".jp-OutputArea-child").count() == 1
    knob(explorer, "step").focus()
    notebook.pressed(explorer.locator("canvas"), "ArrowRight")
    assert "keys from 768 on" in sentence(explorer)
    assert soon(lambda: notebook.python("print(w_flash_tiles.step, end='')"), "7") == "7"
    back_to_the_first_setting(notebook, row)


@BY_NAME
def test_the_browser_says_what_python_says(notebook, row):
    """Two computations, one in JavaScript and one in torch, at sizes that hide nothing."""
    explorer = shown(notebook, row)
    told = notebook.python(f"print(w_{row.name}.message, end='')")
    assert soon(lambda: sentence(explorer), told) == told
    for setting in row.settings:
        move = f"w_{row.name}.set(**{setting!r}); print(w_{row.name}.message, end='')"
        told = notebook.python(move)
        assert soon(lambda told=told: sentence(explorer), told) == told, setting
    back_to_the_first_setting(notebook, row)


@PLAIN
def test_arrow_keys_move_it_within_a_frame_or_two_and_python_knows(notebook, row, latencies):
    """jupyterlab 12500: the arrow keys move cells unless each control itself says no."""
    explorer = shown(notebook, row)
    assert explorer.locator("input, select, button").evaluate_all(KEPT)
    before = notebook.python(f"print(w_{row.name}.{row.moves}, end='')")
    knob(explorer, row.moves).focus()
    canvas, seen = explorer.locator("canvas"), latencies.setdefault(row.name, [])
    for key in row.keys * 2:
        seen.append(notebook.pressed(canvas, key))
    assert min(seen) < 100, "a move waits for something"  # `labs bench widgets` has them all
    assert sentence(explorer) in canvas.get_attribute("aria-label")
    notebook.page.keyboard.press(row.keys[0])
    value = f"print(w_{row.name}.{row.moves}, end='')"
    assert soon(lambda: notebook.python(value) != before, True)
    notebook.page.keyboard.press(row.keys[1])
    assert soon(lambda: notebook.python(value), before) == before


@each(row for row in EXPLORERS if row.name in LARGE)
def test_thirty_fast_keys_end_at_the_last_value_at_once(notebook, row):
    explorer = shown(notebook, row)
    moved = knob(explorer, row.moves)
    moved.focus()
    for _ in range(15):
        for key in row.keys:
            notebook.page.keyboard.press(key)
    notebook.page.keyboard.press("End")
    notebook.page.evaluate(TWO_FRAMES)
    last = moved.get_attribute("max") or moved.evaluate("list => list.options.length - 1")
    assert moved.input_value() == str(last)
    assert sentence(explorer) in explorer.locator("canvas").get_attribute("aria-label")
    value = f"print(w_{row.name}.message.strip(), end='')"
    assert soon(lambda: notebook.python(value) == sentence(explorer), True)
    back_to_the_first_setting(notebook, row)


@MISFITS
def test_an_illegal_setting_is_explained_and_left_by_the_keyboard(notebook, row):
    explorer, (name, value) = shown(notebook, row), row.illegal
    typed = explorer.get_by_label(f"{name}, typed", exact=True)
    typed.focus()
    notebook.page.keyboard.press("ControlOrMeta+a")
    notebook.page.keyboard.type(str(value))
    notebook.page.keyboard.press("Enter")
    told = f"Not allowed: {name if name != 'n_head' else 'd_model'}="
    assert soon(lambda: sentence(explorer).startswith(told), True), sentence(explorer)
    assert soon(lambda: notebook.python(f"print(w_{row.name}.legal, end='')"), "False") == "False"
    python = notebook.python(f"print(*(f'{{n}} = {{v}}' for n, v in w_{row.name}.offers), sep=',')")
    ways_out = explorer.locator(".labs-offers button")
    assert ",".join(ways_out.all_inner_texts()) == python.strip()
    ways_out.first.focus()
    notebook.page.keyboard.press("Enter")
    assert soon(ways_out.count, 0) == 0
    assert soon(lambda: notebook.python(f"print(w_{row.name}.legal, end='')"), "True") == "True"
    assert notebook.page.evaluate("document.activeElement.tagName") == "INPUT"
    back_to_the_first_setting(notebook, row)


@PLAIN
def test_it_moves_while_python_is_busy(notebook, row, tmp_path):
    """The kernel waits for a file that is made after the picture has followed."""
    explorer, done = shown(notebook, row), tmp_path / "done"
    knob(explorer, row.moves).focus()
    waits = BUSY.format(str(done))
    notebook.page.evaluate(f"code => void {KERNEL}.requestExecute({{code}})", waits)
    for key in row.keys:
        notebook.pressed(explorer.locator("canvas"), key)
    done.touch()
    assert notebook.python("print(waited, end='')") == "True", "it waited for Python"


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_both_themes_and_both_widths_are_fit_to_be_read(notebook, theme, kept):
    """axe finds nothing serious, nothing is wider than its column; the pictures are kept."""
    from axe_playwright_python.sync_playwright import Axe

    page, name = notebook.page, f"JupyterLab {theme}"
    notebook.command("apputils:change-theme", {"theme": name})
    page.wait_for_function(f"document.body.dataset.jpThemeName === '{name}'")
    plain = [row for row in EXPLORERS if not row.own]
    for width in (1000, 600):
        page.set_viewport_size({"width": width, "height": 1000})
        for row in plain:
            explorer = shown(notebook, row)
            assert soon(lambda now=explorer: now.evaluate(FITS), True), f"{row.name} at {width}"
            explorer.screenshot(path=kept / f"{row.name}-{theme.lower()}-{width}.png")
    page.set_viewport_size({"width": 1000, "height": 900})
    page.evaluate(Axe().axe_script)
    for row in plain:
        explorer = shown(notebook, row)
        ink = explorer.evaluate("e => getComputedStyle(e).color")
        assert ink.startswith(("rgba(0", "rgb(0")) == (theme == "Light"), f"{row.name}: {ink}"
        found = explorer.evaluate("e => axe.run(e, {resultTypes: ['violations']})")["violations"]
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        assert not serious, json.dumps([(v["id"], v["nodes"][0]["html"]) for v in serious])


def test_a_click_chooses_and_the_pointer_reads_what_the_keys_and_the_sentence_do(notebook):
    """The heads of the atlas are 24 pixels wide and high, its tokens a little less."""
    row = named("head_atlas")
    explorer = shown(notebook, row)
    canvas, reading = explorer.locator("canvas"), explorer.locator(".labs-reading")
    canvas.hover(position={"x": 48 + 24 * 11.5, "y": 42 + 24 * 2.5})
    told = "Head 11 of layer 2 gives 0.46; by chance it would be 0.01."
    assert soon(reading.text_content, told) == told
    canvas.click(position={"x": 48 + 24 * 11.5, "y": 42 + 24 * 2.5})
    value = "print(w_head_atlas.layer, w_head_atlas.head, w_head_atlas.place, end='')"
    assert soon(lambda: notebook.python(value), "2 11 13") == "2 11 13"
    canvas.click(position={"x": 600, "y": 42 + 5})
    assert soon(lambda: notebook.python(value), "2 11 0") == "2 11 0"
    told = notebook.python("print(w_head_atlas.message, end='')")
    assert soon(lambda: sentence(explorer), told) == told
    assert "(0) to “" in reading.text_content()
    back_to_the_first_setting(notebook, row)


def test_text_is_typed_letter_by_letter_and_python_has_it(notebook):
    row = named("induction")
    explorer = shown(notebook, row)
    knob(explorer, "text").focus()
    notebook.page.keyboard.press("ControlOrMeta+a")
    notebook.page.keyboard.type("b a, b")  # letters that are JupyterLab's own keys
    assert "“b” stood at place 0; what came next, “a”" in sentence(explorer)
    assert soon(lambda: notebook.python("print(w_induction.text, end='')"), "b a, b") == "b a, b"
    back_to_the_first_setting(notebook, row)


def test_an_error_in_a_picture_is_shown_and_the_next_move_draws_again(notebook):
    row = named("own_split")
    explorer = shown(notebook, row)
    notebook.python("w_own_split.own = {'of': w_own_split.values, 'owner': None, 'message': ''}")
    told = "This setting raised TypeError: "
    assert soon(lambda: sentence(explorer).startswith(told), True), sentence(explorer)
    right = notebook.python("w_own_split.set(n_head=2, d_model=32); print(w_own_split.message)")
    assert soon(lambda: sentence(explorer), right.strip()) == right.strip()


@pytest.fixture(scope="module")
def without_a_kernel(notebook):
    """The same page, saved, after its kernel was restarted: nothing of Python's is left."""
    notebook.command("docmanager:save")
    notebook.page.evaluate(f"async () => {{ await {KERNEL}.restart(); }}")
    assert "ERROR" in notebook.python(f"print(w_{EXPLORERS[0].name})")
    return notebook


@BY_NAME
def test_it_moves_after_the_kernel_is_gone(without_a_kernel, row):
    explorer = shown(without_a_kernel, row)
    knob(explorer, row.moves).focus()
    before = explorer.locator("canvas").get_attribute("data-rev")
    for key in row.keys:
        without_a_kernel.pressed(explorer.locator("canvas"), key)
    assert int(explorer.locator("canvas").get_attribute("data-rev")) >= int(before) + 2


def test_what_needs_the_model_is_said_to_without_a_kernel(without_a_kernel):
    """The heads' weights are drawn all the same; only what a silent head changes is missing."""
    row = named("head_atlas")
    explorer = shown(without_a_kernel, row)
    explorer.get_by_label("it", exact=True).select_option("is silent")
    told = "without a kernel it can't" if available("minilm") else "`labs models get"
    assert soon(lambda: told in sentence(explorer), True), sentence(explorer)
    assert "Recorded: silent, it costs -0.004 nats." in sentence(explorer)
    explorer.get_by_label("it", exact=True).select_option("speaks")


def test_the_console_is_silent_and_nothing_off_this_machine_was_asked(without_a_kernel):
    assert without_a_kernel.errors == []
    assert without_a_kernel.strays == []


@pytest.fixture(scope="module")
def reopened(without_a_kernel, chromium, lab):
    """The saved notebook on a page of its own."""
    folder, address = lab
    opened = Notebook(chromium, address, folder, "explorers.ipynb")
    yield opened
    opened.page.close()


@BY_NAME
def test_a_saved_notebook_opens_with_its_explorers_at_work(reopened, row):
    explorer = shown(reopened, row)
    knob(explorer, row.moves).focus()
    for key in row.keys:
        reopened.pressed(explorer.locator("canvas"), key)
    assert reopened.errors == [] and reopened.strays == []
