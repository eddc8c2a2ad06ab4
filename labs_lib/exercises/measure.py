"""Measure what a program does: which tensor operators it runs, and how large its tensors grow.

Used by structural rules ("the number of matrix products does not depend on n_head"). The counts
come from torch's dispatcher, below whatever Python the program is written in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "mv", "dot", "addmv", "linear")


class _Record(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.operators: Counter[str] = Counter()
        self.largest = 0
        self.shapes: list[tuple[int, ...]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.operators[func.overloadpacket.__name__] += 1
        inputs = {t.untyped_storage().data_ptr() for t in tree_leaves(args) if _is_tensor(t)}
        for leaf in tree_leaves(out):
            if _is_tensor(leaf) and leaf.untyped_storage().data_ptr() not in inputs:
                self.largest = max(self.largest, leaf.numel())
                self.shapes.append(tuple(leaf.shape))
        return out


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def operators(program: Callable[..., Any], *args: Any, **kwargs: Any) -> Counter[str]:
    """How often each torch operator ran during one call, by name (`bmm`, `add`, ...)."""
    with _Record() as record:
        program(*args, **kwargs)
    return record.operators


def products(program: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """How many matrix products ran during one call."""
    counted = operators(program, *args, **kwargs)
    return sum(counted[name] for name in PRODUCTS)


def largest_allocation(program: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """The number of elements of the largest new tensor that one call made."""
    with _Record() as record:
        program(*args, **kwargs)
    return record.largest
