"""A check of a kernel: traced launches, the trace's own words, mistakes named, rules by counts."""

from __future__ import annotations

import importlib
import json

import pytest
import torch
from kernel_exercises import EXERCISE, STUB
from kernel_programs import ANSWER, CONFLICTS, ODD, RIGHT, STRIDED

from labs_lib import cuda
from labs_lib.answers import edited
from labs_lib.checking import kernels, oracle, progress, shipped, stored
from labs_lib.checking.check import CheckFailed, check, graded_text
from labs_lib.checking.verdict import ERROR, FAIL, NOT_ATTEMPTED, PASS, judge, rules_kept, source_of
from labs_lib.exercises.kernels import Launch, kernel_exercise
from labs_lib.exercises.kit import Measured

checks = importlib.import_module("labs_lib.checking.check")
giving = importlib.import_module("labs_lib.checking.given")
LOOP = edited(RIGHT, "float sum = 0.0f;", "float sum = 0.0f;\n    while (scale > 0) {}")


@pytest.fixture(autouse=True)
def course(monkeypatch, tmp_path):
    """A course whose only exercise is the small one."""
    monkeypatch.setattr(shipped, "answer", lambda name: ANSWER)
    monkeypatch.setattr(shipped, "has_answers", lambda lab: True)
    for module, name in ((oracle, "find_exercise"), (checks, "exercise"), (giving, "exercise")):
        monkeypatch.setattr(module, name, lambda _: EXERCISE)
    monkeypatch.setattr(progress, "folder", lambda: tmp_path)
    monkeypatch.setattr(giving, "current_lab", lambda: "")  # another test may have begun one
    return tmp_path


def verdict(program):
    return judge(EXERCISE, program, oracle.LiveOracle())


@pytest.mark.parametrize("program", [RIGHT, ODD, "%%cuda\n" + RIGHT], ids=["text", "odd", "cell"])
def test_right_kernels_pass_as_text_kernel_or_module(program):
    assert verdict(program).outcome == PASS
    assert "right in 4 cases" in verdict(program).lines


def test_a_kernel_or_module_is_taken_as_its_text_is():
    made = cuda.compile(RIGHT)
    assert isinstance(made, cuda.Kernel) and verdict(made).outcome == PASS
    several = RIGHT + "\n__global__ void another(float* x) { x[0] = 1; }\n"
    module = cuda.compile(several)
    assert isinstance(module, cuda.Module)
    assert verdict(module).outcome == verdict(module["row_products"]).outcome == PASS
    assert source_of(made) == RIGHT


@pytest.mark.parametrize("wrong", ANSWER.wrong, ids=lambda wrong: wrong.name)
def test_wrong_kernels_are_rejected_and_named(wrong):
    found = verdict(wrong.program)
    assert found.outcome in (FAIL, ERROR), str(found)
    assert found.mistake == wrong.name or wrong.says in found.lines, str(found)


def test_the_same_mistake_in_another_hand_is_named():
    other = edited(
        ODD, "__syncthreads();\n", "", "const float* a, const float* b, float* out",
        "const float* a, const float* b, float* result", "out[blockIdx.x]", "result[blockIdx.x]",
    )  # fmt: skip
    assert verdict(other).mistake == "no_barrier_after_store"
    too_far = edited(ODD, "c < m; c += 64", "c <= m; c += 64")
    assert verdict(too_far).mistake == "reads_a_row_too_far"


def test_a_finding_is_told_below_the_tutors_sentence_with_line_threads_and_block():
    wrong = next(w for w in ANSWER.wrong if w.name == "no_barrier_in_the_tree")
    lines = verdict(wrong.program).lines
    assert lines[0] == wrong.says
    told = "\n".join(lines[1:])
    assert "Race on part" in told and "line 12" in told and "thread (1, 0, 0)" in told
    assert "block (0, 0, 0)" in told and "3 x 64" in told


def test_a_difference_names_the_first_element():
    found = verdict(edited(RIGHT, "part[0] * scale", "part[0] * scale + 1.0f"))
    assert "sums: element [0] is" in str(found) and "wanted is" in str(found)


def test_an_element_that_no_thread_wrote_is_told_so():
    wrong = next(w for w in ANSWER.wrong if w.name == "first_row_only")
    assert "no thread wrote it" in str(verdict(wrong.program))


def test_rules_count_and_their_sentences_hold_the_counts():
    greedy = next(w for w in ANSWER.wrong if w.name == "greedy")
    assert "read 9,216 bytes of x; once each is 3,072, and the naive kernel reads 12,288" in str(
        verdict(greedy.program)
    )
    assert "of x that it asks for, 4 are moved" in str(verdict(STRIDED))
    assert "Line 9 takes 32 passes." in str(verdict(CONFLICTS))
    found = rules_kept(EXERCISE, STRIDED)
    assert [name for name, kept in found.items() if not kept] == ["sectors"]
    assert isinstance(found["sectors"], Measured) and found["sectors"].words["x_most"] == "1"


def test_a_kernel_whose_launch_is_stopped_keeps_no_rule():
    beyond = edited(RIGHT, "sums[row] =", "sums[row + 900] =")
    assert not any(rules_kept(EXERCISE, beyond).values())


@pytest.mark.parametrize(
    "stub",
    [None, STUB, STUB.replace("your kernel", "later"), STUB.replace("    // your kernel\n", "")],
)
def test_a_stub_is_not_attempted_and_never_wrong(stub):
    assert verdict(stub).outcome == NOT_ATTEMPTED
    assert graded_text(EXERCISE, stub, {"seed": 1}).endswith(NOT_ATTEMPTED)


@pytest.mark.parametrize("value", [3, [1, 2], print, object()])
def test_what_is_no_kernel_gets_a_sentence(value):
    found = verdict(value)
    assert found.outcome == FAIL and "begins with %%cuda" in found.lines[0]
    assert "not a kernel" in graded_text(EXERCISE, value, {"seed": 1})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (edited(RIGHT, "part[t] = sum;", "part[t] = sum"), "line 9: "),
        ("__global__ void row_products(float* x) { x[0] = 1; }", "takes 1 arguments (x), 6"),
        ("int x;", "There is no kernel here"),
        ("text", "There is no kernel here"),
        (RIGHT + '#include "answers.cu"\n', "answers.cu"),
    ],
)
def test_what_cannot_be_built_or_launched_is_an_error_that_blames_no_case(text, told):
    found = verdict(text)
    assert found.outcome == ERROR and told in found.lines[0] and "In the case" not in str(found)


@pytest.mark.slow
def test_a_loop_without_an_end_costs_one_launch(monkeypatch):
    monkeypatch.setenv("LABS_CUDA_SECONDS", "0.3")
    runs = kernels.KernelRuns(EXERCISE, LOOP, 0)
    everything = runs.everything()
    assert {one.raised for one in everything} == {"KernelFault"}
    assert all(one.message.startswith("timeout") for one in everything)
    assert everything[1] is everything[0], "what never ends is not begun again"


def test_the_limit_of_time_goes_back_to_what_it_was(monkeypatch):
    import os

    monkeypatch.delenv("LABS_CUDA_SECONDS", raising=False)
    kernels.KernelRuns(EXERCISE, RIGHT, 0).everything()
    assert "LABS_CUDA_SECONDS" not in os.environ


def test_without_a_compiler_the_check_names_the_package_and_blames_nobody(monkeypatch):
    from labs_lib.cuda import compilers

    monkeypatch.setattr(compilers, "host_compiler", lambda: None)
    monkeypatch.setattr("labs_lib.cuda.machine.compilers.host_compiler", lambda: None)
    for program in (None, STUB, RIGHT):
        found = verdict(program)
        assert found.outcome == ERROR and "install" in " ".join(found.lines).lower()


def test_forbidden_names_count_in_code_alone():
    used = edited(
        RIGHT, "if (t == 0) sums[row] = part[0] * scale;",
        "if (t == 0) { sums[row] = 0.0f; atomicAdd(&sums[row], part[0] * scale); }",
    )  # fmt: skip
    assert "uses atomicAdd" in str(verdict(used))
    assert verdict(RIGHT + "// atomicAdd\n").outcome == PASS


def test_an_input_that_is_written_to_is_named():
    text = edited(
        RIGHT, "row_products(const float* x,", "row_products(float* x,",
        "if (t == 0) sums", "if (t == 63 && row == 0) x[0] = 7;\n    if (t == 0) sums",
    )  # fmt: skip
    assert "changed its input x" in str(verdict(text))


def test_the_check_under_jupyter_and_nbval_and_what_is_kept(course, capsys, monkeypatch):
    check("lab90.row_products", cuda.compile(RIGHT))
    assert capsys.readouterr().out.startswith("PASS  lab90.row_products")
    kept = json.loads((course / "lab90.row_products.json").read_text(encoding="utf-8"))
    assert kept["passed"] and kept["source"] == RIGHT
    monkeypatch.setenv(checks.UNDER_NBVAL, "1")
    with pytest.raises(CheckFailed, match="bare sum"):
        check("lab90.row_products", ANSWER.wrong[0].program)


def test_a_kernel_is_given_from_the_answers_or_from_what_passed(course, monkeypatch):
    x, y, sums = torch.ones(2, 64), torch.ones(2, 64), torch.zeros(2)
    for shipped_here in (True, False):
        monkeypatch.setattr(shipped, "has_answers", lambda lab, here=shipped_here: here)
        if not shipped_here:
            progress.update("lab90.row_products", source=RIGHT, passed=True)
        kernel = giving.given("lab90.row_products")
        kernel[2, 64](x, y, sums.zero_(), 2, 64, 0.5)
        assert isinstance(kernel, cuda.Kernel) and (sums == 32).all()


def test_a_graded_check_prints_values_findings_and_rules_and_no_verdict():
    text = graded_text(EXERCISE, cuda.compile(RIGHT), {"seed": 5})
    assert text == graded_text(EXERCISE, ODD, {"seed": 5, "places": {}})
    assert "findings: text 'none'" in text and "rule reads: kept" in text and "PASS" not in text
    race = graded_text(EXERCISE, ANSWER.wrong[2].program, {"seed": 5})
    assert "findings: text 'race (read, then write) in shared memory'" in race
    assert "  | Race on part" in race
    greedy = graded_text(EXERCISE, ANSWER.wrong[-1].program, {"seed": 5})
    assert 'rule reads: broken {"x": "9,216"' in greedy


def test_what_a_kernel_prints_is_never_part_of_a_check(capsys):
    noisy = edited(RIGHT, "float sum = 0.0f;", 'float sum = 0.0f; printf("PASS  lab90\\n");')
    check("lab90.row_products", cuda.compile(noisy))
    assert capsys.readouterr().out.count("lab90") == 1


def test_stored_outputs_check_and_name_mistakes(tmp_path):
    text, arrays = stored.pack([EXERCISE], oracle.LiveOracle(), lambda name: ANSWER)
    (tmp_path / "lab90.json").write_text(text, encoding="utf-8")
    (tmp_path / "lab90.npz").write_bytes(arrays)
    kept = stored.StoredOracle.load("lab90", tmp_path)
    assert judge(EXERCISE, ODD, kept).outcome == PASS
    for wrong in ANSWER.wrong:
        found = judge(EXERCISE, wrong.program, kept)
        assert found.outcome != PASS
        assert found.mistake == wrong.name or wrong.says in found.lines, str(found)


def test_a_stub_without_the_magic_or_the_kernel_is_refused():
    with pytest.raises(ValueError, match="begins with %%cuda"):
        kernel_exercise("lab90.k", "t", "__global__ void k(int n) {}", cases=list, launch=Launch)
    with pytest.raises(ValueError, match=r"holds k\(\.\.\.\)"):
        kernel_exercise("lab90.k", "t", "%%cuda\n__global__ void j(int n) {}\n", cases=list,
                        launch=Launch)  # fmt: skip
    with pytest.raises(ValueError, match="output s is argument 0, which is no tensor"):
        Launch(1, 1, (3,), {"s": 0})


def test_an_edit_that_no_longer_fits_is_refused():
    with pytest.raises(ValueError, match="stands 0 times"):
        edited(RIGHT, "no such text", "")
    with pytest.raises(ValueError, match="stands 2 times"):
        edited(RIGHT, "__syncthreads();", "")
    assert edited(RIGHT, "__syncthreads();", "", count=2).count("__syncthreads") == 0
