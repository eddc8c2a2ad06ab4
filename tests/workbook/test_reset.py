"""`labs reset`: the stub comes back, and nothing a student wrote is lost."""

from __future__ import annotations

import nbformat
import pytest

from labs_lib.authoring.release import has_answers
from labs_lib.errors import UsageError
from labs_lib.exercises import exercise, exercises
from labs_lib.exercises.registry import UnknownExercise, UnknownLab
from labs_lib.workbook.reset import reset, reset_lab

from .conftest import RIGHT


def edit(course, change):
    notebook = nbformat.read(course.file, as_version=4)
    change(notebook)
    nbformat.write(notebook, course.file)


def test_stub_is_back_and_the_copy_holds_the_answer(course):
    course.write(course.file.name, {course.name: RIGHT})
    before = course.file.read_bytes()
    done = reset(course.name)
    assert course.cells("answer")[0].source == exercise(course.name).stub.strip("\n")
    assert done.backup.read_bytes() == before
    assert done.backup.parent == course.home / ".labs" / "backups"
    assert not has_answers(course.file)


def test_reset_twice_in_a_second_keeps_both_copies(course):
    assert reset(course.name).backup != reset(course.name).backup


def test_copy_is_kept_even_where_no_progress_is(course, monkeypatch):
    monkeypatch.setenv("LABS_STATE", "off")
    assert reset(course.name).backup.is_file()


def test_only_the_named_exercise_changes_and_own_cells_stay(course):
    others = [item.name for item in exercises(0) if item.name != course.name]
    course.write(course.file.name, {name: f"# mine: {name}" for name in others})
    edit(course, lambda nb: nb.cells.insert(3, nbformat.v4.new_code_cell("my_notes = 1")))
    edit(course, lambda nb: nb.cells[2].metadata.update(tags=["kept"]))
    reset(course.name)
    sources = [c.source for c in nbformat.read(course.file, as_version=4).cells]
    assert "my_notes = 1" in sources
    assert all(f"# mine: {name}" in sources for name in others)
    assert course.cells("answer")[0].metadata["tags"] == ["kept"]


def test_outputs_of_the_exercise_are_cleared(course):
    def run(notebook):
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.execution_count = 1
                cell.outputs = [nbformat.v4.new_output("stream", text="PASS")]

    edit(course, run)
    reset(course.name)
    assert all(c.outputs == [] for role in ("answer", "check") for c in course.cells(role))


@pytest.mark.parametrize("gone", [("answer",), ("check",), ("answer", "check")])
def test_deleted_cells_come_back_in_order(course, gone):
    def delete(notebook):
        notebook.cells = [
            c
            for c in notebook.cells
            if c.metadata.get("labs", {}).get("exercise") != course.name
            or c.metadata["labs"]["role"] not in gone
        ]

    edit(course, delete)
    reset(course.name)
    cells = nbformat.read(course.file, as_version=4).cells
    (answer,), (check,) = course.cells("answer"), course.cells("check")
    assert cells.index(answer) < cells.index(check)
    nbformat.validate(nbformat.read(course.file, as_version=4))


def test_copied_answer_cell_does_not_survive_beside_the_stub(course):
    course.write(course.file.name, {course.name: RIGHT})
    edit(course, lambda nb: nb.cells.append(nbformat.from_dict({**nb.cells[2], "id": "a-copy"})))
    done = reset(course.name)
    assert len(course.cells("answer")) == 1
    assert "removed" in done.done[0]


def test_changed_check_cell_is_mended(course):
    edit(course, lambda nb: nb.cells[3].update(source="check = print"))
    reset(course.name)
    assert course.cells("check")[0].source.startswith(f'check("{course.name}"')


def test_whole_lab_is_reset_at_once(course):
    course.write(course.file.name, {item.name: "# mine" for item in exercises(0)})
    done = reset_lab("00")
    assert len(done.done) == len(exercises(0))
    assert not has_answers(course.file)


def test_renamed_notebook_is_found_by_its_number(course):
    renamed = course.file.rename(course.notebooks / "00_ada.ipynb")
    assert reset(course.name).notebook == renamed


def test_unknown_names_offer_the_nearest_and_change_nothing(course):
    before = course.file.read_bytes()
    with pytest.raises(UnknownExercise, match=course.name):
        reset("lab00.first_tensr")
    with pytest.raises(UnknownLab, match="00"):
        reset_lab("77")
    assert course.file.read_bytes() == before


def test_missing_or_damaged_notebook_is_one_sentence_and_stays_as_it_is(course):
    course.file.write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match="not a notebook"):
        reset(course.name)
    assert course.file.read_text(encoding="utf-8") == "{"
    course.file.unlink()
    with pytest.raises(UsageError, match="git"):
        reset(course.name)
