"""What is finished stays finished: kills, interrupts and second runs repeat nothing."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import textwrap

import nbformat
import pytest
from waiting import processes_with, wait_for

from labs_lib.errors import UsageError
from labs_lib.exercises import lab
from labs_lib.grading.batch import results as room
from labs_lib.grading.batch.results import Basis, Results
from labs_lib.grading.course import Course, stub_of
from labs_lib.grading.grade import finished_file, grade
from labs_lib.grading.judge import Outcome
from labs_lib.notebook.cells import role

pytestmark = pytest.mark.slow
COURSE = Course(lab(0))
BASIS = Basis("a", "b", "c")


def hand_in(folder, student, *, text=""):
    """The solved lab 00, with `text` below the first answer."""
    whole, solution = stub_of(COURSE), COURSE.solution()
    pairs = [
        (c, s) for c, s in zip(whole.cells, solution.cells, strict=True) if role(c) == "answer"
    ]
    for cell, ours in pairs:
        cell.source = ours.source.strip()
    pairs[0][0].source += f"\n{text}"
    (folder / student).mkdir(parents=True, exist_ok=True)
    nbformat.write(whole, folder / student / "00.ipynb")


def graded(base, **more):
    """What progress said, and statuses by student."""
    said = io.StringIO()
    report = grade(base / "in", base / "out", labs="00", stream=said, **more)
    return said.getvalue(), {row.student: row.status for row in report.rows}


def lines(base):
    try:
        text = finished_file(base / "out").read_text(encoding="utf-8")
    except OSError:
        return []
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


def test_only_what_changed_is_run_again(tmp_path, monkeypatch):
    for student in ("ann", "bob", "eve"):
        hand_in(tmp_path / "in", student, text=f"# {student}")
    first = graded(tmp_path)
    assert set(first[1].values()) == {"complete"} and "were known" not in first[0]
    second = graded(tmp_path)
    assert "(3 notebooks were known and not run again)" in second[0]
    assert second[1] == first[1]
    hand_in(tmp_path / "in", "bob", text="first_tensor = None")
    third = graded(tmp_path)
    assert "(2 notebooks were known" in third[0]
    assert third[1]["bob"] != "complete" and third[1]["ann"] == "complete"
    assert len({line["seed"] for line in lines(tmp_path)}) == 2  # new work has a new seed
    monkeypatch.setattr(room, "library_hash", lambda lab="": "another check")
    assert "were known" not in graded(tmp_path)[0]


def test_again_runs_everything_and_a_seed_counts_only_for_itself(tmp_path):
    hand_in(tmp_path / "in", "ann")
    graded(tmp_path, seed=5)
    assert "1 notebooks were known" in graded(tmp_path, seed=5)[0]
    assert "were known" not in graded(tmp_path, seed=6)[0]
    assert "were known" not in graded(tmp_path, again=True)[0]
    assert len(lines(tmp_path)) == 3


SCRIPT = """
    import signal, sys
    from pathlib import Path
    from labs_lib.cli import main
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which may be ignored where tests run
    base = Path(sys.argv[1])
    sys.exit(main(["grade", str(base / "in"), "--out", str(base / "out"), "--labs", "00",
                   "--workers", "2"]))
"""


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_grader_that_is_stopped_goes_on_where_it_was(tmp_path, how):
    hand_in(tmp_path / "in", "ann")
    hand_in(tmp_path / "in", "bob", text="# bob")
    word = f"{93_000_000 + os.getpid()}"
    hand_in(tmp_path / "in", "eve", text=f"import subprocess; subprocess.run(['sleep', '{word}'])")
    script = textwrap.dedent(SCRIPT)
    grader = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: processes_with(word), 180)  # for the 20 s of a cell, on one of two workers
    wait_for(lambda: lines(tmp_path), 18)
    grader.send_signal(how)
    _, said = grader.communicate(timeout=30)
    finished = [line["student"] for line in lines(tmp_path)]
    if how == signal.SIGINT:
        assert grader.returncode == 130 and "the same command goes on" in said
    wait_for(lambda: not processes_with(word), 10)
    assert not (tmp_path / "out").exists()
    with finished_file(tmp_path / "out").open("a", encoding="utf-8") as file:
        file.write('{"submission": "cut o')  # as a kill may leave it
    hand_in(tmp_path / "in", "eve", text="# eve")
    said, statuses = graded(tmp_path)
    assert f"({len(finished)} notebooks were known" in said
    assert statuses == dict.fromkeys(("ann", "bob", "eve"), "complete")
    assert "eve" not in finished
    assert sorted(line["student"] for line in lines(tmp_path)) == ["ann", "bob", "eve"]


def outcomes(status):
    return [Outcome("lab00.a", "pass", 1), Outcome("lab00.b", status, 0, ("why",), notes=("n",))]


def test_results_come_back_as_they_were_and_failures_of_the_machine_do_not(tmp_path):
    names = ["lab00.a", "lab00.b"]
    Results(tmp_path / "r.jsonl").add(BASIS, "ann", 1, outcomes("fail"))
    Results(tmp_path / "r.jsonl").add(Basis("x", "b", "c"), "bob", 1, outcomes("infrastructure"))
    again = Results(tmp_path / "r.jsonl")
    assert again.find(BASIS, names) == outcomes("fail")
    assert again.find(BASIS, names[:1]) is None
    assert again.find(Basis("x", "b", "c"), names) is None
    assert Results(tmp_path / "r.jsonl", seed=2).find(BASIS, names) is None


def test_only_the_instructors_own_file_says_what_was_graded(tmp_path, monkeypatch):
    mine = tmp_path / "r.jsonl"
    Results(mine).add(BASIS, "ann", 1, outcomes("fail"))
    link = tmp_path / "link.jsonl"
    link.symlink_to(mine)
    with pytest.raises(UsageError, match="no ordinary file"):
        Results(link)
    with pytest.raises(UsageError, match="no ordinary file"):
        Results(tmp_path)
    assert Results(mine).find(BASIS, ["lab00.a", "lab00.b"])
    if hasattr(os, "getuid"):
        me = os.getuid()
        os.chown(mine, 12345, -1) if me == 0 else monkeypatch.setattr(os, "getuid", lambda: me + 1)
        with pytest.raises(UsageError, match="belongs to another user"):
            Results(mine)


def test_a_result_that_can_not_be_written_is_said_and_costs_nobody(tmp_path, monkeypatch):
    def full(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(room, "_append", full)
    results = Results(tmp_path / "r.jsonl")
    results.add(BASIS, "ann", 1, outcomes("fail"))
    assert "No space left" in results.trouble and not (tmp_path / "r.jsonl").exists()


def test_two_graders_that_write_at_the_same_time_lose_no_line(tmp_path):
    import threading

    def write(who):
        mine = Results(tmp_path / "r.jsonl")
        for number in range(40):
            mine.add(Basis(f"{who}-{number}", "b", "c"), who, 1, outcomes("fail"))

    writers = [threading.Thread(target=write, args=(who,)) for who in ("ann", "bob")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = Results(tmp_path / "r.jsonl")
    assert all(
        found.find(Basis(f"{who}-{n}", "b", "c"), ["lab00.a", "lab00.b"])
        for who in ("ann", "bob")
        for n in range(40)
    )


def test_what_students_wrote_and_what_decides_is_in_the_basis(monkeypatch):
    from labs_lib.grading.sandbox import Limits
    from labs_lib.notebook.matching import match

    answers = match(COURSE.notebook, COURSE.notebook, COURSE.asked)
    plain = room.basis(COURSE, answers, None, "a fence")
    assert plain == room.basis(COURSE, dict(answers), Limits(), "a fence")
    assert plain.environment != room.basis(COURSE, answers, None, "no fence").environment
    assert plain.environment != room.basis(COURSE, answers, Limits(cell_s=1), "a fence").environment
    stub = match(stub_of(COURSE), COURSE.notebook, COURSE.asked)
    assert plain.submission != room.basis(COURSE, stub, None, "a fence").submission
    assert room.library_hash("lab01") != room.library_hash("lab02")
