"""A call of the grader: what it refuses before anything runs, replaces, and takes upon itself."""

from __future__ import annotations

import io
import zipfile

import pytest
from pupils import dump, new_cell, released, solved

from labs_lib.errors import UsageError
from labs_lib.exercises import exercises
from labs_lib.grading.batch import loop as room
from labs_lib.grading.grade import grade


def test_a_second_run_replaces_its_own_report_and_nothing_else(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ann.ipynb").write_bytes(dump(released()))
    for _ in range(2):
        grade(tmp_path / "in", tmp_path / "out", labs=["01"], stream=io.StringIO())
    assert (tmp_path / "out" / "feedback" / "ann.html").exists()
    (tmp_path / "out" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"mine\.txt"):
        grade(tmp_path / "in", tmp_path / "out", labs=["01"], stream=io.StringIO())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out"]  # nothing ran


@pytest.mark.parametrize(
    "trouble",
    ["no folder", "no notebook", "lab", "no lab", "seed", "out", "out is a file", "in it"],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(tmp_path, trouble):
    source, out = tmp_path / "in", tmp_path / "out"
    given = {"labs": "01", "seed": 3}
    source.mkdir()
    if trouble == "no folder":
        source = tmp_path / "none"
    elif trouble != "no notebook":
        (source / "ann.ipynb").write_bytes(dump(solved()))
    given |= {"lab": {"labs": "77"}, "no lab": {"labs": ","}, "seed": {"seed": -1}}.get(trouble, {})
    if trouble == "out":
        out.mkdir()
        (out / "thesis.tex").write_text("x", encoding="utf-8")
    elif trouble == "out is a file":
        out.write_text("x", encoding="utf-8")
    elif trouble == "in it":
        out = source / "out"
    before = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*"))
    with pytest.raises(UsageError) as caught:
        grade(source, out, stream=io.StringIO(), **given)
    assert "\n" not in str(caught.value)
    assert sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*")) == before


def test_without_labs_the_whole_course_is_the_maximum(tmp_path):
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("ann/x.ipynb", dump(released()))
    report = grade(tmp_path / "in.zip", tmp_path / "out", stream=io.StringIO())
    assert report.maximum == sum(item.points for item in exercises())
    assert {o.status for o in report.rows[0].outcomes} == {"not-attempted"}


def test_a_failure_of_the_grader_costs_no_student_anything(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("out of descriptors")

    monkeypatch.setattr(room, "match", fails)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ann.ipynb").write_bytes(dump(solved()))
    (row,) = grade(tmp_path / "in", tmp_path / "out", labs="01", stream=io.StringIO()).rows
    assert {o.status for o in row.outcomes} == {"infrastructure"}
    assert all(o.points is None for o in row.outcomes if o.maximum)


def test_a_new_cell_below_everything_is_no_answer(tmp_path):
    whole = released()
    whole.cells.append(new_cell("print('please')"))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ann.ipynb").write_bytes(dump(whole))
    (row,) = grade(tmp_path / "in", tmp_path / "out", labs="01", stream=io.StringIO()).rows
    assert {o.status for o in row.outcomes} == {"not-attempted"}
