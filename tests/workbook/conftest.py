"""A student's copy of the course in a folder with an awkward name, made of the real exercises."""

from __future__ import annotations

import os

import nbformat
import pytest

from labs_lib.exercises import exercises
from labs_lib.exercises import lab as find_lab
from labs_lib.notebook.cells import cell_id, text_hash

from .releases import NEW, OLD, commit, git, put, work

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


@pytest.fixture
def git_of_nobody(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ada@example.org")


@pytest.fixture
def home(tmp_path, monkeypatch, git_of_nobody):
    """A student's copy that is no git clone, with lab 00 half done."""
    folder = put(tmp_path / "Kurs mit Läufen", OLD)
    monkeypatch.setenv("LABS_HOME", str(folder))
    monkeypatch.setenv("LABS_STATE", str(folder / ".labs"))
    work(folder)
    return folder


@pytest.fixture
def released(tmp_path):
    return put(tmp_path / "the new one", NEW)


@pytest.fixture
def cloned(tmp_path, monkeypatch, git_of_nobody):
    """The course's own repository and a student's clone of it, with lab 00 half done."""
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    commit(origin, OLD | {".gitignore": ".labs/\n"})
    folder = tmp_path / "a clöne"
    git(tmp_path, "clone", "-q", str(origin), str(folder))
    monkeypatch.setenv("LABS_HOME", str(folder))
    monkeypatch.setenv("LABS_STATE", str(folder / ".labs"))
    work(folder)
    commit(origin, NEW | {".gitignore": ".labs/\n"})
    return origin, folder
