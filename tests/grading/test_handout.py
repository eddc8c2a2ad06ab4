"""A handout imports, checks, judges and names mistakes as the course does; where it may lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from labs_lib.answers import answer
from labs_lib.authoring import handout as room
from labs_lib.authoring.handout import build_library, handout
from labs_lib.authoring.withholding import withheld_from
from labs_lib.checking import verdict
from labs_lib.checking.oracle import LiveOracle
from labs_lib.checking.stored import StoredOracle
from labs_lib.errors import UsageError
from labs_lib.exercises import exercises, lab, labs
from labs_lib.paths import home

LABS = [item.name for item in labs()]
WITH_KERNELS = [n for n in LABS if any(e.kind == "kernel" for e in exercises(lab(n).number))]


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
            handout(home() / inside / "x", LABS[0])

    def fails(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(room, "_copy_course", fails)
    with pytest.raises(OSError):
        handout(tmp_path / "new", LABS[0])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "full"]


@pytest.mark.slow
def test_an_empty_folder_may_be_the_target_and_gets_the_outputs_of_what_is_withheld(tmp_path):
    (tmp_path / "empty").mkdir()
    handout(tmp_path / "empty", LABS[-1])
    assert (tmp_path / "empty" / "labs_lib" / "config.py").exists()
    stored = (tmp_path / "empty" / "labs_lib" / "checking" / "stored_outputs").glob("lab*")
    assert {path.name for path in stored} == {f"{LABS[-1]}.json", f"{LABS[-1]}.npz"}
