"""Grading: a class beside nbgrader's autograde, one student's whole course, and memory."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import resource
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
from labs_lib.grading.grade import grade
from labs_lib.grading.run.warm import shared
from labs_lib.notebook.cells import exercise_name, role

LAB, STUDENTS, PEERS, WORKERS = "02", 24, 4, 2
FASTER, WHOLE_COURSE_S = 10.0, 10.0
MIB = 1 << 20


@dataclass(frozen=True)
class Spent:
    """What a class took: seconds by the clock and of the processor, and the most bytes."""

    clock: float
    processor: float
    memory: float = 0.0


def rows() -> list[Row | str]:
    """A class on one lab beside nbgrader on the same cells, then a student's whole course.

    Raises: WrongResult where right answers do not get their points.
    """
    course = chosen(LAB)[0]
    with tempfile.TemporaryDirectory(prefix="labs-bench-") as name:
        folder = Path(name)
        grade_class(folder / "warm-up", [course], 1)
        ours = grade_class(folder / "class", [course], STUDENTS)
        everything = [one for one in chosen(None) if one.file.is_file()]
        whole = grade_class(folder / "course", everything, 1)
        made = [_beside(ours, _nbgrader(folder / "peer", course)), _whole(whole, len(everything))]
        note = (
            f"{STUDENTS} students, {WORKERS} workers, {len(course.exercises)} exercises; "
            f"{(ours.memory) / WORKERS / MIB:.0f} MiB a worker at most, parents shared among them."
        )
    return [*made, note, *([busy()] if busy() else [])]


def _beside(ours: Spent, theirs: Spent | None) -> Row:
    more = (
        ("a minute", f"{60 * STUDENTS / ours.clock:.0f}"),
        ("processor", f"{ours.processor / STUDENTS:.2f} s"),
    )
    what = f"one submission of lab {LAB}"
    if theirs is None:
        return Row(f"{what} (no nbgrader here)", ours.clock / STUDENTS, more=more)
    more += (
        ("nbgrader a minute", f"{60 * PEERS / theirs.clock:.0f}"),
        ("nbgrader's processor", f"{theirs.processor / PEERS:.2f} s"),
    )
    return Row(
        what,
        ours.clock / STUDENTS,
        peer="nbgrader",
        peer_seconds=theirs.clock / PEERS,
        faster=FASTER,
        more=more,
    )


def _whole(spent: Spent, labs: int) -> Row:
    more = (("labs", str(labs)), ("processor", f"{spent.processor:.1f} s"))
    what = "one submission of all labs, with the keys of all labs"
    return Row(what, spent.clock, within=WHOLE_COURSE_S, more=more)


def grade_class(folder: Path, courses: Sequence[Course], students: int) -> Spent:
    """Grade so many right submissions, no two the same, with parents that are warm.

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
            folder / "in", folder / "out", labs=names, workers=WORKERS, stream=io.StringIO()
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


def _nbgrader(folder: Path, course: Course) -> Spent | None:
    """The same answer and check cells in nbgrader's own format; None where it isn't installed."""
    if importlib.util.find_spec("nbgrader") is None:
        return None
    source = folder / "source" / "ps1" / "lab.ipynb"
    source.parent.mkdir(parents=True)
    nbformat.write(_theirs(stub_of(course), course), source)
    for number in range(PEERS):
        target = folder / "submitted" / f"s{number:03d}" / "ps1" / "lab.ipynb"
        target.parent.mkdir(parents=True)
        nbformat.write(_theirs(solved(course, number), course), target)
    _call(folder, "generate_assignment", "ps1", "--force")
    before, began = _processor(), time.monotonic()
    told = _call(folder, "autograde", "ps1")
    spent = Spent(time.monotonic() - began, _processor() - before)
    graded = list((folder / "autograded").rglob("lab.ipynb"))
    if len(graded) != PEERS:
        raise WrongResult(f"nbgrader graded {len(graded)} of {PEERS}: {told[-300:]}")
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
    own, gone = (resource.getrusage(who) for who in (0, resource.RUSAGE_CHILDREN))
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
        if warm and warm.nursery:
            self._parents.add(warm.nursery.process.pid)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            total = 0
            for process in psutil.Process().children(recursive=True):
                if process.pid not in self._parents:
                    try:
                        total += process.memory_full_info().pss
                    except (psutil.Error, AttributeError):
                        continue
            self.most = max(self.most, total)
