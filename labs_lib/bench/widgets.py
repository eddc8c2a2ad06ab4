"""How long a student waits for a picture: from a key on a slider to the painted frame."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from labs_lib.bench.browser import Notebook, browsing, served
from labs_lib.bench.rows import Row
from labs_lib.bench.timing import busy

PRESSES = 40
EXPLORER_WITHIN, TORCH_WITHIN = 0.1, 0.4

# (module, call, the control that is moved)
EXPLORERS = (
    ("tour", "tour()", "d_model"),
    ("head_split", "head_split()", "seq"),
    ("attention_row", "attention_row()", "query"),
    ("fused_slices", "fused_slices()", "head"),
    ("ledger", "ledger()", "n_layer"),
    ("w_o_mixing", "w_o_mixing(n_head=8, d_model=64)", "merge"),
    ("head_atlas", "head_atlas()", "layer"),
    ("training_scrub", "training_scrub(step=100)", "step"),
    ("induction", "induction(place=3)", "place"),
    ("kv_cache", "kv_cache()", "n_layer"),
    ("online_softmax", "play_row()", "step"),
    ("flash_tiles", "flash_tiles()", "step"),
    ("grid_fill", "grid_fill()", "batch"),
    ("kernel_view", "kernel_view(recorded.trace('transpose_tiled'))", "step"),
    ("pipeline", "pipeline()", "new"),
)
SILENT = ("head_atlas", "head_atlas('smollm2', it='is silent')", "layer")
_THERE_AND_BACK, _ON = ("ArrowRight", "ArrowLeft"), ("ArrowRight",)


def rows() -> list[Row | str]:
    """The 95th percentile of each explorer in a headless Chromium, and of a silent head.

    Raises: Unavailable without a browser.
    """
    from labs_lib.models import available

    listed = [*EXPLORERS, *([SILENT] if available("smollm2") else [])]
    with tempfile.TemporaryDirectory() as made, browsing() as browser:
        folder = Path(made)
        with served(folder) as address:
            cells = [_cell(module, call) for module, call, _ in listed]
            notebook = Notebook(browser, address, folder, "widgets.ipynb", cells)
            notebook.run()
            found = [_measured(notebook, i, *entry) for i, entry in enumerate(listed)]
    notes = ["The first is the explorers' bar, the second that of what torch computes."]
    if len(listed) == len(EXPLORERS):
        notes.append("A silent head needs a model (`labs models get`) and is left out.")
    return [*found, *notes, *filter(None, [busy()])]


def percentile(times: list[float], share: float = 0.95) -> float:
    """The smallest of the times that at least this share of them don't exceed."""
    count = -(-len(times) * share // 1)
    return sorted(times)[int(count) - 1]


def _cell(module: str, call: str) -> str:
    name = call.partition("(")[0]
    lines = (
        "import torch; torch.set_num_threads(1)  # as each lab does",
        "from labs_lib.cuda import recorded",
        f"from labs_lib.widgets.{module} import {name}",
        call,
    )
    return "\n".join(lines)


def _measured(notebook: Notebook, cell: int, module: str, call: str, control: str) -> Row:
    shown = notebook.explorer(cell)
    shown.get_by_label(control, exact=True).focus()
    if (module, call, control) == SILENT:  # always another layer: the model runs at every move
        within, name = TORCH_WITHIN, f"head_atlas, {control}, silent in SmolLM2"
        times = _pressed(notebook, shown, _ON, PRESSES // 2, "data-answered")
    else:
        within, name = EXPLORER_WITHIN, f"{call.partition('(')[0]}, {control}"
        times = _pressed(notebook, shown, _THERE_AND_BACK, PRESSES, "data-rev")
    seconds, middle = [one / 1000 for one in times], f"{percentile(times, 0.5):.0f} ms"
    return Row(name, percentile(seconds), within=within, more=(("median", middle),))


def _pressed(
    notebook: Notebook, shown: Any, keys: tuple[str, ...], count: int, what: str
) -> list[float]:
    picture = shown.locator("canvas")
    every = [notebook.pressed(picture, keys[i % len(keys)], what) for i in range(count + 2)]
    return every[2:]
