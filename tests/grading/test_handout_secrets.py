"""A handout holds no answer: no file, no search and no import finds one."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from functools import cache
from pathlib import Path

import pytest

from labs_lib.answers import answer
from labs_lib.authoring.withholding import withheld_from
from labs_lib.checking.verdict import source_of
from labs_lib.exercises import lab, labs
from labs_lib.grading.course import Course
from labs_lib.grading.reports.fingerprints import hashes
from labs_lib.notebook.cells import exercise_name, role
from labs_lib.paths import home

LABS = [item.name for item in labs()]
SHORT, LONGEST_SHARED = 20, 0.6  # marks of a program that is an idiom; share of one in one run

TORCHS_OWN = {"labs_lib.models.layer.sdpa", "labs_lib.training.layers.sdpa"}  # by another name
LISTS = {mark for first in "ab," for mark in hashes(f"{first} b, c, d, e, f, g, h, i, j, k, l, m")}


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
        if item.number < number and (home() / "solutions" / f"{item.stem}.md").exists()
    }
    for module, names in withheld_from(name).items():
        kernels = [n for n in names if n.endswith(".cu")]
        assert not any((folder / Path(*module.split(".")) / kernel).exists() for kernel in kernels)
        if kernels:
            continue
        source = (home() / Path(*module.split("."))).with_suffix(".py").read_text(encoding="utf-8")
        for function in names:
            for line in _body_lines(source, function):
                assert line not in _body_lines_of(folder, module, function), line


@pytest.mark.slow
def test_nothing_that_a_handout_lets_import_answers_an_exercise(handouts, inside):
    """Every function and class of the library is tried as the answer to every exercise."""
    found = inside(
        handouts(LABS[0]),
        """
        import importlib, inspect, pkgutil, labs_lib
        from labs_lib.checking.observe import observe, observe_all
        from labs_lib.checking.oracle import VISIBLE_SEED, matches
        from labs_lib.checking.verdict import rules_kept
        from labs_lib.checking.compare import difference
        from labs_lib.exercises import exercises
        references = {}
        for name, kind, _, program in programs:
            references.setdefault(name, program)
        rooms = "arithmetic attention config exercises models plots training widgets".split()
        empty = ("unwritten", "unfilled")  # tensors without a number; of gigabytes in lab 04
        things = {}
        for module in pkgutil.walk_packages(labs_lib.__path__, "labs_lib."):
            if module.name.split(".")[1] in rooms and "fetch" not in module.name:
                for name, thing in vars(importlib.import_module(module.name)).items():
                    own = getattr(thing, "__module__", "").startswith("labs_lib")
                    if callable(thing) and own and name not in empty:
                        things[f"{thing.__module__}.{name}"] = thing
        found, tried = [], 0
        for item in exercises():
            if item.kind != "function":
                continue
            case = item.make_cases(VISIBLE_SEED)[0]
            want = observe(item, references[item.name], case)
            for name, thing in things.items():
                try:
                    if "class " + item.called not in item.stub:
                        inspect.signature(thing).bind(*case.args, **case.kwargs)
                except (TypeError, ValueError):  # it takes other arguments
                    continue
                tried += 1
                if difference(item, want, observe(item, thing, case)):
                    continue
                wanted = observe_all(item, references[item.name], VISIBLE_SEED)
                kept = rules_kept(item, thing) if item.rules else {}
                last = name.rpartition(".")[2]
                banned = any(last == word.rpartition(".")[2] for word in item.forbidden)
                right = matches(item, wanted, observe_all(item, thing, VISIBLE_SEED))
                if right and all(kept.values()) and not banned:
                    found.append([item.name, name])
        assert tried > 1000, tried
        """,
    )
    told = [f"{name} answers {asked}" for asked, name in found if name not in TORCHS_OWN]
    assert not told, "; ".join(told)


@pytest.mark.slow
@pytest.mark.parametrize("name", LABS)
def test_no_search_through_a_handout_finds_a_program_that_answers_it(handouts, name):
    """No file holds three fifths of a solution, a reference or a right program in one piece,
    whatever the names in it are. Answers of earlier labs are open: a lab may build on them."""
    earlier = {item.name for item in labs() if item.name < name}
    shipped = {
        path.relative_to(handouts(name)): _marks_of(path.suffix, path.read_bytes())
        for path in handouts(name).rglob("*")
        if path.suffix in (".py", ".md", ".ipynb", ".mjs", ".cu", ".h", ".cuh", ".toml")
        and not ("answers" in path.parts and earlier & {path.stem, path.parent.name})
    }
    assert len(shipped) > 100
    for asked, programs in _answers().items():
        for marks in programs if asked >= name else ():
            for path, held in shipped.items():
                shared = _longest(marks, held) / len(marks)
                assert shared < LONGEST_SHARED, f"{path} holds {shared:.0%} of {asked}"


def test_a_search_finds_programs_that_are_there():
    held = _marks_of(".py", (home() / "labs_lib" / "attention" / "grouped.py").read_bytes())
    text = _body(source_of(answer("lab08.grouped_query_attention").reference))
    renamed = re.sub(r"\b([qkv]|mask|scale)\b", r"my_\1", text)
    for program in (text, renamed):
        marks = hashes(program)
        assert len(marks) > SHORT and _longest(marks, held) == len(marks)


def _body(text):
    """What stands inside of a text's functions: a signature is nobody's secret."""
    if text.lstrip().startswith("%%cuda"):
        return f"%%cuda\n{text.partition('{')[2]}"
    text = textwrap.dedent(text)
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a lambda in the middle of its statement
        return text
    lines, kept = text.split("\n"), []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = node.body[ast.get_docstring(node) is not None :]
            kept += lines[first[0].lineno - 1 : first[-1].end_lineno] if first else []
    return "\n".join(kept)


def _longest(marks, held):
    """The length of the longest run of marks that are all held."""
    longest = run = 0
    for mark in marks:
        run = run + 1 if mark in held else 0
        longest = max(longest, run)
    return longest


@cache
def _answers():
    """For each exercise the marks of its solution, its reference and its right programs, in order;
    what the stub gives is left out."""
    found = {}
    for course in map(Course, labs()):
        solved = {
            exercise_name(c): c.source for c in course.solution().cells if role(c) == "answer"
        }
        for item in course.exercises:
            known = answer(item.name)
            programs = [known.reference, *(one.program for one in known.right)]
            kernel = item.kind == "kernel"
            texts = [solved[item.name]]
            texts += [f"%%cuda\n{p}" if kernel else source_of(p) for p in programs]
            given = set(hashes(item.stub)) | LISTS
            bodies = [[m for m in hashes(_body(x)) if m not in given] for x in texts]
            found[item.name] = [one for one in bodies if len(one) >= SHORT]
    return found


@cache
def _marks_of(suffix, content):
    text = content.decode("utf-8")
    if suffix == ".ipynb":
        parts = [cell["source"] for cell in json.loads(text)["cells"]]
        parts = [part if isinstance(part, str) else "".join(part) for part in parts]
    elif suffix == ".md":
        parts = re.split(r"^```.*$", text, flags=re.MULTILINE)
    elif suffix in (".cu", ".h", ".cuh"):
        parts = [f"%%cuda\n{part}" for part in text.split("__global__")]
    else:
        parts = re.split(r"\n(?=def |class |@|export )", text)
    return {mark for part in parts for mark in hashes(part)}


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
