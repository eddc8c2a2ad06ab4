"""`labs grade`: from a folder of submissions to marks and feedback."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO

from ..cuda import BuildError
from ..errors import UsageError
from ..notebook.matching import match
from ..notebook.reading import Unreadable
from . import report as reports
from .candidates import Sorted, parse, sort_files
from .course import Course, Names, chosen
from .extras import Extras
from .intake import Submission
from .judge import Outcome, judge, outcome, without_run
from .key import Key, KeyFailure, make_key
from .own import own_reports
from .report import Report, Row
from .rounding import PlacesError
from .run import run_notebook
from .sandbox import Limits, Policy, SandboxUnavailable
from .sandbox import level as fence_level
from .transplant import transplant

SEEDS_TRIED = 5


def grade(
    submissions: Path,
    out: Path,
    labs: Names = None,
    seed: int | None = None,
    *,
    roster: Path | None = None,
    jobs: int | None = None,
    limits: Limits | None = None,
    level: str | None = None,
    stream: TextIO | None = None,
    extras: Extras | None = None,
) -> Report:
    """Grade a folder (or a zip) of submissions and write the report into `out`.

    Args:
        labs: the labs to grade, such as `"02,03"`; the whole course unless given.
        seed: for the inputs of every check; a fresh secret one unless given.
        roster: a CSV of the class; students who handed in nothing get a row too.
        jobs: how many submissions run at a time; two at most unless given.
        limits: for each notebook's kernel.
        level: the fence to insist on (`bubblewrap`, `process-limits`).
        stream: where progress goes; standard error unless given.
        extras: deadlines, marks by hand and the like (its roster counts in place of `roster`).

    Raises:
        UsageError: if something given can't be used; nothing is written then.
    """
    submissions, out = Path(submissions).expanduser(), Path(out).expanduser()
    courses = chosen(labs)
    _check_seed(seed)
    extras = extras or Extras(roster=roster)
    found, left_out = extras.collect(submissions, out, courses)
    reports.check_target(out, submissions)
    with tempfile.TemporaryDirectory(prefix="labs-grade-") as folder:
        keys = _Keys(Path(folder), seed, limits, level)
        progress = _Progress(stream or sys.stderr, len(found))
        rows = _rows(found, courses, keys, jobs or min(2, os.cpu_count() or 1), progress)
    bare = replace(_report(rows, courses, keys, left_out), own=own_reports(found))
    finished = extras.finish(bare, courses)
    reports.write(finished, out)
    progress.say(_summary(finished, out))
    return finished


def _check_seed(seed: int | None) -> None:
    if seed is not None and (not isinstance(seed, int) or not 0 <= seed < 2**63):
        raise UsageError(f"--seed {seed} can't be used; give a whole number from 0 to 2^63 - 1")


@dataclass
class _Keys:
    """The keys of the labs, each made when the first notebook of it comes up, all on one seed."""

    folder: Path
    given_seed: int | None
    limits: Limits | None
    level: str | None
    made: dict[str, Key] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.seed = secrets.randbits(62) if self.given_seed is None else self.given_seed
        try:
            self.fence = fence_level(Policy(level=self.level)).sentence
        except (SandboxUnavailable, ValueError) as error:
            raise UsageError(str(error)) from error

    def of(self, course: Course) -> Key:
        with self.lock:
            if course.lab.name not in self.made:
                self.made[course.lab.name] = self._make(course)
            return self.made[course.lab.name]

    def _make(self, course: Course) -> Key:
        for tried in range(SEEDS_TRIED):
            folder = self.folder / f"{course.lab.name}-{tried}"
            folder.mkdir()
            try:
                return make_key(
                    course, self._seed(tried), folder, limits=self.limits, level=self.level
                )
            except KeyFailure as error:
                raise UsageError(str(error)) from error
            except PlacesError as error:
                trouble = error
        raise UsageError(f"{course.lab.name} can't be graded: {trouble}") from trouble

    def _seed(self, tried: int) -> int:
        """The run's seed; where a lab can't be graded on it, one derived from it."""
        return self.seed if not tried else (self.seed + tried * 0x9E3779B97F4A7C15) % 2**62


def _rows(
    found: Sequence[Submission],
    courses: Sequence[Course],
    keys: _Keys,
    jobs: int,
    progress: _Progress,
) -> list[Row]:
    rows: dict[int, Row] = {}
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        waiting = {pool.submit(_row, one, courses, keys): n for n, one in enumerate(found)}
        try:
            for done in as_completed(waiting):
                number = waiting[done]
                rows[number] = _result(done, found[number], courses)
                progress.step(found[number].student)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [rows[number] for number in range(len(found))]


def _result(done: Future[Row], submission: Submission, courses: Sequence[Course]) -> Row:
    """A row whatever happened: what goes wrong in the grader itself costs no student anything."""
    try:
        return done.result()
    except UsageError:
        raise
    except Exception as error:
        sentence = f"The grader itself failed ({type(error).__name__}: {error})."
        items = [item for course in courses for item in course.exercises]
        outcomes = tuple(outcome(item, "infrastructure", sentence) for item in items)
        labels = tuple(file.label for file in submission.files)
        return Row(submission.student, outcomes, labels, (*submission.notes, sentence))


def _row(submission: Submission, courses: Sequence[Course], keys: _Keys) -> Row:
    sorted_files = sort_files(submission, courses)
    outcomes: list[Outcome] = []
    notes = list(sorted_files.notes)
    for course in courses:
        outcomes += _lab(course, sorted_files, keys, notes)
    labels = tuple(file.label for file in submission.files)
    return Row(submission.student, tuple(outcomes), labels, tuple(notes))


def _lab(course: Course, files: Sorted, keys: _Keys, notes: list[str]) -> list[Outcome]:
    name = course.lab.name
    if name in files.doubts:
        return [outcome(item, "needs-review", files.doubts[name]) for item in course.exercises]
    if name not in files.notebooks:
        status, sentence = _why_none(course, files)
        return [outcome(item, status, sentence) for item in course.exercises]
    candidate = files.notebooks[name]
    notes += [f"{candidate.file.label}: {note}" for note in candidate.notes]
    try:
        student = parse(candidate).notebook
    except Unreadable as error:
        return [outcome(item, "unreadable", f"{error}.") for item in course.exercises]
    answers = match(student, course.notebook, course.asked)
    known = [without_run(item, answers[item.name]) for item in course.exercises]
    if all(known):
        return known
    try:
        key = keys.of(course)
    except BuildError as error:  # no compiler on this machine: nobody's fault but its own
        missing = [outcome(item, "infrastructure", str(error)) for item in course.exercises]
        return [one or other for one, other in zip(known, missing, strict=True)]
    prepared = transplant(course.notebook, answers, key.expected, course.kernels)
    with tempfile.TemporaryDirectory(prefix="run-", dir=keys.folder) as folder:
        runs = run_notebook(prepared, policy=key.policy, out=Path(folder))
    return judge(key, answers, runs)


def _why_none(course: Course, files: Sorted) -> tuple[str, str]:
    """Status and sentence for a lab without a notebook that could be graded."""
    if course.lab.name in files.broken:
        return "unreadable", files.broken[course.lab.name]
    if files.strangers and not files.notebooks:
        return "wrong-assignment", f"{', '.join(files.strangers)} is no notebook of this lab."
    return "not-attempted", "No notebook of this lab was handed in."


def _report(
    rows: Sequence[Row], courses: Sequence[Course], keys: _Keys, left_out: Sequence[str]
) -> Report:
    items = [item for course in courses for item in course.exercises]
    titles = {c.lab.name: f"{c.lab.number:02d} · {c.lab.title}" for c in courses}
    return Report(
        rows=tuple(rows),
        exercises=tuple(item.name for item in items),
        titles=titles,
        maximum=sum(item.points for item in items),
        seed=keys.seed,
        fence=keys.fence,
        left_out=tuple(left_out),
    )


def _summary(report: Report, out: Path) -> str:
    open_rows = sum(1 for row in report.rows if any(o.points is None for o in row.outcomes))
    waiting = f", {open_rows} of them with something to decide" if open_rows else ""
    count = f"{len(report.rows)} submission{'s' if len(report.rows) != 1 else ''}"
    return f"{count}{waiting}; the marks are in {out / 'grades.csv'}"


class _Progress:
    """A line on a terminal that says how far it is and how long it may take; lines elsewhere."""

    def __init__(self, stream: TextIO, total: int) -> None:
        self.stream, self.total, self.done = stream, total, 0
        self.began = time.monotonic()
        self.live = stream.isatty()

    def step(self, student: str) -> None:
        """One more submission is graded."""
        self.done += 1
        left = (time.monotonic() - self.began) / self.done * (self.total - self.done)
        text = f"graded {self.done} of {self.total}, about {_minutes(left)} left ({student})"
        self._write(f"\r\x1b[K{text}" if self.live else f"{text}\n")

    def say(self, text: str) -> None:
        """A closing line."""
        self._write(f"\r\x1b[K{text}\n" if self.live else f"{text}\n")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
