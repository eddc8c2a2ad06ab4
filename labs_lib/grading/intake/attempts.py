"""Which of a student's attempts counts for each lab, and when it was handed in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ...notebook.reading import Unreadable
from ..course import Course
from .candidates import Candidate, attempted, look
from .collect import Handed, Submission
from .lateness import LatePolicy, moment
from .received import Received


@dataclass(frozen=True)
class Timed:
    """When what counts for a lab was handed in (UTC, None where unknown); `late` where the platform
    said so."""

    submitted: datetime | None = None
    late: bool = False


@dataclass(frozen=True)
class _Attempt:
    """A notebook of one lab, with its time; equal notebooks share their earliest."""

    candidate: Candidate
    timed: Timed

    @property
    def rank(self) -> tuple[float, int]:
        when = self.timed.submitted
        return (when.timestamp() if when else 0.0, self.candidate.file.attempt)


def choose(
    submission: Submission, courses: Sequence[Course], policy: LatePolicy, received: Received
) -> tuple[Submission, dict[str, Timed]]:
    """The submission with the attempts that count alone, and the time of each lab.

    By the policy the last attempt on time counts, or the last of all where none is; or always the
    last. The same notebook handed in again keeps its first time. What was left out is noted.
    """
    times = {id(f): _timed(f, submission.student, policy, received) for f in submission.files}
    moments = {(t.submitted, t.late, f.attempt) for f, t in _pairs(submission, times)}
    if len(moments) < 2:  # one attempt: nothing has to be read to know
        timed = next(iter(times.values()), Timed())
        return submission, {course.lab.name: timed for course in courses}
    by_lab: dict[str, list[_Attempt]] = defaultdict(list)
    dropped: set[int] = set()
    for file, timed in _pairs(submission, times):
        try:
            candidate = look(file)
        except Unreadable:
            continue
        by_lab[candidate.lab].append(_Attempt(candidate, timed))
    notes, chosen = [], {}
    for course in courses:
        own = _with_answers(by_lab.get(course.lab.name, []), course)
        kept, timed = _counting(own, course, submission.student, policy)
        left = [one for one in by_lab.get(course.lab.name, []) if one not in kept]
        chosen[course.lab.name] = timed
        dropped |= {id(one.candidate.file) for one in left}
        if left:
            notes.append(_told(course, kept, left, policy))
    files = tuple(file for file in submission.files if id(file) not in dropped)
    return replace(submission, files=files, notes=(*submission.notes, *notes)), chosen


def _pairs(submission: Submission, times: dict[int, Timed]) -> list[tuple[Handed, Timed]]:
    return [(file, times[id(file)]) for file in submission.files]


def _timed(file: Handed, student: str, policy: LatePolicy, received: Received) -> Timed:
    when = received.when(student, file.label)
    if when is None and file.when:
        day, clock = file.when[:10], file.when[11:].replace("-", ":")
        try:
            when = moment(f"{day}T{clock}", policy.zone)
        except ValueError:  # a name that only looks like a time
            when = None
    return Timed(when, file.late)


def _with_answers(own: list[_Attempt], course: Course) -> list[_Attempt]:
    """Attempts with an answer in them, where there are any."""
    if len({one.candidate.digest for one in own}) < 2:
        return own
    return [one for one in own if attempted(one.candidate, course)] or own


def _counting(
    own: list[_Attempt], course: Course, student: str, policy: LatePolicy
) -> tuple[list[_Attempt], Timed]:
    """The attempts that count (several where it is a tie) and their time."""
    if not own:
        return [], Timed()
    deadline = policy.deadline(course.lab.name, student)
    pool = own
    if policy.attempts == "last-on-time" and deadline is not None:
        pool = [one for one in own if _on_time(one.timed, deadline, policy)] or own
    last = max(one.rank for one in pool)
    kept = [one for one in pool if one.rank == last]
    digests = {one.candidate.digest for one in kept}
    same = [one.timed for one in own if one.candidate.digest in digests]
    known = [timed for timed in same if timed.submitted is not None]
    first = min(known, key=lambda timed: timed.submitted) if known else kept[0].timed
    return kept, first if len(digests) == 1 else kept[0].timed


def _on_time(timed: Timed, deadline: datetime, policy: LatePolicy) -> bool:
    if timed.submitted is None:
        return not timed.late
    return not policy.days_late(deadline, timed.submitted)


def _told(
    course: Course, kept: Sequence[_Attempt], left: Sequence[_Attempt], policy: LatePolicy
) -> str:
    def named(one: _Attempt) -> str:
        when = one.timed.submitted
        return one.candidate.file.label + (f" ({policy.show(when)})" if when else "")

    rule = "the last attempt on time" if policy.attempts == "last-on-time" else "the last attempt"
    return (
        f"Of {course.lab.name} {rule} counts: {', '.join(map(named, kept))}; "
        f"left out: {', '.join(map(named, left))}."
    )
