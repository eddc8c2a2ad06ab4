"""Lab 11: what is asked in torch. Its kernel is asked elsewhere."""

from __future__ import annotations

from . import lab11_cases as cases
from . import lab11_rules as rules
from .digits import call_at_full_width
from .kit import TOLERANCES, Exercise, Rule, Tolerance
from .refusals import call_or_refused

# Scores of some hundred carry a rounding error of their own: float32 has 7 digits in all.
WITHIN_ROUNDING = {**TOLERANCES, "float32": Tolerance(1e-4, 1e-4)}

MAKES_ROWS = (
    "The numbers are right, but a tensor with a whole row of scores, or more, existed at one time. "
    "Cut both the queries and the keys, and hold the scores of one tile."
)
SKIPS_NOTHING = (
    "The numbers are right, but tiles were multiplied in which no query may see a key. Up to which "
    "key does the last query of a tile see? No later tile is needed."
)
COPIES_HEADS = (
    "The numbers are right, but k or v was copied for every query head. Query heads that share a "
    "key/value head can be rows of one product."
)

ATTENTION = (
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.nn.MultiheadAttention",
    "torch.nn.attention.flex_attention",
)

FUNCTIONS = (
    Exercise(
        name="lab11.flash_forward",
        title="attention tile by tile: no row of scores is ever whole",
        stub='''
def flash_forward(q, k, v, block_q=16, block_k=16):
    """Attention's output [batch, n_head, seq_q, d_v] and log-sum-exp [batch, n_head, seq_q].

    q is [batch, n_head, seq_q, head_dim], k [batch, n_head, seq_k, head_dim], v
    [batch, n_head, seq_k, d_v]. At any time the scores of at most block_q queries and block_k keys
    exist. Inputs of 16 bits are multiplied and added up in float32: the output has their dtype,
    lse is float32. Other inputs keep their dtype. Without any key: zeros, and lse -inf.

    q = [[[[0.], [0.]]]], k = [[[[1.], [2.]]]], v = [[[[2.], [4.]]]], tiles of 1 and 1
    ->  [[[[3.], [3.]]]], [[[0.6931, 0.6931]]]
    """
    raise NotImplementedError
''',
        cases=cases.forward_cases,
        call=call_at_full_width,
        tolerances=WITHIN_ROUNDING,
        rules=(
            Rule(
                name="one_tile_at_a_time",
                text="no row of scores was ever whole",
                kept=rules.one_tile_at_a_time,
                broken=MAKES_ROWS,
                by_torch=True,
            ),
        ),
        axes=("batch", "n_head", "seq_q", "d_v"),
        forbidden=ATTENTION,
        hints=(
            "Two loops. The outer one takes block_q queries, and for them m, l and o begin anew;\n"
            "the inner one is lab 10's pass over the keys.",
            "What a tile of queries gives is written into its rows of the result, divided, when\n"
            "the inner loop is done. m, l and o of the other tiles never exist beside it.",
            "16 bits: widen a tile when it is read (float64 stays as it is), and .to(q.dtype)\n"
            "when the output is written. No keys: the inner loop doesn't run, and l is 0. Put a 1\n"
            "in its place before the division.",
        ),
        minutes=20,
    ),
    Exercise(
        name="lab11.flash_causal_skip",
        title="the same under a causal mask, and hidden tiles are never computed",
        stub='''
def flash_causal_skip(q, k, v, block_q=16, block_k=16):
    """Causal attention, tile by tile: output and log-sum-exp as in flash_forward.

    Query i may see key j if j <= i + seq_k - seq_q: the last query is the newest token. A tile
    without a visible pair is not multiplied. A query that sees nothing gets zeros and -inf.

    Two queries of zeros, three keys, values 3, 5 and 10  ->  [[[[4.], [6.]]]]
    """
    raise NotImplementedError
''',
        cases=cases.causal_cases,
        tolerances=WITHIN_ROUNDING,
        rules=(
            Rule(
                name="hidden_tiles_skipped",
                text="tiles without a visible pair were not multiplied",
                kept=rules.hidden_tiles_skipped,
                broken=SKIPS_NOTHING,
                by_torch=True,
            ),
        ),
        axes=("batch", "n_head", "seq_q", "d_v"),
        forbidden=ATTENTION,
        hints=(
            "Of three kinds of tiles, one is left out, one needs no mask, and one is cut by the\n"
            "limit. What tells them apart is the first and last query and key.",
            "The last query of a tile sees the most: up to key i + seq_k - seq_q. The inner loop\n"
            "can end there.",
            "In a tile that is cut, compare a column of query numbers with a row of key numbers,\n"
            "torch.arange(...)[:, None] and torch.arange(...), both counted from 0 in the whole\n"
            "sequence and not in the tile.",
        ),
        minutes=12,
    ),
    Exercise(
        name="lab11.flash_gqa",
        title="query heads that share a key/value head read it in place",
        stub='''
def flash_gqa(q, k, v, block_q=16, block_k=16):
    """Attention with shared heads, tile by tile: output and log-sum-exp as in flash_forward.

    q is [batch, n_head, seq_q, head_dim], k and v have n_kv_head heads. Query head h uses key/value
    head h // (n_head // n_kv_head). k and v are never copied for the heads that share them.
    ValueError if n_kv_head does not divide n_head.
    """
    raise NotImplementedError
''',
        cases=cases.gqa_cases,
        call=call_or_refused,
        tolerances=WITHIN_ROUNDING,
        rules=(
            Rule(
                name="shared_heads_not_copied",
                text="no copies of k and v for each query head",
                kept=rules.shared_heads_not_copied,
                broken=COPIES_HEADS,
                by_torch=True,
            ),
        ),
        axes=("batch", "n_head", "seq_q", "d_v"),
        forbidden=ATTENTION,
        hints=(
            "Neighbouring query heads share. As an axis of its own their group is\n"
            "[batch, n_kv_head, group, seq_q, head_dim].",
            "All queries of a group meet the same keys. So they can be rows of one product:\n"
            "[..., n_kv_head, group * rows, head_dim] with [..., n_kv_head, columns, head_dim].",
            "unflatten(1, (n_kv_head, -1)) makes the group an axis, flatten joins it with the\n"
            "rows of a tile; afterwards the way back. Or loop over the n_kv_head heads.",
        ),
        minutes=12,
    ),
    Exercise(
        name="lab11.flash_backward",
        title="gradients without stored weights: each tile is made again from lse",
        stub='''
def flash_backward(q, k, v, out, lse, d_out, block_q=16, block_k=16):
    """The gradients (d_q, d_k, d_v), shaped like q, k and v, tile by tile and without autograd.

    out and lse are what the forward pass gave, d_out [batch, n_head, seq_q, d_v] is the gradient
    of out. A tile's weights are made again from q, k and lse; at any time those of at most
    block_q queries and block_k keys exist.

    With one key its weight is always 1: d_q and d_k are 0, d_v is the sum of d_out over queries.
    """
    raise NotImplementedError
''',
        cases=cases.backward_cases,
        tolerances=WITHIN_ROUNDING,
        rules=(
            Rule(
                name="gradient_by_tiles",
                text="no row of weights was ever whole",
                kept=rules.gradient_by_tiles,
                broken=MAKES_ROWS,
                by_torch=True,
            ),
        ),
        axes=("batch", "n_head", "seq", "head_dim"),
        forbidden=(*ATTENTION, "torch.autograd.grad", "torch.Tensor.backward"),
        hints=(
            "Name the steps: S = scale q kᵀ, P = exp(S - lse), O = P v. Go back from the last:\n"
            "d_v is Pᵀ d_out, and dP is d_out vᵀ.",
            "The softmax ties a row together: dS = P * (dP - D), with one number D a query, the\n"
            "sum of P * dP over all keys. All keys? D can be had without them: it is also the sum\n"
            "of d_out * out.",
            "d_q is scale * dS k, d_k is scale * dSᵀ q. d_k and d_v of a tile of keys are sums\n"
            "over the tiles of queries, and d_q over the tiles of keys: add, don't overwrite.",
        ),
        minutes=25,
    ),
    Exercise(
        name="lab11.io_bytes",
        title="bytes between memory and chip: whole matrices against tiles",
        stub='''
def io_bytes(n_q, n_k, head_dim, block_q, itemsize=2):
    """Bytes that cross in one head's forward pass: {"naive": bytes, "flash": bytes}.

    naive: three steps, scores, softmax, weights times v. Each reads what it needs from memory
    and writes what it makes. flash: for each tile of block_q queries, q is read once and all of k
    and v once; the output is written, and for each query a lse of 4 bytes. An element of q, k, v,
    the scores, the weights or the output takes itemsize bytes.

    io_bytes(2, 3, 1, 2, 2)  ->  {"naive": 68, "flash": 28}
    """
    raise NotImplementedError
''',
        cases=cases.io_cases,
        hints=(
            "naive, step by step: q and k in, scores out; scores in, weights out; weights and v\n"
            "in, output out. Which of these are n_q * n_k?",
            "flash: how many tiles of queries are there, if the last may be short? Each of them\n"
            "reads k and v from the first key to the last.",
            "The scores and weights of flash never leave the chip: no n_q * n_k is left. lse is\n"
            "float32, whatever itemsize is.",
        ),
        minutes=8,
    ),
)  # fmt: skip
