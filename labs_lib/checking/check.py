"""`check`: the cell below every exercise.

In Jupyter it prints and never raises. Under nbval a verdict that isn't PASS raises, so that a
notebook saved with its own FAIL can't match itself. In a graded run it prints values.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from ..cuda import BuildError
from ..exercises import exercise
from ..exercises.kit import Exercise
from ..nbval_plugin import VARIABLE as UNDER_NBVAL
from . import kernels, progress
from .observe import observe_all
from .oracle import NothingToCompare, oracle_for
from .render import render
from .verdict import ERROR, NOT_ATTEMPTED, Verdict, judge, rules_kept, source_of


class CheckFailed(AssertionError):
    """Raised under nbval by a check that isn't PASS; its text is the verdict."""


def check(name: str, program: Any = None) -> None:
    """Check a student's function or value against an exercise, and print what comes of it.

    Raises:
        UnknownExercise: if there is no exercise of that name.
        CheckFailed: under nbval only, where the verdict isn't PASS.
    """
    item = exercise(name)
    run = os.environ.get("LABS_RUN")
    if run:
        print(graded_text(item, program, json.loads(Path(run).read_text(encoding="utf-8"))))
        return
    verdict = _verdict(item, program)
    progress.record(verdict, source_of(program))
    if verdict.passed:
        print(verdict)
        return
    if os.environ.get(UNDER_NBVAL):
        raise CheckFailed(str(verdict))
    print(verdict)
    _offer_hints(item)


def graded_text(item: Exercise, program: Any, run: dict[str, Any]) -> str:
    """What a graded check prints: the program's values on secret inputs, without a verdict.

    `run` holds `seed` and `places` (exercise -> case -> path -> which elements, how many decimals).
    """
    if program is None or (item.kind == "kernel" and _is_stub(item, program)):
        return f"{item.name}\n{NOT_ATTEMPTED}"
    if item.kind == "function" and not callable(program):
        return f"{item.name}\nnot a function: {type(program).__name__}"
    if item.kind == "kernel" and not kernels.is_kernel(program):
        return f"{item.name}\nnot a kernel: {type(program).__name__}"
    if item.kind == "choice" and isinstance(program, str):
        program = program.strip().lower()
    got = observe_all(item, program, int(run["seed"]))
    if got[0].unwritten == item.called:
        return f"{item.name}\n{NOT_ATTEMPTED}"
    failed = all(one.raised for one in got)
    rules = rules_kept(item, program, int(run["seed"])) if item.rules and not failed else {}
    return render(item, got, rules, run.get("places", {}).get(item.name, {}))


def _verdict(item: Exercise, program: Any) -> Verdict:
    try:
        return judge(item, program, oracle_for(item))
    except (NothingToCompare, BuildError) as error:
        return Verdict(item.name, ERROR, tuple(str(error).split("\n")))


def _is_stub(item: Exercise, program: Any) -> bool:
    return kernels.is_kernel(program) and kernels.untouched(item, program)


def _offer_hints(item: Exercise) -> None:
    if not item.hints:
        return
    print(f'\n  hint("{item.name}") gives a hint; there are {len(item.hints)}, one at a time.')
    with contextlib.suppress(Exception):  # a front end without widgets still has the line above
        from .hint_button import show

        show(item.name)
