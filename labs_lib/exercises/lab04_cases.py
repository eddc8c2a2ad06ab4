"""Lab 04: the cases, and how a configuration that must be refused meets a program."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from .kit import Case, call_plainly
from .refusals import type_name

_HEADS = ("n_head", "n_kv_head", "head_dim")
_REFUSALS = (ValueError, TypeError, LookupError, ArithmeticError, AssertionError, AttributeError)


def attention_cases(rng: np.random.Generator) -> list[Case]:
    """Published layers, and drawn ones whose five sizes all differ."""
    d_model, n_kv_head, group, head_dim = _distinct(rng, 4)
    n_head = n_kv_head * group
    return [
        Case("ANDREA-120M", (768, 12, 12, 64)),
        Case("one head of 768", (768, 1, 1, 768)),
        Case("Llama-2-70B: shared keys and values", (8192, 64, 8, 128)),
        Case("Qwen3-0.6B: heads wider than the token", (1024, 16, 8, 128)),
        Case("PaLM-540B: heads narrower than the token", (18432, 48, 1, 256)),
        Case("ANDREA-120M with biases", (768, 12, 12, 64, True)),
        Case("other sizes", (d_model, n_head, n_kv_head, head_dim)),
        Case("other sizes with biases", (d_model, n_head, n_kv_head, head_dim, True)),
    ]


def model_cases(rng: np.random.Generator) -> list[Case]:
    """ANDREA, a tied and a gated model, and drawn sizes that all differ."""
    n_layer, width, n_position, extra = _distinct(rng, 4)
    d_model, vocab = 8 * width, 100 * int(rng.integers(20, 90)) + 7
    sizes = (n_layer, d_model, 3 * d_model + extra, vocab)
    return [
        Case("ANDREA-120M", (12, 768, 3072, 8449, 1024, False)),
        Case("ANDREA-12M", (6, 384, 1536, 2305, 1024, False)),
        Case("as GPT-2 small, tied", (12, 768, 3072, 50257, 1024)),
        Case("as Llama-2-7B, gated", (32, 4096, 11008, 32000), {"tied": False, "gated": True}),
        Case("other sizes", sizes),
        Case("other sizes with places", (*sizes, n_position)),
        Case("other sizes, gated and untied", (*sizes, n_position, False, True)),
    ]


def share_cases(rng: np.random.Generator) -> list[Case]:
    """Models from a small table to one that outweighs everything else."""
    n_layer, width, n_position, extra = _distinct(rng, 4)
    d_model, vocab = 8 * width, 100 * int(rng.integers(20, 90)) + 7
    sizes = (n_layer, d_model, 3 * d_model + extra, vocab)
    return [
        Case("ANDREA-120M", (12, 768, 3072, 8449, 1024, False)),
        Case("as GPT-2 small, tied", (12, 768, 3072, 50257, 1024)),
        Case("as the layers of GPT-3 175B", (96, 12288, 49152, 50257, 2048)),
        Case("a wide table and one layer", (1, 64, 256, 256000)),
        Case("other sizes", sizes),
        Case("other sizes, untied with places", (*sizes, n_position, False)),
    ]


def call_share(program: Callable[..., Any], case: Case) -> Any:
    """The three shares; of counts, whichever, that they are no shares."""
    found = call_plainly(program, case)
    three = isinstance(found, (tuple, list)) and len(found) == 3
    if three and all(type_name(n) == "int" and n > 1 for n in found):
        return {"not as asked": "three whole numbers came back; a share is at most 1"}
    return found


def flops_cases(rng: np.random.Generator) -> list[Case]:
    """As many queries as keys, fewer and more; heads as wide as the token together, or not."""
    batch, seq_q, n_head, head_dim, d_model = _distinct(rng, 5)
    seq_k = seq_q + int(rng.integers(20, 30))
    wide, own = (n_head * head_dim, n_head, head_dim), (d_model, n_head, head_dim)
    return [
        Case("ANDREA-120M, 1024 tokens", (1, 1024, 1024, 768, 12, 64)),
        Case("one head of 768, 1024 tokens", (1, 1024, 1024, 768, 1, 768)),
        Case("seven tokens, three heads", (2, 7, 7, 12, 3, 4)),
        Case("fewer queries than keys", (batch, seq_q, seq_k, *wide)),
        Case("more queries than keys", (batch, seq_k, seq_q, *wide)),
        Case("one query", (batch, 1, seq_k, *wide)),
        Case("heads of another width", (batch, seq_q, seq_k, *own)),
    ]


def softmax_cases(rng: np.random.Generator) -> list[Case]:
    """One head and many of the same width together; fewer and more queries than keys."""
    batch, seq_q, n_head, head_dim = _distinct(rng, 4)
    seq_k = seq_q + int(rng.integers(20, 30))
    return [
        Case("one head of 768, 1024 tokens", (1, 1024, 1024, 1, 768)),
        Case("twelve heads of 64, 1024 tokens", (1, 1024, 1024, 12, 64)),
        Case("seven tokens, three heads", (2, 7, 7, 3, 4)),
        Case("fewer queries than keys", (batch, seq_q, seq_k, n_head, head_dim)),
        Case("more queries than keys", (batch, seq_k, seq_q, n_head, head_dim)),
        Case("one query", (batch, 1, seq_k, n_head, head_dim)),
    ]


def config_cases(rng: np.random.Generator) -> list[Case]:
    """Published configurations of both families, then configurations to be refused."""
    kv, group, width = _distinct(rng, 3)
    n_head = kv * group
    remainder = n_head * width + int(rng.integers(1, n_head))
    return [
        *_published_cases(),
        Case("other sizes", (_modern(n_head * width, n_head, kv),)),
        Case("other sizes, head_dim given", (_modern(remainder, n_head, kv, width),)),
        Case("refuse: a remainder", (_modern(remainder, n_head, kv),)),
        Case("refuse: a remainder in the other family", ({"n_embd": 770, "n_head": 12},)),
        Case("refuse: key/value heads that don't divide", (_modern(4096, 32, 12),)),
        Case("refuse: more key/value heads than heads", (_modern(4096, 8, 32),)),
        Case("refuse: no key/value heads", (_modern(4096, 32, 0),)),
        Case("refuse: no heads", ({"n_embd": 768, "n_head": 0},)),
        Case("refuse: a negative number of heads", ({"n_embd": 768, "n_head": -12},)),
        Case("refuse: heads as a float", ({"n_embd": 768, "n_head": 12.0},)),
        Case("refuse: heads as text", ({"n_embd": 768, "n_head": "12"},)),
        Case("refuse: a thousand billion heads", ({"n_embd": 768, "n_head": 10**12},)),
    ]


def call_read_config(program: Callable[..., Any], case: Case) -> Any:
    """The three sizes by name and their types; for a configuration to be refused, how it was."""
    if case.name.startswith("refuse"):
        return _refusal(program, case)
    try:
        sizes = program(*case.args)
    except _REFUSALS as error:
        refused = {"it was": f"refused with {type(error).__name__}"}
        return refused | dict.fromkeys((*_HEADS, "types"), "none")
    if not isinstance(sizes, (tuple, list)) or len(sizes) != 3:
        many = f" of length {len(sizes)}" if isinstance(sizes, (tuple, list)) else ""
        answered = {"it was": f"answered with {type_name(sizes)}{many}, not with three ints"}
        return answered | dict.fromkeys((*_HEADS, "types"), "none")
    types = ", ".join(map(type_name, sizes))
    return {"it was": "read", **dict(zip(_HEADS, sizes, strict=True)), "types": types}


def _refusal(program: Callable[..., Any], case: Case) -> dict[str, Any]:
    try:
        value = program(*case.args)
    except (ValueError, TypeError):  # a wrong type may be called one
        return {"refused with": "ValueError", "made instead": "nothing"}
    except _REFUSALS as error:
        return {"refused with": type(error).__name__, "made instead": "nothing"}
    return {"refused with": "no error", "made instead": _made(value)}


def _made(value: Any) -> str:
    if isinstance(value, (tuple, list)) and all(isinstance(n, numbers.Real) for n in value):
        return ", ".join(f"{n:.6g}" for n in value)
    return type_name(value)


def _published_cases() -> list[Case]:
    gemma = _modern(3072, 16, 16, 256) | {"vocab_size": 256000}
    qwen = _modern(1024, 16, 8, 128) | {"num_hidden_layers": 28}
    return [
        Case("GPT-2 small", ({"n_embd": 768, "n_head": 12, "n_layer": 12},)),
        Case("Llama-2-7B", (_modern(4096, 32, 32),)),
        Case("Llama-3-8B: shared keys and values", (_modern(4096, 32, 8),)),
        Case("Gemma-2B: one key/value head", (_modern(2048, 8, 1, 256),)),
        Case("Gemma-7B: heads wider than the token", (gemma,)),
        Case("Qwen3-0.6B: heads wider than the token", (qwen,)),
        Case(
            "GPT-3 13B as its paper prints it", ({"n_embd": 5140, "n_head": 40, "head_dim": 128},)
        ),
        Case("None for what is not set", (_modern(4096, 32, None, None),)),
        Case("no word of key/value heads", ({"hidden_size": 768, "num_attention_heads": 12},)),
    ]


def _modern(width: int, n_head: int, *more: int | None) -> dict[str, Any]:
    """A configuration with the keys of newer models; `more` is n_kv_head and perhaps head_dim."""
    keys = ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim")
    return dict(zip(keys, (width, n_head, *more), strict=False))


def _distinct(rng: np.random.Generator, count: int) -> tuple[int, ...]:
    """Different primes of 3 to 19, so that no size can be taken for another or for a product."""
    drawn = rng.permutation(np.array([3, 5, 7, 11, 13, 17, 19]))[:count]
    return tuple(int(n) for n in drawn)
