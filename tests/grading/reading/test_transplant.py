"""The notebook that runs is the instructor's, with nothing of the student's but the answers."""

from __future__ import annotations

import copy

import nbformat
import pytest
from nbval.plugin import find_comment_markers
from pupils import BUDGET, COURSE, MASK, SCORES, find, new_cell, released, solved, write

from labs_lib.grading.reading.transplant import MARKERS, neutral, of_solution, transplant
from labs_lib.notebook.cells import exercise_name, role
from labs_lib.notebook.matching import match

EXPECTED = {item.name: f"{item.name}\nvalues\n" for item in COURSE.exercises}


def made(whole):
    answers = match(whole, COURSE.notebook, COURSE.asked)
    return transplant(COURSE.notebook, answers, EXPECTED)


def sources(whole, kind):
    return [cell.source for cell in whole.cells if role(cell) == kind]


def test_checks_setup_and_order_are_the_instructors_alone():
    whole = solved()
    for cell in whole.cells:
        if role(cell) in ("check", "setup"):
            cell.source = "print('mine')"
    whole.metadata = {"kernelspec": {"name": "ir"}, "points": 100}
    run = made(whole)
    assert sources(run, "check") == sources(COURSE.notebook, "check")
    assert sources(run, "setup") == sources(COURSE.notebook, "setup")
    assert run.metadata["kernelspec"]["name"] == "python3" and "points" not in run.metadata
    nbformat.validate(run)


def test_only_what_counts_is_run():
    whole = solved()
    whole.cells.insert(0, new_cell("import os"))
    run = made(whole)
    assert {role(cell) for cell in run.cells} == {"setup", "answer", "check"}
    assert all(cell.cell_type == "code" for cell in run.cells)
    assert len(sources(run, "check")) == len(COURSE.exercises)


def test_each_check_stands_behind_its_answer_and_holds_what_is_expected():
    run = made(solved())
    for before, cell in zip(run.cells, run.cells[1:], strict=False):
        if role(cell) == "check":
            assert exercise_name(before) == exercise_name(cell) and role(before) == "answer"
            assert cell.outputs[0].text == EXPECTED[exercise_name(cell)]
            assert cell.metadata.tags == ["nbval-check-output"] and cell.execution_count == 1


def test_what_was_not_tried_is_left_out_with_its_check():
    whole = solved()
    write(whole, SCORES, released().cells[find(released(), SCORES)].source)
    run = made(whole)
    assert SCORES not in {exercise_name(cell) for cell in run.cells}
    assert made(released()).cells == [c for c in made(released()).cells if role(c) == "setup"]


def test_what_a_person_has_to_look_at_is_not_run():
    whole = solved()
    late = copy.deepcopy(whole.cells[find(whole, MASK)])
    late.source += "\nextra = 1"
    whole.cells.append(late)
    del whole.cells[find(whole, MASK, "check")]
    assert MASK not in {exercise_name(cell) for cell in made(whole).cells}


def test_tags_of_the_student_are_dropped():
    whole = solved()
    for cell in whole.cells:
        cell.metadata["tags"] = ["nbval-skip", "raises-exception", "nbval-ignore-output"]
    tags = {tag for cell in made(whole).cells for tag in cell.metadata.get("tags", [])}
    assert tags == {"nbval-check-output"}


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("shape", ["# {}", "#{}", "   ##  {}  ", '"""\n# {}\n"""', "x = 1\x0c# {}"])
def test_markers_of_nbval_are_harmless_even_in_a_docstring(marker, shape):
    source = "def f():\n    pass\n" + shape.format(marker)
    assert list(find_comment_markers(source))
    assert not list(find_comment_markers(neutral(source)))
    assert neutral(source).count("\n") == source.count("\n")


def test_code_that_only_names_a_marker_stays_as_it_is():
    source = 'print("# NBVAL_SKIP")  # NBVAL_SKIP is a marker\n'
    assert neutral(source) == source


def test_whole_cells_are_transplanted_and_never_spliced_lines():
    whole = solved()
    tabbed = "def budget(n_key, n_wanted, gap):\n\tif n_key:\n        return 1\n"
    write(whole, BUDGET, tabbed)
    assert tabbed in sources(made(whole), "answer")


def test_the_solution_can_be_transplanted_like_an_answer():
    solution = COURSE.solution()
    run = transplant(solution, of_solution(solution), EXPECTED)
    assert len(sources(run, "answer")) == len(COURSE.exercises)
    assert not any("SOLUTION" in text for text in sources(run, "answer"))
