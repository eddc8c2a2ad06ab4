"""What a lab's checks are to print on a seed, and what each known mistake prints in its stead.

Made once for each lab of a run, and kept on the grader's side: the fenced kernel only gets the seed
and the places, and a `labs_lib` without answers.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..answers import answer
from ..authoring.handout import build_library
from ..cuda import build
from ..paths import data
from .course import Course
from .places import choose
from .printed import Mistakes
from .run import CellRun, run_notebook
from .sandbox import Limits, Policy
from .transplant import of_solution, transplant

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


def make_key(
    course: Course,
    seed: int,
    folder: Path,
    *,
    limits: Limits | None = None,
    level: str | None = None,
) -> Key:
    """Choose places, build the handout that the kernel gets, and run the solution in it.

    Raises:
        PlacesError: if an exercise can't be graded on this seed.
        KeyFailure: if the solution notebook prints something else than the references.
    """
    names = [item.name for item in course.exercises]
    chosen = {item.name: choose(item, answer(item.name), seed) for item in course.exercises}
    run = {"seed": seed, "places": {name: chosen[name].places for name in names}}
    policy = _policy(course, run, folder, limits or Limits(), level)
    expected = {name: f"{chosen[name].expected}\n" for name in names}
    _confirm(course, expected, policy, folder / "solution")
    return Key(course, expected, {name: chosen[name].mistakes for name in names}, policy)


def _policy(
    course: Course, run: Mapping[str, Any], folder: Path, limits: Limits, level: str | None
) -> Policy:
    handout = folder / "handout"
    handout.mkdir(parents=True)
    build_library(handout, course.lab, for_grading=True)
    environment: dict[str, str] = {}
    readable: tuple[Path, ...] = ()
    if course.kernels:
        readable = (_shared_builds(folder / "cuda"),)
        environment = {"LABS_CUDA_SHARED": str(readable[0])}
    for name in _DATA:
        if (data() / name).is_file():
            (handout / "data").mkdir(exist_ok=True)
            shutil.copyfile(data() / name, handout / "data" / name)
    run_json = folder / "run.json"
    run_json.write_text(json.dumps(run), encoding="utf-8")
    return Policy(
        limits=limits,
        handout=handout,
        run_json=run_json,
        readable=readable,
        environment=environment,
        level=level,
    )


def _shared_builds(folder: Path) -> Path:
    """The runner and headers of kernels, read-only for all: each fenced kernel begins without."""
    build.shared(folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    return folder


def _confirm(course: Course, expected: Mapping[str, str], policy: Policy, out: Path) -> None:
    """Run the solution as a student's notebook is run; it has to print what the references do."""
    solution = course.solution()
    runs = run_notebook(
        transplant(solution, of_solution(solution), expected, course.kernels),
        policy=policy,
        out=out,
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
