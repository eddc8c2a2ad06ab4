"""A student's copy of the course in a folder with an awkward name, made of the real exercises."""

from __future__ import annotations

import nbformat
import pytest

from labs_lib.exercises import exercises
from labs_lib.exercises import lab as find_lab
from labs_lib.notebook.cells import cell_id, text_hash

RIGHT = "def first_tensor(x):\n    return x.mean(dim=-1)"
WRONG = "def first_tensor(x):\n    return x.sum(dim=-1)"


class Course:
    """A course folder with the notebook of lab 00; `write` puts another one into it."""

    name = "lab00.first_tensor"

    def __init__(self, home):
        self.home = home
        self.notebooks = home / "notebooks"
        self.notebooks.mkdir(parents=True)
        self.file = self.write(f"{find_lab(0).stem}.ipynb")

    def write(self, file_name, answers=None):
        """Write lab 00 under a name, with the given answers in place of stubs."""
        answers = answers or {}
        cells = [
            nbformat.v4.new_markdown_cell("# Start here"),
            cell("from labs_lib.checking import begin_lab, check\nbegin_lab('lab00')", "", "setup"),
        ]
        for item in exercises(0):
            stub = item.stub.strip("\n")
            answer = cell(answers.get(item.name, stub), item.name, "answer")
            answer.metadata["labs"]["stub"] = text_hash(stub)
            cells += [answer, cell(f'check("{item.name}", {item.called})', item.name, "check")]
        file = self.notebooks / file_name
        nbformat.write(nbformat.v4.new_notebook(cells=cells), file)
        return file

    def cells(self, role):
        """The cells of lab 00's notebook that have our metadata for `first_tensor` and a role."""
        label = {"exercise": self.name, "role": role}
        return [
            c
            for c in nbformat.read(self.file, as_version=4).cells
            if label.items() <= c.metadata.get("labs", {}).items()
        ]


def cell(source, exercise, role):
    label = {"role": role} | ({"exercise": exercise} if exercise else {})
    made = nbformat.v4.new_code_cell(source, metadata={"labs": label})
    made["id"] = cell_id(exercise or "lab00", role, 1)
    return made


@pytest.fixture
def course(tmp_path, monkeypatch):
    home = tmp_path / "Kurs mit Läufen"
    monkeypatch.setenv("LABS_HOME", str(home))
    monkeypatch.setenv("LABS_STATE", str(home / ".labs"))
    return Course(home)
