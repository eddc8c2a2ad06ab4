"""The shapes that answers are made of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
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


def choice(reference: str, because: str, **wrong: str) -> Answer:
    """The answer to a quiz question: the right letter and why, and what each other letter is told.

    `choice("b", "Since ...", a="No: ...", c="No: ...")`; a wrong letter is the name of its `Wrong`.
    """
    told = tuple(Wrong(letter, letter, says) for letter, says in wrong.items())
    return Answer(reference, told, because=because)


def decorated(program: Callable[..., Any]) -> Callable[..., Any]:
    """A program behind a decorator that keeps its name and signature; it does what it did."""

    @functools.wraps(program)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return program(*args, **kwargs)

    return wrapper


def bundled(name: str) -> str:
    """The CUDA source of a kernel of the ladder, `labs_lib/cuda/kernels/NAME.cu`."""
    file = resources.files("labs_lib") / "cuda" / "kernels" / f"{name}.cu"
    return file.read_text(encoding="utf-8")


def edited(source: str, *edits: str, count: int = 1) -> str:
    """A kernel's text with pieces exchanged: `edited(source, old, new, old, new, ...)`.

    Raises ValueError where an old piece doesn't stand there exactly `count` times, so that a wrong
    program can't turn into the right one when its reference is rewritten.
    """
    if not edits or len(edits) % 2:
        raise ValueError("give pairs: edited(source, old, new, ...)")
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        found = source.count(old)
        if found != count:
            raise ValueError(f"{old!r} stands {found} times in the source, not {count}")
        source = source.replace(old, new)
    return source
