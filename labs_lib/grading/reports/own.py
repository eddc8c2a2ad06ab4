"""The pages that students hand in about their own work: read with care, shown, never marked."""

from __future__ import annotations

from collections.abc import Sequence

from ...workbook.own_report import OwnReport, Section, read
from ..intake.collect import Submission


def own_reports(submissions: Sequence[Submission]) -> dict[str, OwnReport]:
    """Each student's report; where one came that can't be read, a report that says so."""
    return {one.student: _report(one) for one in submissions if one.reports}


def _report(submission: Submission) -> OwnReport:
    handed = submission.reports[-1]
    try:
        return read(handed.read())
    except Exception as error:  # whatever one student hands in, the others have their report
        said = f"{handed.label} came and can't be shown: {error}."
        return OwnReport("A report of the student's own", (Section("Unreadable", said),))
