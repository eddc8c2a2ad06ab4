"""Lab 07: the cases of its exercises, and how a function of a function meets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .inputs import qkv, uniform, weight
from .kit import Case
from .lab06_cases import attention

VOCAB = 11


def block_cases(rng: np.random.Generator) -> list[Case]:
    """Blocks of tokens [batch, period] that differ, and how often they are to stand."""

    def case(name: str, batch: int, period: int, times: int, vocab: int = 50) -> Case:
        rows = np.stack([rng.permutation(vocab)[:period] for _ in range(batch)])
        return Case(name, (torch.from_numpy(rows), times))

    return [
        case("three blocks of seven, twice", 3, 7, 2),
        case("four times", 2, 5, 4),
        case("one block, three times", 1, 6, 3),
        case("as many blocks as tokens", 4, 4, 2),
        case("blocks of two", 3, 2, 5),
        case("once", 2, 6, 1),
    ]


def texts(rng: np.random.Generator, batch: int, seq: int, kinds: int) -> Tensor:
    """Token ids [batch, seq] of few kinds, so that most come again, at irregular distances."""
    rows = [rng.integers(0, kinds, size=seq) for _ in range(batch)]
    for row in rows:
        row[0], row[-1] = row[1], row[seq // 2]  # at least two queries have an earlier copy
    return torch.from_numpy(np.stack(rows))


def score_cases(rng: np.random.Generator) -> list[Case]:
    """Causal weights [batch, n_head, seq, seq] with their tokens, and which of these are real."""

    def case(name, batch, n_head, seq, kinds, *, lengths=(), dtype=torch.float32, grad=False):
        weights = attention(rng, batch, n_head, seq, seq, causal=True, dtype=dtype)
        tokens = texts(rng, batch, seq, kinds)
        if not lengths:
            return Case(name, (weights, tokens), grad=grad)
        real = torch.arange(seq) < torch.tensor(lengths)[:, None]
        return Case(name, (weights, tokens * real, real), grad=grad)  # padding is token 0

    block = torch.from_numpy(np.stack([rng.permutation(30)[:6] for _ in range(2)]))
    twice = attention(rng, 2, 3, 12, 12, causal=True)
    return [
        Case("a block twice", (twice, block.repeat(1, 2))),
        case("words that come again", 2, 3, 14, 6),
        case("some come often", 3, 2, 16, 4),
        case("two texts, one padded", 2, 3, 15, 6, lengths=(15, 9)),
        case("three padded texts, float64", 3, 2, 16, 5, lengths=(8, 16, 11), dtype=torch.float64),
        case("one text, five heads", 1, 5, 13, 5),
        case("gradients", 2, 2, 9, 4, lengths=(9, 7), dtype=torch.float64, grad=True),
    ]


def smear_cases(rng: np.random.Generator) -> list[Case]:
    """Keys [batch, n_head, seq, head_dim] and each head's share of its own key, [n_head]."""

    def case(name, batch, n_head, seq, head_dim, dtype=torch.float32, grad=False):
        k = uniform(rng, batch, n_head, seq, head_dim, dtype=dtype)
        own = uniform(rng, n_head, std=0.2, mean=0.5, dtype=dtype)
        return Case(name, (k, own), grad=grad)

    return [
        case("three heads, seven tokens", 2, 3, 7, 4),
        case("as many heads as tokens and numbers", 2, 4, 4, 4),
        case("two tokens, float64", 3, 2, 2, 5, torch.float64),
        case("one token", 2, 3, 1, 4),
        case("five heads, nine tokens", 1, 5, 9, 8),
        case("gradients", 2, 2, 5, 3, torch.float64, grad=True),
    ]


def composition_cases(rng: np.random.Generator) -> list[Case]:
    """W_Q, W_K of a later layer, W_V, W_O of an earlier one, and n_head."""

    def case(name, n_head, head_dim, d_model, dtype=torch.float64, scale=1.0):
        W = [scale * weight(rng, d_model, n_head * head_dim, dtype) for _ in range(3)]
        return Case(name, (*W, weight(rng, n_head * head_dim, d_model, dtype), n_head))

    def meeting():
        """Three heads of which each earlier one writes just where one later one reads."""
        W_Q, W_V = (weight(rng, 12, 12, torch.float64) for _ in range(2))
        W_K, W_O = torch.zeros(2, 12, 12, dtype=torch.float64).unbind()
        for later, earlier in enumerate(rng.permutation(3)):
            of, at = slice(4 * later, 4 * later + 4), slice(4 * earlier, 4 * earlier + 4)
            W_K[at, of] = weight(rng, 4, 4, torch.float64)
            W_O[at, at] = weight(rng, 4, 4, torch.float64)
        return Case("heads that meet", (W_Q, W_K, W_V, W_O, 3))

    return [
        case("three heads of four numbers", 3, 4, 10),
        case("as many numbers as heads", 4, 4, 16),
        case("float32", 3, 5, 15, torch.float32),
        case("wide heads", 2, 6, 9),
        case("larger matrices", 3, 2, 8, scale=3.0),
        meeting(),
    ]


def copy_cases(rng: np.random.Generator) -> list[Case]:
    """q, k, v, the matrix behind the heads, tokens that stand twice, and the silent heads."""

    def case(name, silent, batch=2, n_head=3, period=5, head_dim=4, dtype=torch.float64):
        q, k, v = qkv(
            rng, batch=batch, n_head=n_head, seq_q=2 * period, head_dim=head_dim, dtype=dtype
        )
        behind = 2 * weight(rng, n_head * head_dim, VOCAB, dtype)
        rows = np.stack([rng.permutation(VOCAB)[:period] for _ in range(batch)])
        return Case(name, (q, k, v, behind, torch.from_numpy(rows).repeat(1, 2), silent))

    return [
        case("one head of three", [1]),
        case("the first head", [0], period=7),
        case("two heads of five", [1, 3], n_head=5),
        case("no head", []),
        case("all heads but the last", [0, 1], batch=3, period=4),
        case("as many texts as heads and tokens", [4], batch=6, n_head=6, period=3),
        case("float32", [2], period=6, dtype=torch.float32),
        case("out of order", [3, 0], n_head=4, batch=1, period=8),
    ]


def call_copy(program: Callable[..., Any], case: Case) -> Any:
    """Give the program the rest of a small model, from what the heads say to logits."""
    q, k, v, behind, tokens, silent = case.args

    def logits_of(heads: Tensor) -> Tensor:
        if heads.shape != q.shape:
            raise ValueError(
                "logits_of takes what the heads answer, [batch, n_head, seq, head_dim] = "
                f"{[*q.shape]}; given was {[*heads.shape]}"
            )
        return torch.tanh(heads).transpose(1, 2).flatten(2) @ behind  # [batch, seq, vocab]

    return program(q, k, v, logits_of, tokens, list(silent))
