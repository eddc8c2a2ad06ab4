"""`check` prints in Jupyter, raises under nbval, prints values in a graded run."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import types

import numpy as np
import pytest
import torch

from labs_lib.answers import answer
from labs_lib.checking import (
    CheckFailed,
    NotGiven,
    begin_lab,
    check,
    given,
    hint,
    predict,
    progress,
    recall,
    yours,
)
from labs_lib.checking.check import graded_text
from labs_lib.checking.lab import _UndefinedIsNone
from labs_lib.checking.oracle import oracle_for
from labs_lib.checking.verdict import FAIL, Verdict, judge
from labs_lib.exercises import UnknownExercise, exercise
from labs_lib.exercises.kit import Exercise

MEAN = "lab00.first_tensor"


def test_a_check_prints_and_never_raises_in_jupyter(capsys):
    check(MEAN, lambda x: x.mean(-1))
    assert capsys.readouterr().out.startswith(f"PASS  {MEAN}")
    check(MEAN, lambda x: x)
    assert capsys.readouterr().out.startswith(f"FAIL  {MEAN}")
    check(MEAN)
    assert capsys.readouterr().out.startswith(f"NOT ATTEMPTED  {MEAN}")


def test_a_check_prints_no_line_that_a_notebook_breaks_within_a_word(capsys):
    check("lab02.split_heads", lambda x, n_head: x.reshape(len(x), n_head, x.shape[1], -1))
    lines = capsys.readouterr().out.splitlines()
    case = next(n for n, line in enumerate(lines) if line.startswith("  In the case “"))
    assert "elements differ)" in " ".join(lines[case : case + 2])
    assert all(len(line) <= 92 for line in lines)


def test_a_sentence_behind_the_name_of_a_case_goes_on_as_one(capsys):
    check("lab05.concat_heads", lambda heads: heads.transpose(1, 2).flatten(2).detach())
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("  In the case “gradients”: the gradient is lost on the way. For")
    assert lines[2].startswith("    ") and "no_grad()" in f"{lines[2]} {lines[3]}"


def test_under_nbval_a_check_that_is_not_pass_raises(monkeypatch, capsys):
    monkeypatch.setenv("LABS_NBVAL", "1")
    check(MEAN, lambda x: x.mean(-1))
    with pytest.raises(CheckFailed, match="mean of each column"):
        check(MEAN, lambda x: x.mean(-2))
    with pytest.raises(CheckFailed, match="NOT ATTEMPTED"):
        check(MEAN)


def test_an_unknown_exercise_offers_the_nearest():
    with pytest.raises(UnknownExercise, match=r"lab00\.first_tensor"):
        check("lab00.first_tenor", None)


def test_a_graded_check_prints_values_and_no_verdict(tmp_path, monkeypatch, capsys):
    run = tmp_path / "run.json"
    run.write_text(json.dumps({"seed": 99, "places": {}}), encoding="utf-8")
    monkeypatch.setenv("LABS_RUN", str(run))
    check(MEAN, lambda x: x.mean(-1))
    right = capsys.readouterr().out
    assert "PASS" not in right
    assert "tensor float32 [3]" in right
    check(MEAN, lambda x: x.double().sum(-1).to(x.dtype) / x.shape[-1])
    assert capsys.readouterr().out == right
    check(MEAN, lambda x: x.mean(-2))
    assert capsys.readouterr().out != right
    check(MEAN, None)
    assert capsys.readouterr().out == f"{MEAN}\nNOT ATTEMPTED\n"


def test_graded_texts_differ_between_seeds_and_between_every_wrong_program():
    item, known = exercise(MEAN), answer(MEAN)
    texts = [graded_text(item, known.reference, {"seed": seed}) for seed in (1, 2)]
    assert texts[0] != texts[1]
    for wrong in known.wrong:
        assert graded_text(item, wrong.program, {"seed": 1}) != texts[0]


def test_a_graded_text_has_no_signed_zero():
    item = exercise(MEAN)
    plus = graded_text(item, lambda x: x.mean(-1) * 0, {"seed": 1})
    minus = graded_text(item, lambda x: x.mean(-1) * -0.0, {"seed": 1})
    assert plus == minus


def test_progress_keeps_the_passed_answer_and_deleting_it_harms_nothing():
    check(MEAN, lambda x: x)
    assert progress.entry(MEAN)["outcome"] == "FAIL"
    check(MEAN, lambda x: x.mean(-1))
    known = progress.entry(MEAN)
    assert known["passed"] and known["tries"] == 2
    for file in progress.folder().iterdir():
        file.unlink()
    assert progress.entry(MEAN) == {}
    check(MEAN, lambda x: x.mean(-1))
    assert progress.entry(MEAN)["passed"]


def test_damaged_progress_is_set_aside_and_never_an_error():
    check(MEAN, lambda x: x.mean(-1))
    file = progress.folder() / f"{MEAN}.json"
    file.write_text("{half", encoding="utf-8")
    check(MEAN, lambda x: x.mean(-1))
    assert progress.entry(MEAN)["passed"]
    assert file.with_suffix(".damaged").read_text(encoding="utf-8") == "{half"
    file.write_text('{"tries": null}', encoding="utf-8")
    check(MEAN, lambda x: x.mean(-1))
    assert progress.entry(MEAN)["tries"] == 1
    (progress.folder() / "lab02.head_dim.json").write_text('{"hints": "two"}', encoding="utf-8")
    hint("lab02.head_dim")


def test_nothing_is_kept_in_solutions_nor_where_state_is_off(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_STATE", "off")
    check(MEAN, lambda x: x.mean(-1))
    assert progress.folder() is None
    monkeypatch.delenv("LABS_STATE")
    monkeypatch.setenv("LABS_HOME", str(tmp_path))
    (tmp_path / "solutions").mkdir()
    monkeypatch.chdir(tmp_path / "solutions")
    assert progress.folder() is None


def test_a_demonstration_of_ones_own_program_says_what_is_missing(monkeypatch, capsys):
    def told(error):
        with yours("lab02.split_heads"):
            raise error
        return capsys.readouterr().out

    for unwritten in (NotImplementedError(), NameError(name="split_heads")):
        assert told(unwritten) == "write split_heads first, then run this cell again\n"
    wrong = told(AttributeError("'NoneType' object has no attribute 'mT'\nand more"))
    assert "needs a right split_heads" in wrong and 'check("lab02.split_heads", …)' in wrong
    assert "AttributeError: 'NoneType' object has no attribute 'mT'\n" in wrong
    assert "AssertionError\n" in told(AssertionError())
    monkeypatch.setenv("LABS_NBVAL", "1")
    with pytest.raises(AttributeError):
        told(AttributeError("a solution's own fault is never hidden"))


def test_a_demonstration_never_sends_a_program_that_passed_back_to_its_check(monkeypatch, capsys):
    shell = types.SimpleNamespace(user_ns={"split_heads": answer("lab02.split_heads").reference})
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)

    def told():
        with yours("lab02.split_heads"):
            raise AssertionError("the tokens differ")
        return capsys.readouterr().out

    assert "says PASS" in told()
    check("lab02.split_heads", shell.user_ns["split_heads"])
    passed = told()
    assert "has passed its check" in passed and "says PASS" not in passed
    assert "AssertionError: the tokens differ\n" in passed
    shell.user_ns["split_heads"] = lambda x, n_head: x  # edited since
    assert "says PASS" in told()


def test_hints_come_one_at_a_time(capsys):
    hint(MEAN)
    hint(MEAN)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("hint 1 of 3") and lines[1].startswith("hint 2 of 3")
    for _ in range(4):
        hint(MEAN)
    lines = capsys.readouterr().out.splitlines()
    assert [line[:11] for line in lines if line[:4] == "hint"] == [
        *("hint 3 of 3", "hint 1 of 3", "hint 2 of 3", "hint 3 of 3")
    ]
    assert lines[1] == "That was the last; from the top:" and lines.count(lines[1]) == 1
    assert progress.entry(MEAN)["hints"] == 3, "each hint counts once"


def test_a_prediction_is_kept_and_shown_beside_the_result(capsys):
    predict("lab00.guess", None)
    recall("lab00.guess", 0.25)
    predict("lab00.guess", 0.5)
    recall("lab00.guess", 0.25)
    text = capsys.readouterr().out
    assert "no guess yet" in text
    assert "your guess:  none" in text and "your guess:  0.5\nmeasured:    0.25" in text


def test_given_refuses_the_lab_at_hand_and_gives_earlier_ones():
    begin_lab("lab00")
    with pytest.raises(NotGiven, match="earlier labs"):
        given(MEAN)
    begin_lab("lab01")
    assert torch.equal(given(MEAN)(torch.ones(2, 2)), torch.ones(2))


def test_given_takes_ones_own_passed_answer_where_the_reference_is_withheld(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    begin_lab("lab01")
    with pytest.raises(NotGiven, match=r"Solve lab00\.first_tensor"):
        given(MEAN)
    progress.update(MEAN, source="def first_tensor(x):\n    return torch.mean(x, -1)\n")
    assert given(MEAN)(torch.ones(2, 3)).tolist() == [1.0, 1.0]
    progress.update(MEAN, source="def first_tensor(x):\n    return missing(x)\nmissing\n")
    with pytest.raises(NotGiven, match="NameError"):
        given(MEAN)


def test_an_undefined_name_reads_as_not_attempted():
    import ast

    tree = _UndefinedIsNone().visit(ast.parse('check("lab00.first_tensor", nowhere)'))
    seen = []
    exec(
        compile(ast.fix_missing_locations(tree), "<cell>", "exec"),
        {"check": lambda *args: seen.append(args)},
    )
    assert seen == [("lab00.first_tensor", None)]


def test_the_nbval_plugin_imports_nothing_heavy():
    code = (
        "import sys, labs_lib.nbval_plugin; print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]


def test_a_graded_number_counts_only_the_decimals_asked():
    item = Exercise("lab00.n", "n", "n = None", kind="number", decimals=2)
    same = {graded_text(item, value, {"seed": 1}) for value in (0.33, 0.333, np.float32(0.3301))}
    assert len(same) == 1
    assert graded_text(item, 0.34, {"seed": 1}) not in same


def test_a_line_that_is_too_long_is_cut_together_with_the_rest_of_its_sentence():
    long = "Here are " + "eight letters " * 6 + "and some"
    told = ("The first line.", long, "more.", "In the case “one”: " + long, "the rest")
    shown = str(Verdict("lab00.first", FAIL, told)).split("\n")[1:]
    assert shown[1].strip() + " " + shown[2].strip() == f"{long} more."
    assert shown[0] == "  The first line." and shown[-1] == "  the rest"
    assert all(len(line) <= 92 for line in shown)


def test_who_only_changed_an_input_reads_of_no_estimate():
    def in_place(q, k, v, logits_of, tokens, silent):
        loss = answer("lab07.ablate_and_copy").reference(q, k, v, logits_of, tokens, silent)
        v[:, silent] = 0.0
        return loss

    item = exercise("lab07.ablate_and_copy")
    shown = str(judge(item, in_place, oracle_for(item)))
    assert "in place" in shown and "Near" not in shown
