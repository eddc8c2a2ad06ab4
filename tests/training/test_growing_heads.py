"""Heads watched while they learn: roles are what they say, silence is silence, records agree."""

from __future__ import annotations

import pytest
import torch

from labs_lib.training.growing import (
    ROLES,
    GrowingHeads,
    chance_scores,
    head_weights,
    loss_without,
    role_masks,
    role_scores,
    windows,
)
from labs_lib.training.loop import build
from labs_lib.training.records import load_record

TASK = GrowingHeads(d_model=16, n_head=2, d_ffn=16)


def test_roles_are_where_they_say_they_are():
    tokens = torch.tensor([list(b"ab a")])
    masks = {role: mask[0].int().tolist() for role, mask in role_masks(tokens).items()}
    assert list(masks) == list(ROLES)
    assert masks["previous"] == [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    assert masks["first"] == [[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]
    assert masks["same byte"] == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
    assert masks["space"] == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]


def test_a_head_that_looks_nowhere_in_particular_scores_chance():
    model, looked_at = build(TASK, 0), windows(TASK, 4)
    with torch.no_grad():
        for block in model.blocks:
            block.attention.W_Q.zero_()
        for role, scores in role_scores(model, looked_at).items():
            torch.testing.assert_close(
                scores, torch.full((2, 2), chance_scores(looked_at)[role]), atol=1e-5, rtol=0
            )


def test_weights_are_rows_that_add_up_to_one_and_see_nothing_ahead():
    with torch.no_grad():
        for weights in head_weights(build(TASK, 0), windows(TASK, 2)[:, :-1]):
            torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, TASK.context))
            assert float(weights.triu(1).abs().max()) == 0.0


def test_silencing_heads_leaves_the_model_as_it_was_and_no_head_changes_nothing():
    model, judged = build(TASK, 0), windows(TASK, 4)
    with torch.no_grad():
        before = [p.clone() for p in model.parameters()]
        whole = loss_without(model, [], judged)
        assert loss_without(model, [(0, 0), (1, 1)], judged) != whole
        assert loss_without(model, [], judged) == whole
        assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_windows_to_choose_heads_by_and_to_judge_on_do_not_overlap():
    first, second = windows(TASK, 128, 0.0, 0.5), windows(TASK, 256, 0.5, 1.0)
    assert not {tuple(w) for w in first.tolist()} & {tuple(w) for w in second.tolist()}


def test_watching_changes_nothing_in_the_training():
    """The same seed without watching is the sweep's model of eight heads."""
    watched, plain = load_record("head_growth").runs, load_record("head_sweep").of("n_head=8")
    assert [run.curve for run in watched] == [run.curve for run in plain]
    assert [run.final["loss"] for run in watched] == [run.final["loss"] for run in plain]


def test_recorded_half_of_the_heads_can_go_for_hundredths_and_one_head_is_missed():
    for run in load_record("head_growth").runs:
        whole, most = run.final["pruned 0"], run.final["pruned 13"]
        assert run.final["at random 0"] == whole
        assert run.final["pruned 3"] - whole < 0.02 < 0.1 < most - whole < 0.3
        assert run.final["pruned 8"] - whole < 0.05 < run.final["at random 8"] - whole
        assert run.final["pruned 16"] == pytest.approx(run.final["at random 16"], abs=1e-4)
