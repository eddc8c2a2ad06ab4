"""Lab 10: the cases of its exercises. Together they let no way of getting a softmax wrong pass.

Scores of some ten thousand come in float64: in float32 they are so coarse that two right programs
differ by more than rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .inputs import causal_pairs, qkv, uniform
from .kit import Case

INF = math.inf
WIDE = torch.float64


def row_cases(rng: np.random.Generator) -> list[Case]:
    """Scores [..., n], small and large, with and without -inf."""

    def case(name, *shape, mean=0.0, std=2.0, dtype=torch.float32, hide=(), grad=False):
        scores = uniform(rng, *shape, mean=mean, std=std, dtype=dtype)
        for index in hide:
            scores[index] = -INF
        return Case(name, (scores,), grad=grad)

    alternating = uniform(rng, 6, 9) + 150.0 * torch.tensor([1, -1] * 3)[:, None]
    return [
        case("three rows of seven scores", 2, 3, 7),
        case("float64", 2, 2, 3, 5, dtype=WIDE),
        case("as many rows as scores", 6, 6),
        case("scores from 90 to 110", 3, 33, mean=100.0, std=5.0),
        case("scores around 300", 2, 17, mean=300.0),
        case("scores around -200", 2, 17, mean=-200.0),
        case("scores around -60000", 2, 5, mean=-6e4, dtype=WIDE),
        case("scores around 800", 2, 5, mean=800.0, dtype=WIDE),
        Case("rows around 150 and around -150", (alternating,)),
        case("scores from -100 to 100", 2, 9, std=60.0),
        case("some scores are -inf", 3, 8, hide=[(0, slice(0, 5)), (1, 3), (2, slice(6, 8))]),
        case("scores of -inf beside -20000", 2, 7, mean=-2e4, dtype=WIDE, hide=[(0, [0, 1, 4])]),
        case("one score a row", 4, 1),
        case("rows of -inf", 2, 4, 5, hide=[(0, 1), (1, 0), (1, 3)]),
        case("gradients", 3, 4, dtype=WIDE, grad=True),
    ]


def rescale_cases(rng: np.random.Generator) -> list[Case]:
    """m_old, m_new, l [...] and o [..., d]."""

    def case(name, *shape, mean=0.0, dtype=torch.float32, grad=False):
        m_old = uniform(rng, *shape[:-1], mean=mean, dtype=dtype)
        m_new = m_old + uniform(rng, *shape[:-1], mean=1.5, std=0.75, dtype=dtype)
        l = uniform(rng, *shape[:-1], mean=6.0, std=1.0, dtype=dtype)
        return Case(name, (m_old, m_new, l, uniform(rng, *shape, dtype=dtype)), grad=grad)

    def fresh(case, old, both):
        m_old, m_new, l, o = case.args
        m_old[old], m_old[both], m_new[both] = -INF, -INF, -INF
        l[old], l[both], o[old], o[both] = 0.0, 0.0, 0.0, 0.0
        return case

    same = case("no new maximum in some rows", 5, 3, dtype=WIDE)
    same.args[1][1:4] = same.args[0][1:4]
    return [
        case("three rows of seven queries", 3, 7, 4),
        case("as wide as there are rows", 4, 4),
        case("float64", 2, 3, 4, 5, dtype=WIDE),
        same,
        case("maxima around -60000", 5, 2, mean=-6e4, dtype=WIDE),
        case("maxima around 300", 3, 4, mean=300.0, dtype=WIDE),
        fresh(case("some rows have seen nothing", 2, 6, 3), (0, slice(1, 4)), (1, slice(2, 5))),
        case("gradients", 4, 3, dtype=WIDE, grad=True),
    ]


def stream_cases(rng: np.random.Generator) -> list[Case]:
    """Lists of blocks [..., n_b]; call_on_stream hands them out one at a time."""

    def case(name, rows, widths, means, std=2.0, dtype=torch.float32, hide=()):
        blocks = [
            uniform(rng, *rows, n, mean=mean, std=std, dtype=dtype)
            for n, mean in zip(widths, means, strict=True)
        ]
        for block, index in hide:
            blocks[block][index] = -INF
        return Case(name, (blocks,))

    flip = case("rows around 150 and around -150", (6,), [8] * 3, [0] * 3)
    for block in flip.args[0]:
        block += 150.0 * torch.tensor([1, -1] * 3)[:, None]
    return [
        case("three blocks of seven", (2, 3), [7] * 3, [0] * 3),
        case("rising blocks", (3,), [8] * 4, [-9, -3, 3, 9]),
        case("falling blocks", (3,), [8] * 4, [9, 3, -3, -9], dtype=WIDE),
        case("up and down", (2, 4), [6] * 5, [0, 7, -5, 12, 3], dtype=WIDE),
        case("a short last block, all scores around -8", (4,), [16, 1], [-8, -8], std=0.3),
        case("blocks of one, four and nine scores", (3,), [1, 4, 9], [2, 0, -1]),
        case("one block", (2, 2), [5], [0], dtype=WIDE),
        case("scores around -200", (2,), [9] * 3, [-200] * 3),
        case("scores around -60000", (2,), [9] * 3, [-6e4] * 3, dtype=WIDE),
        case("scores from 90 to 110", (3,), [9] * 3, [95, 100, 105]),
        case("100, then -100", (3,), [9, 9], [100, -100]),
        flip,
        case("a first block of -inf, then -150", (2,), [5, 5, 4], [0, -150, -150], hide=[(0, ...)]),
        case("a block of -inf in between", (3,), [5] * 3, [0] * 3, hide=[(1, ...)], dtype=WIDE),
        case(
            "some rows are -inf in every block", (2, 3), [4, 5], [0, 3],
            hide=[(0, (0, 1)), (1, (0, 1)), (0, (1, 2)), (1, (1, 0))],
        ),
        case("a long row of equal scores", (1,), [64] * 40, [1] * 40, std=0.0),
    ]  # fmt: skip


def call_on_stream(program: Callable[..., Any], case: Case) -> Any:
    """Call the program with blocks that come one at a time and can't be asked for twice."""
    return program(block for block in case.args[0])


def stream_of(blocks: Tensor) -> Iterator[Tensor]:
    """Yield copies of blocks [n_block, ...], each made when it is asked for."""
    for block in blocks:
        yield block.clone()


def merge_cases(rng: np.random.Generator) -> list[Case]:
    """Pairs of states, and six states that are merged in three orders."""

    def state(rows, d, mean=0.0, dtype=torch.float32, nothing=None):
        m = uniform(rng, *rows, mean=mean, dtype=dtype)
        l = uniform(rng, *rows, mean=4.0, std=1.0, dtype=dtype)
        o = uniform(rng, *rows, d, std=4.0, dtype=dtype)
        if nothing is not None:
            m[nothing], l[nothing], o[nothing] = -INF, 0.0, 0.0
        return m, l, o

    def pair(name, rows, d, means=(0.0, 0.0), dtype=torch.float32, nothing=(None, None)):
        states = (state(rows, d, x, dtype, n) for x, n in zip(means, nothing, strict=True))
        return Case(name, tuple(states))

    equal = pair("equal maxima", (5,), 3, dtype=WIDE)
    equal.args[1][0].copy_(equal.args[0][0])
    alternating = pair("rows around 150 and around -150", (6,), 3)
    for m, _, _ in alternating.args:
        m += 150.0 * torch.tensor([1, -1] * 3)
    many = [state((2, 3), 4, mean, WIDE, (0, i % 3)) for i, mean in enumerate((0, 5, -3, 9, 2, 4))]
    return [
        pair("three rows of seven queries", (3, 7), 4),
        pair("the second has the larger maxima", (2, 5), 3, (0.0, 8.0)),
        pair("the first has the larger maxima", (2, 5), 3, (8.0, 0.0)),
        pair("as wide as there are rows", (4, 4), 4, dtype=WIDE),
        equal,
        alternating,
        pair("maxima around -60000", (5,), 2, (-6e4, -6e4), dtype=WIDE),
        pair("100 and -100", (3,), 2, (100.0, -100.0)),
        pair("maxima around 800", (3,), 2, (800.0, 803.0), dtype=WIDE),
        pair("one has seen nothing", (6,), 3, nothing=(slice(0, 2), slice(4, 6))),
        pair("one has seen nothing, the other -150", (3,), 2, (0.0, -150.0), nothing=(..., None)),
        pair("neither has seen anything in some rows", (5,), 3, nothing=([1, 3], [1, 3, 4])),
        Case("six states in three orders", tuple(many)),
    ]


def call_merge(program: Callable[..., Any], case: Case) -> Any:
    """Merge two states; or six from the first on, from the last on, and as a tree of pairs."""
    states = list(case.args)
    if len(states) == 2:
        return program(*states)
    forth, back = states[0], states[-1]
    for other in states[1:]:
        forth = program(forth, other)
    for other in states[-2::-1]:
        back = program(other, back)
    pairs = [program(a, b) for a, b in zip(states[::2], states[1::2], strict=True)]
    tree = program(pairs[1], program(pairs[2], pairs[0]))
    return {"from the first on": forth, "from the last on": back, "as a tree": tree}


def attention_cases(rng: np.random.Generator) -> list[Case]:
    """q, k, v, perhaps a mask, and the block."""

    def case(name, seq_q, seq_k, block, head_dim=4, v_dim=None, mask=None, grad=False, **more):
        q, k, v = qkv(rng, seq_q=seq_q, seq_k=seq_k, head_dim=head_dim, v_dim=v_dim, **more)
        return Case(name, (q, k, v, mask, block), grad=grad)

    def steep(name, of_query, of_key, block=16, head_dim=4, dtype=torch.float32, mask=None):
        return Case(name, (*steep_qkv(rng, of_query, of_key, head_dim, dtype), mask, block))

    def flat(name, level, seq_q, seq_k, **more):
        return steep(name, torch.full((seq_q,), level), torch.zeros(seq_k), **more)

    padding = (torch.arange(41) >= 20)[None]
    nobody = causal_pairs(9, 9)
    nobody[[2, 5]] = False
    rise = torch.linspace(-10, 10, 48)
    return [
        case("three heads, seven tokens", 7, 7, 3),
        case("blocks as wide as v", 5, 16, 4, v_dim=4, dtype=WIDE),
        case("three queries and seventeen keys", 3, 17, 16, head_dim=8, v_dim=5),
        case("one query", 1, 33, 8, dtype=WIDE),
        case("one block holds all keys", 6, 5, 16),
        case(
            "a causal mask, more keys than queries", 5, 12, 4, mask=causal_pairs(5, 12), dtype=WIDE
        ),
        case("a causal mask, more queries than keys", 9, 6, 4, mask=causal_pairs(9, 6)),
        case("a mask for each sequence", 7, 7, 3, mask=_lengths(7, 4, 7)),
        case("queries that may attend to nothing", 9, 9, 4, mask=nobody, dtype=WIDE),
        steep("scores that rise along the keys", torch.zeros(3), rise),
        steep("scores that fall along the keys", torch.zeros(3), -rise),
        steep("scores from 90 to 120", torch.full((3,), 105.0), 1.5 * rise, head_dim=16),
        steep("rows around 150 and around -150", torch.tensor([150.0, -150] * 3), torch.zeros(33)),
        flat("scores around 300", 300.0, 3, 33),
        flat("scores around -200", -200.0, 3, 33),
        flat("scores around -60000", -6e4, 3, 33, dtype=WIDE),
        flat("seventeen scores around -8", -8.0, 2, 17),
        flat("padding on the left, then -20000", -2e4, 3, 41, dtype=WIDE, mask=padding),
        flat("padding on the left, then -150", -150.0, 3, 41, mask=padding),
        flat("a causal mask, scores around -9", -9.0, 20, 20, block=8, mask=causal_pairs(20, 20)),
        Case(
            "the last key 150 above the others, a causal mask",
            (
                *steep_qkv(rng, torch.zeros(12), last_above(12), 4, torch.float32),
                causal_pairs(12, 12),
                5,
            ),
        ),
        case("gradients", 3, 7, 3, dtype=WIDE, grad=True, batch=1, n_head=2),
    ]


def steep_qkv(
    rng: np.random.Generator, of_query: Tensor, of_key: Tensor, head_dim: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v of one head whose scaled score is about of_query[i] + of_key[j].

    All numbers are multiples of 1/16 and sqrt(head_dim) is a power of two, so that the scores
    come out equal in whatever order they are added up and scaled.
    """
    root = math.isqrt(head_dim)
    q = torch.zeros(1, 1, len(of_query), head_dim, dtype=dtype)
    k = torch.zeros(1, 1, len(of_key), head_dim, dtype=dtype)
    q[..., 0], k[..., 0] = _sixteenths(of_query), float(root)
    q[..., 1], k[..., 1] = 1.0, _sixteenths(of_key) * root
    q[..., 2] = _sixteenths(uniform(rng, len(of_query), std=0.8))
    k[..., 2] = _sixteenths(uniform(rng, len(of_key), std=0.8)) * root
    v = uniform(rng, 1, 1, len(of_key), 3, mean=1.0, std=1.0, dtype=dtype)
    return q, k, v


def last_above(n: int, by: float = 150.0) -> Tensor:
    """What n keys add to a score: 0, and the last one so much that each exp beside it is 0."""
    return torch.cat([torch.zeros(n - 1), torch.tensor([by])])


def _sixteenths(values: Tensor) -> Tensor:
    return (values * 16).round() / 16


def _lengths(seq: int, *lengths: int) -> Tensor:
    """A padding mask [batch, 1, 1, seq]: True for the first keys of each sequence."""
    return (torch.arange(seq) < torch.tensor(lengths)[:, None])[:, None, None]
