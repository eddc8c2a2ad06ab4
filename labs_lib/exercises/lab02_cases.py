"""Lab 02: the cases, how they meet a program, and the measured rules."""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .inputs import uniform
from .kit import Case
from .refusals import type_name

_SIZES = ("d_model", "n_head", "head_dim")
_KEPT = "kept as attributes"
_AXES = ("batch", "n_head", "seq", "head_dim")
_WITH_NEIGHBOURS = (
    "refuse: a little too wide",
    "refuse: a little too narrow",
    "refuse: more heads than numbers",
)
_ZERO = r"(?<![\d.,])0(?![.,]?\d)"
_BETWEEN = r"[^\d*·×%/]*"
_MEANT_TO_REFUSE = (AssertionError, ZeroDivisionError, RuntimeError, Exception)


def head_dim_cases(rng: np.random.Generator) -> list[Case]:
    """Legal pairs, those of three ANDREA models among them, and pairs with a remainder."""
    n_head, width = _drawn_pair(rng)
    return [
        Case("384 over 12", (384, 12)),
        Case("768 over 12", (768, 12)),
        Case("1536 over 24", (1536, 24)),
        Case("one head", (int(rng.integers(5, 99)), 1)),
        Case("heads of one number", (n_head, n_head)),
        Case("other sizes", (n_head * width, n_head)),
        Case("refuse: 2048 over 24", (2048, 24)),
        Case("refuse: a remainder", (n_head * width + int(rng.integers(1, n_head)), n_head)),
        Case("refuse: more heads than numbers", (n_head - 1, n_head)),
    ]


def head_config_cases(rng: np.random.Generator) -> list[Case]:
    """Legal settings with and without their own head_dim, then settings to be refused."""
    n_head, width = _drawn_pair(rng)
    past, short = int(rng.integers(1, n_head // 2)), int(rng.integers(1, n_head // 2))
    return [
        Case("768 over 12", (768, 12)),
        Case("other sizes", (n_head * width, n_head)),
        Case("head_dim given, d_model leaves a remainder", (510, 8), {"head_dim": 64}),
        Case("head_dim given, d_model would divide", (n_head * 2, n_head), {"head_dim": width}),
        Case("refuse: a little too wide", (n_head * width + past, n_head)),
        Case("refuse: a little too narrow", (n_head * width - short, n_head)),
        Case("refuse: more heads than numbers", (n_head - 1, n_head)),
        Case("refuse: no heads", (n_head * width, 0)),
        Case("refuse: a negative number of heads", (n_head * width, -n_head)),
        Case("refuse: no width", (0, n_head)),
        Case("refuse: n_head is a float", (n_head * width, float(n_head))),
        Case("refuse: a head_dim of 0", (n_head * width, n_head), {"head_dim": 0}),
    ]


def split_cases(rng: np.random.Generator) -> list[Case]:
    """Contiguous inputs of several sizes, and a slice of a fused q k v projection."""
    fused = uniform(rng, 2, 7, 3 * 12)
    return [
        Case("7 tokens, 3 heads", (uniform(rng, 2, 7, 12), 3)),
        Case("7 tokens, 3 heads, float64", (uniform(rng, 2, 7, 12, dtype=torch.float64), 3)),
        Case("gradient", (uniform(rng, 2, 5, 18, dtype=torch.float64), 3), grad=True),
        Case("as many tokens as heads", (uniform(rng, 3, 4, 20), 4)),
        Case("one token", (uniform(rng, 2, 1, 15), 5)),
        Case("one head", (uniform(rng, 2, 6, 4), 1)),
        Case("the middle third of a fused tensor", (fused[..., 12:24], 3)),
    ]


def merge_cases(rng: np.random.Generator) -> list[Case]:
    """Heads that lie as a split left them, and heads that an attention call made anew."""
    split = uniform(rng, 2, 7, 3, 4).transpose(1, 2)
    return [
        Case("as the split left them", (split,)),
        Case("contiguous", (uniform(rng, 2, 3, 7, 4),)),
        Case("contiguous, float64", (uniform(rng, 2, 3, 5, 6, dtype=torch.float64),)),
        Case("gradient", (uniform(rng, 2, 3, 5, 2, dtype=torch.float64),), grad=True),
        Case("as many tokens as heads", (uniform(rng, 3, 4, 4, 5),)),
        Case("one token", (uniform(rng, 2, 5, 1, 3),)),
        Case("one head", (uniform(rng, 2, 1, 6, 4),)),
    ]


def strides_cases(rng: np.random.Generator) -> list[Case]:
    """Sizes drawn without repetition, so that no two axes can be taken for each other."""
    drawn = [tuple(int(n) for n in rng.permutation(np.arange(2, 12))[:4]) for _ in range(3)]
    return [
        Case("2 sequences, 10 tokens, 12 heads of 64", (2, 10, 12, 64)),
        Case("other sizes", drawn[0]),
        Case("yet other sizes", drawn[1]),
        Case("a batch of one", (1, *drawn[2][1:])),
    ]


def layout_cases(rng: np.random.Generator) -> list[Case]:
    """Tensors of equal shapes and different strides; the last three are drawn by the seed."""
    drawn = [list(_LAYOUTS.values())[i] for i in rng.integers(0, len(_LAYOUTS), size=3)]
    named = [Case(name, (make(rng),)) for name, make in _LAYOUTS.items()]
    return [*named, *(Case(f"any layout, {i}", (make(rng),)) for i, make in enumerate(drawn, 1))]


def call_head_dim(program: Callable[..., Any], case: Case) -> dict[str, Any]:
    """The value with its type, or that it was refused; for a pair to be refused, how it was."""
    if case.name.startswith("refuse"):
        return _refusal(program, case)[0]
    try:
        value = program(*case.args)
    except ValueError:
        return {"a legal pair is": "refused with ValueError", "head_dim": 0, "of type": "None"}
    if isinstance(value, tuple):
        return {
            "a legal pair is": f"answered by {len(value)} values",
            "head_dim": 0,
            "of type": "tuple",
        }
    return {"a legal pair is": "taken", "head_dim": value, "of type": type_name(value)}


def call_head_config(program: Callable[..., Any], case: Case) -> dict[str, Any]:
    """The sizes of what was made; for a setting to be refused, how, and which values it names."""
    if not case.name.startswith("refuse"):
        try:
            made = program(*case.args, **case.kwargs)
        except ValueError:
            refused = dict.fromkeys(_SIZES, 0) | {"head_dim is of type": "None"}
            return {"a legal setting is": "refused with ValueError", _KEPT: "none"} | refused
        kept = [name for name in _SIZES if _has(made, name)]
        sizes = {name: getattr(made, name) if name in kept else 0 for name in _SIZES}
        taken = {"a legal setting is": "taken", _KEPT: ", ".join(kept) or _none_in(made)}
        return taken | {"head_dim is of type": type_name(sizes["head_dim"])} | sizes
    refusal, message = _refusal(program, case)
    if case.name not in _WITH_NEIGHBOURS:
        return refusal
    d_model, n_head = case.args
    below = d_model - d_model % n_head
    neighbours = {"below": below, "above": below + n_head}
    named = {
        f"the legal d_model {side} {d_model}, with {n_head} heads": _named(legal, message)
        for side, legal in neighbours.items()
        if legal
    }
    if not below:
        offered = _offers_zero(message, n_head, lambda: _refusal(program, _larger(case))[1])
        named["a d_model of 0 is"] = "offered" if offered else "left out"
    return refusal | named


def call_strides(program: Callable[..., Any], case: Case) -> Any:
    """Four strides by the names of their axes, or how many there were instead."""
    strides = program(*case.args)
    if not isinstance(strides, (tuple, list)):
        return strides
    if len(strides) != len(_AXES):
        axes = ", ".join(_AXES)
        return {"not as asked": f"{len(strides)} strides came back; wanted are four, for {axes}"}
    return {f"the stride along {axis}": one for axis, one in zip(_AXES, strides, strict=True)}


def is_a_view(split: Callable[..., Tensor]) -> bool:
    """Whether what `split` returns lies in the memory of its input."""
    x = torch.arange(2 * 5 * 12, dtype=torch.float32).view(2, 5, 12)
    out = split(x, 3)
    return out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def is_own_class(config: Callable[..., Any]) -> bool:
    """Whether what `config` makes is something else than the library's own configuration."""
    made = config(768, 12)
    return all(parent.__module__ != "labs_lib.config" for parent in type(made).__mro__)


def _has(made: Any, name: str) -> bool:
    """Whether the object has the attribute; a property that fails is there, and shows its error."""
    return hasattr(made, name) or hasattr(type(made), name)


def _none_in(made: Any) -> str:
    """That nothing is kept; for what no class of a student's makes, such as a dict, its type."""
    return "none" if hasattr(made, "__dict__") else f"none, for this is of type {type_name(made)}"


def _drawn_pair(rng: np.random.Generator) -> tuple[int, int]:
    return int(rng.integers(6, 20)), int(rng.integers(21, 40))


def _refusal(program: Callable[..., Any], case: Case) -> tuple[dict[str, Any], str]:
    """How a setting was refused, and the message; a TypeError is welcome where a type is wrong."""
    sizes = (*case.args, *case.kwargs.values())
    wrong_type = any(type_name(size) != "int" for size in sizes)
    try:
        value = program(*case.args, **case.kwargs)
    except ValueError as error:
        return {"refused with": "ValueError", "made instead": "nothing"}, str(error)
    except TypeError as error:
        if str(error).startswith("exceptions must derive"):
            raise  # as in `raise "a text"`: nobody meant a TypeError
        kind = "ValueError" if wrong_type else "TypeError"
        return {"refused with": kind, "made instead": "nothing"}, str(error)
    except Exception as error:
        if type(error) not in _MEANT_TO_REFUSE:
            raise
        kind = type(error).__name__
        return {"refused with": kind, "made instead": "nothing"}, str(error)
    return {"refused with": "no error", "made instead": _described(value)}, ""


def _described(value: Any) -> str:
    kind = value if isinstance(value, type) else type(value)
    if issubclass(kind, BaseException):
        return "an error, returned"
    try:
        value = getattr(value, "head_dim", value)
    except Exception:
        return "an object whose head_dim fails later"
    return f"a head_dim of {value:g}" if isinstance(value, numbers.Real) else type_name(value)


def _named(width: int, message: str) -> str:
    plain = set(re.findall(r"\d+", message))
    grouped = {text.replace(",", "") for text in re.findall(r"\d{1,3}(?:,\d{3})+", message)}
    return str(width) if str(width) in plain | grouped else "not named"


def _larger(case: Case) -> Case:
    """The same heads with too many numbers: here there is a legal d_model below."""
    _, n_head = case.args
    return Case(case.name, (2 * n_head + 1, n_head))


def _offers_zero(message: str, above: int, of_larger: Callable[[], str]) -> bool:
    """Whether a message names 0 beside `above`, as one of two that will do.

    A 0 that also stands in the message of a larger d_model offers nothing ("must leave 0"), nor
    does one of a sum ("5 = 0 * 8 + 5").
    """
    zero, other = _ZERO, rf"(?<![\d.,]){above}(?!\d)"
    beside = re.search(rf"{zero}{_BETWEEN}{other}|{other}{_BETWEEN}{zero}", message)
    if beside is None:
        return False
    return len(re.findall(_ZERO, message)) > len(re.findall(_ZERO, of_larger()))


def _sizes(rng: np.random.Generator) -> tuple[int, int, int]:
    a, b, c = rng.permutation(np.arange(3, 8))[:3].tolist()
    return a, b, c


def _new(rng: np.random.Generator) -> Tensor:
    seq, n_head, head_dim = _sizes(rng)
    return uniform(rng, 2, n_head, seq, head_dim)


def _split(rng: np.random.Generator) -> Tensor:
    seq, n_head, head_dim = _sizes(rng)
    return uniform(rng, 2, seq, n_head, head_dim).transpose(1, 2)


def _one_token(rng: np.random.Generator) -> Tensor:
    _, n_head, head_dim = _sizes(rng)
    return uniform(rng, 2, 1, n_head, head_dim).transpose(1, 2)


def _spread_token(rng: np.random.Generator) -> Tensor:
    _, n_head, head_dim = _sizes(rng)
    return uniform(rng, 2, n_head, 1, 2 * head_dim)[..., ::2]


def _spread_numbers(rng: np.random.Generator) -> Tensor:
    """Rows as far apart as a row is long, and the numbers of a row farther still."""
    seq, n_head, head_dim = _sizes(rng)
    return uniform(rng, 2, n_head, head_dim, seq, head_dim)[..., 0].transpose(2, 3)


def _one_head(rng: np.random.Generator) -> Tensor:
    seq, _, head_dim = _sizes(rng)
    return uniform(rng, 2, seq, 1, head_dim).transpose(1, 2)


def _shared(rng: np.random.Generator) -> Tensor:
    seq, n_head, head_dim = _sizes(rng)
    return uniform(rng, 2, 1, seq, head_dim).expand(2, n_head, seq, head_dim)


_LAYOUTS: dict[str, Callable[[np.random.Generator], Tensor]] = {
    "new": _new,
    "as a split leaves it": _split,
    "split, then copied": lambda rng: _split(rng).contiguous(),
    "split with one head": _one_head,
    "split with one token": _one_token,
    "each head stored column by column": lambda rng: _new(rng).transpose(2, 3),
    "every other head of a new tensor": lambda rng: _new(rng)[:, ::2],
    "every other token of a new tensor": lambda rng: _new(rng)[:, :, ::2],
    "every other number of a new tensor": lambda rng: _new(rng).repeat(1, 1, 1, 2)[..., ::2],
    "one head stored, shown several times": _shared,
    "one token, every other number": _spread_token,
    "rows near each other, numbers far apart": _spread_numbers,
}
