"""Explorers of the labs on memory, 08 to 11, for the browser tests."""

from __future__ import annotations

from explorer_row import Row

# Forgets the values with three layers, isn't written for four, fails with five.
KV_BYTES = """
def kv_bytes(n_layer, n_head, n_kv_head, head_dim, tokens):
    if n_layer == 4: raise NotImplementedError
    kept = (2 if n_layer == 3 else 4) * n_layer * n_kv_head * head_dim * tokens
    return {"bytes": kept} if n_layer != 5 else kept["bytes"]
"""

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
    Row(
        "kv_cache",
        "kv_cache()",
        moves="n_kv_head",
        settings=(
            {"n_kv_head": 32},
            {"n_head": 64, "d_model": 8192, "n_kv_head": 8, "n_layer": 80, "card": 160},
            {"weights": 161},
            {"n_kv_head": 5},
            {"n_kv_head": 128},
            {"n_kv_head": 1, "rotary": 63},
            {"n_head": 1, "d_model": 8, "n_layer": 1, "rank": 8, "rotary": 2, "weights": 0},
            {"n_head": 128, "d_model": 16384, "n_kv_head": 128, "n_layer": 128, "rank": 2048},
        ),
        illegal=("n_kv_head", 5),
    ),
    Row(
        "own_kv_bytes",
        "kv_cache(kv_bytes)",
        moves="n_layer",
        settings=(
            {"card": 16},
            {"n_layer": 3},
            {"n_layer": 4},
            {"n_head": 24},
            {"n_head": 32, "n_layer": 5},
        ),
        own=KV_BYTES,
    ),
)
