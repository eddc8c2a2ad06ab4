"""`yours`: a demonstration that runs a student's own program, which may not be right yet."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

from ..exercises import exercise
from ..nbval_plugin import VARIABLE as UNDER_NBVAL
from . import progress
from .unwritten import calls_unwritten, is_stub
from .verdict import PASS, source_of


@contextmanager
def yours(name: str) -> Generator[None]:
    """What stands below runs the student's own program of an exercise.

    While it isn't written, a line says so. If it is wrong, so that the demonstration stops, a
    line says where it stopped; under nbval the error goes on, so that a solution's can't be missed.
    Where its check has passed the very same text, it isn't said to be wrong.

    Raises:
        UnknownExercise: if there is no exercise of that name.
    """
    called = exercise(name).called
    try:
        yield
    except Exception as error:
        unwritten = isinstance(error, NameError) and error.name == called
        if unwritten or is_stub(error):
            missing = calls_unwritten(error, called) or called
            print(f"write {missing} first, then run this cell again")
            return
        if os.environ.get(UNDER_NBVAL):
            raise
        first, *_ = [*str(error).split("\n"), ""]
        said = f"{type(error).__name__}: {first}" if first else type(error).__name__
        if _has_passed(name, called):
            print(
                f"your {called} has passed its check, and still this cell stops:\n    {said[:200]}"
            )
            print("what stops it is something that check doesn't ask for")
            return
        print(f"this needs a right {called}, and with yours it stops:\n    {said[:200]}")
        print(f'once check("{name}", …) says PASS, run this cell again')


def _has_passed(name: str, called: str) -> bool:
    """Whether what the notebook calls so is, to the letter, what last passed its check."""
    with suppress(ImportError):
        from IPython import get_ipython

        shell = get_ipython()
        program = shell.user_ns.get(called) if shell is not None else None
        known, text = progress.entry(name), source_of(program)
        return bool(text) and known.get("outcome") == PASS and known.get("source") == text
    return False
