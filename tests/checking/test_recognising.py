"""A mistake is named where its sentence is true of the program at hand, and nowhere else."""

from __future__ import annotations

import pytest
import torch

from labs_lib.checking.oracle import LiveOracle
from labs_lib.checking.verdict import ERROR, judge
from labs_lib.exercises import exercise

MEAN, MASK, STD = "lab00.first_tensor", "lab01.causal_mask", "lab01.dot_product_std"


def verdict(name, program):
    return judge(exercise(name), program, LiveOracle())


def test_a_mistake_that_is_wrong_where_the_program_is_right_is_another_one():
    def by_rows_once(x):
        """Divides by the number of rows for one shape alone, as a known mistake always does."""
        return x.sum(-1) / (len(x) if x.shape == (3, 4) else x.shape[-1])

    assert verdict(MEAN, lambda x: x.sum(-1) / len(x)).mistake == "divided_by_rows"
    assert verdict(MEAN, by_rows_once).mistake == ""


def test_the_first_of_two_mistakes_is_named():
    def bare(q, k, v, mask=None):
        """No scale, and no mask."""
        return (q @ k.mT).softmax(-1) @ v

    assert verdict("lab01.scaled_dot_product_attention", bare).mistake == "no_scale"


@pytest.mark.parametrize(
    "program",
    [
        lambda seq_q, seq_k=None: torch.zeros(seq_q, seq_k, dtype=torch.bool),
        lambda seq_q, seq_k=None: torch.arange(seq_k)[None] <= torch.arange(seq_q)[:, None],
        lambda seq_q, seq_k=None: torch.tensor([[j <= i for j in range(seq_k)] for i in range(3)]),
        lambda seq_q, seq_k=None: torch.ones(seq_q, seq_q).tril(seq_k - seq_q),
    ],
)
def test_none_is_named_whatever_meets_it(program):
    found = verdict(MASK, program)
    assert (found.outcome, found.mistake) == (ERROR, "seq_k_not_given")


HEAD = "lab01.scaled_dot_product_attention"


def _head(use):
    """A head whose weights `use` mends; everything else is right."""

    def head(q, k, v, mask=None):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return (scores.softmax(-1) if mask is None else use(scores, mask)) @ v

    return head


@pytest.mark.parametrize(
    ("use", "mistake"),
    [
        (
            lambda s, m: s.masked_fill(~m, -1e9).softmax(-1).masked_fill(~m.any(-1), 0),
            "any_without_keepdim",
        ),
        (
            lambda s, m: torch.where(m.any(-1), s.masked_fill(~m, -1e9).softmax(-1), 0.0),
            "any_without_keepdim",
        ),
        (
            lambda s, m: s.masked_fill(~m, -1e9).softmax(-1) * m.any(-1),
            "product_with_any_without_keepdim",
        ),
        (
            lambda s, m: s.masked_fill(torch.ones(2 * s.shape[-2:-1]).triu(1) > 0, -1e9).softmax(
                -1
            ),
            "square_causal",
        ),
        (lambda s, m: s.masked_fill(~m.mT, -1e9).softmax(-1), "mask_turned_over"),
        (
            lambda s, m: s.masked_fill(
                ~m.reshape(*m.shape[:-2], m.shape[-1], m.shape[-2]), -1e9
            ).softmax(-1),
            "mask_reshaped",
        ),
    ],
)
def test_of_mistakes_that_stop_with_the_same_words_the_likest_is_named(use, mistake):
    assert verdict(HEAD, _head(use)).mistake == mistake


def test_a_program_that_stops_at_none_everywhere_has_another_mistake():
    assert verdict(MASK, lambda seq_q, seq_k=None: torch.arange(None)).mistake == ""


def test_an_estimate_is_told_that_a_formula_is_asked():
    near = verdict(STD, lambda d, a, b: d**0.5 * a * b * 1.006)
    assert "a formula is wanted" in str(near).lower()
    assert "formula" not in str(verdict(STD, lambda d, a, b: d**0.5 * a * b * 1.2))
    assert "formula" not in str(verdict(STD, lambda d, a, b: (d - 1) ** 0.5 * a * b)), "it is named"


def test_a_long_sentence_is_broken_between_words():
    for choice in "ab":  # the right one and a wrong one, each explained in one long line
        lines = str(verdict("lab04.quiz_reading", choice)).splitlines()
        assert len(lines) > 2 and all(len(line) <= 92 for line in lines)


def test_a_name_that_nobody_defined_is_explained():
    def calls_an_earlier_piece(x, W_Q, W_K, W_V, n_head, mask=None):
        return split_heads(x @ W_Q, n_head)  # noqa: F821  # ty: ignore

    said = str(verdict("lab03.fused_multi_head", calls_an_earlier_piece))
    assert "was built in lab 02" in said and 'given("lab02.split_heads")' in said

    def takes_words_for_variables(x, n_head):
        return x.view(batch, seq, n_head, -1).transpose(1, 2)  # noqa: F821  # ty: ignore

    assert "word of the shapes" in str(verdict("lab02.split_heads", takes_words_for_variables))

    def misspells(x, n_head):
        return x.view(*x.shap, n_heads)  # noqa: F821  # ty: ignore

    assert "word of the shapes" not in str(verdict("lab02.split_heads", misspells))


def test_a_function_taken_for_a_size_is_told_and_no_method_of_torch_is():
    def head_dim(d_model, n_head):
        return d_model // n_head

    def takes_the_function(x, n_head):
        return x.view(*x.shape[:2], n_head, head_dim).transpose(1, 2)  # ty: ignore

    def forgets_the_call(x, n_head):
        return x.view(x.size[0], n_head, -1)  # ty: ignore

    told = "head_dim is the function that you wrote"
    assert told in str(verdict("lab02.split_heads", takes_the_function))
    assert told not in str(verdict("lab02.split_heads", forgets_the_call))
