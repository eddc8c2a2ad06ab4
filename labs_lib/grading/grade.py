"""`labs grade`: from a folder of submissions to marks and feedback."""

from __future__ import annotations

import secrets
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from ..cuda import BuildError
from ..errors import UsageError
from ..notebook.atomic import folder_beside
from .batch.loop import Loop
from .batch.progress import Progress
from .batch.results import Results
from .batch.scheduler import executor
from .course import Course, Names, chosen
from .expected import ready
from .expected.keys import Keys
from .expected.ready import ReadySet
from .extras import Extras
from .intake.collect import Submission
from .reports.folder import check_target, write
from .reports.own import own_reports
from .reports.report import RESULTS, Report, Row
from .run.warm import shared
from .sandbox import Limits
from .sandbox.levels import BUBBLEWRAP


def grade(
    submissions: Path,
    out: Path,
    labs: Names = None,
    seed: int | None = None,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    again: bool = False,
    limits: Limits | None = None,
    level: str | None = None,
    stream: TextIO | None = None,
    extras: Extras | None = None,
) -> Report:
    """Grade a folder (or a zip) of submissions and write the report into `out`.

    Args:
        labs: the labs to grade, such as `"02,03"`; the whole course unless given.
        seed: for the inputs of every check; a fresh secret one unless given.
        workers: how many notebooks run at a time; as many as there are cores unless given.
        scheduler: the address of a Dask cluster to run them on.
        again: run what was graded before, too.
        limits: for each notebook's kernel.
        level: the fence to insist on (`bubblewrap`, `process-limits`).
        stream: where progress goes; standard error unless given.
        extras: the class's roster, deadlines, marks by hand and the like.

    Raises:
        UsageError: if something given can't be used; nothing is written then.
    """
    submissions, out = Path(submissions).expanduser(), Path(out).expanduser()
    courses = chosen(labs)
    _check_seed(seed)
    extras = extras or Extras()
    found, left_out = extras.collect(submissions, out, courses)
    check_target(out, submissions)
    results = Results(finished_file(out), seed=seed, again=again)
    progress = Progress(stream or sys.stderr, len(found))
    with folder_beside(Path(tempfile.gettempdir(), "labs-grade")) as folder:
        keys = Keys(folder, seed, limits, level, warm=shared)
        runs = executor(scheduler, workers)
        rows = _rows(Loop(courses, keys, runs, results, progress), found)
    fence = " ".join([keys.fence, *(one for one in runs.fences() if one != keys.fence)])
    bare = replace(_report(rows, courses, keys.seed, fence, left_out), own=own_reports(found))
    finished = extras.finish(bare, courses)
    write(finished, out)
    _say_what_to_know(progress, results, left_out, out)
    if keys.level_name != BUBBLEWRAP:
        progress.say(f"to be known: {keys.fence}")
    progress.say(_summary(finished, out, results.taken))
    return finished


def _rows(loop: Loop, found: Sequence[Submission]) -> list[Row]:
    """The rows of a run; its keys and its executor end with it, however it ends."""
    try:
        return loop.rows(found)
    except KeyboardInterrupt:
        loop.progress.say(f"stopped; the same command goes on from {loop.results.path}")
        raise
    finally:
        loop.keys.close()
        loop.executor.stop()


def _say_what_to_know(progress: Progress, results: Results, left_out: list[str], out: Path) -> None:
    if results.trouble:
        progress.say(f"{results.trouble}: the next run has to run some notebooks again")
    if left_out:
        more = f", and {len(left_out) - 1} more in {out / RESULTS}" * (len(left_out) > 1)
        progress.say(f"to be known: {left_out[0]}{more}")


def prepare(
    sets: int = 1,
    labs: Names = None,
    *,
    level: str | None = None,
    stream: TextIO | None = None,
) -> None:
    """Make the keys of later runs ahead, each set on a seed of its own; see `expected.ready`.

    Raises:
        UsageError: if a lab can't be graded, or if the fence keeps no file of this account back.
    """
    courses = chosen(labs)
    progress = Progress(stream or sys.stderr, sets)
    for number in range(1, sets + 1):
        made = _set_of_keys(courses, level, progress)
        where = ready.put(made).parent
        progress.say(f"keys for {number} of {sets} later runs are ready in {where}")


def _set_of_keys(courses: Sequence[Course], level: str | None, progress: Progress) -> ReadySet:
    """The keys of all labs on a fresh seed, as far as this machine can make them."""
    entries = {}
    with folder_beside(Path(tempfile.gettempdir(), "labs-keys")) as folder:
        keys = Keys(folder, secrets.randbits(62), level=level, warm=shared)
        ready.require(keys.level_name)
        try:
            for course in courses:
                keys.start(course)
            for course in courses:
                try:
                    if entry := keys.of(course).entry:
                        entries[course.lab.name] = entry
                except BuildError as error:  # a lab of kernels on a machine without a compiler
                    progress.say(f"{course.lab.name} is left out: {error}")
        finally:
            keys.close()
    return ReadySet(keys.seed, entries)


def finished_file(out: Path) -> Path:
    """Where the results of a report's folder are kept as they come, for the next run."""
    return out.absolute().with_name(f"{out.absolute().name}.finished.jsonl")


def _check_seed(seed: int | None) -> None:
    if seed is not None and (not isinstance(seed, int) or not 0 <= seed < 2**63):
        raise UsageError(f"--seed {seed} can't be used; give a whole number from 0 to 2^63 - 1")


def _report(
    rows: Sequence[Row],
    courses: Sequence[Course],
    seed: int,
    fence: str,
    left_out: Sequence[str],
) -> Report:
    items = [item for course in courses for item in course.exercises]
    titles = {c.lab.name: f"{c.lab.number:02d} · {c.lab.title}" for c in courses}
    return Report(
        rows=tuple(rows),
        exercises=tuple(item.name for item in items),
        titles=titles,
        maximum=sum(item.points for item in items),
        seed=seed,
        fence=fence,
        left_out=tuple(left_out),
    )


def _summary(report: Report, out: Path, taken: int) -> str:
    open_rows = sum(1 for row in report.rows if any(o.points is None for o in row.outcomes))
    waiting = f", {open_rows} of them with something to decide" if open_rows else ""
    count = f"{len(report.rows)} submission{'s' if len(report.rows) != 1 else ''}"
    known = f" ({taken} notebooks were known and not run again)" if taken else ""
    return f"{count}{waiting}{known}; the marks are in {out / 'grades.csv'}"
