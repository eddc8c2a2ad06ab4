"""What a program returns while a rule is measured: it has to be right there too.

A program that knew a rule's call from the others could do nothing in it, and so keep every rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map

from .observe import Leaf, flatten

NUMBERS = ("tensor", "array", "number")


class Witness:
    """Stands for a program in a rule's hands and keeps what its calls returned."""

    def __init__(
        self, program: Callable[..., Any], prepared: Callable[[Any], Any] = lambda value: value
    ) -> None:
        """`prepared` is applied to each argument before the program gets it."""
        self._program, self._prepared = program, prepared
        self._returned: list[Any] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program; what it yields one by one comes back as a list."""
        args, kwargs = tree_map(self._prepared, args), tree_map(self._prepared, kwargs)
        returned = self._program(*args, **kwargs)
        if isinstance(returned, Iterable) and not isinstance(returned, _WHOLE):
            returned = list(returned)
        self._returned.append(returned)
        return returned

    def leaves(self) -> dict[str, Leaf]:
        """The numbers of all calls by path, `[0]` the first one's."""
        found = flatten([tree_map(_plain, one) for one in self._returned])
        return {path: leaf for path, leaf in found.items() if leaf.kind in NUMBERS}


_WHOLE = (torch.Tensor, Mapping, Sequence)


def _plain(value: Any) -> Any:
    """A tensor of one number as that number, whatever axes it has: a token may be either."""
    one = type(value) is torch.Tensor and value.numel() == 1
    return value.detach().item() if one else value
