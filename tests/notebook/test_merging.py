"""A half-done notebook survives a new release: nothing that a student wrote is lost."""

from __future__ import annotations

import copy

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat import from_dict

from labs_lib.notebook.cells import cell_id, text_hash
from labs_lib.notebook.guesses import guesses, with_guesses, without_guesses
from labs_lib.notebook.merging import SECTION, asked_in, merge

STUB = "def {0}(x):\n    raise NotImplementedError"
ANSWER = "def {0}(x):\n    return x + 1"


def cell(kind, source, metadata=None, name="x"):
    extra = {"outputs": [], "execution_count": None} if kind == "code" else {}
    made = {"cell_type": kind, "id": name, "metadata": metadata or {}, "source": source}
    return from_dict(made | extra)


def release(*parts, lab="lab90"):
    """A notebook as handed out: text is prose, `demo: ...` a demonstration, `?name` an exercise."""
    cells, counted = [], {}
    for part in parts:
        if part.startswith("?"):
            short, _, stub = part[1:].partition(" ")
            name, stub = f"{lab}.{short}", stub or STUB.format(short)
            rows = [("code", stub, "answer", name)]
            rows.append(("code", f'check("{name}", {short})', "check", name))
        elif part.startswith("demo: "):
            rows = [("code", part[6:], "demo", "")]
        else:
            rows = [("markdown", part, "prose", "")]
        for kind, source, role, name in rows:
            counted[name, role] = counted.get((name, role), 0) + 1
            mark = {"role": role} | ({"exercise": name} if name else {})
            mark["stub" if role == "answer" else "text"] = text_hash(source)
            own = cell_id(name or lab, role, counted[name, role])
            cells.append(cell(kind, source, {"labs": mark}, own))
    whole = {"lab": lab, "source": text_hash(" ".join(parts))}
    top = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"labs": whole}}
    return from_dict(top | {"cells": cells})


FIRST = (
    "# Title",
    "demo: import torch",
    "Write a.",
    "?a",
    "More.",
    "?b",
    "demo: plot()",
    "The end.",
)
SECOND = ("# Title", "New words.", "demo: import torch", "Write a, please.", "?a", "?c", "More.")
SECOND += ("?b", "demo: plot()", "The end.")


def edited(notebook, **answers):
    done = copy.deepcopy(notebook)
    for one in done.cells:
        mark = one.metadata.get("labs", {})
        short = mark.get("exercise", "").partition(".")[2]
        if mark.get("role") == "answer" and short in answers:
            one.source = answers[short]
    return done


def place(notebook, source):
    (found,) = [n for n, one in enumerate(notebook.cells) if one.source == source]
    return found


def sources(notebook):
    return [one.source for one in notebook.cells]


def insert_after(notebook, source, *new):
    at = place(notebook, source) + 1
    notebook.cells[at:at] = [cell("code", text, name=f"mine{at}{n}") for n, text in enumerate(new)]


def test_answers_move_into_the_new_notebook_and_all_else_is_new():
    done = merge(edited(release(*FIRST), a=ANSWER.format("a")), release(*SECOND))
    wanted = sources(edited(release(*SECOND), a=ANSWER.format("a")))
    assert sources(done.notebook) == wanted
    assert (done.answers, done.new, done.own, done.gone) == (("lab90.a",), ("lab90.c",), 0, ())
    nbformat.validate(done.notebook)


@pytest.mark.parametrize("lost", ["metadata", "metadata and ids"])
def test_answers_are_found_by_id_and_by_text_where_metadata_is_lost(lost):
    old = release(*FIRST)
    mine = edited(old, a=ANSWER.format("a"), b=ANSWER.format("b"))
    for number, one in enumerate(mine.cells):
        one.metadata = {}
        if "ids" in lost:
            one["id"] = f"other{number}"
    done = merge(mine, release(*SECOND), old)
    answers = {"a": ANSWER.format("a"), "b": ANSWER.format("b")}
    assert sources(done.notebook) == sources(edited(release(*SECOND), **answers))


def test_own_cells_stay_beside_the_exercise_where_they_stood():
    mine = edited(release(*FIRST), a=ANSWER.format("a"))
    insert_after(mine, ANSWER.format("a"), "a(1)", "# my note")
    insert_after(mine, "More.", "helper = 3")
    insert_after(mine, "The end.", "goodbye = 1")
    mine.cells.insert(0, cell("markdown", "My notebook", name="top"))
    new = sources(merge(mine, release(*SECOND)).notebook)
    assert new[0] == "My notebook"
    at = new.index(ANSWER.format("a"))
    assert new[at : at + 4] == [ANSWER.format("a"), "a(1)", "# my note", 'check("lab90.a", a)']
    assert new[new.index("helper = 3") - 1] == "More."
    assert new[-1] == "goodbye = 1"


def test_own_cells_move_with_an_exercise_that_moved():
    mine = edited(release(*FIRST), a=ANSWER.format("a"))
    insert_after(mine, 'check("lab90.a", a)', "a(2)")
    new = sources(merge(mine, release("# Title", "More.", "?b", "Now a.", "?a")).notebook)
    at = new.index('check("lab90.a", a)')
    assert new[at + 1] == "a(2)" and at > new.index('check("lab90.b", b)')


def test_exercise_that_went_away_is_kept_at_the_end_for_good():
    mine = edited(release(*FIRST), a=ANSWER.format("a"))
    insert_after(mine, ANSWER.format("a"), "a(1)")
    without = release("# Title", "More.", "?b", "The end.")
    done = merge(mine, without)
    kept = sources(done.notebook)[-4:]
    assert kept == [SECTION, "`lab90.a`", ANSWER.format("a"), "a(1)"]
    assert done.gone == ("lab90.a",)
    later = merge(done.notebook, release("# Title", "More.", "?b", "The end.", "After the end."))
    assert sources(later.notebook)[-5:] == ["After the end.", *kept]
    assert 'check("lab90.a", a)' not in sources(done.notebook)


def test_exercise_that_went_away_and_was_not_begun_leaves_nothing():
    done = merge(release(*FIRST), release("# Title", "More.", "?b"))
    assert sources(done.notebook) == sources(release("# Title", "More.", "?b"))


def test_changed_question_is_shown_above_the_kept_answer():
    mine = edited(release(*FIRST), a=ANSWER.format("a"))
    new = release("# Title", "?a def a(x, y):\n    raise NotImplementedError", "?b")
    done = merge(mine, new)
    at = place(done.notebook, ANSWER.format("a"))
    assert "def a(x, y)" in done.notebook.cells[at - 1].source
    assert any("lab90.a" in note for note in done.notes)
    assert not merge(done.notebook, new).changed


def test_untouched_stub_becomes_the_new_stub():
    done = merge(release(*FIRST), release("?a def a(x, y):\n    raise NotImplementedError"))
    assert "x, y" in done.notebook.cells[0].source and done.answers == ()


def test_changed_cell_of_ours_stays_where_the_course_left_it_alone():
    mine = release(*FIRST)
    mine.cells[place(mine, "demo: plot()"[6:])].source = "plot(color='red')"
    mine.cells[place(mine, "More.")].source = "More. I think so too."
    new = sources(merge(mine, release(*SECOND)).notebook)
    assert "plot(color='red')" in new and "plot()" not in new
    assert "More. I think so too." in new and "More." not in new


def test_cell_that_both_changed_is_kept_below_the_new_one():
    mine = release(*FIRST)
    mine.cells[place(mine, "plot()")].source = "plot(color='red')"
    other = [part.replace("plot()", "plot(title='a')") for part in SECOND]
    done = merge(mine, release(*other))
    at = place(done.notebook, "plot(title='a')")
    assert done.notebook.cells[at + 1].source == "plot(color='red')"
    assert len(done.notes) == 1


def test_guesses_are_carried_into_rewritten_cells():
    mine = release("# Title", 'demo: x = 1\npredict("lab90.rows", None)', "?a")
    mine.cells[1].source = 'x = 1\npredict("lab90.rows", "zwölf")'
    new = release(
        "# Title", "Words.", 'demo: é = "é"; predict("lab90.rows", None)  # how many', "?a"
    )
    assert sources(merge(mine, new).notebook)[2] == (
        'é = "é"; predict("lab90.rows", "zwölf")  # how many'
    )


def test_guesses_of_several_lines_are_read_and_put_back():
    text = 'predict("a", [\n    1,\n    2,\n])\npredict("b", None)'
    assert guesses(text) == {"a": "[\n    1,\n    2,\n]"}
    plain = without_guesses(text)
    assert plain == 'predict("a", None)\npredict("b", None)'
    assert with_guesses(plain, guesses(text)) == text


def test_answer_in_a_new_cell_below_its_stub_stays_there():
    mine = release(*FIRST)
    insert_after(mine, STUB.format("a"), ANSWER.format("a"))
    done = merge(mine, release(*SECOND))
    new = sources(done.notebook)
    at = new.index(STUB.format("a"))
    assert new[at + 1] == ANSWER.format("a") and done.answers == ("lab90.a",)


def test_answer_written_into_another_exercises_cell_is_not_undone_by_a_stub():
    mine = edited(release(*FIRST), a=ANSWER.format("a") + "\n\n" + ANSWER.format("b"))
    del mine.cells[place(mine, STUB.format("b"))]
    done = merge(mine, release(*SECOND))
    assert STUB.format("b") not in sources(done.notebook)
    assert set(done.answers) == {"lab90.a", "lab90.b"}
    assert not merge(done.notebook, release(*SECOND)).changed


def test_several_answers_to_one_exercise_are_all_kept():
    mine = edited(release(*FIRST), a=ANSWER.format("a"))
    twin = copy.deepcopy(mine.cells[place(mine, ANSWER.format("a"))])
    twin["id"], twin.source = "twin", "def a(x):\n    return x + 2"
    mine.cells.insert(place(mine, ANSWER.format("a")), twin)
    new = sources(merge(mine, release(*SECOND)).notebook)
    assert new.index(twin.source) + 1 == new.index(ANSWER.format("a")), "the later one still wins"


def test_kernels_and_values_are_exercises_too():
    kernel = "%%cuda\n__global__ void k(float *x) {\n}"
    whole = release(f"?k {kernel}", "?n n = None  # a number", "?q q = None")
    assert [(item.short, item.is_function) for item in asked_in(whole)] == [
        ("k", True),
        ("n", False),
        ("q", False),
    ]
    mine = edited(whole, k=kernel.replace("{\n", "{\n  x[0] = 1;\n"), n="n = 3")
    done = merge(mine, release("Words.", f"?k {kernel}", "?n n = None  # a number", "?q q = None"))
    assert set(done.answers) == {"lab90.k", "lab90.n"}


PARTS = [*FIRST[1:], "?c", "?d", "Other words.", "demo: show(1)", 'demo: predict("lab90.p", None)']
RELEASES = st.lists(st.sampled_from(PARTS), unique=True, max_size=9).map(lambda p: release(*p))


@st.composite
def students(draw):
    """A release and what a student may have made of it."""
    old = draw(RELEASES)
    mine = copy.deepcopy(old)
    written = []
    for number in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(mine.cells)))
        what = draw(st.sampled_from(["insert", "change", "delete", "copy", "strip", "answer"]))
        text = f"mine_{number} = {number}"
        if what == "insert" or at == len(mine.cells):
            kind = draw(st.sampled_from(["code", "markdown"]))
            mine.cells.insert(at, cell(kind, text, name=f"new{number}"))
        elif what == "delete":
            del mine.cells[at]
        elif what == "copy":
            twin = copy.deepcopy(mine.cells[at])
            twin["id"], twin.source = f"copy{number}", text
            mine.cells.insert(at, twin)
        elif what == "strip":
            mine.cells[at].metadata = {}
        elif what == "answer":
            short = mine.cells[at].metadata.get("labs", {}).get("exercise", "lab90.a")[6:]
            mine.cells[at].source = f"def {short}(x):\n    return {number}"
        else:
            mine.cells[at].source = text
    shipped = set(sources(old))
    written = {s for s in sources(mine) if s not in shipped and not s.startswith("check(")}
    return old, mine, written


@settings(max_examples=60, deadline=None)
@given(students(), RELEASES, RELEASES, st.booleans())
def test_whatever_is_edited_nothing_is_lost_and_a_second_update_changes_nothing(
    work, new, later, remembered
):
    old, mine, written = work
    for target in (new, later):
        done = merge(mine, target, old if remembered else None)
        nbformat.validate(done.notebook)
        made = done.notebook
        assert written <= set(sources(made))
        ids = [one["id"] for one in target.cells]
        assert [one["id"] for one in made.cells if one["id"] in ids] == ids
        again = merge(made, target, target)
        assert not again.changed and sources(again.notebook) == sources(made)
        assert not merge(made, target).changed
        mine, old = made, target


def test_answers_are_kept_although_what_is_taken_for_the_old_release_holds_them():
    mine = edited(release(*FIRST), a=ANSWER.format("a"))
    done = merge(mine, release(*SECOND), copy.deepcopy(mine))
    assert ANSWER.format("a") in sources(done.notebook)


def test_untouched_notebook_becomes_the_new_release_to_the_letter():
    done = merge(release(*FIRST), release(*SECOND))
    assert done.notebook == release(*SECOND) and done.changed
    assert not merge(release(*FIRST), release(*FIRST)).changed
