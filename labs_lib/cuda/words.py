"""Numbers and places in words, for whatever speaks of a launch."""

from __future__ import annotations

from collections.abc import Sequence


def many(n: int, word: str) -> str:
    """A number with its noun: "1 block", "2,000 blocks", "2 passes"."""
    plural = f"{word}es" if word.endswith("s") else f"{word}s"
    return f"{n:,} {word if n == 1 else plural}"


def place_words(place: Sequence[int], size: Sequence[int]) -> str:
    """A block's or a thread's place, with as many numbers as its grid or block has dimensions."""
    used = max((i + 1 for i, length in enumerate(size) if length > 1), default=1)
    return str(place[0]) if used == 1 else str(tuple(place[:used]))
