"""The panel of lab 05: which head wrote which number of the output."""

from __future__ import annotations

import pytest
import torch

from labs_lib.attention.multi_head import per_head_contributions
from labs_lib.widgets.w_o_mixing import MERGES, token_and_matrix, w_o_mixing


def test_the_sentence_adds_up_what_the_heads_add():
    panel = w_o_mixing()
    heads, W_O = token_and_matrix(4, 24, MERGES[0])
    output = (heads.transpose(1, 2).flatten(2) @ W_O)[0, 0]
    assert f"= {float(output[12]):.2f}." in panel.message
    assert "4 heads write" in panel.message


def test_a_head_that_is_off_changes_no_other_row():
    panel = w_o_mixing()
    before = panel.picture
    panel.off = 2
    assert "changed by 0." in panel.message and panel.picture != before


def test_without_w_o_one_head_writes_each_number():
    panel = w_o_mixing()
    panel.merge = MERGES[1]
    assert "1 head writes into each number" in panel.message


def test_a_head_that_does_not_exist_is_explained():
    panel = w_o_mixing(n_head=3)
    panel.off = 7
    assert "numbered 0 to 2" in panel.message and not panel.failed


def test_illegal_pair_is_explained_with_its_nearest_neighbours():
    panel = w_o_mixing()
    panel.n_head = 5
    assert not panel.legal and "20 or 25" in panel.message and not panel.failed


@pytest.mark.parametrize(("n_head", "d_model"), [(1, 8), (16, 128), (8, 8), (3, 96)])
def test_every_legal_pair_is_drawn(n_head, d_model):
    panel = w_o_mixing(n_head=n_head, d_model=d_model)
    for merge in MERGES:
        panel.set(merge=merge, off=0)
        assert panel.legal and not panel.failed and panel.picture.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("contributions", "said"),
    [
        (per_head_contributions, "changed by 0."),
        (lambda heads, W_O: heads.transpose(1, 2).flatten(2) @ W_O, "[1, 1, 24]"),
        (lambda heads, W_O: None, "NoneType"),
    ],
)
def test_the_panel_shows_what_a_students_function_makes(contributions, said):
    panel = w_o_mixing(contributions)
    panel.off = 1
    assert said in panel.message and not panel.failed


def the_whole_for_each(heads, W_O):
    return (heads.transpose(1, 2).flatten(2) @ W_O).expand(1, 4, 1, 24)


def test_where_each_row_is_the_whole_a_head_that_is_off_is_seen_to_change_the_others():
    panel = w_o_mixing(the_whole_for_each)
    panel.off = 1
    assert "by 0." not in panel.message and not panel.failed


def test_the_sum_of_a_students_rows_is_compared_with_the_output():
    heads_alike = w_o_mixing(lambda heads, W_O: the_whole_for_each(heads, W_O) / 4)
    assert "is the output, but" in heads_alike.message
    whole = w_o_mixing(the_whole_for_each)
    assert "not the output" in whole.message and "heads write" not in whole.message
    right = w_o_mixing(per_head_contributions)
    assert "rows is the output. 4 heads write" in right.message
    right.set(merge=MERGES[1], off=2)
    assert "rows is the output. Head 2 is off" in right.message
    assert "your rows" not in w_o_mixing().message


def test_no_number_lies_beyond_the_ends_of_the_colours():
    for sizes in ({}, {"n_head": 1, "d_model": 8}, {"n_head": 16, "d_model": 128}):
        grid, *_ = w_o_mixing(**sizes).figure.axes
        picture = grid.images[0]
        assert abs(picture.get_array()).max() <= picture.norm.vmax


def test_unwritten_and_failing_functions_are_told_apart():
    def stub(heads, W_O):
        raise NotImplementedError

    assert "Write per_head_contributions" in w_o_mixing(stub).message
    failing = w_o_mixing(lambda heads, W_O: heads.no_such_thing)
    assert failing.failed and "AttributeError" in failing.message


def test_numbers_are_equal_on_every_call():
    first, second = token_and_matrix(3, 12, MERGES[0]), token_and_matrix(3, 12, MERGES[0])
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
