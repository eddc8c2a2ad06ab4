"""Lab 12: the kernel of lab 11 in the place of a model's attention, launched by the student.

The cases need no compiler: a stand-in takes the launch, refuses what a launch would refuse, and
computes what the kernel would write.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .inputs import causal_pairs, qkv
from .kit import Case, Exercise, Tolerance

QUERIES = 64  # of a block, a thread each
NAMES = ("q", "k", "v", "o", "lse")
SIZES = ("n_head", "n_kv_head", "n_q", "n_k", "head_dim", "scale", "causal")


class LaunchError(Exception):
    """The arguments or the geometry are refused, as a launch would refuse them."""


class KernelFault(Exception):
    """The launch would read or write where nothing is."""


@dataclass
class Kernel:
    """Stands for `flash_kernel`: `kernel[grid, block](q, k, v, o, lse, ...)`, as lab 11 has it."""

    launches: list[dict[str, Any]] = field(default_factory=list)

    def __getitem__(self, geometry: Any) -> Callable[..., None]:
        if not isinstance(geometry, tuple) or len(geometry) not in (2, 3):
            raise TypeError("a launch needs [grid, block]")
        grid, block = (_triple(one) for one in geometry[:2])

        def launch(*args: Any) -> None:
            self._launch(grid, block, args)

        return launch

    def __call__(self, *args: Any) -> None:
        raise TypeError("say how many threads: flash_kernel[grid, block](...)")

    def _launch(self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple) -> None:
        _check(grid, block, args)
        q, k, v, o, lse, *rest = args
        sizes = dict(zip(SIZES, rest, strict=True))
        self.launches.append({**sizes, "tiles": grid[0]})
        n_head, n_kv_head, n_q, n_k, head_dim = rest[:5]
        q = _shaped("q", q, grid[2], n_head, n_q, head_dim).clone()
        k = _shaped("k", k, grid[2], n_kv_head, n_k, head_dim)
        v = _shaped("v", v, grid[2], n_kv_head, n_k, head_dim)
        o = _shaped("o", o, grid[2], n_head, n_q, head_dim)
        lse = _shaped("lse", lse, grid[2], n_head, n_q)
        if grid[1] > n_head:
            raise KernelFault(f"block (0, {n_head}, 0) has no head: out of bounds")
        for unwritten in (o, lse):
            unwritten.fill_(math.nan)
        for head in range(grid[1]):
            shared = min(head // max(n_head // n_kv_head, 1), n_kv_head - 1)
            scores = sizes["scale"] * q[:, head] @ k[:, shared].mT  # [batch, n_q, n_k]
            if sizes["causal"]:
                scores = scores.masked_fill(~causal_pairs(n_q, n_k), -math.inf)
            rows = slice(0, grid[0] * QUERIES)
            weights = scores.softmax(dim=-1).nan_to_num()
            o[:, head, rows] = (weights @ v[:, shared])[:, rows]
            lse[:, head, rows] = scores.logsumexp(dim=-1)[:, rows]


def _triple(value: Any) -> tuple[int, int, int]:
    sizes = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not all(isinstance(n, Integral) and n >= 0 for n in sizes) or not 1 <= len(sizes) <= 3:
        raise TypeError(f"a grid and a block are one to three whole numbers, not {value!r}")
    x, y, z = (*map(int, sizes), 1, 1)[:3]
    return x, y, z


def _check(grid: tuple[int, ...], block: tuple[int, ...], args: tuple) -> None:
    if len(args) != len(NAMES) + len(SIZES):
        names = ", ".join(NAMES + SIZES)
        raise LaunchError(f"flash_kernel takes 12 arguments ({names}), {len(args)} were given")
    for name, tensor in zip(NAMES, args[:5], strict=True):
        if not isinstance(tensor, Tensor):
            raise LaunchError(f"{name} is a pointer (float*) and needs a tensor")
        if tensor.dtype != torch.float32:
            raise LaunchError(f"{name} is a float* and needs float32, not {tensor.dtype}")
        if not tensor.is_contiguous():
            raise LaunchError(f"{name} is not contiguous; give {name}.contiguous()")
    for name, number in zip(SIZES, args[5:], strict=True):
        if not isinstance(number, Real if name == "scale" else Integral):
            raise LaunchError(f"{name} is a number, not {type(number).__name__}")
    if block != (QUERIES, 1, 1):
        raise LaunchError("a block of flash_kernel has 64 threads, one for each of its queries")
    if args[5] < 1 or args[6] < 1 or args[5] % args[6]:
        raise LaunchError(f"{args[6]} key/value heads can't be shared by {args[5]} query heads")


def _shaped(name: str, tensor: Tensor, *sizes: int) -> Tensor:
    """The memory of a tensor as the kernel reads it, whatever shape the tensor has."""
    if tensor.numel() != math.prod(sizes):
        raise KernelFault(
            f"by the sizes and the grid {name} has {math.prod(sizes)} numbers; it has "
            f"{tensor.numel()}: out of bounds"
        )
    return tensor.view(*sizes)


def launch_cases(rng: np.random.Generator) -> list[Case]:
    """q, and k and v repeated for all query heads as a model hands them over, and a mask."""

    def case(name, heads, seq, *, head_dim=8, mask=True, batch=1, strided=False):
        (n_head, n_kv_head), (n_q, n_k) = heads, seq
        draw = partial(qkv, rng, batch=batch, seq_q=n_q, seq_k=n_k, head_dim=head_dim, std=1.0)
        q, _, _ = draw(n_head=n_head)
        _, k, v = draw(n_head=n_kv_head)
        if strided:
            q = q.transpose(1, 2).contiguous().transpose(1, 2)
        k, v = (t.repeat_interleave(n_head // n_kv_head, dim=1) for t in (k, v))
        seen = causal_pairs(n_q, n_k) if mask else None
        return Case(name, (Kernel(), n_kv_head, q, k, v, seen))

    return [
        case("nine heads share three, a prompt", (9, 3), (7, 7)),
        case("one new token", (6, 2), (1, 70)),
        case("three new tokens", (6, 3), (3, 8), head_dim=16),
        case("seventy queries: two blocks", (4, 2), (70, 70), batch=2),
        case("exactly one block", (2, 1), (64, 64)),
        case("every head has keys of its own", (3, 3), (5, 5), batch=2),
        case("as a split left it", (4, 2), (6, 6), strided=True),
        case("no mask", (6, 2), (5, 9), mask=False),
    ]


def call_launched(program: Callable[..., Any], case: Case) -> Any:
    """Use the attend twice, on other keys, and tell what it gave and which heads were launched."""
    kernel, n_kv_head, q, k, v, mask = case.args
    attend = program(kernel, n_kv_head)
    if not callable(attend):
        raise TypeError(f"kernel_attention returns a function, not {type(attend).__name__}")
    first = attend(q, k, v, mask)
    again = attend(q, k.flip(2), v.flip(2), mask)
    heads, tiles = (
        ", ".join(str(launch[name]) for launch in kernel.launches)
        for name in ("n_kv_head", "tiles")
    )
    return {
        "numbers that no block has written": _unwritten(first),
        "out": first,
        "with other keys": again,
        "key/value heads launched": heads,
        "blocks for each head": tiles,
    }


def _unwritten(out: Any) -> str:
    """How much of an output is as the stand-in leaves what its blocks don't reach: not a number."""
    if not isinstance(out, Tensor) or not out.is_floating_point():
        return "none"
    count = int(out.isnan().sum())
    return f"{count:,} of {out.numel():,}" if count else "none"


KERNEL_ATTENTION = Exercise(
    name="lab12.kernel_attention",
    title="lab 11's kernel, launched in the place of a model's attention",
    stub='''
def kernel_attention(kernel, n_kv_head):
    """A function attend(q, k, v, mask) that launches `kernel`, the flash_kernel of lab 11.

    q, k and v come as a model hands them over: float32, n_head heads each, [batch, n_head, seq_q,
    head_dim] and [batch, n_head, seq_k, head_dim]; neighbouring query heads find copies of the same
    key/value head. The kernel shares heads by itself and wants k and v with n_kv_head heads. mask
    is None, every query sees every key, or the causal one. attend returns a new tensor like q.

    kernel[grid, block](q, k, v, o, lse, n_head, n_kv_head, n_q, n_k, head_dim, scale, causal)
    takes contiguous tensors, all on q's device, and writes o like q and lse [batch, n_head, n_q].
    A block of 64 threads takes 64 queries of one head: grid (ceil(n_q / 64), n_head, batch).
    """
    raise NotImplementedError
''',
    cases=launch_cases,
    call=call_launched,
    axes=("batch", "n_head", "seq_q", "head_dim"),
    tolerances={"float32": Tolerance(1e-4, 2e-5)},
    hints=(
        "Inside: def attend(q, k, v, mask=None), which makes room for o and lse, launches, and\n"
        "returns o. The sizes are those of q and k.",
        "Each key/value head stands n_head // n_kv_head times in a row. One copy of each will do:\n"
        "at which places do they stand? And does what you pick out still lie without gaps?",
        "Go through the twelve arguments: n_q is q's and n_k is k's, n_kv_head counts the heads\n"
        "that you hand over, and the kernel multiplies by scale. causal is a number that says\n"
        "whether there is a mask.",
    ),
    minutes=15,
)  # fmt: skip
