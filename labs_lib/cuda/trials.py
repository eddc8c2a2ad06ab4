"""A rung of the ladder put to the test: inputs, NaN-filled outputs, and what they must become."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from labs_lib.cuda.ladder import RUNGS
from labs_lib.cuda.rung import Rung, Sizes


def _sizes(names: str, *rows: tuple[int, ...]) -> list[dict[str, int]]:
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


# A covering set: one, the sizes around a tile's width, several tiles; narrow, odd and wide heads.
SIZES = {
    "scores": _sizes(
        "n_q n_k head_dim",
        *[(1, 1, 8), (17, 33, 16), (33, 97, 32), (65, 31, 72), (97, 64, 64), (64, 17, 128)],
    ),
    "softmax": _sizes("rows cols", (1, 1), (17, 31), (5, 97), (3, 300), (2, 1000)),
    "transpose": _sizes("rows cols", (1, 1), (17, 33), (97, 64), (31, 65), (64, 97)),
    "attention": _sizes(
        "batch n_head n_q n_k head_dim causal",
        *[(1, 1, 1, 1, 8, 1), (2, 3, 17, 33, 16, 0), (1, 2, 33, 65, 72, 1)],
        *[(1, 2, 65, 17, 32, 1), (1, 1, 31, 97, 128, 0), (1, 1, 97, 97, 64, 1)],
    ),
    "flash": _sizes(
        "batch n_head n_kv_head n_q n_k head_dim causal",
        *[(1, 1, 1, 1, 1, 8, 1), (2, 6, 3, 17, 33, 16, 0), (1, 4, 1, 33, 97, 32, 1)],
        *[(1, 2, 2, 97, 64, 72, 1), (1, 2, 1, 65, 97, 128, 0), (2, 1, 1, 97, 31, 64, 1)],
    ),
}
SIZES |= dict.fromkeys(
    ("flash_backward_delta", "flash_backward_q", "flash_backward_kv"), SIZES["flash"]
)


def every_trial() -> list[tuple[Rung, dict[str, int]]]:
    """Each rung with each of the sizes that it is tried at."""
    return [(rung, sizes) for rung in RUNGS for sizes in SIZES[rung.family]]


@dataclass(frozen=True)
class Trial:
    """One launch of a rung.

    `arguments` stand in the order of the kernel's parameters; `outputs` are those of them that the
    kernel writes, NaN-filled before; `wanted` is the truth in float64, and a result may be off by
    `within`, and by that share of it.
    """

    arguments: tuple
    outputs: dict[str, Tensor]
    wanted: dict[str, Tensor]
    within: float = 2e-5


def trial(rung: Rung, sizes: Sizes, *, seed: int = 0, device: str = "cpu") -> Trial:
    """Distinct uniform inputs of a rung and its truth, computed with torch in float64."""
    generator = np.random.Generator(np.random.PCG64(seed))

    def uniform(*shape: int) -> Tensor:
        return torch.from_numpy(generator.random(shape) * 4 - 2).float()

    made = _FAMILIES[rung.family](rung, sizes, uniform)
    return to_device(made, device)


def to_device(made: Trial, device: str) -> Trial:
    """The same launch with its tensors on another device; what is wanted stays on the CPU."""
    arguments, outputs = [], {}
    for given in made.arguments:
        moved = given.to(device) if isinstance(given, Tensor) else given
        outputs |= {name: moved for name, ours in made.outputs.items() if ours is given}
        arguments.append(moved)
    return Trial(tuple(arguments), outputs, made.wanted, made.within)


def attention(q, k, v, scale: float, causal: bool) -> tuple[Tensor, Tensor]:
    """o and lse in float64; causal is bottom-right; a row that sees nothing gives zeros and -inf.

    q is [batch, n_head, n_q, head_dim], k and v are [batch, n_kv_head, n_k, head_dim].
    """
    q, k, v = q.double(), k.double(), v.double()
    group = q.shape[1] // max(1, k.shape[1])
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = scale * q @ k.mT
    n_q, n_k = scores.shape[-2:]
    if causal:
        seen = torch.ones(n_q, n_k, dtype=torch.bool, device=q.device).tril(n_k - n_q)
        scores = scores.masked_fill(~seen, -math.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse[..., None]).exp().nan_to_num(0.0)
    return weights @ v, lse


def unwritten(*shape: int) -> Tensor:
    """An output before the launch: NaN everywhere, so that what is not written shows."""
    return torch.full(shape, math.nan)


def _scores(rung: Rung, sizes: Sizes, uniform) -> Trial:
    n_q, n_k, head_dim = sizes["n_q"], sizes["n_k"], sizes["head_dim"]
    q, k, s = uniform(n_q, head_dim), uniform(n_k, head_dim), unwritten(n_q, n_k)
    if rung.half:
        q, k = q.half(), k.half()
    scale = head_dim**-0.5
    wanted = scale * q.double() @ k.double().T
    keys = k.T.contiguous() if "k_t" in rung.formulas else k
    return Trial((q, keys, s, n_q, n_k, head_dim, scale), {"s": s}, {"s": wanted})


def _softmax(rung: Rung, sizes: Sizes, uniform) -> Trial:
    rows, cols = sizes["rows"], sizes["cols"]
    s, p = 4 * uniform(rows, cols), unwritten(rows, cols)
    s[rows // 2] = -math.inf  # a row that may attend to nothing
    s[-1:] += 300.0
    return Trial((s, p, rows, cols), {"p": p}, {"p": s.double().softmax(-1).nan_to_num(0.0)})


def _transpose(rung: Rung, sizes: Sizes, uniform) -> Trial:
    rows, cols = sizes["rows"], sizes["cols"]
    a, b = uniform(rows, cols), unwritten(cols, rows)
    return Trial((a, b, rows, cols), {"b": b}, {"b": a.double().T})


def _attention(rung: Rung, sizes: Sizes, uniform) -> Trial:
    batch, n_head, n_q = sizes["batch"], sizes["n_head"], sizes["n_q"]
    n_k, head_dim, causal = sizes["n_k"], sizes["head_dim"], sizes["causal"]
    q = uniform(batch, n_head, n_q, head_dim)
    k, v = uniform(batch, n_head, n_k, head_dim), uniform(batch, n_head, n_k, head_dim)
    v += torch.arange(n_k)[:, None] / 64  # each key its own offset
    o, scale = torch.full_like(q, math.nan), head_dim**-0.5
    wanted, _ = attention(q, k, v, scale, bool(causal))
    arguments = (q, k, v, o, n_head, n_q, n_k, head_dim, scale, causal)
    return Trial(arguments, {"o": o}, {"o": wanted})


def _flash(rung: Rung, sizes: Sizes, uniform) -> Trial:
    batch, n_head, n_kv_head = sizes["batch"], sizes["n_head"], sizes["n_kv_head"]
    n_q, n_k, head_dim, causal = (sizes[s] for s in ("n_q", "n_k", "head_dim", "causal"))
    q = uniform(batch, n_head, n_q, head_dim)
    k, v = (uniform(batch, n_kv_head, n_k, head_dim) for _ in range(2))
    v += torch.arange(n_k)[:, None] / 64  # each key its own offset
    return flash_trial(rung, q, k, v, head_dim**-0.5, bool(causal))


def flash_trial(rung: Rung, q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool) -> Trial:
    """A flash kernel on given tensors; in half, weights are rounded to 11 bits, and so is o."""
    if rung.half:
        q, k, v = q.half(), k.half(), v.half()
    within = 2e-3 if rung.half else 2e-5
    batch, n_head, n_q, head_dim = q.shape
    o, lse = torch.full_like(q, math.nan), unwritten(batch, n_head, n_q)
    wanted = dict(zip(("o", "lse"), attention(q, k, v, scale, causal), strict=True))
    sizes = (n_head, k.shape[1], n_q, k.shape[2], head_dim)
    arguments = (q, k, v, o, lse, *sizes, scale, int(causal))
    return Trial(arguments, {"o": o, "lse": lse}, wanted, within)


def _backward(rung: Rung, sizes: Sizes, uniform) -> Trial:
    forward = _flash(rung, sizes, uniform)
    d_o = uniform(*forward.arguments[0].shape)
    return backward_trial(rung, forward, d_o)


def backward_trial(rung: Rung, forward: Trial, d_o: Tensor) -> Trial:
    """A kernel of the backward pass on the tensors of a forward one and the gradient of its o."""
    q, k, v, _, _, n_head, n_kv_head, n_q, n_k, head_dim, scale, causal = forward.arguments
    o, lse = forward.wanted["o"].float(), forward.wanted["lse"].float()
    delta = (forward.wanted["o"] * d_o.double()).sum(-1)
    if rung.name == "flash_backward_delta":
        out = unwritten(*lse.shape)
        arguments = (o, d_o, out, lse.numel(), head_dim)
        return Trial(arguments, {"delta": out}, {"delta": delta})
    names = ("d_q",) if rung.name == "flash_backward_q" else ("d_k", "d_v")
    wanted = gradients(q, k, v, d_o, scale, bool(causal))
    outputs = {name: unwritten(*wanted[name].shape) for name in names}
    counts = (n_head, n_kv_head, n_q, n_k, head_dim, scale, causal)
    arguments = (q, k, v, d_o, lse, delta.float(), *outputs.values(), *counts)
    return Trial(arguments, outputs, {name: wanted[name] for name in names})


def gradients(q, k, v, d_o, scale: float, causal: bool) -> dict[str, Tensor]:
    """d_q, d_k and d_v in float64 by autograd; queries that see nothing are left out of it."""
    q, k, v = (x.double().requires_grad_() for x in (q, k, v))
    blind = max(0, q.shape[2] - k.shape[2]) if causal else 0
    o, _ = attention(q[:, :, blind:], k, v, scale, causal)
    found = torch.autograd.grad(o, (q, k, v), d_o[:, :, blind:].double())
    return dict(zip(("d_q", "d_k", "d_v"), found, strict=True))


_FAMILIES = {
    "flash": _flash,
    "flash_backward_delta": _backward,
    "flash_backward_q": _backward,
    "flash_backward_kv": _backward,
    "scores": _scores,
    "softmax": _softmax,
    "transpose": _transpose,
    "attention": _attention,
}
