"""Where a rule is measured the values count too: whoever does nothing there keeps no rule."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch

from labs_lib.answers import answer
from labs_lib.checking.render import render
from labs_lib.checking.verdict import rules_kept, source_of
from labs_lib.exercises import exercise, exercises, labs
from labs_lib.grading.expected.places import places_of_rules
from labs_lib.grading.expected.printed import Printed, explain
from labs_lib.grading.reading.structure import structure
from labs_lib.grading.reading.ways import out_of_torch
from labs_lib.notebook.matching import Answer, Piece

RULED = [
    item.name
    for lab in labs()
    for item in exercises(lab.number)
    if item.kind == "function" and item.rules
]
WITH_NUMBERS = [name for name in RULED if name != "lab02.HeadConfig"]  # which makes an object
SEED = 2**61 + 5


@cache
def places(name):
    item, known = exercise(name), answer(name)
    kept = rules_kept(item, known.reference, SEED)
    return places_of_rules(item, known, SEED, kept, np.random.default_rng(1))


def printed(name, program):
    """What a graded check prints of a program's rules."""
    return render(exercise(name), [], rules_kept(exercise(name), program, SEED), places(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", RULED)
def test_right_programs_print_the_same_where_rules_are_measured(name):
    expected = printed(name, answer(name).reference)
    assert "broken" not in expected
    for one in answer(name).right:
        assert printed(name, one.program) == expected, one.name


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_a_program_that_does_nothing_where_a_rule_is_measured_does_not_keep_it(name):
    """It may know the call by its number, its sizes or by what measures: nothing is gained."""
    expected = printed(name, answer(name).reference)
    assert all(Printed(expected).returned.values())
    for nothing in (lambda *args: None, lambda *args: args[0], lambda *args: []):
        assert printed(name, nothing) != expected


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_what_is_returned_for_a_rule_is_new_in_every_run(name):
    """But for `split_heads`, which moves numbers that are known: nobody gains by these."""
    first, second = (
        [one.returned for one in rules_kept(exercise(name), answer(name).reference, seed).values()]
        for seed in (1, 2)
    )
    assert repr(first) != repr(second) or name == "lab02.split_heads"


def test_a_student_is_told_where_the_values_differ():
    item = exercise("lab08.grouped_query_attention")
    expected = printed(item.name, answer(item.name).reference)
    head, _, tail = expected.partition("\n")
    want = f"{head}\ncase 1\n  value: number 1\n{tail}"
    status, lines, _ = explain(item, want[: want.rindex("  [0]")] + "  [0]: none", want, ())
    assert status == "fail" and item.rules[0].text in lines[0]


# What a rule counts ------------------------------------------------------------------------------

COUNTED = {
    "whole rows of as many queries as k is wide": (
        "lab11.flash_forward",
        """
def flash_forward(q, k, v, block_q=16, block_k=16):
    out, lse = torch.empty(*q.shape[:3], v.shape[-1]), torch.empty(q.shape[:3])
    for i in range(0, q.shape[2], 2):
        scores = q[:, :, i:i + 2] @ k.mT / math.sqrt(q.shape[-1])
        lse[:, :, i:i + 2] = scores.logsumexp(-1)
        out[:, :, i:i + 2] = scores.softmax(-1) @ v
    return out, lse
""",
    ),
    "each query more often, until its scores are as many as k": (
        "lab10.attention_one_pass",
        """
def attention_one_pass(q, k, v, mask=None, block=16):
    scores = torch.cat([q, q], -2) @ k.mT / math.sqrt(q.shape[-1])
    n = q.shape[-2]
    return (scores.softmax(-1) @ v)[..., :n, :], scores.logsumexp(-1)[..., :n]
""",
    ),
    "products by * and sum": (
        "lab11.flash_causal_skip",
        """
def flash_causal_skip(q, k, v, block_q=16, block_k=16):
    scores = (q[..., :, None, :] * k[..., None, :, :]).sum(-1) / math.sqrt(q.shape[-1])
    hidden = torch.ones(q.shape[2], k.shape[2]).triu(1 + k.shape[2] - q.shape[2]).bool()
    scores = scores.masked_fill(hidden, -math.inf)
    out = (scores.softmax(-1)[..., None] * v[..., None, :, :]).sum(-2)
    return out, scores.logsumexp(-1)
""",
    ),
    "products by * with factors spread before": (
        "lab08.mla_absorb",
        """
def mla_absorb(q, q_rotary, latent, rotary_key, W_UK, W_UV):
    def unpacked(W):
        shape = (*latent.shape, W.shape[1])
        made = (latent[..., None].expand(shape) * W.expand(shape)).sum(-2)
        return made.unflatten(-1, (q.shape[1], -1)).transpose(1, 2)

    scores = q @ unpacked(W_UK).mT + q_rotary @ rotary_key[:, None].mT
    width = q.shape[-1] + q_rotary.shape[-1]
    return (scores / math.sqrt(width)).softmax(-1) @ unpacked(W_UV)
""",
    ),
}


@pytest.mark.parametrize(("name", "text"), COUNTED.values(), ids=COUNTED)
def test_no_other_way_of_computing_the_same_keeps_a_rule(name, text):
    space = {"torch": torch, "math": math}
    exec(text, space)
    expected = rules_kept(exercise(name), answer(name).reference, SEED)
    for rule, found in rules_kept(exercise(name), space[exercise(name).called], SEED).items():
        assert not found
        assert expected[rule]


AROUND = [
    "k = torch.from_numpy(np.repeat(k.numpy(), 4, 1))",
    "k = torch.tensor(k.tolist())",
    "import numpy as other\n    k = torch.tensor(other.einsum('bhij->bhij', k))",
    "from numpy import repeat\n    k = repeat(k, 4, 1)",
    "import scipy.linalg as sl\n    k = sl.matmul_toeplitz(k, k)",
    "k = torch.from_dlpack(k)",
]


@pytest.mark.parametrize("line", AROUND)
def test_work_that_no_rule_counts_is_looked_at(line):
    item = exercise("lab08.grouped_query_attention")
    text = f"def grouped_query_attention(q, k, v, mask=None):\n    {line}\n    return q @ k.mT @ v"
    found = structure(item, {item.name: Answer(item.name, (Piece(text, 1, ""),), attempted=True)})
    assert any("where no rule counts" in doubt for doubt in found.doubts), found


@pytest.mark.parametrize("name", RULED)
def test_right_programs_work_where_rules_count(name):
    for one in answer(name).right:
        text = f"{source_of(one.program)}\n{NUMPYS}"
        assert not out_of_torch([text]) or not any(r.by_torch for r in exercise(name).rules)


NUMPYS = """
import numpy as np
def helper(x, n):
    return x / np.sqrt(n) + np.prod(x.shape) - np.inf * float("inf") + x.max().item()
"""
