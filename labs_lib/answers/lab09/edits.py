"""Wrong kernels are a right one with a few words exchanged."""

from __future__ import annotations

from itertools import chain

from .. import kit
from ..kit import bundled

__all__ = ["bundled", "edited"]


def edited(source: str, *pairs: tuple[str, str]) -> str:
    """The source with the first part of each pair exchanged for the second; each stands there once.

    Raises ValueError where a first part doesn't: a wrong program can't turn into the right one.
    """
    return kit.edited(source, *chain.from_iterable(pairs))
