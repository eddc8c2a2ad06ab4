"""Measure what a program does: which tensor operators it runs.

Used by structural rules ("the number of matrix products does not depend on n_head"). The counts
come from torch's dispatcher, below whatever Python the program is written in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "mv", "dot", "addmv", "linear")


def operators(program: Callable[..., Any], *args: Any, **kwargs: Any) -> Counter[str]:
    """How often each torch operator ran during one call, by name (`bmm`, `add`, ...)."""
    with _Record() as record:
        program(*args, **kwargs)
    return record.operators


def products(program: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """How many matrix products ran during one call."""
    counted = operators(program, *args, **kwargs)
    return sum(counted[name] for name in PRODUCTS)


class _Record(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.operators: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operators[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))
