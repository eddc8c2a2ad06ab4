"""A stub that a program calls is never taken for the program's own."""

from __future__ import annotations

import math

import pytest
import torch

from labs_lib.checking import check, yours
from labs_lib.widgets.attention_row import attention_row

HEAD = "lab01.scaled_dot_product_attention"
STUB = "def attention_scores(q, k):\n    raise NotImplementedError\n"
CALLS = (
    "def scaled_dot_product_attention(q, k, v, mask=None):\n"
    "    return attention_scores(q, k).softmax(-1) @ v\n"
)
UNWRITTEN = (
    "def scaled_dot_product_attention(q, k, v, mask=None):\n"
    "    def inner():\n"
    "        raise NotImplementedError('later')\n"
    "    return inner()\n"
)


def written(text, name="scaled_dot_product_attention"):
    space = {"torch": torch, "math": math}
    exec(compile(text, "ipykernel_1/1.py", "exec"), space)
    return space[name]


def test_a_check_names_the_other_function_that_is_not_written(capsys):
    check(HEAD, written(STUB + CALLS))
    told = capsys.readouterr().out
    assert told.startswith(f"ERROR  {HEAD}")
    assert "your function calls attention_scores, which is not written yet" in told
    check(HEAD, written(UNWRITTEN))
    assert capsys.readouterr().out.startswith(f"NOT ATTEMPTED  {HEAD}")


def test_a_class_that_calls_an_unwritten_function_has_been_attempted(capsys):
    dataclass = (
        "from dataclasses import dataclass\n"
        "def head_dim(d_model, n_head):\n    raise NotImplementedError\n"
        "@dataclass\nclass HeadConfig:\n"
        "    d_model: int\n    n_head: int\n    head_dim: int = None\n"
        "    def __post_init__(self):\n        {}\n"
    )
    calls = dataclass.format("self.head_dim = head_dim(self.d_model, self.n_head)")
    check("lab02.HeadConfig", written(calls, "HeadConfig"))
    assert "your class calls head_dim, which is not written yet" in capsys.readouterr().out
    check("lab02.HeadConfig", written(dataclass.format("raise NotImplementedError"), "HeadConfig"))
    assert capsys.readouterr().out.startswith("NOT ATTEMPTED")


def test_what_torch_has_not_implemented_is_an_error_and_no_missing_attempt(capsys):
    check("lab01.causal_mask", lambda seq_q, seq_k=None: torch.arange(seq_q).softmax(-1))
    assert capsys.readouterr().out.startswith("ERROR  lab01.causal_mask")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (STUB + CALLS, "calls attention_scores, which is not"),
        (UNWRITTEN, "function is not written"),
    ],
)
def test_a_panel_names_the_function_that_is_not_written(program, said):
    assert said in attention_row(written(program)).message


def test_a_demonstration_names_the_function_that_is_not_written(capsys):
    q = torch.ones(2, 3)
    with yours(HEAD):
        written(STUB + CALLS)(q, q, q)
    with yours(HEAD):
        written(UNWRITTEN)(q, q, q)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("write attention_scores first")
    assert second.startswith("write scaled_dot_product_attention first")
