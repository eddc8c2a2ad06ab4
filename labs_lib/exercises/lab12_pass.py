"""Lab 12: cases of a whole model's pass and of writing on, on small models made for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from .inputs import rule_generator, uniform, weight
from .kit import Case, Measured

Caches = Any


@dataclass
class Norm:
    """x over its root mean square, times a gain [d_model]."""

    gain: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.gain.shape, self.gain)


@dataclass
class Mlp:
    """Two layers: [d_model, d_ff] and back."""

    W_up: Tensor
    W_down: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return torch.tanh(x @ self.W_up) @ self.W_down


@dataclass
class Layer:
    """What a layer has beside its attention."""

    norm_attention: Norm
    norm_mlp: Norm
    mlp: Mlp


@dataclass
class Model:
    """A small decoder without attention; embed is [vocab, d_model]."""

    embed: Tensor
    layers: list[Layer]
    norm: Norm


@dataclass
class Averages:
    """Stands for a layer's attention: a mean over all tokens so far, times a matrix of the layer.

    A cache is the pair (sum of the tokens, their number).
    """

    W: Tensor  # [n_layer, d_model, d_model]

    def __call__(self, x: Tensor, number: int, cache: Any = None) -> tuple[Tensor, Any]:
        total, count = (torch.zeros_like(x[:, 0]), 0) if cache is None else cache
        sums = total[:, None] + x.cumsum(dim=1)  # [batch, seq, d_model]
        counts = torch.arange(count + 1, count + x.shape[1] + 1, dtype=x.dtype)
        means = sums / counts[:, None]
        return means @ self.W[number], (sums[:, -1], count + x.shape[1])


def swap_cases(rng: np.random.Generator) -> list[Case]:
    """A model, what stands for its attention, and a text cut into steps."""

    def case(name, split, *, n_layer=3, d_model=6, vocab=9, batch=2, dtype=torch.float64):
        def norm():
            return Norm(uniform(rng, d_model, std=0.3, mean=1.0, dtype=dtype))

        layers = [
            Layer(
                norm(),
                norm(),
                Mlp(weight(rng, d_model, 8, dtype), 2 * weight(rng, 8, d_model, dtype)),
            )
            for _ in range(n_layer)
        ]
        model = Model(uniform(rng, vocab, d_model, std=1.0, dtype=dtype), layers, norm())
        W = torch.stack([1.5 * weight(rng, d_model, d_model, dtype) for _ in range(n_layer)])
        ids = torch.from_numpy(rng.integers(0, vocab, (batch, sum(split))))
        return Case(name, (model, Averages(W), ids), {"split": split})

    return [
        case("four tokens, then one by one", [4, 1, 1]),
        case("one by one from the start", [1, 1, 1], n_layer=4),
        case("three tokens, then two", [3, 2], n_layer=2, d_model=8, batch=3),
        case("one layer", [2, 1], n_layer=1, dtype=torch.float32),
        case("two ways to go on from one text", [3, 1, 2], dtype=torch.float32),
    ]


def call_swapped(program: Callable[..., Any], case: Case) -> Any:
    """Read the text step by step, each with what the step before kept; then new texts without."""
    (model, attention, ids), split = case.args, case.kwargs["split"]
    read = program(model, attention)
    if not callable(read):
        raise TypeError(f"swap_attention returns a function read, not {type(read).__name__}")
    seen: dict[str, Any] = {}
    caches = None
    for i, part in enumerate(ids.split(split, dim=1)):
        given = () if caches is None else (caches,)
        if case.name.startswith("two ways") and i:
            _logits_and_caches(read(part.flip(0), *given))  # the same past, another step
        logits, caches = _logits_and_caches(read(part, *given))
        seen[f"step {i + 1}"] = {"logits": logits, "tokens kept": _lengths(caches)}
    seen["a new text of one token"] = _logits_and_caches(read(ids[:, :1]))[0]
    seen["the whole text anew"] = _logits_and_caches(read(ids))[0]
    return seen


def _logits_and_caches(returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise TypeError("read returns two things: logits and the list of all layers' caches")
    if isinstance(returned[1], tuple) and returned[1] and isinstance(returned[1][0], Tensor):
        raise TypeError(
            "read returns the cache of one layer; wanted is a list of all layers' caches"
        )
    return returned[0], returned[1]


def _lengths(caches: Any) -> str:
    """How many tokens the cache of each layer holds, in words."""
    if not isinstance(caches, (tuple, list)):
        return f"no list but {type(caches).__name__}"
    return ", ".join(
        str(one[1]) if isinstance(one, tuple) and len(one) == 2 else type(one).__name__
        for one in caches
    )


@dataclass
class Reader:
    """Stands for a model: its logits depend on every token so far and on where each stands.

    A cache is the pair (state [d], number of tokens). From `end_after` tokens on it wants to end.
    """

    embed: Tensor  # [vocab, d]
    W: Tensor  # [d, d]
    out: Tensor  # [d, vocab]
    end: int
    end_after: int
    read: list[int] = field(default_factory=list)  # tokens in each call

    def __call__(self, ids: Tensor, caches: Caches = None) -> tuple[Tensor, Caches]:
        if not isinstance(ids, Tensor) or ids.ndim != 2 or ids.is_floating_point():
            given = [*ids.shape] if isinstance(ids, Tensor) else type(ids).__name__
            raise ValueError(f"read takes whole numbers [1, n], as a tensor; given was {given}")
        if ids.shape[0] != 1 or ids.shape[1] == 0:
            raise ValueError(f"read takes ids [1, n] with at least one token, not {[*ids.shape]}")
        state, count = (torch.zeros_like(self.W[0]), 0) if caches is None else caches
        for token in ids[0].tolist():
            state = torch.tanh(state @ self.W + self.embed[token] + 0.5 * np.sin(count))
            count += 1
        self.read.append(ids.shape[1])
        logits = state @ self.out
        likely = 50.0 if count >= self.end_after else -50.0
        logits = logits.index_fill(0, torch.tensor([self.end]), likely)
        return logits[None], (state, count)


@dataclass
class Draw:
    """Draws an index with the given probabilities, by numbers fixed beforehand."""

    numbers: list[float]
    asked: list[Tensor] = field(default_factory=list)

    def __call__(self, p: Tensor) -> int:
        if not isinstance(p, Tensor) or p.ndim != 1:
            given = [*p.shape] if isinstance(p, Tensor) else type(p).__name__
            raise ValueError(f"draw takes a vector of probabilities [vocab]; given was {given}")
        if abs(float(p.sum()) - 1) > 1e-4 or float(p.min()) < 0:
            raise ValueError("what draw was given are no probabilities: they don't add up to 1")
        number = self.numbers[len(self.asked) % len(self.numbers)]
        self.asked.append(p.detach().clone())
        place = int(torch.searchsorted(p.double().cumsum(0), number))
        return min(place, len(p) - 1)


def make_reader(rng: np.random.Generator, *, vocab: int, end: int, end_after: int) -> Reader:
    """A small model that reads and wants to end after so many tokens."""
    width = 8
    embed = uniform(rng, vocab, width, std=1.0, dtype=torch.float64)
    W, out = (uniform(rng, width, size, std=0.6, dtype=torch.float64) for size in (width, vocab))
    return Reader(embed, W, 2 * out, end, end_after)


def generate_cases(rng: np.random.Generator) -> list[Case]:
    """A model that reads, two prompts, max_new, ends, temperature and what draws."""

    def case(name, prompts, max_new, *, end_after=99, temperature=0.0, vocab=12, ends=None):
        end = int(rng.integers(0, vocab))
        reader = make_reader(rng, vocab=vocab, end=end, end_after=end_after)
        texts = [torch.from_numpy(rng.integers(0, vocab, (1, n))) for n in prompts]
        others = {end, vocab + 3} if ends is None else ends
        draw = Draw(rng.random(16).tolist()) if temperature else None
        return Case(name, (reader, texts, max_new, others, temperature, draw))

    return [
        case("up to max_new", [4, 3], 6),
        case("stops at an end", [3, 5], 12, end_after=8),
        case("ends at once", [4, 2], 5, end_after=4),
        case("a prompt of one token", [1, 2], 7, vocab=9),
        case("nothing to write", [3, 2], 0),
        case("no end", [2, 4], 9, end_after=5, ends=frozenset()),
        case("temperature 0.5", [4, 3], 8, temperature=0.5),
        case("temperature 2", [3, 3], 8, temperature=2.0),
        case("temperature 1, stops at an end", [2, 3], 10, end_after=7, temperature=1.0),
    ]


def call_generate(program: Callable[..., Any], case: Case) -> Any:
    """Write after one prompt, after another, and after the first again."""
    reader, (first, second), max_new, ends, temperature, draw = case.args
    seen: dict[str, Any] = {}
    for name, prompt in (("first text", first), ("second", second), ("first again", first)):
        given: dict[str, Any] = {}
        if draw is not None:
            draw.asked.clear()
            given = {"temperature": temperature, "draw": draw}
        written = program(reader, prompt.clone(), max_new, ends, **given)
        if not isinstance(written, Iterable) or isinstance(written, str):
            raise TypeError(f"generate returns a list of tokens, not {type(written).__name__}")
        seen[name] = {"written": ", ".join(str(int(token)) for token in written) or "nothing"}
        if draw is not None:
            asked = {"draw was asked": f"{len(draw.asked)} times"}
            odds = torch.stack(draw.asked) if draw.asked else torch.zeros(0)
            seen[name] = {**asked, **seen[name], "probabilities": odds}
    return seen


def each_token_once(program: Callable[..., Any]) -> Measured:
    """Whether no more tokens went through the model than the prompt and what was written."""
    rng = rule_generator(12)
    reader = make_reader(rng, vocab=11, end=0, end_after=99)
    prompt = torch.from_numpy(rng.integers(1, 11, (1, 6)))
    written = len(list(program(reader, prompt, 8, {0})))
    read, most = sum(reader.read), prompt.shape[1] + written
    return Measured(read <= most, {"read": str(read), "most": str(most)})
