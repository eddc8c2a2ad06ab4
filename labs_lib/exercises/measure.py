"""Measure what a program does: which tensor operators it runs, and how much memory it takes.

Used by structural rules ("the number of matrix products does not depend on n_head", "no tensor of
n x n elements was ever made"). The counts come from torch's dispatcher, below whatever Python the
program is written in.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

Counted = Callable[[torch.Tensor], bool]
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "mv", "dot", "addmv", "linear")


def operators(program: Callable[..., Any], *args: Any, **kwargs: Any) -> Counter[str]:
    """How often each torch operator ran during one call, by name (`bmm`, `add`, ...)."""
    with _Record() as record:
        program(*args, **kwargs)
    return record.operators


def products(program: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """How many matrix products ran during one call; labs 03, 05 and 12 count them."""
    counted = operators(program, *args, **kwargs)
    return sum(counted[name] for name in PRODUCTS)


def flops(program: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """How many operations the products of one call took; a multiply-add counts as two.

    A product is also made by * where the shapes spread both factors, as in q[:, None] * k.
    """
    with _Flops() as record:
        program(*args, **kwargs)
    return record.total


def largest_allocation(
    program: Callable[..., Any], *args: Any, counted: Counted = lambda made: True, **kwargs: Any
) -> int:
    """The number of elements of the largest new tensor that one call made; views are not new.

    A new tensor for which `counted` is false doesn't count, here and in peak_memory, unless it is a
    product: as many numbers as k has may be scores.
    """
    with _Largest(counted) as record:
        program(*args, **kwargs)
    return record.largest


def peak_memory(
    program: Callable[..., Any], *args: Any, counted: Counted = lambda made: True, **kwargs: Any
) -> int:
    """The most bytes that tensors made during one call took at one time, its result included."""
    with _Memory(counted) as record:
        program(*args, **kwargs)
    return record.peak


class Watch(TorchDispatchMode):
    """Sees every operator that torch runs, where a subclass says what to do with it."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: to keep torch.compile away, torch would import it, a second in each process."""
        return False


class _Record(Watch):
    def __init__(self) -> None:
        super().__init__()
        self.operators: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operators[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


class _Flops(Watch):
    """Counts with the formulas of torch's own FlopCounterMode."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        formula = flop_registry.get(func.overloadpacket)
        if formula is None:
            with self:  # what is made of others counts as those
                out = func.decompose(*args, **kwargs)
            if out is not NotImplemented:
                return out
        out = func(*args, **kwargs)
        self.total += formula(*args, **kwargs, out_val=out) if formula else 0
        self.total += 2 * out.numel() if _spreads(func, args, out) else 0
        return out


class _Largest(Watch):
    """Looks closer at a tensor only when it is larger than all before it: few are."""

    def __init__(self, counted: Counted) -> None:
        super().__init__()
        self.counted, self.largest = counted, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in _tensors(out):
            storage = tensor.untyped_storage()
            size = storage.nbytes() // tensor.element_size()
            if size > self.largest and (_product(func, args, out) or self.counted(tensor)):
                known = (t.untyped_storage()._cdata for t in _tensors((args, kwargs)))
                if storage._cdata not in known:
                    self.largest = size
        return out


class _Memory(Watch):
    """Follows every storage that an operator makes until it is freed."""

    def __init__(self, counted: Counted) -> None:
        super().__init__()
        self.counted, self.peak = counted, 0
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}
        self._bytes = 0  # of all that is alive, and of what was freed and not yet forgotten

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        made = _tensors(out)
        if not made:
            return out
        known = {t.untyped_storage()._cdata for t in _tensors((args, kwargs))}
        product = _product(func, args, out)
        for tensor in made:
            storage = tensor.untyped_storage()
            key = storage._cdata
            if key not in known and key not in self._alive and (product or self.counted(tensor)):
                self._alive[key] = StorageWeakRef(storage), storage.nbytes()
                self._bytes += storage.nbytes()
        if self._bytes > self.peak:
            self._forget_the_freed()
            self.peak = max(self.peak, self._bytes)
        return out

    def _forget_the_freed(self) -> None:
        for key in [key for key, one in self._alive.items() if one[0].expired()]:
            self._bytes -= self._alive.pop(key)[1]


def _product(func: Any, args: tuple[Any, ...], out: Any) -> bool:
    return func.overloadpacket.__name__ in PRODUCTS or _spreads(func, args, out)


def _spreads(func: Any, args: tuple[Any, ...], out: Any) -> bool:
    """Whether a * b has more numbers than either: each of a's meets several of b's."""
    if func.overloadpacket.__name__ not in ("mul", "mul_"):
        return False
    factors = _tensors(args)
    return len(factors) == 2 and all(_own_numbers(one) < out.numel() for one in factors)


def _own_numbers(tensor: torch.Tensor) -> int:
    """How many numbers a tensor has of its own: an expanded axis has one."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return math.prod(size for size, stride in sizes if stride)


def _tensors(tree: Any) -> list[torch.Tensor]:
    """The tensors in arguments or results; pytree's own walk takes longer than most operators."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, (list, tuple)):
        return [tensor for part in tree for tensor in _tensors(part)]
    if isinstance(tree, dict):
        return [tensor for part in tree.values() for tensor in _tensors(part)]
    return []
