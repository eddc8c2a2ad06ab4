"""Lab 05: its structural rules, measured by what torch runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves

from .inputs import rule_generator, uniform, weight
from .measure import Watch, flops

_MOVES = (
    "clone copy_ _to_copy cat stack index index_select index_put_ index_put gather scatter "
    "scatter_ index_copy index_copy_ index_fill_ take fill_ zero_ _unsafe_view _reshape_copy "
    "reshape_copy empty_like zeros_like ones_like new_empty new_zeros new_ones new_full "
    "new_empty_strided select_scatter slice_scatter repeat flip roll resize_ set_ swapaxes "
    "permute_copy transpose_copy view_copy split_copy unbind_copy lift_fresh "
    "lift_fresh_copy pin_memory contiguous"
)


def computes_nothing(program: Callable[..., Any]) -> bool:
    """Whether every operator that the program runs on the heads only moves numbers."""
    heads = uniform(rule_generator(5), 2, 3, 4, 5)
    with _Arithmetic() as record:
        program(heads)
    return not record.found


def multiplies_once(program: Callable[..., Any]) -> bool:
    """Whether the program's products take no more operations than one concat @ W_O."""
    rng = rule_generator(5)
    heads, W_O = uniform(rng, 2, 4, 5, 3), weight(rng, 12, 10)
    return flops(program, heads, W_O) <= 2 * (2 * 5) * 12 * 10


class _Arithmetic(Watch):
    """Collects the names of operators that make numbers out of floating-point numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        floats = [t for t in tree_leaves((args, kwargs)) if _is_float(t)]
        name = func.overloadpacket.__name__
        if floats and not func.is_view and name not in _MOVES.split():
            self.found.add(name)
        return func(*args, **(kwargs or {}))


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()
