"""The explorer of lab 10: a row's softmax, block by block."""

from __future__ import annotations

import pytest
import torch

from labs_lib.attention.online_softmax import merge_softmax_states
from labs_lib.widgets.online_softmax import MOST_HEADS, MOST_WIDTH, OWN, play_row
from labs_lib.widgets.row_states import N_KEY, RESCALES, SCORES, numbers, play, play_own, tables

TABLES = tables(MOST_HEADS, MOST_WIDTH)


@pytest.mark.parametrize("block", [1, 3, 4, 16])
@pytest.mark.parametrize("order", SCORES)
@pytest.mark.parametrize("merge", [None, merge_softmax_states])
def test_every_step_holds_the_softmax_of_what_has_come(block, order, merge):
    scores, values = numbers(TABLES, 3, 12, order)
    states = play_own(merge, scores, values, block) if merge else play(scores, values, block)
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
    _, l, o = play(*numbers(TABLES, 4, 24, "falling"), 1, "only l")[-1]
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


def test_a_step_beyond_the_last_block_shows_the_last():
    panel = play_row(step=4)
    last = panel.message
    assert "block 4 of 4" in last
    panel.step = 9
    assert panel.message == last


def test_a_head_that_does_not_exist_shows_the_last_one():
    panel = play_row(n_head=3)
    panel.head = 7
    assert panel.message.startswith("Head 2,") and not panel.failed


def test_what_is_left_out_is_what_merging_would_have_multiplied():
    """The factors of a merge, left out one by one, against sums over what each key counts."""

    def merge(a, b, way):
        (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
        m = torch.maximum(m_a, m_b)
        f_a, f_b = ((part - m).exp() for part in (m_a, m_b))
        if way == "upside down":
            f_a, f_b = (torch.where(f > 0, 1 / f, 0.0) for f in (f_a, f_b))
        of_l = (f_a, f_b) if way in ("l and o", "only l", "upside down") else (1, 1)
        of_o = (f_a, f_b) if way in ("l and o", "only o", "upside down") else (1, 1)
        o = sum(o * (f[:, None] if way not in ("only l", "neither") else f)
                for o, f in zip((o_a, o_b), of_o, strict=True))  # fmt: skip
        return m, l_a * of_l[0] + l_b * of_l[1], o

    scores, values = (t.double() for t in numbers(TABLES, 3, 12, "in random order"))
    for way in RESCALES:
        merged = play_own(lambda a, b, way=way: merge(a, b, way), scores, values, 3)
        for one, other in zip(play(scores, values, 3, way), merged, strict=True):
            for part, same in zip(one, other, strict=True):
                torch.testing.assert_close(part, same)


def test_a_merge_is_asked_once_and_its_trace_is_played():
    calls = []

    def merge(a, b):
        calls.append(b)
        return merge_softmax_states(a, b)

    panel = play_row(merge)
    sent, asked = panel.own["states"], len(calls)
    assert len(sent) == 8 * 5 * 4 * (2 + 6 + N_KEY) and asked == 4
    panel.set(step=4, head=3)
    assert panel.own["states"] is sent and len(calls) == asked
    panel.block = 8
    assert len(panel.own["states"]) == 8 * 3 * 4 * (2 + 6 + N_KEY)


def test_illegal_pair_is_explained_with_its_nearest_neighbours():
    panel = play_row()
    panel.n_head = 5
    assert not panel.legal and "20 or 25" in panel.message and not panel.failed


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
