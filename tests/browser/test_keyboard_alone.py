"""Labs 02 and 11 in JupyterLab with keys alone: open, guess, write, check, ask, move, and leave.

One page and one walk: each test goes on where the one before it stopped.
"""

from __future__ import annotations

import shutil

import pytest
from keyboard_walk import Walk

from labs_lib.bench.browser import Notebook
from labs_lib.exercises import labs
from labs_lib.paths import home
from labs_lib.widgets.head_split import head_split

pytestmark = pytest.mark.slow
SPLITTING, FLASH = (next(lab.stem for lab in labs() if lab.number == n) for n in (2, 11))


@pytest.fixture(scope="module")
def walk(chromium, lab):
    folder, address = lab
    for stem in (SPLITTING, FLASH):
        shutil.copy(home() / "notebooks" / f"{stem}.ipynb", folder)
    notebook = Notebook(chromium, address, folder, f"{SPLITTING}.ipynb")
    walker = Walk(notebook)
    walker.opened()
    yield walker
    assert notebook.errors == [] and notebook.strays == []
    notebook.page.close()


def test_a_guess_is_typed_and_kept(walk):
    walk.run(walk.cell("import math"))
    guess = walk.cell('predict("lab02.head_0"')
    walk.go(guess)
    walk.press("Enter", "Control+End", "ArrowLeft", *["Backspace"] * len("None"))
    walk.type("[0, 1, 4, 5]")
    assert "[0, 1, 4, 5]" in walk.run(guess)


def test_an_answer_is_written_checked_helped_and_mended(walk):
    answer, check = walk.cell("def head_dim"), walk.cell('check("lab02.head_dim"')
    walk.write_last_line(answer, "return d_model / n_head")
    assert walk.run(check).startswith("FAIL")
    assert walk.into(check)["name"] == "Show a hint"
    walk.press("Enter")
    walk.page.get_by_text("hint 1 of 3").wait_for()
    walk.press("ArrowUp")
    walk.write_last_line(answer, "if d_model % n_head: raise ValueError(n_head)")
    walk.press("Enter", "Control+End", "Enter")
    walk.type("return d_model // n_head")
    walk.run(answer)
    assert walk.run(check).startswith("PASS")


def test_every_knob_of_lab_02_is_reached_moved_and_left(walk):
    explorer = walk.cell("head_split(")
    walk.run(explorer)
    knobs = walk.move_every_knob(explorer)
    names = ("n_head", "d_model", "seq")
    assert knobs == [part for name in names for part in (name, f"{name}, typed")] + ["way"]
    left = walk.press("Escape")
    assert left["whole"] and left["cell"] == explorer


def test_a_number_is_typed_refused_explained_and_a_way_out_taken(walk):
    explorer = walk.cell("head_split(")
    walk.into(explorer)
    walk.press("Tab", "ControlOrMeta+a")
    walk.type("7")
    walk.press("Enter")
    assert walk.told(explorer) == head_split(n_head=7).message
    way_out = walk.tab_to(lambda here: here["tag"] == "BUTTON")
    assert way_out["name"].startswith("set d_model to 763")
    assert walk.press("Enter")["name"] == "d_model"
    assert walk.told(explorer) == head_split(n_head=7, d_model=763).message
    walk.press("Tab", "ControlOrMeta+a")
    walk.type("99")
    walk.go(explorer + 1)
    assert walk.told(explorer) == head_split(n_head=7, d_model=763).message, "half typed, and left"


def test_the_next_lab_is_opened_from_the_list_of_files(walk):
    walk.press("ControlOrMeta+Shift+f")
    files = {f"{stem}.ipynb" for stem in (SPLITTING, FLASH)}
    walk.tab_to(lambda here: here["tag"] == "SPAN" and here["name"] in files, key="Shift+Tab")
    if walk.here["name"] != f"{FLASH}.ipynb":
        walk.tab_to(lambda here: here["name"] == f"{FLASH}.ipynb", key="ArrowDown", most=9)
    walk.press("Enter")
    walk.page.locator(f".lm-TabBar-tab.jp-mod-current >> text={FLASH}").wait_for()
    walk.opened()
    assert walk.here["cell"] == 0


def test_every_knob_of_lab_11_is_reached_moved_and_left(walk):
    walk.run(walk.cell("%load_ext"))
    tiles = walk.cell("flash_tiles(")
    walk.run(tiles)
    knobs = walk.move_every_knob(tiles)
    names = ("n_head", "d_model", "tokens", "block_q", "block_k")
    plays = ["step", "step, typed", "step: first", "step: back", "play", "step: on", "step: last"]
    assert knobs[:10] == [part for name in names for part in (name, f"{name}, typed")]
    assert knobs[10:] == ["mask", *plays]
    assert walk.press("Escape")["cell"] == tiles


def test_a_quiz_is_answered_a_kernel_run_and_both_verdicts_are_read(walk):
    quiz = walk.cell("quiz_saved")
    walk.go(quiz)
    walk.press("Enter", *["ArrowRight"] * len("quiz_saved = "), *["Delete"] * len("None"))
    walk.type('"a"')
    walk.run(quiz)
    assert walk.run(quiz + 1).startswith("FAIL")
    kernel = walk.cell("%%cuda")
    walk.run(kernel)
    assert walk.run(kernel + 1).startswith("NOT ATTEMPTED  lab11.flash_kernel")
