"""What a class adds to a bare run: rosters, deadlines, marks by hand, exports, similarity.

`collect` stands before the run and `finish` behind it; neither runs a line of a student's code, and
what a run finds doesn't depend on them, but for which attempt is looked at.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import UsageError
from ..exercises import exercises
from .course import Course
from .intake.attempts import Timed, choose
from .intake.collect import Submission, collect
from .intake.lateness import LatePolicy, read_policy
from .intake.names import Roster, read_roster
from .intake.received import Received, read_received
from .intake.tables import table_of
from .reports.exports import exports
from .reports.marks import Marks, earlier_outcomes, read_marks, review_csv
from .reports.report import RESULTS, Report, Row, lab_of
from .reports.similarity import similarity_files

REVIEW = "review.csv"


@dataclass
class Extras:
    """The files that an instructor gives beside the submissions, and what was read from them."""

    roster: Path | None = None
    late: Path | None = None
    received: Path | None = None
    marks: Path | None = None
    similarity: bool = False
    timed: dict[str, dict[str, Timed]] = field(default_factory=dict)

    def collect(
        self, submissions: Path, out: Path, courses: Sequence[Course]
    ) -> tuple[list[Submission], list[str]]:
        """Read everything that is given, then the submissions, each with the attempts that count.

        Raises:
            UsageError: if something given can't be used.
        """
        _keep_marks_in(out)
        self._class = read_roster(self.roster) if self.roster else Roster()
        self._policy = read_policy(self.late) if self.late else LatePolicy()
        self._received = Received()
        if self.received:
            self._received = read_received(self.received, self._policy.zone, self._class)
        found, left_out = collect(submissions, self._class, self._received.owners)
        left_out += self._name_extensions({one.student for one in found})
        self._marks = self._read_marks(out, found, courses)
        self._earlier = earlier_outcomes(out / RESULTS)
        if self.late or self.received:
            found = [self._choose(one, courses) for one in found]
        self._found = found
        return found, left_out

    def finish(self, report: Report, courses: Sequence[Course]) -> Report:
        """The report with marks, lateness, hints, exports and, if asked for, similarity."""
        hints = {e.name: e.hints[0] for course in courses for e in course.exercises if e.hints}
        maxima = {c.lab.name: sum(e.points for e in c.exercises) for c in courses}
        rows = tuple(self._finished(row) for row in report.rows)
        report = replace(report, rows=rows, hints=hints, maxima=maxima)
        open_ = [(r.student, o) for r in rows for o in r.outcomes if o.points is None or o.stale]
        files = exports(report, self._class)
        files[REVIEW] = review_csv(open_).encode("utf-8", "replace")
        if self.similarity:
            files |= similarity_files(self._found, courses)
        return replace(report, others=files)

    def _name_extensions(self, students: set[str]) -> list[str]:
        """Give extensions to students by any of their names; a sentence for each without one."""
        named, nobody = {}, []
        for name, table in self._policy.extensions.items():
            student = name if name in students else self._class.find(name)
            named[student or name] = table
            if not student:
                nobody.append(
                    f"the late policy has an extension for {name!r}, whom nobody is called"
                )
        self._policy = replace(self._policy, extensions=named)
        return nobody

    def _choose(self, submission: Submission, courses: Sequence[Course]) -> Submission:
        try:
            kept, timed = choose(submission, courses, self._policy, self._received)
        except Exception as error:  # one student's files stop nobody else's run
            note = f"Its attempts could not be told apart ({type(error).__name__}: {error})."
            return replace(submission, notes=(*submission.notes, note))
        self.timed[submission.student] = timed
        return kept

    def _finished(self, row: Row) -> Row:
        outcomes = self._marks.applied(
            row.student, row.outcomes, self._earlier.get(row.student, {})
        )
        row = replace(row, outcomes=outcomes, comment=self._marks.overall.get(row.student, ""))
        if not self.late:
            return row
        late, notes = {}, []
        for lab in row.labs:
            own = [o for o in outcomes if lab_of(o.exercise) == lab]
            if all(o.status in ("not-attempted", "wrong-assignment") for o in own):
                continue
            timed = self.timed.get(row.student, {}).get(lab, Timed())
            found = self._policy.judge(
                lab, row.student, timed.submitted, row.earned(lab), marked=timed.late
            )
            if found:
                late[lab] = found
                notes += [f"{lab}: {found.told}"] if timed.submitted is None else []
        return replace(row, late=late, notes=(*row.notes, *notes))

    def _read_marks(
        self, out: Path, found: Sequence[Submission], courses: Sequence[Course]
    ) -> Marks:
        path = self.marks or next(filter(Path.is_file, marks_beside(out)), None)
        if path is None:
            return Marks()
        if not Path(path).is_file():
            raise UsageError(f"there is no file of marks {path}")
        maxima = {e.name: e.points for course in courses for e in course.exercises}
        students, every = [one.student for one in found], [e.name for e in exercises()]
        return read_marks(path, students, maxima, self._class, every)


def _keep_marks_in(out: Path) -> None:
    """Refuse to replace a list of what is open that somebody wrote marks into."""
    listed = out / REVIEW
    if not listed.is_file():
        return
    rows, _ = table_of(listed, "list of what is open", ("student",))
    if any(row.get("points", "").strip() or row.get("comment", "").strip() for row in rows):
        raise UsageError(
            f"{listed} holds marks, and a run would replace it; move it to {marks_beside(out)[0]}, "
            "where they count"
        )


def marks_beside(out: Path) -> list[Path]:
    """Where marks by hand are looked for, for a report in `out`."""
    return [out.with_name(f"{out.name}-marks{suffix}") for suffix in (".csv", ".toml")]


def from_options(options: argparse.Namespace) -> Extras:
    """What the arguments of `options.py` ask for."""
    return Extras(options.roster, options.late, options.received, options.marks, options.similarity)
