"""Every explorer that computes in the browser: how it is called, moved, and made illegal."""

from __future__ import annotations

from explorer_row import Row
from explorers_of_memory import MEMORY

WRONG = "one reshape (wrong)"

# Right for two heads, wrong for four, of a wrong shape for eight, not written for sixteen.
SPLIT = """
def split(x, n_head):
    if n_head == 16: raise NotImplementedError
    if n_head == 8: return x
    parts = x.reshape(1, x.shape[1], n_head, -1).transpose(1, 2)
    return parts if n_head == 2 else x.reshape(parts.shape)
"""

# Even weights with four heads, not written for two, of a wrong shape for three, else torch's own.
ATTEND = """
from torch.nn.functional import scaled_dot_product_attention as sdpa
def attend(q, k, v, mask=None):
    if q.shape[-1] == 384: raise NotImplementedError
    if q.shape[-1] == 256: return q
    return v.mean(-2, keepdim=True) if q.shape[-1] == 192 else sdpa(q, k, v, attn_mask=mask)
"""

# Right for four heads, of a wrong shape for two, not written for three, else the numbers in a row.
STACK = """
def stack(W):
    n_head, d_model, head_dim = W.shape
    if n_head == 3: raise NotImplementedError
    if n_head == 2: return W.flatten(0, 1)
    return W.transpose(0, 1).flatten(1) if n_head == 4 else W.reshape(d_model, -1)
"""

# The whole for each head; of a wrong shape for two heads, not written for three.
CONTRIBUTIONS = """
def contributions(heads, W_O):
    n_head = heads.shape[1]
    if n_head == 3: raise NotImplementedError
    whole = heads.transpose(1, 2).flatten(2) @ W_O
    return whole if n_head == 2 else whole.expand(1, n_head, 1, W_O.shape[1])
"""

# Forgets a matrix, isn't written for three heads, fails with two.
PARAMS = """
def params(d_model, n_head, n_kv_head, head_dim):
    if n_head == 3: raise NotImplementedError
    return 3 * d_model * d_model if n_head > 2 else [][n_head]
"""

EXPLORERS = (
    Row(
        "tour",
        "tour()",
        moves="d_model",
        settings=({"n_head": 1}, {"n_head": 32, "d_model": 1536}, {"n_head": 9, "d_model": 8}),
    ),
    Row(
        "head_split",
        "head_split(n_head=12, d_model=768)",
        moves="seq",
        settings=(
            {"n_head": 12, "d_model": 768, "seq": 10, "way": WRONG},
            {"n_head": 1, "d_model": 96, "seq": 3, "way": WRONG},
            {"n_head": 4, "d_model": 1536, "seq": 1, "way": WRONG},
            {"n_head": 32, "d_model": 32, "seq": 16, "way": "cut the width, then swap the axes"},
            {"n_head": 5, "d_model": 8},
            {"n_head": 31, "d_model": 1531},
        ),
    ),
    Row(
        "own_split",
        "head_split(n_head=4, d_model=32, seq=6, split=split)",
        moves="seq",
        settings=(
            {"seq": 5},
            {"n_head": 8, "d_model": 64},
            {"n_head": 3},
            {"n_head": 2, "way": WRONG},
            {"n_head": 16},
            {"n_head": 32, "d_model": 1536, "seq": 16, "way": "your split_heads"},
        ),
        own=SPLIT,
    ),
    Row(
        "attention_row",
        "attention_row()",
        moves="query",
        settings=(
            {"n_head": 1, "d_model": 1536, "scale": "none"},
            {"n_head": 12, "d_model": 96, "scale": "1/√d_model", "causal": True, "query": 2},
            {"query": 0, "pull": 6.0, "key": 0},
            {"query": 5, "pull": -3.5, "key": 2, "causal": False, "scale": "1/√head_dim"},
            {"n_head": 7},
        ),
    ),
    Row(
        "own_row",
        "attention_row(attend)",
        moves="query",
        settings=({"n_head": 4}, {"query": 1}, {"n_head": 2}, {"n_head": 3}, {"n_head": 6}),
        own=ATTEND,
    ),
    Row(
        "fused_slices",
        "fused_slices()",
        moves="head",
        settings=(
            {"matrix": "W_QKV, stacked"},
            {"matrix": "W_QKV, interleaved", "head": 11},
            {"n_head": 1, "head": 0, "d_model": 8},
            {"n_head": 3, "head": 3, "d_model": 96},
            {"n_head": 32, "head": 31, "d_model": 1536, "matrix": "W_QKV, interleaved"},
        ),
    ),
    Row(
        "own_stack",
        "fused_slices(stack, d_model=96)",
        moves="head",
        settings=(
            {"n_head": 4, "head": 0},
            {"n_head": 2},
            {"n_head": 3, "head": 1},
            {"n_head": 3, "matrix": "W_QKV, stacked"},
            {"n_head": 6, "matrix": "W_Q", "head": 5},
        ),
        own=STACK,
    ),
    Row(
        "ledger",
        "ledger()",
        moves="n_layer",
        settings=(
            {"n_head": 8},
            {"n_kv_head": 2},
            {"n_kv_head": 3},
            {"cached": "a latent (MLA)", "rank": 96, "rotary": 32},
            {"n_head": 128, "d_model": 16384, "n_layer": 128, "context": 131072, "vocab": 262144},
            {"cached": "keys and values", "n_kv_head": 1, "tied": True},
            {"n_head": 1, "n_kv_head": 1, "d_model": 8, "n_layer": 1, "context": 1, "vocab": 256},
        ),
    ),
    Row(
        "own_ledger",
        "ledger(params)",
        moves="n_layer",
        settings=({"n_head": 6}, {"n_head": 3}, {"n_head": 2}, {"cached": "a latent (MLA)"}),
        own=PARAMS,
    ),
    *MEMORY,
    Row(
        "w_o_mixing",
        "w_o_mixing()",
        moves="d_model",
        keys=("PageUp", "PageDown"),
        settings=(
            {"merge": "without W_O"},
            {"off": 2},
            {"merge": "with W_O", "off": 3},
            {"n_head": 3, "off": 3},
            {"n_head": 16, "d_model": 128, "off": "none"},
            {"n_head": 1, "d_model": 8, "off": 0},
        ),
        illegal=("n_head", 5),
    ),
    Row(
        "own_mixing",
        "w_o_mixing(contributions)",
        moves="d_model",
        settings=({"off": 1}, {"n_head": 2}, {"n_head": 3}, {"n_head": 8, "merge": "without W_O"}),
        own=CONTRIBUTIONS,
    ),
    Row(
        "training_scrub",
        "training_scrub()",
        moves="step",
        settings=(
            {"step": 0},
            {"step": 149, "role": "space", "seed": 1},
            {"role": "same byte", "step": 50, "seed": 2},
            {"role": "first", "step": 600, "seed": 0},
        ),
        illegal=None,
        keys=("ArrowLeft", "ArrowRight"),
    ),
    Row(
        "pipeline",
        "pipeline()",
        moves="new",
        settings=(
            {"new": 1, "past": 1023},
            {"n_head": 12, "d_model": 768, "n_kv_head": 12},
            {"n_kv_head": 5},
            {"n_head": 32, "d_model": 2048, "n_kv_head": 1, "new": 1024, "past": 8191},
            {"n_head": 1, "d_model": 8, "new": 1, "past": 0},
            {"n_kv_head": 30},
        ),
        illegal=("n_kv_head", 5),
    ),
    Row(
        "head_atlas",
        "head_atlas()",
        moves="layer",
        settings=(
            {"role": "next", "layer": 5, "head": 11, "place": 0},
            {"model": "smollm2", "role": "same word", "layer": 18, "head": 6, "place": 15},
            {"role": "next"},
            {"role": "first", "it": "is silent"},
            {"layer": 29, "head": 9},
            {"model": "minilm", "layer": 5, "it": "is silent", "role": "punctuation"},
        ),
        illegal=None,
    ),
    Row(
        "induction",
        "induction(place=17)",
        moves="place",
        keys=("ArrowLeft", "ArrowRight"),
        settings=(
            {"n_head": 32, "d_model": 32, "place": 39},
            {
                "text": "One, two; one: TWO. ÉTÉ été _x1 ½ and 张三是医生。张三",
                "n_head": 3,
                "d_model": 24,
            },
            {"text": "张三是医生。李四是老师。张三是", "n_head": 12, "d_model": 768, "place": 14},
            {"text": "alone"},
            {"head": "SmolLM2's best", "text": "A tale of two tales of two"},
            {"text": "  "},
            {"head": "built from codes", "text": "a b c " * 20, "n_head": 1, "d_model": 1536},
        ),
    ),
)
