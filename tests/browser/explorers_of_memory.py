"""Explorers of the labs on memory, 08 to 11, for the browser tests."""

from __future__ import annotations

from explorer_row import Row

MEMORY = (
    Row(
        "flash_tiles",
        "flash_tiles()",
        moves="step",
        settings=(
            {"mask": "causal"},
            {"step": 0},
            {"step": 65536, "tokens": 4096, "block_q": 16, "block_k": 512},
            {"n_head": 1, "d_model": 2048, "tokens": 64, "block_q": 48, "block_k": 80},
            {"n_head": 32, "d_model": 32, "mask": "no mask", "tokens": 960, "step": 7},
        ),
    ),
)
