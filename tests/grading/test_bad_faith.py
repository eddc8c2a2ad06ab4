"""What a student of bad faith tries gains no point, costs nobody else one, and stops nothing."""

from __future__ import annotations

import io
import json
import time
import zipfile

import nbformat
import pytest
from pupils import COURSE, MASK, SDPA, STD, SUBMISSIONS, dump, find, new_cell, solved, write

from labs_lib.checking.syntax import read
from labs_lib.grading.course import chosen
from labs_lib.grading.intake import candidates
from labs_lib.grading.intake import collect as intake
from labs_lib.grading.intake.candidates import parse, sort_files
from labs_lib.grading.intake.collect import Handed, Submission, collect
from labs_lib.grading.judge import outcome
from labs_lib.grading.reading.structure import Structure, structure
from labs_lib.grading.reading.transplant import of_solution
from labs_lib.grading.reports.report import Report, Row, grades_csv
from labs_lib.notebook import archives
from labs_lib.notebook.bindings import MAX_CHARS, binds
from labs_lib.notebook.cells import checked_exercise
from labs_lib.notebook.matching import Answer, Piece, match
from labs_lib.notebook.reading import Unreadable
from labs_lib.notebook.reading import read as read_notebook

HEAD = "def scaled_dot_product_attention(q, k, v, mask=None):\n    return "
DUMMY = HEAD + "q"
CALLS = HEAD + "attend(q, k, v, mask)"
READY = "F.scaled_dot_product_attention"


def seen(change, name=SDPA):
    """What is read of the answer to an exercise after a change to the solved notebook."""
    whole = solved()
    content = change(whole) or dump(whole)
    found = match(read_notebook(content).notebook, COURSE.notebook, COURSE.asked)
    return structure(next(e for e in COURSE.exercises if e.name == name), found)


def before(text, helper):
    def change(whole):
        write(whole, SDPA, text)
        whole.cells.insert(find(whole, STD) + 1, new_cell(helper))

    return change


def after(helper):
    def change(whole):
        write(whole, SDPA, DUMMY)
        whole.cells.insert(find(whole, SDPA) + 1, new_cell(helper))

    return change


def itself(text):
    return lambda whole: write(whole, SDPA, text)


@pytest.mark.parametrize(
    "change",
    [
        before(CALLS, "attend = getattr(F, 'scaled_dot' + '_product_attention')"),
        before(
            f"attend = scaled_dot_product_attention\n{CALLS}", "from torch.nn.functional import *"
        ),
        before(DUMMY, "exec(bytes.fromhex('70617373'))"),
        before(DUMMY, f"old = check\ndef check(n, f):\n    old(n, {READY})"),
        after("from torch.nn.functional import scaled_dot_product_attention"),
        after(f"if (scaled_dot_product_attention := {READY}): pass"),
        after(f"for scaled_dot_product_attention in [{READY}]: pass"),
        after(f"def f():\n    global scaled_dot_product_attention\n    x = {READY}"),
        after(
            "match F:\n    case object(scaled_dot_product_attention=scaled_dot_product_attention):"
            "\n        pass"
        ),
        after("from labs_lib.training.layers import sdpa as scaled_dot_product_attention"),
        itself(f"%time attend = {READY}\n{CALLS}"),
        itself(f"attend = %time {READY}\n{CALLS}"),
        itself(f"%%time\nattend = {READY}\n{CALLS}"),
        before(DUMMY, f"%%time\ndef check(n, f):\n    print({READY})"),
        before(DUMMY, f"def check(n, f):\n    print({READY})\nmath?"),
        itself(f"attend = {READY}\n# {'x' * MAX_CHARS}\n{CALLS}"),
        itself("import operator\n" + HEAD + "operator.attrgetter('scaled' + '_dot')(F)(q, k, v)"),
        itself(HEAD + "F.softmax.__globals__['scaled_dot' + '_product_attention'](q, k, v, mask)"),
        itself(HEAD + "torch._scaled_dot_product_attention_math(q, k, v, mask)[0]"),
        itself(HEAD + "torch.nn.attention.flex_attention.flex_attention(q, k, v)"),
        itself(HEAD + "torch.nn.TransformerEncoderLayer(4, 1)(q)"),
        itself(HEAD + "torch.jit.CompilationUnit(text).f(q, k, v)"),
        itself("from sys import modules\n" + HEAD + "modules['torch'].x(q, k, v)"),
        itself("import labs_lib.training.layers as l\n" + HEAD + "l.sdpa(q, k, v, mask)"),
        itself("from labs_lib import widgets\n" + HEAD + "widgets.x(q, k, v, mask)"),
    ],
)
def test_a_forbidden_function_reached_by_another_way_is_never_a_silent_point(change):
    found = seen(change)
    assert found.forbidden or found.doubts


@pytest.mark.parametrize("name", [name for name in SUBMISSIONS if name.startswith("right")])
def test_an_honest_answer_in_any_style_raises_no_doubt(name):
    for item in COURSE.exercises:
        found = seen(SUBMISSIONS[name], item.name)
        assert not found.forbidden and not found.doubts, item.name


@pytest.mark.parametrize(
    "text",
    [
        "def scaled_dot_product_attention(q, k, v, mask=None:\n    return q",
        "x = [0]\nx[0] = 'scaled_dot_product_attention'\n" + DUMMY,
        "%%time\n" + DUMMY,
        "files = !ls\n" + DUMMY,
    ],
)
def test_one_broken_answer_throws_no_doubt_on_another(text):
    found = seen(itself(text), "lab01.attention_scores")
    assert not found.forbidden and not found.doubts


def test_every_solution_of_the_course_is_read_without_a_doubt():
    for course in chosen(None):
        answers = of_solution(course.solution())
        for item in course.exercises:
            found = structure(item, answers)
            assert not found.forbidden and not found.doubts, (item.name, found)


def test_torchs_attention_is_free_where_it_is_not_forbidden():
    (item,) = [e for e in chosen("03")[0].exercises if e.name == "lab03.fused_multi_head"]
    text = f"def fused_multi_head(x):\n    return {READY}(x, x, x)"
    answers = {item.name: Answer(item.name, (Piece(text, 1, ""),), attempted=True)}
    assert structure(item, answers) == Structure()


def test_what_the_library_ships_is_no_answer_to_any_exercise():
    text = "from labs_lib.widgets.attention_row import _softmax\n\n"
    changed = seen(lambda w: write(w, MASK, text + w.cells[find(w, MASK)].source), MASK)
    assert changed.doubts == ("it takes labs_lib.widgets.attention_row from the course",)
    for shared in ("labs_lib.config import AttentionConfig", "labs_lib import config"):
        text = f"from {shared}\n\n"
        assert not seen(lambda w, t=text: write(w, MASK, t), MASK).doubts


def test_blank_lines_and_long_texts_are_read_in_no_time():
    began = time.monotonic()
    read("x = 1" + "\n" * 1_000_000, ("torch.mm",))
    read("\n" * MAX_CHARS + "x = 1", ("torch.mm",))
    binds("x = [" + "0," * 5_000_000 + "]", "x", as_function=False)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("text", ["-" * 20_000 + "1", "a" + ".b" * 20_000, "1+" * 20_000 + "1"])
def test_a_text_too_deep_for_python_is_nobodys_check(text):
    assert checked_exercise(text) == ""


def handed(content):
    return Handed("01_one_head.ipynb", lambda: content)


@pytest.mark.parametrize(
    ("limit", "sentence"), [("MAX_BRACKETS", "lists and objects"), ("MAX_TEXT", "characters")]
)
def test_a_notebook_that_would_fill_the_memory_is_unreadable(monkeypatch, limit, sentence):
    content = dump(solved())
    assert sort_files(Submission("a", (handed(content),)), [COURSE]).notebooks
    monkeypatch.setattr(candidates, limit, 100)
    found = sort_files(Submission("a", (handed(content),)), [COURSE])
    assert sentence in found.broken["lab01"]
    with pytest.raises(Unreadable, match=sentence):
        parse(candidates.Candidate(handed(content), "lab01", ""))


def packed(student, **files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        if student:
            archive.writestr("labs-submission.json", json.dumps({"id": student}))
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


EMPTY = json.dumps(nbformat.v4.new_notebook())


def test_nobody_hands_in_under_the_name_of_another(tmp_path):
    (tmp_path / "alice.ipynb").write_text(EMPTY, encoding="utf-8")
    (tmp_path / "mallory.zip").write_bytes(packed("alice", **{"lab-9.ipynb": EMPTY}))
    found, left_out = collect(tmp_path)
    assert [(one.student, len(one.files)) for one in found] == [("alice", 1), ("mallory", 1)]
    assert "mallory.zip says that it is alice's" in left_out[0]


def test_a_student_who_hands_in_again_keeps_one_row(tmp_path):
    for name in ("alice.zip", "alice-2.zip", "alice (3).zip"):
        (tmp_path / name).write_bytes(packed("alice", **{"lab.ipynb": EMPTY}))
    for name in ("first.zip", "second.zip"):
        (tmp_path / name).write_bytes(packed("bob", **{"lab.ipynb": EMPTY}))
    found, _ = collect(tmp_path)
    assert [(one.student, len(one.files)) for one in found] == [("alice", 3), ("bob", 2)]


def test_students_whose_names_are_made_equal_keep_a_row_each(tmp_path):
    for number in (1, 2):
        name = f"Ann_{number}_assignsubmission_file_lab.ipynb"
        (tmp_path / name).write_text(EMPTY, encoding="utf-8")
    (tmp_path / "m.zip").write_bytes(packed("Ann (1)", **{"lab.ipynb": EMPTY}))
    found, _ = collect(tmp_path)
    assert [one.student for one in found] == ["Ann (1)", "Ann (1) [2]", "Ann (2)"]


def test_of_thousands_of_notebooks_of_one_student_a_hundred_are_opened(tmp_path):
    files = {f"n{number}.ipynb": EMPTY for number in range(300)}
    (tmp_path / "flood.zip").write_bytes(packed("", **files))
    (one,), _ = collect(tmp_path)
    assert len(one.files) == intake.MAX_FILES
    assert any("300 files" in note for note in one.notes)


def test_the_members_of_an_archive_are_counted_before_they_are_listed(monkeypatch):
    content = packed("", **{f"n{number}.ipynb": EMPTY for number in range(30)})
    monkeypatch.setattr(archives, "MAX_MEMBERS", 29)
    monkeypatch.setattr(zipfile, "ZipInfo", lambda *_: pytest.fail("it was listed"))
    with pytest.raises(Unreadable, match="more than 29 members"):
        archives.members(lambda: io.BytesIO(content))


@pytest.mark.parametrize(
    ("name", "cell"),
    [("x;=1+1", "x;'=1+1"), ("x; @SUM(A1)", "x; '@SUM(A1)"), ("=1;-2", "'=1;'-2"), ("a;b", "a;b")],
)
def test_no_cell_is_a_formula_where_semicolons_part_the_cells(name, cell):
    item = COURSE.exercises[0]
    row = Row(name, (outcome(item, "pass"),))
    text = grades_csv(Report((row,), (item.name,), {}, 1, 0, ""))
    assert text.splitlines()[1].startswith(f"{cell},1,")
