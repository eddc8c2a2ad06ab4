"""Whatever a class hands in, everybody gets a row, and every exercise the status that it earned."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy as np
import pytest
from pupils import (
    BUDGET,
    HOSTILE,
    MASK,
    POINTS,
    SCORES,
    SDPA,
    STD,
    SUBMISSIONS,
    dump,
    released,
    solved,
    table_of_visible_answers,
    write,
)

from labs_lib.answers import answer
from labs_lib.checking.observe import observe_all
from labs_lib.checking.oracle import oracle_for
from labs_lib.checking.verdict import judge
from labs_lib.exercises import exercise, exercises
from labs_lib.grading.grade import grade
from labs_lib.grading.intake.names import file_names
from labs_lib.grading.judge import STATUSES
from labs_lib.grading.sandbox import Limits

LIMITS = Limits(cell_s=12, notebook_s=150, memory_bytes=2 << 30, output_bytes=1 << 20)
MARKUP = "<script>alert(1)</script>"

pytestmark = pytest.mark.slow


def hand_in(folder):
    """A folder for each student; some bring more than a notebook."""
    for student, change in SUBMISSIONS.items():
        whole = solved()
        content = change(whole)
        (folder / student).mkdir(parents=True)
        (folder / student / f"{student} final (1).ipynb").write_bytes(
            dump(whole) if content is None else content
        )
    cheat = folder / "cheat brings a conftest"
    cheat.mkdir()
    whole = solved()
    SUBMISSIONS["wrong_scale"](whole)
    (cheat / "01.ipynb").write_bytes(dump(whole))
    patch = "import nbval.plugin as p\np.IPyNbCell.runtest = lambda self: None\n"
    for name in ("conftest.py", "torch.py", "labs_lib.py", "sitecustomize.py"):
        (cheat / name).write_text(patch, encoding="utf-8")
    (cheat / "pytest.ini").write_text("[pytest]\naddopts = --collect-only\n", encoding="utf-8")
    odd = folder / f"=cmd {MARKUP.replace('/', '|')}"
    odd.mkdir()
    whole = solved()
    write(whole, "lab01.quiz_scale", f"quiz_scale = '''{MARKUP}\\x1b[31m'''")
    (odd / "a & b <i>.ipynb").write_bytes(dump(whole))
    (odd / "a & b <i>.html").write_text("mine", encoding="utf-8")
    (folder / "no notebook").mkdir()
    (folder / "no notebook" / "essay.pdf").write_bytes(b"%PDF")
    _more_than_one(folder)


def _more_than_one(folder):
    wrong = solved()
    SUBMISSIONS["wrong_scale"](wrong)
    for student, files in {
        "two notebooks": {"a.ipynb": solved(), "b.ipynb": wrong},
        "two attempts": {"lab-1.ipynb": wrong, "lab-2.ipynb": solved()},
        "twice the same": {"a.ipynb": solved(), "b.ipynb": solved()},
        "a copy of the release": {"a.ipynb": solved(), "b.ipynb": released()},
    }.items():
        (folder / student).mkdir()
        for name, whole in files.items():
            (folder / student / name).write_bytes(dump(whole))


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The whole class, graded once: the report, its folder, and what progress said."""
    base = tmp_path_factory.mktemp("class")
    hand_in(base / "in")
    before = _fingerprints(base)
    said = io.StringIO()
    report = grade(base / "in", base / "out", labs="01", limits=LIMITS, stream=said)
    after = {name: kept for name, kept in _fingerprints(base).items() if "out" not in name[0]}
    assert after == before, "a run left something beside its report, or changed a submission"
    return report, base / "out", said.getvalue()


def _fingerprints(base):
    return {
        path.relative_to(base).parts: path.read_bytes() if path.is_file() else b""
        for path in base.rglob("*")
    }


@pytest.fixture
def of(graded):
    """A student's outcomes by exercise."""
    rows = {row.student: row for row in graded[0].rows}
    return lambda student: {one.exercise: one for one in rows[student].outcomes}


def failing(outcomes):
    return {name: o.status for name, o in outcomes.items() if o.status != "pass" and o.maximum}


@pytest.mark.parametrize("student", [name for name in SUBMISSIONS if name.startswith("right")])
def test_right_answers_get_full_marks_in_every_shape(of, student):
    outcomes = of(student)
    assert failing(outcomes) == {}, [(o.exercise, o.lines, o.notes) for o in outcomes.values()]
    assert sum(o.points for o in outcomes.values()) == len(POINTS)


def test_the_way_an_answer_was_found_is_told(of):
    assert of("right")[SCORES].how == "its metadata"
    assert of("right_without_metadata_and_ids")[SCORES].how == "its text"
    assert any("markdown" in note for note in of("right_but_retyped")[MASK].notes)
    assert any("answer cells" in note for note in of("right_with_copies_of_stubs")[MASK].notes)
    assert any("check cell is missing" in n for n in of("right_with_checks_deleted")[MASK].notes)


def test_a_known_mistake_is_named_and_costs_its_exercise_only(of):
    outcomes = of("wrong_scale")
    assert failing(outcomes) == {SCORES: "fail"}
    assert outcomes[SCORES].mistake and "head_dim" in " ".join(outcomes[SCORES].lines)


def test_an_unknown_mistake_fails_without_telling_the_wanted_numbers(of):
    outcomes = of("wrong_in_an_unheard_of_way")
    assert failing(outcomes) == {SCORES: "fail"}
    assert not outcomes[SCORES].mistake
    assert not re.search(r"\d\.\d", " ".join(outcomes[SCORES].lines))


def test_wrong_shapes_types_and_kept_state_are_said(of):
    assert "of shape" in " ".join(of("wrong_shape")[SCORES].lines)
    outcomes = of("wrong_type")
    assert failing(outcomes) == {SCORES: "fail", MASK: "fail", STD: "fail"}
    assert "Tensor" in " ".join(outcomes[SCORES].lines)
    assert failing(of("wrong_with_a_memory")) == {STD: "fail"}


def test_a_wrong_choice_costs_nothing_and_is_explained(of):
    outcomes = of("wrong_choice")
    assert failing(outcomes) == {}
    assert outcomes["lab01.quiz_scale"].status == "fail" and outcomes["lab01.quiz_scale"].lines


def test_forbidden_names_fail_and_ways_around_them_are_for_a_person(of):
    assert failing(of("forbidden")) == {SDPA: "fail"}
    assert "scaled_dot_product_attention" in " ".join(of("forbidden")[SDPA].lines)
    for student in ("forbidden_by_another_way", "forbidden_through_a_helper"):
        assert failing(of(student)) == {SDPA: "needs-review"}
        assert of(student)[SDPA].points is None
    assert failing(of("cheat_patches_the_measuring")).get(SDPA) == "needs-review"


def test_the_library_holds_no_answer_to_take(of):
    outcomes = of("takes_it_from_the_library")
    assert failing(outcomes) == {SCORES: "error"}
    assert "Withheld" in " ".join(outcomes[SCORES].lines)


@pytest.mark.parametrize(
    "student",
    [*(name for name in SUBMISSIONS if name.startswith("cheat_")), "cheat brings a conftest"],
)
def test_no_cheat_turns_a_wrong_answer_into_marks(of, student):
    outcomes = of(student)
    others = {"cheat_patches_the_measuring": SDPA, "cheat_knows_the_visible_answers": STD}
    wrong = others.get(student, SCORES)
    assert outcomes[wrong].status != "pass" and not outcomes[wrong].points


@pytest.mark.parametrize("student", HOSTILE)
def test_no_wrong_answer_passes_among_cells_of_any_kind(of, student):
    outcomes = of(student)
    assert set(POINTS) <= set(outcomes)
    assert [name for name in HOSTILE[student] if outcomes[name].status == "pass"] == []
    assert sum(o.points or 0 for o in outcomes.values()) <= len(POINTS) - len(HOSTILE[student])


def test_a_table_of_the_visible_answers_passes_on_a_students_machine_only(of):
    space = {}
    exec(table_of_visible_answers(), space)
    item = exercise(STD)
    assert judge(item, space["dot_product_std"], oracle_for(item)).passed
    assert failing(of("cheat_knows_the_visible_answers")) == {STD: "fail"}


def test_half_done_and_untouched_are_not_attempted(of):
    assert failing(of("half_done")) == {SDPA: "not-attempted", BUDGET: "not-attempted"}
    assert {o.status for o in of("untouched").values()} == {"not-attempted"}
    assert sum(o.points for o in of("untouched").values()) == 0


def test_errors_are_told_with_their_line(of):
    outcomes = of("does_not_parse")
    assert failing(outcomes) == {SCORES: "error", MASK: "error"}
    assert "line" in " ".join(outcomes[MASK].lines) and "Error" in " ".join(outcomes[MASK].lines)
    outcomes = of("raises")
    assert failing(outcomes) == {SCORES: "error", STD: "error", BUDGET: "error"}
    assert "undefined_name" in " ".join(outcomes[SCORES].lines)
    assert "SystemExit" in " ".join(outcomes[STD].lines)


@pytest.mark.parametrize(
    ("student", "exercise", "status"),
    [
        ("loops", MASK, "timeout"),
        ("loops_inside", SCORES, "timeout"),
        ("leaves", SCORES, "crash"),
        ("eats_memory", MASK, "memory"),
        ("floods", STD, "error"),
    ],
)
def test_a_loop_a_crash_or_a_memory_bomb_costs_its_exercise_only(of, student, exercise, status):
    assert failing(of(student)) == {exercise: status}


@pytest.mark.parametrize("student", ["not_json", "empty", "cut_off", "in_conflict"])
def test_an_unreadable_file_has_a_row_and_a_reason(of, graded, student):
    assert {o.status for o in of(student).values()} == {"unreadable"}
    if student == "in_conflict":
        assert "line 5" in of(student)[SCORES].lines[0]


def test_another_labs_notebook_is_the_wrong_assignment(of):
    for student in ("of_another_lab", "of_no_lab"):
        assert {o.status for o in of(student).values()} == {"wrong-assignment"}
    assert {o.status for o in of("no notebook").values()} == {"not-attempted"}


def test_of_several_notebooks_the_latest_counts_and_a_tie_is_for_a_person(of):
    assert {o.status for o in of("two notebooks").values()} == {"needs-review"}
    for student in ("two attempts", "twice the same", "a copy of the release"):
        assert failing(of(student)) == {}, student


def test_everybody_has_a_row_and_the_maximum_is_the_courses(graded):
    report, out, _ = graded
    table = list(csv.DictReader(io.StringIO((out / "grades.csv").read_text(encoding="utf-8"))))
    assert len(table) == len(report.rows) == len(SUBMISSIONS) + 7
    assert {row["maximum"] for row in table} == {str(len(POINTS))}
    assert {o.status for row in report.rows for o in row.outcomes} <= set(STATUSES)
    by_name = {row["student"]: row for row in table}
    assert by_name["right"]["total"] == str(len(POINTS))
    assert by_name["right"]["status"] == "complete"
    assert by_name["forbidden_by_another_way"][SDPA] == "needs-review"
    assert not any(row["student"].startswith("=") for row in table)


def test_results_and_junit_hold_every_outcome(graded):
    report, out, _ = graded
    found = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert len(found["students"]) == len(report.rows)
    assert found["seed"] == report.seed and found["fence"].startswith("Student code ran")
    suites = list(ElementTree.parse(out / "junit.xml").getroot())
    assert len(suites) == len(report.rows)
    for suite, row in zip(suites, report.rows, strict=True):
        assert len(suite) == len(row.outcomes)
        passed = [case for case in suite if not len(case)]
        assert len(passed) == sum(o.status == "pass" for o in row.outcomes)


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text.append(data)


def test_feedback_is_one_page_each_with_all_student_content_escaped(graded):
    report, out, _ = graded
    pages = sorted((out / "feedback").iterdir())
    assert len(pages) == len(report.rows)
    allowed = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "span"}
    for page in pages:
        parser = _Tags()
        text = page.read_text(encoding="utf-8")
        parser.feed(text)
        assert parser.tags <= allowed | {"ul", "li"}, page.name
        assert "\x1b" not in text and "http:" not in text
    odd = next(row for row in report.rows if row.student.startswith("=cmd"))
    assert any("<script>" in line for o in odd.outcomes for line in o.lines)


def test_no_page_tells_a_hidden_input_an_expected_value_or_another_student(graded):
    report, out, _ = graded
    secrets = _hidden_numbers(report.seed)
    assert len(secrets) > 300 and _told(f"it gives {float(secrets[7]):+.5f}", secrets)
    names = {row.student for row in report.rows}
    pages = file_names([row.student for row in report.rows], ".html")
    for row in report.rows:
        text = html.unescape((out / "feedback" / pages[row.student]).read_text(encoding="utf-8"))
        assert not _told(text, secrets), row.student
        others = {name for name in names - {row.student} if "_" in name}
        assert not {n for n in others if n in text and n not in row.student}, row.student
        assert str(report.seed) not in text


def _hidden_numbers(seed):
    """Numbers of the inputs and of the right outputs that are no round ones."""
    found = []
    for item in exercises(1):
        if item.kind == "function":
            cases = item.make_cases(seed)
            tensors = [a for c in cases for a in c.args if hasattr(a, "shape")]
            wanted = observe_all(item, answer(item.name).reference, seed)
            tensors += [leaf.value for one in wanted for leaf in one.leaves.values()]
            for tensor in tensors:
                numbers = np.asarray(tensor, dtype=float).ravel()
                found += [x for x in numbers if abs(x) > 0.01 and x != round(x, 2)]
    return found


def _told(text, secrets):
    """The numbers of a text with four decimals or more that are secret ones, rounded or cut off."""
    told = re.findall(r"-?\d+\.\d{4,}", text)
    return [number for number in told if any(abs(float(number) - x) < 1e-4 for x in secrets)]


def test_feedback_gives_a_hint_where_something_is_wrong_and_none_where_it_is_right(graded):
    _, out, _ = graded
    hint = exercise(SCORES).hints[0].split("\n")[0]
    told = html.unescape((out / "feedback" / "wrong_scale.html").read_text(encoding="utf-8"))
    assert "Hint: " in told and hint in told
    assert "Hint: " not in (out / "feedback" / "right.html").read_text(encoding="utf-8")


def test_what_a_program_says_of_hidden_inputs_is_masked(of):
    lines = " ".join(of("cheat_tells_its_inputs")[SCORES].lines)
    assert "ValueError" in lines and not re.search(r"\d\.\d|\d{5}|\w{41}", lines)


def test_progress_tells_how_far_it_is_and_the_time_left(graded):
    report, _, said = graded
    total = len(report.rows)
    assert f"graded {total} of {total}" in said and "left" in said and "grades.csv" in said
