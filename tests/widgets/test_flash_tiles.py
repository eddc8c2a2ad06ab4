"""The panel of lab 11: tiles, what lies on the chip, what crosses."""

from __future__ import annotations

import pytest

from labs_lib.arithmetic.traffic import io_bytes
from labs_lib.attention.flash import Tiling
from labs_lib.widgets.flash_tiles import MASKS, Tiles, flash_tiles


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("tokens", "blocks"), [(1024, (128, 128)), (960, (112, 64)), (64, (512, 16))]
)
def test_tiles_are_those_of_the_reference_and_bytes_those_of_the_formula(tokens, blocks, causal):
    tiles = Tiles(tokens, 64, *blocks, causal)
    tiling = Tiling(tokens, tokens, *blocks, causal)
    wanted = [
        (rows.start // blocks[0], tile.columns.start // blocks[1])
        for rows in tiling.rows() for tile in tiling.tiles(rows)
    ]  # fmt: skip
    assert tiles.order == wanted
    counted = io_bytes(tokens, tokens, 64, blocks[0], 2)
    assert tiles.crossing_whole == counted["naive"]
    if causal:
        assert tiles.crossing <= counted["flash"]
    else:
        assert tiles.crossing == counted["flash"]


def test_the_sentence_says_what_is_left_out_and_what_is_saved():
    panel = flash_tiles()
    assert "12 heads of 64" in panel.message and "left out" not in panel.message
    panel.mask = MASKS[1]
    assert "28 of 64 are left out" in panel.message
    panel.step = 64
    assert "Queries from 896 on meet keys from 896 on" in panel.message and not panel.failed


def test_illegal_pair_is_explained_with_its_nearest_neighbours():
    panel = flash_tiles()
    panel.n_head = 7
    assert not panel.legal and "763 or 770" in panel.message and not panel.failed


@pytest.mark.parametrize("tokens", [64, 4096])
@pytest.mark.parametrize("block", [16, 512])
def test_every_setting_is_drawn(tokens, block):
    panel = flash_tiles(n_head=1, d_model=8)
    panel.set(tokens=tokens, block_q=block, block_k=528 - block, mask=MASKS[1], step=7)
    assert panel.legal and not panel.failed and panel.picture.startswith(b"\x89PNG")
