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

# Right for three heads, without a correction for two, not written for four, a number of six.
MERGE = """
import torch
def merge(a, b):
    n_head = len(a[0])
    if n_head == 4: raise NotImplementedError
    if n_head == 6: return a[0]
    if n_head == 2: return torch.maximum(a[0], b[0]), a[1] + b[1], a[2] + b[2]
    m = torch.maximum(a[0], b[0])
    f, g = (a[0] - m).exp(), (b[0] - m).exp()
    return m, a[1] * f + b[1] * g, a[2] * f[:, None] + b[2] * g[:, None]
"""

# One recorded trace for a half of the heads, another for the other; none for three.
TRACE_OF = """
from labs_lib.cuda import recorded
def trace_of(n_head, d_model):
    if n_head == 3: raise RuntimeError("three heads are not traced")
    return recorded.trace("scores_tiled" if n_head < 8 else "scores_naive")
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
    Row(
        "play_row",
        "play_row()",
        moves="step",
        module="online_softmax",
        settings=(
            {"step": 0},
            {"step": 3},
            {"rescale": "only l"},
            {"rescale": "neither", "block": 1, "step": 16, "scores": "rising"},
            {"rescale": "upside down", "head": 3, "block": 3, "scores": "falling"},
            {"rescale": "only o", "n_head": 8, "d_model": 64, "head": 7, "block": 5},
            {"n_head": 1, "d_model": 64, "rescale": "l and o", "block": 16},
        ),
    ),
    Row(
        "own_merge",
        "play_row(merge, n_head=3, step=3)",
        moves="step",
        module="online_softmax",
        settings=(
            {"step": 4, "head": 2},
            {"rescale": "only l"},
            {"rescale": "your merge_softmax_states", "n_head": 2, "block": 3},
            {"n_head": 4},
            {"n_head": 6},
            {"n_head": 8, "scores": "rising", "step": 16},
        ),
        own=MERGE,
    ),
    Row(
        "grid_fill",
        "grid_fill()",
        moves="batch",
        settings=(
            {"grid": 128},
            {"n_head": 1, "gpu": 108, "grid": 64, "tokens": 1},
            {"n_head": 128, "d_model": 16384, "batch": 64, "tokens": 16384, "gpu": 132},
            {"n_head": 8, "d_model": 576, "batch": 16, "tokens": 1024, "grid": 0, "gpu": 128},
            {"n_head": 8, "d_model": 8, "batch": 64, "grid": 0},
        ),
    ),
    Row(
        "kernel_view",
        "kernel_view(recorded.trace('transpose_tiled'))",
        moves="step",
        settings=(
            {"step": 9},
            {"warp": 7, "step": 16},
        ),
        illegal=None,
        start="from labs_lib.cuda import recorded",
    ),
    Row(
        "own_trace",
        "kernel_view(trace_of, n_head=12)",
        moves="step",
        settings=({"step": 129}, {"n_head": 6, "warp": 1}, {"n_head": 7}, {"n_head": 3, "step": 2}),
        own=TRACE_OF,
    ),
)
