"""The panel of lab 10: a row's softmax, block by block."""

from __future__ import annotations

import pytest
import torch

from labs_lib.attention.online_softmax import merge_softmax_states
from labs_lib.widgets.online_softmax import (
    N_KEY,
    OWN,
    RESCALES,
    SCORES,
    broken,
    numbers,
    play,
    play_row,
)


@pytest.mark.parametrize("block", [1, 3, 4, 16])
@pytest.mark.parametrize("order", SCORES)
@pytest.mark.parametrize("merge", [None, merge_softmax_states])
def test_every_step_holds_the_softmax_of_what_has_come(block, order, merge):
    scores, values = numbers(3, 12, order)
    states = play(scores, values, block, merge)
    assert len(states) == 1 + -(-N_KEY // block)
    for at, (m, l, o) in enumerate(states[1:], 1):
        seen = min(at * block, N_KEY)
        part = scores[:, :seen]
        assert torch.equal(m, part.amax(-1))
        torch.testing.assert_close(m + l.log(), part.logsumexp(-1))
        wanted = (part.softmax(-1)[:, None] @ values[:, :seen])[:, 0]
        torch.testing.assert_close(o[:, :4] / l[:, None], wanted, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(o[:, 4:].sum(-1), l)


def test_the_last_step_is_within_rounding_and_a_broken_rescale_is_not():
    panel = play_row()
    panel.step = N_KEY
    assert "16 scores that have come: within rounding" in panel.message
    for rescale in RESCALES[1:]:
        panel.rescale = rescale
        assert "within rounding" not in panel.message
        assert f"Rescaled: {rescale}." in panel.message
        assert not panel.failed


def test_falling_scores_hide_a_missing_rescale():
    panel = play_row(step=16)
    panel.set(scores="falling", rescale="only l", block=1)
    assert "m stays" in panel.message
    _, l, o = play(*numbers(4, 24, "falling"), 1, broken("only l"))[-1]
    torch.testing.assert_close(o[:, -N_KEY:].sum(-1).gt(l), torch.ones(4, dtype=torch.bool))


def test_steps_go_forth_and_back():
    panel = play_row()
    seen = {}
    for step in (0, 1, 2):
        panel.step = step
        seen[step] = panel.message
    assert seen[0].endswith("m = -inf, l = 0, o = 0.")
    assert "sets m to" in seen[1]
    for step in (1, 0):
        panel.step = step
        assert panel.message == seen[step]


def test_a_factor_that_is_left_out_is_told_as_what_should_be():
    panel = play_row(step=3)
    assert "collected counts 0.299 times" in panel.message
    panel.rescale = "only l"
    assert "collected should count 0.299 times" in panel.message


def test_a_step_beyond_the_last_block_says_so():
    panel = play_row(step=4)
    assert "shows the last one" not in panel.message
    panel.step = 9
    assert "There are 4 blocks; step 9 shows the last one." in panel.message


def test_a_head_that_does_not_exist_is_explained():
    panel = play_row(n_head=3)
    panel.head = 7
    assert "numbered 0 to 2" in panel.message and not panel.failed


def test_illegal_pair_is_explained_with_its_nearest_neighbours():
    panel = play_row()
    panel.n_head = 5
    assert not panel.legal and "20 and 25" in panel.message and not panel.failed


@pytest.mark.parametrize(("n_head", "d_model"), [(8, 64), (8, 8)])
def test_every_legal_pair_is_drawn(n_head, d_model):
    panel = play_row(n_head=n_head, d_model=d_model)
    panel.set(step=4, rescale="upside down", scores="rising")
    assert panel.legal and not panel.failed and panel.picture.startswith(b"\x89PNG")


def test_a_students_own_merge_is_played():
    panel = play_row(merge_softmax_states)
    panel.step = 4
    assert panel.rescale == OWN
    assert "within rounding" in panel.message

    def no_rescale(a, b):
        return [torch.maximum(a[0], b[0]), a[1] + b[1], a[2] + b[2]]

    wrong = play_row(no_rescale)
    wrong.step = 4
    assert "away at most" in wrong.message and not wrong.failed


@pytest.mark.parametrize("made", [None, (torch.zeros(2),) * 3])
def test_what_is_no_state_is_explained(made):
    panel = play_row(lambda a, b: made)
    assert "something else than a state" in panel.message and not panel.failed


def test_unwritten_and_failing_functions_are_told_apart():
    def stub(a, b):
        raise NotImplementedError

    assert "Write merge_softmax_states" in play_row(stub).message
    failing = play_row(lambda a, b: a.no_such_thing)
    assert failing.failed and "AttributeError" in failing.message
