"""A handout holds no answer, still imports, still checks, and still names mistakes."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import labs_lib
from labs_lib.answers import answer
from labs_lib.authoring import handout as room
from labs_lib.authoring.handout import build_library, handout
from labs_lib.authoring.withholding import WithholdingError, entries, withheld_from, withhold
from labs_lib.errors import UsageError
from labs_lib.exercises import exercises, lab, labs

ROOT = Path(labs_lib.__file__).resolve().parents[1]
LABS = [item.name for item in labs()]


@pytest.fixture(scope="session")
def handouts(tmp_path_factory):
    built = {}

    def of(name):
        if name not in built:
            built[name] = tmp_path_factory.mktemp("handouts") / f"from {name} é"
            handout(built[name], name)
        return built[name]

    return of


def inside(folder, program):
    """What a program prints that runs in a handout, far from this checkout."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LABS"))}
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(program)],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(folder), "LABS_STATE": "off", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", LABS)
def test_every_module_of_each_handout_imports(handouts, name):
    found = inside(
        handouts(name),
        """
        import importlib, json, pkgutil, labs_lib
        names = [m.name for m in pkgutil.walk_packages(labs_lib.__path__, "labs_lib.")]
        for name in names:
            importlib.import_module(name)
        print(json.dumps([labs_lib.__file__, names]))
        """,
    )
    assert Path(found[0]).is_relative_to(handouts(name))
    held = [module for module in found[1] if module.startswith("labs_lib.answers.lab")]
    assert all(module.split(".")[2][:5] < name for module in held)


@pytest.mark.slow
@pytest.mark.parametrize("name", LABS)
def test_a_handout_judges_every_program_of_its_lab_as_the_course_does(handouts, name):
    found = inside(
        handouts(name),
        f"""
        import importlib, json, sys
        sys.path.insert(0, {str(ROOT)!r})
        from labs_lib.answers import answer
        from labs_lib.exercises import exercises
        programs = [
            (item.name, "right", "", p)
            for item in exercises()
            for p in [answer(item.name).reference, *(r.program for r in answer(item.name).right)]
        ] + [
            (item.name, "wrong", w.name, w.program)
            for item in exercises()
            for w in answer(item.name).wrong[:: 6 if item.kind == "kernel" else 1]
        ]
        del sys.path[0]
        for module in [m for m in sys.modules if m.partition(".")[0] == "labs_lib"]:
            del sys.modules[module]
        from labs_lib.checking.oracle import oracle_for
        from labs_lib.checking.verdict import judge
        from labs_lib.exercises import exercise
        import labs_lib, torch
        torch.set_num_threads(1)
        assert not labs_lib.__file__.startswith({str(ROOT / "labs_lib")!r})
        wrongly = []
        for name, kind, mistake, program in programs:
            item = exercise(name)
            if item.lab != {name!r}:
                continue
            verdict = judge(item, program, oracle_for(item))
            if verdict.passed != (kind == "right"):
                wrongly.append([name, kind, mistake, str(verdict)])
        print(json.dumps(wrongly))
        """,
    )
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("name", LABS)
def test_a_handout_holds_no_answer_no_test_and_no_later_solution(handouts, name):
    folder = handouts(name)
    number = lab(name).number
    assert not (folder / "tests").exists() and not (folder / ".git").exists()
    for path in (folder / "solutions").iterdir():
        assert int(path.name[:2]) < number
    assert {p.stem for p in (folder / "solutions").glob("*.md")} == {
        item.stem
        for item in labs()
        if item.number < number and (ROOT / "solutions" / f"{item.stem}.md").exists()
    }
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for path in sorted((folder / "labs_lib").rglob("*.py"))
        if "answers" not in path.parts
    )
    for module, names in withheld_from(name).items():
        kernels = [n for n in names if n.endswith(".cu")]
        assert not any((folder / Path(*module.split(".")) / kernel).exists() for kernel in kernels)
        if kernels:
            continue
        source = (ROOT / Path(*module.split("."))).with_suffix(".py").read_text(encoding="utf-8")
        for function, _ in names.items():
            for line in _body_lines(source, function):
                assert line not in _body_lines_of(folder, module, function), line
    assert "labs_lib.config" in text


def _body_lines(source, name):
    node = next(n for n in ast.parse(source).body if getattr(n, "name", "") == name)
    functions = [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef)]
    return {
        ast.unparse(statement)
        for function in functions
        for statement in function.body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    }


def _body_lines_of(folder, module, name):
    file = (folder / Path(*module.split("."))).with_suffix(".py")
    return _body_lines(file.read_text(encoding="utf-8"), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", LABS)
def test_config_always_ships_and_a_withheld_function_says_which_lab_it_answers(handouts, name):
    modules = {m: n for m, n in withheld_from(name).items() if m != "labs_lib.cuda.kernels"}
    found = inside(
        handouts(name),
        f"""
        import importlib, json
        from labs_lib.config import AttentionConfig
        from labs_lib.withheld import Withheld
        said = {{}}
        for module, names in {modules!r}.items():
            for name in names:
                thing = getattr(importlib.import_module(module), name)
                parts = vars(thing).values() if isinstance(thing, type) else [thing]
                for part in parts:  # of a class its methods and properties
                    part = getattr(part, "fget", None) or getattr(part, "__func__", part)
                    try:
                        part(*[None] * part.__code__.co_argcount)
                    except Withheld as error:
                        said[name] = str(error)
                    except Exception:
                        pass
        print(json.dumps([AttentionConfig(768, 12).head_dim, said]))
        """,
    )
    assert found[0] == 64
    for names in modules.values():
        for function, answered in names.items():
            assert answered in found[1].get(function, ""), function


def test_every_function_of_the_library_that_answers_an_exercise_is_withheld():
    named = {entry for names in entries().values() for entry in names}
    for item in exercises():
        reference = answer(item.name).reference
        code = getattr(reference, "__code__", None)
        used = [reference.__globals__.get(name) for name in code.co_names] if code else []
        for function in [reference, *used]:
            module = getattr(function, "__module__", None) or ""
            public = not getattr(function, "__name__", "_").startswith("_")
            if isinstance(function, type) and issubclass(function, tuple):
                continue  # a state's named fields compute nothing
            if public and module.startswith(("labs_lib.attention", "labs_lib.arithmetic")):
                assert f"{module}:{function.__qualname__}" in named, item.name


def test_withholding_keeps_signature_docstring_and_line_numbers():
    source = textwrap.dedent('''
        import math

        @staticmethod
        def first(
            x: int = 3,
        ) -> int:
            """What it does."""
            # the trick: add one
            return x + 1  # indeed
            # and never two

        def second(x): return x + 2

        def third(x):
            # the trick: add three

            if x:
                return x + 3
            return 3

        class Fourth:
            """A class."""
            size = 4

            def __call__(self, x):
                """Call it."""
                return x + 4

            def bare(self): "Only words."

        def last(x):
            return math.sqrt(x)
    ''')
    names = dict.fromkeys(["first", "second", "third", "Fourth"], "lab01")
    made = withhold(source, names, "m")
    assert len(made.split("\n")) == len(source.split("\n"))
    for secret in ("x + 1", "x + 2", "x + 3", "x + 4", "trick", "indeed", "two", "return 3"):
        assert secret not in made
    for kept in ("What it does.", "x: int = 3", "size = 4", "Call it.", "math.sqrt(x)", "words"):
        assert kept in made
    space = {}
    exec(made, space)
    for name in ("first", "second", "third"):
        with pytest.raises(Exception, match="lab01"):
            space[name](1)
    with pytest.raises(Exception, match="lab01"):
        space["Fourth"]()(1)
    assert space["last"](4) == 2
    with pytest.raises(WithholdingError, match="nothing_of_that_name"):
        withhold(source, {"nothing_of_that_name": "lab01"}, "m")


def test_the_build_for_grading_holds_no_stored_output_and_no_grader(tmp_path):
    build_library(tmp_path, lab(LABS[0]), for_grading=True)
    assert not (tmp_path / "labs_lib" / "checking" / "stored_outputs").exists()
    assert not (tmp_path / "labs_lib" / "grading").exists()
    assert not list((tmp_path / "labs_lib" / "answers").glob("lab*"))


@pytest.mark.slow
def test_a_target_that_can_not_be_is_refused_and_nothing_is_written(tmp_path, monkeypatch):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "file").write_text("", encoding="utf-8")
    for target in ("full", "file"):
        with pytest.raises(UsageError, match=target):
            handout(tmp_path / target, LABS[0])
    with pytest.raises(UsageError, match="there is no lab"):
        handout(tmp_path / "new", "77")
    with pytest.raises(UsageError, match="labs_lib"):
        handout(ROOT / "labs_lib" / "x", LABS[0])

    def fails(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(room, "_copy_course", fails)
    with pytest.raises(OSError):
        handout(tmp_path / "new", LABS[0])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "full"]


@pytest.mark.slow
def test_an_empty_folder_may_be_the_target(tmp_path):
    (tmp_path / "empty").mkdir()
    handout(tmp_path / "empty", LABS[-1])
    assert (tmp_path / "empty" / "labs_lib" / "config.py").exists()
