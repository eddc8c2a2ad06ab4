"""What the grader's own text must hold to: rules that no single run would show broken."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from pathlib import Path

import pytest

from labs_lib import cli
from labs_lib.checking.observe import untouched_random_state
from labs_lib.exercises import exercises, labs
from labs_lib.grading import run
from labs_lib.grading.course import Course
from labs_lib.grading.expected.printed import masked
from labs_lib.grading.intake import names
from labs_lib.grading.intake.lateness import read_policy
from labs_lib.grading.intake.received import read_received
from labs_lib.grading.reports.marks import read_marks
from labs_lib.notebook.cells import exercise_name, role

ROOM = Path(inspect.getfile(run)).resolve().parents[1]
ROOT = ROOM.parents[1]
FILES = sorted(ROOM.rglob("*.py"))
UNSAFE = {"pickle", "marshal", "dill", "shelve", "cloudpickle"}


def calls(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.relative_to(ROOM).as_posix())
def test_nothing_that_comes_back_from_a_student_is_unpickled_or_evaluated(file):
    """Results are JSON: an object of theirs could run code where it is read."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [a.name for a in node.names] + [getattr(node, "module", "") or ""]
            assert not UNSAFE & {part for name in modules for part in name.split(".")}
    for called, node in calls(tree):
        assert called not in ("eval", "exec", "torch.load", "yaml.load"), called
        if called.endswith("np.load"):
            assert "allow_pickle=False" in ast.unparse(node)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.relative_to(ROOM).as_posix())
def test_no_name_of_a_student_becomes_a_pattern_or_a_shell_command(file):
    for called, node in calls(ast.parse(file.read_text(encoding="utf-8"))):
        if called.startswith("re.") and node.args:
            pattern = node.args[0]
            parts = [n for n in ast.walk(pattern) if isinstance(n, ast.FormattedValue)]
            for part in parts:
                text = ast.unparse(part.value)
                assert "escape" in text or text.startswith(("number", "kind")), ast.unparse(node)
        assert not any(k.arg == "shell" for k in node.keywords), ast.unparse(node)
        assert called != "os.system"


def test_every_lab_can_be_graded_and_no_exercise_lacks_points_or_a_place():
    """A stub of its own language, an answer and a check for each; quizzes count nothing."""
    for lab in labs():
        course = Course(lab)
        cells = {(role(c), exercise_name(c)) for c in course.notebook.cells}
        for item in course.exercises:
            assert {("answer", item.name), ("check", item.name)} <= cells
            assert item.points >= 0 and (item.points == 0) == (item.kind == "choice"), item.name
            if item.kind == "kernel":
                assert item.stub.lstrip().startswith("%%cuda")


def test_cases_of_an_exercise_rest_on_no_stream_of_torch_or_of_python():
    import random

    import numpy as np
    import torch

    with untouched_random_state():
        for item in exercises():
            if item.is_program:
                before = (random.getstate(), torch.random.get_rng_state(), np.random.get_state()[1])
                item.make_cases(12345)
                after = (random.getstate(), torch.random.get_rng_state(), np.random.get_state()[1])
                assert before[0] == after[0], item.name
                assert torch.equal(before[1], after[1]) and (before[2] == after[2]).all(), item.name


def test_each_promise_of_the_page_on_trust_names_a_test_that_is_there():
    page = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)(?:::(test_\w+))?`", page))
    assert len(named) > 25
    for file, function in named:
        (found,) = (ROOT / "tests").rglob(f"{file}.py")
        assert f"def {function}(" in found.read_text(encoding="utf-8") or not function, function


def test_every_command_and_file_of_the_page_for_instructors_is_understood(tmp_path):
    """Commands are parsed, examples of files are read; what they do is tested elsewhere."""
    page = (ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
    commands = [c for c in re.findall(r"`(labs [^`]+)`", page) if c != "labs submit"]
    assert len(commands) >= 8
    for command in commands:
        words = shlex.split(command)[1:]
        try:
            cli._parser()[0].parse_args(words)
        except SystemExit as left:
            pytest.fail(f"{command} is refused ({left})")
    (policy,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    received, marks = re.findall(r"```csv\n(.*?)```", page, re.DOTALL)
    for name, text in (("late.toml", policy), ("r.csv", received), ("m.csv", marks)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = read_policy(tmp_path / "late.toml")
    assert found.deadline("lab01", "ada") > found.deadline("lab01", "bob")
    assert read_received(tmp_path / "r.csv", found.zone, names.Roster()).owners
    maxima = {"lab01.causal_mask": 1}
    assert read_marks(tmp_path / "m.csv", ["ada", "bob"], maxima, names.Roster()).overall


def test_versions_that_the_runs_rest_on_are_pinned():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for package in ("nbval", "ipykernel", "jupyter-client", "pytest", "nbformat"):
        assert re.search(rf"^{package}==\S+", lock, re.MULTILINE | re.IGNORECASE), package


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)", "(3x4 and 5x6)"),
        ("index 7 is out of bounds for dimension 2 with size 7", "size 7"),
        ("[0.1234, -5.5e-3, 123456, .5]", "[…, …, …, …]"),
        ("x" * 60, "…"),
    ],
)
def test_messages_keep_shapes_and_lose_numbers_of_inputs(said, kept):
    assert kept in masked(said)
