"""Grading: classes beside nbgrader's autograde, one student's whole course, and memory."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import resource
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil

from labs_lib.bench.rows import Row, WrongResult
from labs_lib.bench.timing import busy
from labs_lib.grading.course import Course, chosen, stub_of
from labs_lib.grading.grade import grade, prepare
from labs_lib.grading.run.warm import shared
from labs_lib.notebook.cells import exercise_name, role

LAB, WORKERS = "02", 2
CLASSES = (8, 24)  # how many hand in; the larger one has the bar
PEERS = 4  # submissions of a longer run of nbgrader's; the shorter one has one
FASTER, WHOLE_COURSE_S = 10.0, 10.0
MIB = 1 << 20


@dataclass(frozen=True)
class Spent:
    """What a class took: seconds by the clock and of the processor, and the most bytes."""

    clock: float
    processor: float
    memory: float = 0.0


@dataclass(frozen=True)
class Rate:
    """What a class takes before its first submission and with each, by the clock."""

    start: float
    each: float
    processor: float

    @classmethod
    def between(cls, fewer: Spent, few: int, more: Spent, many: int) -> Rate:
        """From two classes of different size."""
        each = max((more.clock - fewer.clock) / (many - few), 1e-9)
        processor = (more.processor - fewer.processor) / (many - few)
        return cls(max(0.0, fewer.clock - few * each), each, processor)

    def of(self, students: int) -> float:
        """Seconds for each submission of a class, its share of the start included."""
        return self.start / students + self.each


def rows() -> list[Row | str]:
    """Classes on one lab beside nbgrader on the same cells, then a student's whole course.

    Raises: WrongResult where right answers do not get their points.
    """
    course = chosen(LAB)[0]
    everything = [one for one in chosen(None) if one.file.is_file()]
    with tempfile.TemporaryDirectory(prefix="labs-bench-") as name:
        folder = Path(name)
        grade_class(folder / "warm-up", [course], 1)
        ours = [grade_class(folder / f"class-{n}", [course], n) for n in CLASSES]
        theirs = _nbgrader(folder / "peer", course)
        whole = [_whole_course(folder, everything, ready=is_ready) for is_ready in (True, False)]
    made = [_beside(spent, n, theirs) for spent, n in zip(ours, CLASSES, strict=True)]
    made += [_without_start(Rate.between(ours[0], CLASSES[0], ours[1], CLASSES[1]), theirs)]
    note = (
        f"{CLASSES[-1]} students, {WORKERS} workers, {len(course.exercises)} exercises; "
        f"{ours[-1].memory / WORKERS / MIB:.0f} MiB a worker at most, parents shared among them."
    )
    return [*made, *whole, note, *([busy()] if busy() else [])]


def _beside(ours: Spent, students: int, theirs: Rate | None) -> Row:
    """A submission of a class, the key and all starts included; the largest class has the bar."""
    each = ours.clock / students
    more = (("a minute", f"{60 / each:.0f}"), ("processor", f"{ours.processor / students:.2f} s"))
    what = f"one of {students} submissions of lab {LAB}, the lab's key included"
    peer = None if theirs is None else theirs.of(students)
    return _held_against(what, each, more, peer, students == CLASSES[-1])


def _without_start(ours: Rate, theirs: Rate | None) -> Row:
    """One submission more, after all that happens once."""
    more = (("a minute", f"{60 / ours.each:.0f}"), ("processor", f"{ours.processor:.2f} s"))
    if theirs is not None:
        more += (("nbgrader's processor", f"{theirs.processor:.2f} s"),)
    what = f"one submission more of lab {LAB}, without what happens once"
    peer = None if theirs is None else theirs.each
    return _held_against(what, ours.each, more, peer, asked=True)


def _held_against(
    what: str, seconds: float, more: tuple[tuple[str, str], ...], theirs: float | None, asked: bool
) -> Row:
    if theirs is None:
        return Row(f"{what} (no nbgrader here)", seconds, more=more)
    more += (("nbgrader a minute", f"{60 / theirs:.1f}"),)
    return Row(
        what,
        seconds,
        peer="nbgrader",
        peer_seconds=theirs,
        faster=FASTER if asked else None,
        more=more,
    )


def _whole_course(folder: Path, everything: Sequence[Course], *, ready: bool) -> Row:
    """One submission of all labs, with keys that were made ahead or with none."""
    if ready:
        prepare(1, [course.lab.number for course in everything], stream=io.StringIO())
    seed = None if ready else secrets.randbits(62)
    spent = grade_class(folder / f"course-{ready}", everything, 1, seed)
    more = (("labs", str(len(everything))), ("processor", f"{spent.processor:.1f} s"))
    if ready:
        what = "one submission of all labs, keys made ahead"
        return Row(what, spent.clock, within=WHOLE_COURSE_S, more=more)
    return Row("one submission of all labs, with the keys of all labs", spent.clock, more=more)


def grade_class(
    folder: Path, courses: Sequence[Course], students: int, seed: int | None = None
) -> Spent:
    """Grade so many right submissions, no two the same, with parents that are warm.

    With a seed no key that was made ahead is used.

    Raises: WrongResult.
    """
    for course in courses:
        for number in range(students):
            target = folder / "in" / f"s{number:03d}" / f"{course.lab.stem}.ipynb"
            target.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(solved(course, number), target)
    names = [course.lab.number for course in courses]
    before, began = _processor(), time.monotonic()
    with _Memory() as memory:
        report = grade(
            folder / "in",
            folder / "out",
            labs=names,
            seed=seed,
            workers=WORKERS,
            stream=io.StringIO(),
        )
    spent = Spent(time.monotonic() - began, _processor() - before, memory.most)
    for row in report.rows:
        if row.total != report.maximum:
            raise WrongResult(f"right answers got {row.total} of {report.maximum}: {row.status}")
    return spent


def solved(course: Course, number: int) -> nbformat.NotebookNode:
    """The notebook of a student who wrote the course's own answers, and a remark of their own."""
    whole = stub_of(course)
    for cell, ours in zip(whole.cells, course.solution().cells, strict=True):
        if role(cell) == "answer":
            sign = "//" if ours.source.lstrip().startswith("%%") else "#"
            cell.source = f"{ours.source.strip()}\n{sign} student {number}"
    return whole


def _nbgrader(folder: Path, course: Course) -> Rate | None:
    """The same answer and check cells in nbgrader's own format; None where it isn't installed."""
    if importlib.util.find_spec("nbgrader") is None:
        return None
    spent = []
    for students in (1, PEERS):
        place = folder / str(students)
        source = place / "source" / "ps1" / "lab.ipynb"
        source.parent.mkdir(parents=True)
        nbformat.write(_theirs(stub_of(course), course), source)
        for number in range(students):
            target = place / "submitted" / f"s{number:03d}" / "ps1" / "lab.ipynb"
            target.parent.mkdir(parents=True)
            nbformat.write(_theirs(solved(course, number), course), target)
        _call(place, "generate_assignment", "ps1", "--force")
        spent.append(_autograded(place, students))
    return Rate.between(spent[0], 1, spent[1], PEERS)


def _autograded(place: Path, students: int) -> Spent:
    before, began = _processor(), time.monotonic()
    told = _call(place, "autograde", "ps1")
    spent = Spent(time.monotonic() - began, _processor() - before)
    graded = list((place / "autograded").rglob("lab.ipynb"))
    if len(graded) != students:
        raise WrongResult(f"nbgrader graded {len(graded)} of {students}: {told[-300:]}")
    return spent


def _theirs(whole: nbformat.NotebookNode, course: Course) -> nbformat.NotebookNode:
    """Set-up, answers and checks with nbgrader's metadata; nothing else of the notebook."""
    cells = []
    for cell in whole.cells:
        kind = role(cell)
        if kind not in ("setup", "answer", "check"):
            continue
        made = nbformat.v4.new_code_cell(cell.source)
        if kind != "setup":
            label = re.sub(r"\W", "-", f"{exercise_name(cell)}-{kind}")
            made.metadata["nbgrader"] = {
                "grade": kind == "check",
                "locked": kind == "check",
                "solution": kind == "answer",
                "task": False,
                "schema_version": 3,
                "grade_id": label,
            } | ({"points": 1} if kind == "check" else {})
        cells.append(made)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def _call(folder: Path, *words: str) -> str:
    """Run nbgrader; its checks raise where they don't pass, as under nbval."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    steady = {"LABS_NBVAL": "1", "LABS_STATE": "off", "OMP_NUM_THREADS": "1", "PATH": path}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *words, f"--course={folder}"],
        cwd=folder,
        env=os.environ | steady,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise WrongResult(f"nbgrader {words[0]} failed: {done.stderr[-500:]}")
    return done.stderr


def _processor() -> float:
    """Seconds of the processor of this process, and of all below it, running or gone."""
    own, gone = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    total = own.ru_utime + own.ru_stime + gone.ru_utime + gone.ru_stime
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


class _Memory:
    """Watches what the processes below this one hold, without their parents, which are shared."""

    def __enter__(self) -> _Memory:
        self.most, self._over = 0.0, threading.Event()
        warm = shared()
        self._parents = {warm.process.pid} if warm else set()
        self._nursery = warm.nursery.process.pid if warm and warm.nursery else None
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(0.5):  # each look takes the processor, too
            total = 0
            for process in psutil.Process().children(recursive=True):
                try:
                    shared_by_all = self._nursery in (process.pid, process.ppid())
                    if process.pid not in self._parents and not shared_by_all:
                        total += process.memory_full_info().pss
                except (psutil.Error, AttributeError):
                    continue
            self.most = max(self.most, total)
