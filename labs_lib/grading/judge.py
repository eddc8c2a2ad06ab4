"""From what a fenced run printed to a status for each exercise, with the sentence a student reads.

nbval has compared; here its outcomes are named. Absence of evidence is never a pass.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..cuda.magic import REMARK
from ..exercises.kit import Exercise
from ..notebook.matching import Answer
from .expected.key import Key
from .expected.printed import Printed, explain, masked
from .reading.kernel_text import MAX_CHARS
from .reading.structure import structure
from .reading.transplant import kernel_text
from .run import CellRun

STATUSES = (
    "pass",
    "fail",
    "error",
    "timeout",
    "memory",
    "crash",
    "not-attempted",
    "wrong-assignment",
    "unreadable",
    "needs-review",
    "infrastructure",
)
UNDECIDED = ("needs-review", "infrastructure")


@dataclass(frozen=True)
class Outcome:
    """What came of one exercise; `points` is None where a person or a new run has to decide."""

    exercise: str
    status: str
    maximum: int
    lines: tuple[str, ...] = ()
    mistake: str = ""
    how: str = ""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    answer: str = ""  # the fingerprint of what was handed in
    mark: float | None = None  # given by a person; wins
    comment: str = ""
    stale: str = ""  # why the mark has to be looked at again
    marked_answer: str = ""
    marked_status: str = ""

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status={self.status!r} is not one of {', '.join(STATUSES)}")

    @property
    def points(self) -> float | None:
        """A person's mark, else all or nothing; None where it is undecided."""
        if self.mark is not None:
            return self.mark
        if self.status in UNDECIDED and self.maximum:
            return None
        return self.maximum if self.status == "pass" else 0

    @property
    def is_right(self) -> bool:
        """Whether nothing is missing: it passed, or a person gave it every point."""
        return self.status == "pass" if self.mark is None else self.mark >= self.maximum


@dataclass(frozen=True)
class _Evidence:
    """The runs of one exercise's cells."""

    check: CellRun | None
    answers: list[CellRun] = field(default_factory=list)
    setup: list[CellRun] = field(default_factory=list)


def outcome(exercise: Exercise, status: str, *lines: str, **more) -> Outcome:
    """An outcome that needs no run."""
    return Outcome(exercise.name, status, exercise.points, tuple(lines), **more)


def fingerprint(answer: Answer) -> str:
    """What stands for the text of an answer: 128 bits in hexadecimal; empty where there is none.

    With fewer, two answers could be made that have the same one, and a mark for one would count
    for the other.
    """
    text = answer.source.strip()
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32] if text else ""


def judge(key: Key, answers: Mapping[str, Answer], runs: Sequence[CellRun]) -> list[Outcome]:
    """An outcome for each exercise of the lab, whatever ran."""
    return [
        without_run(item, answers[item.name]) or _judge_one(item, key, answers, runs)
        for item in key.course.exercises
    ]


def without_run(item: Exercise, answer: Answer) -> Outcome | None:
    """The outcome of an answer that is not to be run; None for all others."""
    told = {"how": answer.how, "notes": answer.notes, "answer": fingerprint(answer)}
    if answer.doubt:
        return outcome(item, "needs-review", answer.doubt, **told)
    if not answer.attempted:
        return outcome(item, "not-attempted", "Nothing was written in the answer cell.", **told)
    if item.kind == "kernel":
        return _no_kernel(item, answer, told)
    return None


def _no_kernel(item: Exercise, answer: Answer, told: Mapping[str, Any]) -> Outcome | None:
    """The outcome of an answer without a `%%cuda` cell, or with one that is no kernel's size."""
    text = kernel_text(answer, item.called)
    if len(text) > MAX_CHARS:
        sentence = f"The cell holds {len(text)} characters, more than a kernel has."
        return outcome(item, "needs-review", sentence, **told)
    if text.strip():
        return None
    if "cuda.compile" in answer.source:
        sentence = "The kernel is compiled by Python; a graded kernel is a cell of its own."
        return outcome(item, "needs-review", sentence, **told)
    sentence = f"The first line of the cell is not %%cuda, so {item.called} is no kernel."
    return outcome(item, "fail", sentence, **told)


def _judge_one(
    item: Exercise, key: Key, answers: Mapping[str, Answer], runs: Sequence[CellRun]
) -> Outcome:
    answer = answers[item.name]
    told = {"how": answer.how, "notes": answer.notes, "answer": fingerprint(answer)}
    mine = [run for run in runs if run.exercise == item.name]
    checks = [run for run in mine if run.role == "check"]
    evidence = _Evidence(
        checks[0] if len(checks) == 1 else None,
        [run for run in mine if run.role == "answer"],
        [run for run in runs if run.role == "setup"],
    )
    told["seconds"] = round(sum(run.seconds for run in mine), 3)
    status, lines, mistake = _status(item, key, evidence)
    if status == "pass":
        status, lines = _structure(item, answers, _uncounted(item, evidence))
    return outcome(item, status, *lines, mistake=mistake, **told)


def _status(item: Exercise, key: Key, found: _Evidence) -> tuple[str, list[str], str]:
    check = found.check
    if check is None:
        return "infrastructure", ["The run left no result of this check."], ""
    built = [run.ename for run in (*found.answers, check)]
    if item.kind == "kernel" and "BuildError" in built:
        return "infrastructure", ["There is no compiler for kernels where the run took place."], ""
    if check.status == "infrastructure" or any(run.status != "ok" for run in found.setup):
        return "infrastructure", ["The run failed for a reason of the grader's machine."], ""
    if check.status == "ok":
        return "pass", [], ""
    stopped = check.cause or check.status
    if stopped in ("timeout", "memory", "crash", "output-flood", "not-run"):
        return _STOPPED[stopped], [_stop_sentence(stopped, check.reason)], ""
    broken = next((run for run in found.answers if run.status == "error"), None)
    if check.status == "error":
        return "error", _error_lines(broken or check, item), ""
    if Printed(check.stdout).is_not_attempted(item.name):
        if broken is not None:
            return "error", _error_lines(broken, item), ""
        return "not-attempted", [_not_attempted(item)], ""
    return explain(item, check.stdout, key.expected[item.name], key.mistakes[item.name])


_STOPPED = {
    "timeout": "timeout",
    "memory": "memory",
    "crash": "crash",
    "output-flood": "error",
    "not-run": "error",
}


def _stop_sentence(stopped: str, reason: str) -> str:
    said = {
        "timeout": "It ran too long; is there a loop without an end?",
        "memory": "It asked for more memory than there is.",
        "crash": "It ended the whole Python process.",
        "output-flood": "It printed without an end.",
        "not-run": "It was not reached.",
    }[stopped]
    return f"{said} ({reason})" if reason else said


def _error_lines(run: CellRun, item: Exercise) -> list[str]:
    if item.kind == "kernel" and run.role == "answer" and run.evalue:
        return ["The kernel could not be built:", *run.evalue[:600].split("\n")]
    own = run.role == "answer"
    where, says = ("Your cell", run.evalue) if own else ("The check", masked(run.evalue))
    line = re.search(r"line (\d+)", run.evalue) or re.search(r"^-+> *(\d+)", run.traceback, re.M)
    place = f" in line {line[1]}" if line else ""
    return [f"{where} raised {run.ename or 'an error'}{place}: {says or run.reason}"[:600]]


def _uncounted(item: Exercise, found: _Evidence) -> tuple[str, ...]:
    """What the build of a kernel said that no trace counts; no line of Python ran before it."""
    if item.kind != "kernel":
        return ()
    lines = [line for run in found.answers for line in run.stdout.splitlines()]
    return tuple(line.removeprefix(REMARK) for line in lines if line.startswith(REMARK))


def _structure(
    item: Exercise, answers: Mapping[str, Answer], uncounted: tuple[str, ...]
) -> tuple[str, list[str]]:
    found = structure(item, answers)
    if found.forbidden:
        return "fail", [
            f"The values are right, but the answer uses {', '.join(found.forbidden)},",
            "which is what this exercise asks you to write yourself.",
        ]
    if found.doubts or uncounted:
        return "needs-review", [
            "The values are right; a person has to look at how they are made: "
            + "; ".join((*found.doubts, *uncounted))
            + "."
        ]
    return "pass", []


def _not_attempted(item: Exercise) -> str:
    return f"{item.called} has no {'body' if item.is_program else 'value'} yet."
