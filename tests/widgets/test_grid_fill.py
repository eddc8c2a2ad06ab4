"""The explorer of lab 09: blocks on the SMs of a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from labs_lib.widgets.grid_fill import CUTS, GPUS, blocks_of, grid_fill


def shown(panel):
    """The number of blocks on each SM that the picture has."""
    values = np.ma.asarray(panel.figure.axes[0].images[0].get_array())
    return values.compressed()


def test_twelve_heads_leave_116_of_128_sms_without_work():
    panel = grid_fill()
    assert "116 of 128 SMs have nothing to do" in panel.message
    assert "12 blocks on 128 SMs: 9.4% busy" in panel.figure.axes[0].get_title(loc="left")
    assert shown(panel).sum() == 12 and len(shown(panel)) == 128


def test_cutting_the_queries_makes_eight_times_as_many():
    panel = grid_fill()
    panel.grid = 128
    assert "96 blocks" in panel.message and "32 of 128" in panel.message


@pytest.mark.parametrize(
    ("n_head", "batch", "tokens"), [(12, 1, 1), (8, 16, 1024), (128, 64, 16384)]
)
def test_every_block_is_on_one_sm_and_none_has_two_more_than_another(n_head, batch, tokens):
    panel = grid_fill(n_head=n_head)
    for sms, cut in zip(GPUS.values(), CUTS.values(), strict=True):
        panel.set(batch=batch, tokens=tokens, grid=cut, gpu=sms)
        assert not panel.failed and panel.legal
        counts = shown(panel)
        assert len(counts) == sms and counts.sum() == blocks_of(n_head, batch, tokens, cut)
        assert counts.max() - counts.min() <= 1


def test_what_a_head_dim_of_72_wastes_is_told():
    panel = grid_fill(n_head=8, d_model=576)
    assert "head_dim 72: 5 pieces of 16, 8 zeros fill it up" in panel.message
    panel.set(n_head=9)
    assert "head_dim 64: 4 pieces of 16, nothing to fill up" in panel.message


def test_an_illegal_pair_is_explained_with_its_nearest_neighbours():
    panel = grid_fill()
    panel.n_head = 7
    assert not panel.legal and not panel.failed and panel.offers
