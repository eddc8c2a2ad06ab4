"""How far the traffic that FlashAttention's paper printed follows from its own algorithms."""

import pytest

from labs_lib.arithmetic.traffic import (
    first_flash_traffic,
    flash_traffic,
    naive_backward_traffic,
    naive_traffic,
)

HEADS = 64 * 16  # batch and heads of Dao et al. 2022, figure 2: 1,024 tokens, head_dim 64, fp16
SHAPE = (1024, 1024, 64)


@pytest.mark.parametrize(("block_k", "read_off"), [(64, 6.9), (128, 3.6), (256, 1.9), (512, 1.1)])
def test_the_forward_pass_of_figure_2_follows_from_algorithm_1(block_k, read_off):
    """The axis of the figure can be read to a tenth of a GB."""
    assert HEADS * first_flash_traffic(*SHAPE, block_k) / 1e9 == pytest.approx(read_off, abs=0.06)


def test_plain_attention_moves_less_by_its_algorithm_than_the_paper_measured():
    """40.3 GB were measured; passes for a mask and dropout, 2.15 GB each, come on top."""
    forward = HEADS * naive_traffic(*SHAPE) / 1e9
    backward = HEADS * naive_backward_traffic(*SHAPE) / 1e9
    assert forward == pytest.approx(9.13, abs=0.01) and backward == pytest.approx(16.1, abs=0.05)
    a_pass = HEADS * 1024 * 1024 * 2 / 1e9
    assert a_pass == pytest.approx(2.15, abs=0.01)
    assert (40.3 - forward - backward) / a_pass == pytest.approx(7, abs=0.1)


def test_keeping_queries_moves_less_than_keeping_keys():
    """Why FlashAttention-2 turned the loops: the output is written once, not once a tile."""
    for tile in (64, 128, 256):
        assert flash_traffic(*SHAPE, tile) < first_flash_traffic(*SHAPE, tile)


def test_a_tile_without_a_key_is_refused():
    with pytest.raises(ValueError, match="block_k=0"):
        first_flash_traffic(*SHAPE, 0)
