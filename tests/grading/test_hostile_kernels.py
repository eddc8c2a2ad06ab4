"""Kernels that want a rule kept without keeping it: each was once marked as right."""

from __future__ import annotations

import pytest

from labs_lib.answers import answer, edited
from labs_lib.checking.oracle import oracle_for
from labs_lib.checking.verdict import judge
from labs_lib.exercises import exercise, lab09_rules
from labs_lib.exercises.kernels import drawn

TILED, TRANSPOSE = "lab09.scores_tiled", "lab09.transpose_without_conflicts"
NAIVE = answer("lab09.scores_naive").reference.replace("scores_naive", "scores_tiled")


def outcome(name, text):
    item = exercise(name)
    return judge(item, text, oracle_for(item)).outcome


@pytest.mark.parametrize(
    ("name", "planned"),
    [
        ("scores_tiled", lab09_rules.SCORES),
        ("transpose_without_conflicts", lab09_rules.MATRIX),
        ("softmax_rows", lab09_rules.ROWS),
        ("softmax_rows_by_shuffles", lab09_rules.ROWS_BY_WARPS),
    ],
)
def test_rules_are_measured_where_outputs_are_compared(name, planned):
    """Whoever does nothing in the launch of a rule, and so keeps it, is wrong in a case."""
    item = exercise(f"lab09.{name}")
    for seed in (0, 5):
        with drawn(seed):
            of_rule = planned()
        launches = [item.launch(*case.args) for case in item.make_cases(seed)]
        same = [one for one in launches if one.arguments[0].shape == of_rule.arguments[0].shape]
        assert any(one.arguments[0].equal(of_rule.arguments[0]) for one in same)
        assert all(one.grid == of_rule.grid for one in same)


def test_a_kernel_that_knows_the_launch_of_a_rule_is_wrong_there():
    known = lab09_rules.SCORES().arguments[0].flatten()[0].item()
    lazy = edited(NAIVE, "float sum = 0.0f;", f"if (q[0] == {known!r}f) return; float sum = 0.0f;")
    assert outcome(TILED, NAIVE) == outcome(TILED, lazy) == "FAIL"
