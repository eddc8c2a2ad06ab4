"""The shapes that answers are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Wrong:
    """A wrong program (or value) that students write, and the sentence they should read.

    `says` tells what the student has, when that happens, and where to look; it never shows the
    answer. `name` is a short slug such as `scale_by_d_model`.
    """

    name: str
    program: Any
    says: str


@dataclass(frozen=True)
class Right:
    """An odd but correct program (or value) that the check must accept."""

    name: str
    program: Any


@dataclass(frozen=True)
class Answer:
    """The reference of an exercise with the programs that prove its check.

    `because` is what a student reads after a right answer to a quiz question.
    """

    reference: Any
    wrong: tuple[Wrong, ...]
    right: tuple[Right, ...] = ()
    because: str = ""
