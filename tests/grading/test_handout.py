"""A handout holds no answer, still imports, still checks, and still names mistakes."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest

import labs_lib
from labs_lib.answers import answer
from labs_lib.authoring import handout as room
from labs_lib.authoring.handout import build_library, handout
from labs_lib.authoring.withholding import WithholdingError, entries, withheld_from, withhold
from labs_lib.checking import verdict
from labs_lib.checking.oracle import LiveOracle
from labs_lib.checking.stored import StoredOracle
from labs_lib.checking.verdict import source_of
from labs_lib.errors import UsageError
from labs_lib.exercises import exercises, lab, labs
from labs_lib.grading.course import Course
from labs_lib.grading.reports.fingerprints import hashes
from labs_lib.notebook.cells import exercise_name, role

ROOT = Path(labs_lib.__file__).resolve().parents[1]
HOST = Path(__file__).with_name("handout_host.py")
LABS = [item.name for item in labs()]
WITH_KERNELS = [n for n in LABS if any(e.kind == "kernel" for e in exercises(lab(n).number))]
SHORT, LONGEST_SHARED = 20, 0.6  # marks of a program that is an idiom; share of one in one run

TORCHS_OWN = {"labs_lib.models.layer.sdpa", "labs_lib.training.layers.sdpa"}  # by another name
LISTS = {mark for first in "ab," for mark in hashes(f"{first} b, c, d, e, f, g, h, i, j, k, l, m")}


@pytest.fixture(scope="session")
def handouts(tmp_path_factory):
    """Handouts without stored outputs: those are dear, and put in where they are needed."""
    built = {}

    def of(name):
        if name not in built:
            built[name] = tmp_path_factory.mktemp("handouts") / f"from {name} é"
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(room, "_packed", lambda _: ("{}", b""))
                handout(built[name], name)
        return built[name]

    return of


@pytest.fixture(scope="session")
def with_outputs(handouts):
    """A handout with the stored outputs of its first lab, as `labs handout` puts them there."""
    done = {}

    def of(name):
        if name not in done:
            folder = handouts(name) / "labs_lib" / "checking" / "stored_outputs"
            entries, arrays = room._packed(lab(name).number)
            (folder / f"{name}.json").write_text(entries, encoding="utf-8")
            (folder / f"{name}.npz").write_bytes(arrays)
            done[name] = handouts(name)
        return done[name]

    return of


@pytest.fixture(scope="session")
def inside(tmp_path_factory):
    """What a program leaves in `found` that runs in a handout, far from this checkout."""
    folder = tmp_path_factory.mktemp("host")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LABS"))}
    kept |= {"LABS_STATE": "off", "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    hosts = []

    def start():
        hosts.append(
            subprocess.Popen(
                [sys.executable, "-P", str(HOST), str(ROOT)],
                cwd=folder,
                env=kept,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=(folder / "stderr").open("wb"),
                text=True,
                encoding="utf-8",
            )
        )

    def run(where, program):
        if not hosts or hosts[-1].poll() is not None:
            start()
        answer_file = folder / f"answer {len(list(folder.iterdir()))}.json"
        request = {"folder": str(where), "program": textwrap.dedent(program)}
        print(json.dumps(request | {"answer": str(answer_file)}), file=hosts[-1].stdin, flush=True)
        if hasattr(os, "fork"):
            hosts[-1].stdout.readline()
        else:
            hosts[-1].wait()
        assert answer_file.exists(), (folder / "stderr").read_text(encoding="utf-8")[-3000:]
        return json.loads(answer_file.read_text(encoding="utf-8"))

    yield run
    for host in hosts:
        host.stdin.close()
        host.wait()


@pytest.mark.slow
@pytest.mark.parametrize("name", LABS)
def test_every_module_of_a_handout_imports_and_what_is_withheld_says_for_which_lab(
    handouts, inside, name
):
    """All modules of the first and the last; between them the answers that are there, for what is
    withheld is some of what the first withholds."""
    every = name in (LABS[0], LABS[-1])
    modules = {m: n for m, n in withheld_from(name).items() if m != "labs_lib.cuda.kernels"}
    file, imported, said, head_dim = inside(
        handouts(name),
        f"""
        import importlib, pkgutil, labs_lib
        from labs_lib.config import AttentionConfig
        from labs_lib.withheld import Withheld
        names = [m.name for m in pkgutil.walk_packages(labs_lib.__path__, "labs_lib.")]
        names = [n for n in names if {every!r} or n.startswith("labs_lib.answers.lab")]
        for name in names:
            importlib.import_module(name)
        said = {{}}
        for module, withheld in {modules!r}.items():
            for name in withheld:
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
        found = [labs_lib.__file__, names, said, AttentionConfig(768, 12).head_dim]
        """,
    )
    assert Path(file).is_relative_to(handouts(name)) and head_dim == 64
    held = [module for module in imported if module.startswith("labs_lib.answers.lab")]
    assert all(module.split(".")[2][:5] < name for module in held)
    for names in modules.values():
        for function, answered in names.items():
            assert answered in said.get(function, ""), function


@pytest.mark.slow
@pytest.mark.parametrize("name", LABS)
def test_a_handout_judges_programs_of_its_lab_as_the_course_does(with_outputs, inside, name):
    wrongly = inside(
        with_outputs(name),
        f"""
        from labs_lib.checking.oracle import oracle_for
        from labs_lib.checking.verdict import judge
        from labs_lib.exercises import exercise
        import labs_lib
        assert labs_lib.__file__.startswith(folder)
        found = []
        for name, kind, mistake, program in programs:
            if not name.startswith({name!r}):
                continue
            item = exercise(name)
            verdict = judge(item, program, oracle_for(item))
            if verdict.passed != (kind == "right"):
                found.append([name, kind, mistake, str(verdict)])
        """,
    )
    assert wrongly == []


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_KERNELS)
def test_a_handout_rejects_and_names_every_wrong_kernel_by_what_it_did_in_the_course(
    with_outputs, name, monkeypatch
):
    """What a wrong kernel does was observed when the handout was packed; it isn't run again."""
    kept = StoredOracle.load(name, with_outputs(name) / "labs_lib" / "checking" / "stored_outputs")
    for item in exercises(lab(name).number):
        for mistake in LiveOracle().mistakes(item, []) if item.kind == "kernel" else ():
            monkeypatch.setattr(verdict, "observe_all", lambda *_, m=mistake: m.observations)
            wrong = next(w for w in answer(item.name).wrong if w.name == mistake.name)
            found = verdict.judge(item, wrong.program, kept)
            told = found.mistake or set(wrong.says.split("\n")) & set(found.lines)  # by its rule
            assert not found.passed and told, (item.name, mistake.name, str(found))


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
    for module, names in withheld_from(name).items():
        kernels = [n for n in names if n.endswith(".cu")]
        assert not any((folder / Path(*module.split(".")) / kernel).exists() for kernel in kernels)
        if kernels:
            continue
        source = (ROOT / Path(*module.split("."))).with_suffix(".py").read_text(encoding="utf-8")
        for function, _ in names.items():
            for line in _body_lines(source, function):
                assert line not in _body_lines_of(folder, module, function), line


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
    held = _marks_of(".py", (ROOT / "labs_lib" / "attention" / "grouped.py").read_bytes())
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
        things = {}
        for module in pkgutil.walk_packages(labs_lib.__path__, "labs_lib."):
            if module.name.split(".")[1] in rooms and "fetch" not in module.name:
                for name, thing in vars(importlib.import_module(module.name)).items():
                    own = getattr(thing, "__module__", "").startswith("labs_lib")
                    if callable(thing) and own:
                        things[f"{thing.__module__}.{name}"] = thing
        found, tried = [], 0
        for item in exercises():
            if item.kind != "function":
                continue
            case = item.make_cases(VISIBLE_SEED)[0]
            want = observe(item, references[item.name], case)
            for name, thing in things.items():
                try:
                    fits = "class " + item.called in item.stub or not inspect.signature(
                        thing).bind(*case.args, **case.kwargs) is None
                except (TypeError, ValueError):
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
    for inside in ("labs_lib", "docs", ".binder"):  # a copy of docs in docs would hold itself
        with pytest.raises(UsageError, match=f"own {inside}/"):
            handout(ROOT / inside / "x", LABS[0])

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
