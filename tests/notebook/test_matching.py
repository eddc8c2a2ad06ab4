"""An answer is found whatever an editor did to its cell, and the report says by what."""

from __future__ import annotations

import copy
import random

import pytest
from nbformat import from_dict

from labs_lib.notebook.matching import Asked, match, recognised_by_lab

STUB = "def {0}(x):\n    raise NotImplementedError\n"
ASKED = [
    Asked("lab90.first", "first", STUB.format("first")),
    Asked("lab90.second", "second", STUB.format("second")),
    Asked("lab90.size", "size", "size = None  # a number", is_function=False),
]
FIRST = "def first(x):\n    return x + 1\n"
SECOND = "def second(x):\n    return x * 2\n"


def cell(kind, source, role, exercise="", number=1):
    mark = {"role": role} | ({"exercise": exercise} if exercise else {})
    name = f"{(exercise or 'lab90').replace('.', '-')}-{role}-{number}"
    extra = {"outputs": [], "execution_count": None} if kind == "code" else {}
    made = {"cell_type": kind, "id": name, "metadata": {"labs": mark}, "source": source}
    return made | extra


def release():
    """Title, setup, then for each exercise: prose, answer, check; a demo after the first."""
    cells = [
        cell("markdown", "# 90 · A small lab", "prose", number=1),
        cell("code", "import math\nlimit = 3", "setup"),
    ]
    for n, item in enumerate(ASKED, 2):
        cells.append(cell("markdown", f"Now write {item.short}.", "prose", number=n))
        cells.append(cell("code", item.stub, "answer", item.name))
        cells.append(cell("code", f'check("{item.name}", {item.short})', "check", item.name))
        if n == 2:
            cells.append(cell("code", "print(limit)", "demo"))
    return from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})


SETUP, ANSWER_1, CHECK_1, DEMO, ANSWER_2, CHECK_2, ANSWER_3 = 1, 3, 4, 5, 7, 8, 10


def new(source, kind="code"):
    extra = {"outputs": [], "execution_count": None} if kind == "code" else {}
    made = {"cell_type": kind, "id": f"r{random.random():.12f}"[2:], "metadata": {}}
    return from_dict(made | {"source": source} | extra)


def solved():
    whole = release()
    for index, text in ((ANSWER_1, FIRST), (ANSWER_2, SECOND), (ANSWER_3, "size = 64")):
        whole.cells[index].source = text
    return whole


def found(whole):
    return match(whole, release(), ASKED)


def sources(answer):
    return [piece.source for piece in answer.pieces]


def strip(whole, *, metadata=True, ids=True):
    for one in whole.cells:
        if metadata:
            one.metadata = {}
        if ids:
            one["id"] = new("")["id"]
    return whole


def test_the_untouched_release_is_not_attempted():
    assert [a.attempted for a in found(release()).values()] == [False] * 3


def test_answers_are_found_by_metadata_and_nothing_else_is_taken():
    answers = found(solved())
    assert [sources(a) for a in answers.values()] == [[FIRST], [SECOND], ["size = 64"]]
    assert {a.how for a in answers.values()} == {"its metadata"}
    assert all(a.attempted and not a.notes and not a.doubt for a in answers.values())


@pytest.mark.parametrize(("ids", "how"), [(False, "its id"), (True, "its text")])
def test_lost_metadata_is_made_up_for(ids, how):
    answers = found(strip(solved(), ids=ids))
    assert [sources(a) for a in answers.values()] == [[FIRST], [SECOND], ["size = 64"]]
    assert {a.how for a in answers.values()} == {how}


def test_an_untouched_notebook_without_metadata_and_ids_is_still_not_attempted():
    assert not any(a.attempted for a in found(strip(release())).values())


def test_an_answer_in_a_new_cell_below_its_stub_counts():
    for below in (1, 2):
        whole = release()
        whole.cells.insert(ANSWER_1 + 1, new(FIRST))
        if below == 2:
            whole.cells.insert(ANSWER_1 + 1, new("half = 0.5"))
        answer = found(whole)["lab90.first"]
        assert answer.attempted and sources(answer)[-1] == FIRST
        assert not any("NotImplementedError" in text for text in sources(answer))


def test_a_new_cell_above_its_stub_counts_although_the_stub_stands_below():
    whole = release()
    whole.cells.insert(ANSWER_1, new(FIRST))
    assert sources(found(whole)["lab90.first"]) == [FIRST]


def test_a_helper_in_its_own_cell_is_taken_along():
    whole = solved()
    whole.cells.insert(ANSWER_2, new("def twice(x):\n    return 2 * x"))
    whole.cells[ANSWER_2 + 1].source = "def second(x):\n    return twice(x)"
    answer = found(whole)["lab90.second"]
    assert [text.split("(")[0] for text in sources(answer)] == ["def twice", "def second"]


def test_scratch_below_a_check_is_not_run():
    whole = solved()
    whole.cells.insert(CHECK_1 + 1, new("while True: pass"))
    whole.cells.append(new("first = 3"))
    answers = found(whole)
    assert [sources(a) for a in answers.values()] == [[FIRST], [SECOND], ["size = 64"]]


def test_a_deleted_answer_cell_is_missing_and_a_deleted_check_is_no_matter():
    whole = solved()
    del whole.cells[CHECK_2], whole.cells[ANSWER_1]
    answers = found(whole)
    assert not answers["lab90.first"].attempted and not answers["lab90.first"].pieces
    assert any("missing" in note for note in answers["lab90.first"].notes)
    assert sources(answers["lab90.second"]) == [SECOND]
    assert any("check cell is missing" in note for note in answers["lab90.second"].notes)


def test_a_new_cell_below_the_stub_counts_although_the_check_was_deleted():
    whole = release()
    whole.cells[CHECK_1] = new(FIRST)
    assert sources(found(whole)["lab90.first"]) == [FIRST]


def test_duplicates_of_the_stub_never_cover_an_answer():
    whole = solved()
    whole.cells.insert(ANSWER_1 + 1, copy.deepcopy(release().cells[ANSWER_1]))
    answer = found(whole)["lab90.first"]
    assert sources(answer) == [FIRST]
    assert any("2 answer cells" in note for note in answer.notes)


def test_of_two_answers_the_one_above_the_check_counts():
    whole = solved()
    late = copy.deepcopy(whole.cells[ANSWER_1])
    late.source = FIRST.replace("+ 1", "+ 5")
    whole.cells.append(late)
    answer = found(whole)["lab90.first"]
    assert sources(answer) == [FIRST] and any("below the check" in n for n in answer.notes)


def test_two_different_answers_apart_are_doubt_where_no_check_decides():
    whole = solved()
    late = copy.deepcopy(whole.cells[ANSWER_1])
    late.source = FIRST.replace("+ 1", "+ 5")
    whole.cells.append(late)
    del whole.cells[CHECK_1]
    assert "Several different answers" in found(whole)["lab90.first"].doubt


def test_a_split_answer_cell_keeps_both_halves():
    whole = solved()
    rest = copy.deepcopy(whole.cells[ANSWER_1])
    rest["id"] = "other"
    whole.cells[ANSWER_1].source = "one = 1"
    whole.cells.insert(ANSWER_1 + 1, rest)
    assert sources(found(whole)["lab90.first"]) == ["one = 1", FIRST]


def test_moved_cells_are_found():
    whole = solved()
    whole.cells.append(whole.cells.pop(ANSWER_1))
    answer = found(whole)["lab90.first"]
    assert sources(answer) == [FIRST] and any("below its check" in n for n in answer.notes)
    shuffled = solved()
    shuffled.cells.reverse()
    assert [sources(a) for a in found(shuffled).values()] == [[FIRST], [SECOND], ["size = 64"]]


@pytest.mark.parametrize("kind", ["markdown", "raw"])
@pytest.mark.parametrize("known", [True, False])
def test_an_answer_cell_of_another_type_is_read_as_code(kind, known):
    whole = solved()
    mark = whole.cells[ANSWER_1].metadata
    whole.cells[ANSWER_1] = new(FIRST, kind)
    if known:
        whole.cells[ANSWER_1].metadata = mark
    answer = found(whole)["lab90.first"]
    assert sources(answer) == [FIRST] and any(kind in note for note in answer.notes)


def test_a_copied_answer_cell_with_another_answer_in_it_counts_for_what_it_defines():
    whole = release()
    whole.cells[ANSWER_1].source = FIRST
    copied = copy.deepcopy(whole.cells[ANSWER_1])
    copied.source = SECOND
    whole.cells.insert(ANSWER_2 + 1, copied)
    answers = found(whole)
    assert sources(answers["lab90.first"]) == [FIRST]
    assert sources(answers["lab90.second"]) == [SECOND]


def test_all_answers_in_one_cell_count():
    whole = release()
    whole.cells[ANSWER_1].source = FIRST + SECOND
    answers = found(whole)
    assert answers["lab90.second"].attempted and SECOND in answers["lab90.second"].source
    assert not answers["lab90.size"].attempted


def test_an_answer_written_over_the_check_or_the_demo_is_found():
    for place in (CHECK_1, DEMO):
        whole = release()
        whole.cells[place].source = FIRST
        assert sources(found(whole)["lab90.first"]) == [FIRST]


def test_imports_added_to_the_setup_cell_are_taken_along():
    whole = solved()
    whole.cells[SETUP].source += "\nimport itertools\nlimit = 10_000\nprint('hello')"
    assert sources(found(whole)["lab90.first"]) == ["import itertools", FIRST]


def test_metadata_of_the_student_gives_no_points_and_no_other_exercise():
    whole = solved()
    whole.cells[ANSWER_1].metadata["labs"] = {"exercise": "lab90.points", "role": "answer"}
    whole.cells[ANSWER_2].metadata["labs"] = {"exercise": ["x"], "role": {}, "points": 100}
    answers = found(whole)
    assert list(answers) == [item.name for item in ASKED]
    assert [sources(a) for a in answers.values()] == [[FIRST], [SECOND], ["size = 64"]]


def test_an_answer_that_does_not_parse_is_still_an_attempt():
    whole = strip(solved())
    whole.cells[ANSWER_1].source = "def first(x):\n\treturn x +\n"
    assert found(whole)["lab90.first"].attempted


def test_text_that_breaks_a_parser_breaks_nothing():
    for text in ("\x00", "(" * 5000, "-" * 100_000 + "1", "if x:\n" * 300, "\\", "%%cuda\n{}"):
        whole = release()
        whole.cells[ANSWER_1].source = text
        whole.cells.insert(CHECK_1, new(text))
        assert found(whole)["lab90.first"].attempted


def test_a_notebook_is_recognised_by_what_it_holds():
    assert recognised_by_lab(release(), {"lab02": ASKED}) == {"lab02": 3}
    assert recognised_by_lab(strip(release()), {"lab02": ASKED}) == {"lab02": 3}
    assert recognised_by_lab(from_dict({"cells": [new("print(1)")]}), {"lab02": ASKED}) == {
        "lab02": 0
    }
