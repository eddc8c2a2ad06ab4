"""What a lab's checks are to print on a seed, and what each known mistake prints in its stead.

Made once for each lab of a run, and kept on the grader's side: the fenced kernel only gets the seed
and the places, and a `labs_lib` without answers.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...answers import answer
from ...authoring.handout import build_library
from ...notebook.cells import role
from ...paths import data
from ..course import Course
from ..reading.transplant import of_solution, transplant
from ..run import CellRun, run_notebook
from ..run.policies import policy_for
from ..run.warm import Warm
from ..sandbox import Limits, Policy
from ..versions import library_hash, machine
from .places import choose
from .printed import Mistakes
from .ready import Entry
from .seen import mistakes_of

_DATA = ("models.json",)
_CHOOSING = threading.Lock()  # programs run in this process then, and their output is swallowed


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
    entry: Entry | None = None  # what of it can be kept for a later run


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
    with _CHOOSING:
        chosen = {item.name: choose(item, answer(item.name), seed) for item in course.exercises}
    places = {name: one.places for name, one in chosen.items()}
    expected = {name: f"{one.expected}\n" for name, one in chosen.items()}
    entry = Entry(key_basis(course), seed, places, expected)
    key = key_of(course, entry, folder, limits=limits, level=level)
    _confirm(course, expected, key.policy, folder / "solution", warm)
    return key


def key_of(
    course: Course, entry: Entry, folder: Path, *, limits: Limits | None, level: str | None
) -> Key:
    """The key of what was found on a seed: the handout is built, nothing runs."""
    handout = _handout(course, folder)
    policy = policy_for(
        handout,
        {"seed": entry.seed, "places": entry.places},
        folder,
        kernels=bool(course.kernels),
        limits=limits or Limits(),
        level=level,
    )
    mistakes = {
        item.name: mistakes_of(item, answer(item.name), entry.seed, entry.places[item.name])
        for item in course.exercises
    }
    return Key(course, entry.expected, mistakes, policy, folder, entry)


def key_basis(course: Course) -> str:
    """A hash of all that the places and the expected texts of a lab rest on, but the seed."""
    cells = [f"{role(cell)}\n{cell.source}" for cell in course.solution().cells]
    told = [library_hash(course.lab.name), machine(bool(course.kernels)), *cells]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


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
