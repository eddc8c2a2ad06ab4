"""Files that change, go away or were edited between two looks cost nobody else anything."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from labs_lib.grading import extras
from labs_lib.grading.batch.results import Basis, Results
from labs_lib.grading.course import chosen
from labs_lib.grading.extras import Extras
from labs_lib.grading.intake.collect import Handed, Submission
from labs_lib.grading.judge import Outcome
from labs_lib.grading.reports.own import own_reports
from labs_lib.grading.reports.similarity import similarity_files

RIGHT = asdict(Outcome("lab01.a", "pass", 1, lines=("said",)))
BASIS = {"submission": "a", "checks": "b", "environment": "c"}


def line(basis=BASIS, **changes):
    return json.dumps(basis | {"outcomes": [RIGHT | changes]})


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[]",
        line({**BASIS, "submission": []}),
        json.dumps(BASIS | {"outcomes": ["pass"]}),
        json.dumps(BASIS | {"outcomes": {"lab01.a": 1}}),
        line(maximum="1"),
        line(maximum=True),
        line(maximum=-1),
        line(status=["pass"]),
        line(lines=5),
        line(lines=[5]),
        line(mark=99),
        line(comment="well done"),
    ],
)
def test_a_line_of_results_that_nobody_wrote_is_run_again(tmp_path, text):
    path = tmp_path / "report.finished.jsonl"
    path.write_text(f"{text}\n{line({**BASIS, 'submission': 'other'})}\n", encoding="utf-8")
    results = Results(path)
    assert results.find(Basis("a", "b", "c"), ["lab01.a"]) is None
    assert results.find(Basis("other", "b", "c"), ["lab01.a"]) == [Outcome(**_tuples(RIGHT))]


def _tuples(values):
    return {name: tuple(v) if isinstance(v, (list, tuple)) else v for name, v in values.items()}


@pytest.mark.parametrize("error", [OSError("gone"), MemoryError(), RecursionError(), KeyError(1)])
def test_a_file_that_can_not_be_read_again_costs_no_report(error):
    def gone():
        raise error

    one = Submission("ann", (Handed("a.ipynb", gone),), (), (Handed("a.report.json", gone),))
    assert "can't be shown" in own_reports([one])["ann"].sections[0].text
    assert b"ann" in similarity_files([one], chosen("01"))["similarity.html"]


def test_attempts_that_can_not_be_told_apart_stop_no_run(tmp_path, monkeypatch):
    def fails(*_):
        raise RecursionError("deep")

    monkeypatch.setattr(extras, "choose", fails)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ann.ipynb").write_text("{}", encoding="utf-8")
    (tmp_path / "late.toml").write_text("", encoding="utf-8")
    found, _ = Extras(late=tmp_path / "late.toml").collect(
        tmp_path / "in", tmp_path / "out", chosen("01")
    )
    assert [one.student for one in found] == ["ann"]
    assert "deep" in found[0].notes[-1]
