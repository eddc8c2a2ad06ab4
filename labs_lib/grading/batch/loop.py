"""From submissions to rows: what is known is taken over, the rest runs side by side.

Whatever happens to one notebook costs that notebook only; what is finished is written down at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from ...cuda import BuildError
from ...errors import UsageError
from ...notebook.matching import Answer, match
from ...notebook.reading import Unreadable
from ..course import Course
from ..expected.keys import Keys
from ..intake.candidates import Sorted, parse, sort_files
from ..intake.collect import Submission
from ..judge import Outcome, judge, outcome, without_run
from ..reading.transplant import transplant
from ..reports.report import Row
from .progress import Progress
from .results import Basis, Results, basis
from .scheduler import Executor

LOOK_S = 20.0  # how long nothing ends before it is asked why
WAITING = 3  # notebooks that are ready for each one that runs


@dataclass
class _Part:
    """One lab of one submission: its outcomes, or what it takes to have them."""

    course: Course
    outcomes: list[Outcome] | None = None
    answers: Mapping[str, Answer] = field(default_factory=dict)
    basis: Basis | None = None


@dataclass
class _Pending:
    """A submission on its way."""

    submission: Submission
    parts: list[_Part]
    notes: list[str]
    ran: bool = False

    def row(self) -> Row | None:
        """Its row, once every part is known."""
        known = [part.outcomes for part in self.parts if part.outcomes is not None]
        if len(known) < len(self.parts):
            return None
        outcomes = tuple(one for outcomes in known for one in outcomes)
        labels = tuple(file.label for file in self.submission.files)
        return Row(self.submission.student, outcomes, labels, tuple(self.notes))


class Loop:
    """Grades submissions one after another, as many notebooks at a time as the executor runs."""

    def __init__(
        self,
        courses: Sequence[Course],
        keys: Keys,
        executor: Executor,
        results: Results,
        progress: Progress,
    ) -> None:
        self.courses, self.keys, self.executor = courses, keys, executor
        self.results, self.progress = results, progress
        self._limit = max(2, executor.workers * WAITING)
        self._pool = ThreadPoolExecutor(max_workers=self._limit, thread_name_prefix="grade")
        self._running: dict[Future[list[Outcome]], tuple[int, _Part]] = {}
        self._pending: dict[int, _Pending] = {}
        self._rows: dict[int, Row] = {}
        self._missing = ""

    def rows(self, found: Sequence[Submission]) -> list[Row]:
        """A row for each submission, in their order.

        Raises:
            UsageError: if a lab can't be graded at all.
        """
        try:
            for number, part in self._open_parts(found):
                self.keys.start(part.course)
                while len(self._running) >= self._limit:
                    self._collect()
                student = self._pending[number].submission.student
                self._running[self._pool.submit(self._grade, part, student)] = (number, part)
            while self._running:
                self._collect()
        except BaseException:
            self.executor.stop(now=True)
            self._pool.shutdown(wait=False, cancel_futures=True)
            raise
        self._pool.shutdown()
        return [self._rows[number] for number in range(len(found))]

    def _open_parts(self, found: Sequence[Submission]) -> Iterator[tuple[int, _Part]]:
        """The parts that have to be run; a submission without any is done at once."""
        for number, submission in enumerate(found):
            pending = self._pending[number] = self._prepare(submission)
            todo = [part for part in pending.parts if part.outcomes is None]
            pending.ran = bool(todo)
            self._finish(number)
            for part in todo:
                yield number, part

    def _prepare(self, submission: Submission) -> _Pending:
        notes: list[str] = []
        try:
            files = sort_files(submission, self.courses)
            notes += files.notes
            parts = [self._part(course, files, notes) for course in self.courses]
        except UsageError:
            raise
        except Exception as error:
            sentence = _own_failure(error)
            notes = [*submission.notes, sentence]
            parts = [_Part(course, _infrastructure(course, sentence)) for course in self.courses]
        return _Pending(submission, parts, notes)

    def _part(self, course: Course, files: Sorted, notes: list[str]) -> _Part:
        name = course.lab.name
        if name in files.doubts:
            return _Part(course, _all(course, "needs-review", files.doubts[name]))
        if name not in files.notebooks:
            return _Part(course, _all(course, *_why_none(course, files)))
        candidate = files.notebooks[name]
        notes += [f"{candidate.file.label}: {note}" for note in candidate.notes]
        try:
            student = parse(candidate).notebook
        except Unreadable as error:
            return _Part(course, _all(course, "unreadable", f"{error}."))
        answers = match(student, course.notebook, course.asked)
        known = [without_run(item, answers[item.name]) for item in course.exercises]
        found = [outcome for outcome in known if outcome]
        if len(found) == len(known):
            return _Part(course, found)
        which = basis(course, answers, self.keys.limits, self.keys.fence)
        earlier = self.results.find(which, [item.name for item in course.exercises])
        if earlier and [e.maximum for e in earlier] != [i.points for i in course.exercises]:
            earlier = None  # changed by hand: the course alone says what an answer is worth
        return _Part(course, earlier, answers, which)

    def _grade(self, part: _Part, student: str) -> list[Outcome]:
        """The outcomes of one notebook; runs beside others."""
        course, answers = part.course, part.answers
        try:
            key = self.keys.of(course)
        except BuildError as error:  # no compiler on this machine: nobody's fault but its own
            known = [without_run(item, answers[item.name]) for item in course.exercises]
            missing = _infrastructure(course, str(error))
            return [one or other for one, other in zip(known, missing, strict=True)]
        prepared = transplant(course.notebook, answers, key.expected, course.kernels)
        outcomes = judge(key, answers, self.executor.submit(key, prepared).result())
        if part.basis is not None:
            self.results.add(part.basis, student, self.keys.seed, outcomes)
        return outcomes

    def _collect(self) -> None:
        """Wait for something to finish, and take all that has."""
        done, _ = wait(self._running, timeout=LOOK_S, return_when=FIRST_COMPLETED)
        if not done:
            self._say_what_is_missing()
        for future in done:
            number, part = self._running.pop(future)
            try:
                part.outcomes = future.result()
            except UsageError:
                raise
            except Exception as error:  # never a student's fault
                sentence = _own_failure(error)
                self._pending[number].notes.append(sentence)
                part.outcomes = _infrastructure(part.course, sentence)
            self._finish(number)

    def _say_what_is_missing(self) -> None:
        missing = self.executor.waiting()
        if missing and missing != self._missing:
            self.progress.say(missing)
        self._missing = missing

    def _finish(self, number: int) -> None:
        row = self._pending[number].row()
        if row is not None:
            self._rows[number] = row
            done = self._pending.pop(number)
            self.progress.step(row.student, ran=done.ran)


def _own_failure(error: Exception) -> str:
    return f"The grader itself failed ({type(error).__name__}: {error})."


def _infrastructure(course: Course, sentence: str) -> list[Outcome]:
    return _all(course, "infrastructure", sentence)


def _all(course: Course, status: str, sentence: str) -> list[Outcome]:
    return [outcome(item, status, sentence) for item in course.exercises]


def _why_none(course: Course, files: Sorted) -> tuple[str, str]:
    """Status and sentence for a lab without a notebook that could be graded."""
    if course.lab.name in files.broken:
        return "unreadable", files.broken[course.lab.name]
    if files.strangers and not files.notebooks:
        return "wrong-assignment", f"{', '.join(files.strangers)} is no notebook of this lab."
    return "not-attempted", "No notebook of this lab was handed in."
