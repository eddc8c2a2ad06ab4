"""The panel of lab 03: a wide projection matrix, cut by head."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from labs_lib.widgets.fused_slices import LAYOUTS, blocks_of_head, fused_slices


@pytest.mark.parametrize("matrix", LAYOUTS)
@pytest.mark.parametrize(("n_head", "head_dim"), [(1, 4), (3, 4), (12, 2)])
def test_blocks_of_all_heads_cover_every_column_once(matrix, n_head, head_dim):
    starts = [s for h in range(n_head) for _, s in blocks_of_head(n_head, head_dim, h, matrix)]
    letters = 1 if matrix == LAYOUTS[0] else 3
    assert sorted(starts) == list(range(0, letters * n_head * head_dim, head_dim))


def test_sentence_names_the_columns_of_the_head():
    panel = fused_slices()
    assert "W_Q[:, 320:384]" in panel.message
    panel.matrix = LAYOUTS[1]
    assert "k = W_QKV[:, 1088:1152]" in panel.message
    panel.matrix = LAYOUTS[2]
    assert "k = W_QKV[:, 1024:1088]" in panel.message


def test_illegal_pair_is_explained_with_its_nearest_neighbours():
    panel = fused_slices()
    panel.n_head = 7
    assert not panel.legal and "763 or 770" in panel.message and not panel.failed


def test_missing_head_is_explained():
    panel = fused_slices(n_head=4)
    assert "numbered 0 to 3" in panel.message and not panel.failed


@pytest.mark.parametrize(
    ("stack", "said"),
    [
        (lambda W: torch.cat(list(W), dim=1), "every number stands in its place"),
        (lambda W: W.reshape(W.shape[1], -1), "0.02 % of the numbers stand in their place"),
        (lambda W: W.flatten(0, 1), "[9216, 64]"),
        (lambda W: None, "NoneType"),
    ],
)
def test_panel_shows_what_a_students_function_makes(stack, said):
    panel = fused_slices(stack)
    assert said in panel.message and not panel.failed


def test_unwritten_function_is_no_error():
    def stub(W):
        raise NotImplementedError

    panel = fused_slices(stub)
    (axes,) = panel.still.figure.axes
    assert "Write stack_projections above" in panel.message and not panel.failed
    assert axes.texts[0].get_text() == panel.own["empty"]
    assert panel.own["empty"] == "your stack_projections is not written yet"


@pytest.mark.parametrize(("n_head", "d_model"), [(12, 768), (12, 1536), (30, 1500)])
def test_columns_dealt_out_in_turn_show_every_head_and_as_much_of_each(n_head, d_model):
    panel = fused_slices(lambda W: W.permute(1, 2, 0).flatten(1), n_head=n_head, d_model=d_model)
    owner, side = np.frombuffer(panel.own["owner"], np.uint8), panel.own["side"]
    assert owner.size == side * side
    shown = np.bincount(owner.reshape(side, side)[0], minlength=n_head)
    assert len(shown) == n_head and shown.max() - shown.min() <= 1 <= shown.min()


def test_a_picture_that_is_not_the_students_says_so():
    panel = fused_slices(lambda W: torch.cat(list(W), dim=1))
    panel.matrix = LAYOUTS[1]
    (axes,) = panel.still.figure.axes
    said = "Not drawn by your function"
    assert said in panel.message and said in axes.get_title(loc="left")
    assert said not in fused_slices().message


def test_failing_function_is_shown_in_the_panel():
    panel = fused_slices(lambda W: W.no_such_thing)
    assert panel.failed and "AttributeError" in panel.message
