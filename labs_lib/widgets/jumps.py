"""The head of lab 07's explorer that is built by hand, and what is said of a word's jump.

front/induction.mjs does the same in the browser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

MOST_WORDS = 40
SHARPNESS = 9.0  # of the built head: the score of two equal words
SURE = 0.5
WORD = re.compile(r"[\u3000-\u9fff]|[^\W\u3000-\u9fff]+|[^\w\s]")


def words_of(text: str) -> list[str]:
    """Return the words and marks of a text; a Chinese letter is a word. At most 40, the last."""
    return WORD.findall(text)[-MOST_WORDS:]


def built_weights(words: list[str], head_dim: int) -> Tensor:
    """Return the causal weights [seq, seq] of a head whose words are random codes of that width.

    A word's code is its query; a key is the code of the word before it.
    """
    codes = np.stack([_code(word.lower(), head_dim) for word in words])  # [seq, head_dim]
    keys = np.concatenate([np.zeros((1, head_dim)), codes[:-1]])
    scores = torch.from_numpy(SHARPNESS * codes @ keys.T)
    may = torch.ones(scores.shape, dtype=torch.bool).tril()
    return scores.masked_fill(~may, -torch.inf).softmax(dim=-1).float()


def last_time(words: Sequence[str], place: int) -> int | None:
    """Return where the word of a place stood last before it; None where it is new."""
    before = [word.lower() for word in words[:place]]
    return max((j for j, word in enumerate(before) if word == words[place].lower()), default=None)


def jump(words: Sequence[str], row: Tensor, place: int) -> str:
    """Say where the word of a place looks, for its row of weights [place + 1]."""
    bare = [word.strip() for word in words]
    last, best = last_time(bare, place), int(row.argmax())
    most = f"{float(row[best]):.2f}"
    if last is None:
        return (
            f"“{bare[place]}” (place {place}) stands here for the first time: there is nothing to "
            f"copy. Most weight, {most}, goes to “{bare[best]}” (place {best})."
        )
    after = float(row[last + 1])
    looks = f"“{bare[place]}” stood at place {last}; what came next, “{bare[last + 1]}”, gets "
    if best == last + 1 or after > SURE:
        return f"{looks}{after:.2f}."
    share = "As much" if f"{after:.2f}" == most else "More"
    return f"{looks}{after:.2f}. {share} goes to “{bare[best]}” (place {best})."


def _code(word: str, head_dim: int) -> np.ndarray:
    """A direction [head_dim] that only the word decides."""
    seed = 0x811C9DC5  # the sum FNV-1a of its bytes
    for byte in word.encode("utf-8"):
        seed = ((seed ^ byte) * 0x01000193) & 0xFFFFFFFF
    mixed = np.arange(head_dim, dtype=np.uint32) * np.uint32(0x9E3779B9) + np.uint32(seed)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        mixed = (mixed ^ (mixed >> np.uint32(shift))) * np.uint32(factor)
    numbers = (mixed ^ (mixed >> np.uint32(16))) / 2**31 - 1  # from -1 to 1
    return numbers / np.linalg.norm(numbers)
