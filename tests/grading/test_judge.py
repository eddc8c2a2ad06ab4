"""What a run leaves behind becomes a status; absence of evidence is never a pass."""

from __future__ import annotations

import pytest

from labs_lib.answers import answer
from labs_lib.checking.check import graded_text
from labs_lib.exercises import exercise, lab
from labs_lib.grading.course import Course
from labs_lib.grading.expected.key import Key
from labs_lib.grading.expected.places import choose
from labs_lib.grading.judge import STATUSES, Outcome, judge
from labs_lib.grading.run import CellRun
from labs_lib.grading.sandbox import Policy
from labs_lib.notebook.matching import Answer, Piece

ITEM = exercise("lab00.first_tensor")
KNOWN = answer(ITEM.name)
SEED = 11


@pytest.fixture(scope="module")
def key():
    course = Course(lab(0))
    chosen = {e.name: choose(e, answer(e.name), SEED) for e in course.exercises}
    expected = {name: one.expected + "\n" for name, one in chosen.items()}
    return Key(course, expected, {name: one.mistakes for name, one in chosen.items()}, Policy())


@pytest.fixture
def printed():
    run = {"seed": SEED, "places": {ITEM.name: choose(ITEM, KNOWN, SEED).places}}
    return lambda program: graded_text(ITEM, program, run) + "\n"


def outcome(key, *runs, item=ITEM, source="def first_tensor(x):\n    return x.mean(-1)"):
    answers = {e.name: Answer(e.name) for e in key.course.exercises}
    answers[item.name] = Answer(item.name, (Piece(source, 1, "its id"),), attempted=True)
    found = {one.exercise: one for one in judge(key, answers, list(runs))}
    assert set(found) == {e.name for e in key.course.exercises}
    assert {o.status for n, o in found.items() if n != item.name} == {"not-attempted"}
    return found[item.name]


def check(status="ok", item=ITEM, **more):
    return CellRun(2, item.name, "check", status, **more)


def test_an_equal_output_passes(key):
    one = outcome(key, check())
    assert (one.status, one.points, one.how) == ("pass", 1, "its id")


@pytest.mark.parametrize("runs", [[], [check(), check()]])
def test_no_result_or_two_are_no_pass(key, runs):
    assert outcome(key, *runs).status == "infrastructure"


@pytest.mark.parametrize(
    ("run", "status"),
    [
        (check("timeout", reason="it ran for more than 12 s"), "timeout"),
        (check("memory"), "memory"),
        (check("crash"), "crash"),
        (check("output-flood"), "error"),
        (check("infrastructure"), "infrastructure"),
        (check("not-run", cause="crash"), "crash"),
        (check("not-run", cause="timeout"), "timeout"),
        (check("not-run"), "error"),
        (check("error", ename="NameError", evalue="x"), "error"),
        (check("mismatch", stdout="PASS  lab00.first_tensor"), "fail"),
        (check("mismatch", stdout=""), "fail"),
        (check("mismatch", stdout="lab00.first_tensor\nNOT ATTEMPTED\n"), "not-attempted"),
        (check("mismatch", stdout="lab00.first_tensor\nnot a function: int\n"), "fail"),
    ],
)
def test_each_way_to_fail_has_its_status_and_a_sentence(key, run, status):
    one = outcome(key, run)
    assert one.status == status and one.lines and one.points in (0, None)


def test_a_set_up_that_failed_is_never_the_students_fault(key):
    one = outcome(key, CellRun(0, None, "setup", "error"), check("error"))
    assert (one.status, one.points) == ("infrastructure", None)


def test_an_answer_that_raised_is_an_error_and_not_merely_not_attempted(key):
    broken = CellRun(
        1, ITEM.name, "answer", "error", ename="SyntaxError", evalue="invalid syntax (x, line 3)"
    )
    one = outcome(key, broken, check("mismatch", stdout=f"{ITEM.name}\nNOT ATTEMPTED\n"))
    assert one.status == "error" and "line 3" in one.lines[0]


@pytest.mark.parametrize("wrong", KNOWN.wrong, ids=lambda w: w.name)
def test_each_known_mistake_is_named(key, printed, wrong):
    one = outcome(key, check("mismatch", stdout=printed(wrong.program)))
    assert (one.status, one.mistake) == ("fail", wrong.name)
    assert one.lines[0] == wrong.says.split("\n")[0]


def test_a_mistake_is_recognised_by_its_first_wrong_case(key, printed):
    def mixed(x):
        return x.mean(dim=-2) if x.ndim < 3 else x.mean(-1) + 1

    one = outcome(key, check("mismatch", stdout=printed(mixed)))
    assert one.mistake == "mean_of_columns"


def test_an_unknown_difference_tells_shapes_but_no_wanted_number(key, printed):
    one = outcome(key, check("mismatch", stdout=printed(lambda x: x.mean(-1) * 1.5)))
    assert one.status == "fail" and "differ" in one.lines[-1]
    assert not any(character.isdigit() for character in one.lines[-1])
    shaped = outcome(key, check("mismatch", stdout=printed(lambda x: x)))
    assert "of shape" in shaped.lines[-1]


def test_raising_changing_inputs_and_keeping_state_are_told(key, printed):
    raised = outcome(key, check("mismatch", stdout=printed(lambda x: x.nothing)))
    assert raised.status == "error" and "AttributeError" in raised.lines[-1]

    def slow(x):
        raise MemoryError

    assert outcome(key, check("mismatch", stdout=printed(slow))).status == "memory"
    changed = outcome(key, check("mismatch", stdout=printed(lambda x: x.mul_(1.5).mean(-1) / 1.5)))
    assert "changed its input" in changed.lines[-1]
    calls = []

    def counts(x):
        calls.append(1)
        return x.mean(-1) + (len(calls) > len(ITEM.make_cases(SEED)))

    kept = outcome(key, check("mismatch", stdout=printed(counts)))
    assert "two different results" in " ".join(kept.lines)


def test_a_wrong_choice_reads_its_own_explanation(key):
    item = exercise("lab00.quiz_last_axis")
    known = answer(item.name)
    for wrong in known.wrong:
        stdout = f"{item.name}\ncase 1\n  value: text {wrong.program!r}\n"
        one = outcome(key, check("mismatch", item, stdout=stdout), item=item, source="q = 1")
        assert one.lines[0] == wrong.says.split("\n")[0]
    odd = outcome(
        key,
        check("mismatch", item, stdout=f"{item.name}\ncase 1\n  value: text 'zz'\n"),
        item=item,
        source="q = 1",
    )
    assert "choices" in odd.lines[0]


def test_doubt_is_for_a_person_and_gives_no_points_yet(key):
    answers = {e.name: Answer(e.name, doubt="Two of them.") for e in key.course.exercises}
    first = judge(key, answers, [check()])[0]
    assert (first.status, first.points) == ("needs-review", None)


def test_statuses_are_the_courses_own():
    with pytest.raises(ValueError, match="passed"):
        Outcome("lab00.first_tensor", "passed", 1)
    assert len(STATUSES) == 11
