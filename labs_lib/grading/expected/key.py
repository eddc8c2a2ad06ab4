"""What a lab's checks are to print on a seed, and what each known mistake prints in its stead.

Made once for each lab of a run, and kept on the grader's side: the fenced kernel only gets the seed
and the places, and a `labs_lib` without answers.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...answers import answer
from ...authoring.handout import build_library
from ...paths import data
from ..course import Course
from ..reading.transplant import of_solution, transplant
from ..run import CellRun, run_notebook
from ..run.policies import policy_for
from ..run.warm import Warm
from ..sandbox import Limits, Policy
from .places import choose
from .printed import Mistakes
from .seen import mistakes_of

_DATA = ("models.json",)


class KeyFailure(RuntimeError):
    """A lab whose own solution doesn't print what its references do; the message says the mend."""


@dataclass(frozen=True)
class Key:
    """A lab ready to be graded: expected texts and mistakes by exercise, and the fence to use."""

    course: Course
    expected: Mapping[str, str]
    mistakes: Mapping[str, Mistakes]
    policy: Policy
    folder: Path | None = None  # temporary; what is made for this lab lies in it


def make_key(
    course: Course,
    seed: int,
    folder: Path,
    *,
    limits: Limits | None = None,
    level: str | None = None,
    warm: Warm | None = None,
) -> Key:
    """Choose places, build the handout that the kernel gets, and run the solution in it.

    Raises:
        PlacesError: if an exercise can't be graded on this seed.
        KeyFailure: if the solution notebook prints something else than the references.
    """
    names = [item.name for item in course.exercises]
    chosen = {item.name: choose(item, answer(item.name), seed) for item in course.exercises}
    run = {"seed": seed, "places": {name: chosen[name].places for name in names}}
    handout = _handout(course, folder)
    policy = policy_for(
        handout,
        run,
        folder,
        kernels=bool(course.kernels),
        limits=limits or Limits(),
        level=level,
    )
    expected = {name: f"{chosen[name].expected}\n" for name in names}
    _confirm(course, expected, policy, folder / "solution", warm)
    mistakes = {
        item.name: mistakes_of(item, answer(item.name), seed, chosen[item.name].places)
        for item in course.exercises
    }
    return Key(course, expected, mistakes, policy, folder)


def _handout(course: Course, folder: Path) -> Path:
    handout = folder / "handout"
    handout.mkdir(parents=True)
    build_library(handout, course.lab, for_grading=True)
    for name in _DATA:
        if (data() / name).is_file():
            (handout / "data").mkdir(exist_ok=True)
            shutil.copyfile(data() / name, handout / "data" / name)
    return handout


def _confirm(
    course: Course, expected: Mapping[str, str], policy: Policy, out: Path, warm: Warm | None
) -> None:
    """Run the solution as a student's notebook is run; it has to print what the references do."""
    solution = course.solution()
    runs = run_notebook(
        transplant(solution, of_solution(solution), expected, course.kernels),
        policy=policy,
        out=out,
        warm=warm,
    )
    for run in runs:
        if run.status != "ok":
            raise KeyFailure(
                f"the solution notebook of {course.lab.name} can't be graded itself: "
                f"{_told(run)}; `labs release {course.lab.number:02d} --all` makes it anew"
            )


def _told(run: CellRun) -> str:
    what = f"the {run.role} cell of {run.exercise}" if run.exercise else f"the {run.role} cell"
    return " ".join(f"{what} ended with {run.status} ({run.reason} {run.evalue})".split())
