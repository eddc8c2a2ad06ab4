"""The answers: for each exercise its reference, wrong programs and right programs.

`labs_lib.answers.labNN` holds `ANSWERS`, a dict from exercise name to `Answer`. Nothing imports
these modules by an import statement; they are loaded by name, since a handout leaves them out.
"""

from __future__ import annotations

import importlib

from .kit import Answer, Right, Wrong, bundled, edited

__all__ = ["Answer", "Right", "Wrong", "answer", "bundled", "edited"]


def answer(name: str) -> Answer:
    """The answer to the exercise called `name`.

    Raises:
        ModuleNotFoundError: in a handout that leaves this lab's answers out.
        KeyError: if the lab's answers don't hold this exercise.
    """
    lab = name.partition(".")[0]
    return importlib.import_module(f"{__name__}.{lab}").ANSWERS[name]
