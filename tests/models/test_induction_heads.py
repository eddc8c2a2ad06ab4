"""SmolLM2's induction heads: how they are found, silenced and recorded."""

from __future__ import annotations

import pytest
import torch

from labs_lib.models import induction, load, on_disk
from labs_lib.models.hooks import Hooks
from labs_lib.models.induction_study import random_sets
from labs_lib.models.rounding import rounded
from labs_lib.models.studies import recorded

HERE = on_disk.status("smollm2").state == on_disk.OK


def test_a_copying_head_would_look_behind_the_last_copy():
    ids = torch.tensor([7, 3, 7, 5, 7, 3])
    assert induction.copy_mask(ids).nonzero().tolist() == [[2, 1], [4, 3], [5, 2]]
    assert induction.copy_mask(ids, after=0).nonzero().tolist() == [[2, 0], [4, 2], [5, 1]]


def test_a_token_that_copying_gives_came_next_the_last_time_too():
    ids = torch.tensor([1, 2, 3, 1, 2, 4, 1, 2])
    assert induction.copied_next(ids).tolist() == [False] * 3 + [True, False, False, True]


def test_random_blocks_stand_twice_and_heads_are_judged_on_others_than_they_are_found_on():
    found, judged = (induction.random_blocks(1000, s) for s in (induction.TO_FIND,
                                                                induction.TO_JUDGE))  # fmt: skip
    assert torch.equal(found[:, : induction.BLOCK], found[:, induction.BLOCK :])
    assert not torch.equal(found, judged)


def test_random_sets_are_as_large_and_hold_none_of_the_heads_that_they_stand_beside():
    heads = [(2, 1), (3, 0), (3, 4)]
    sets = random_sets((6, 5), heads)
    for where, some in sets.items():
        assert len(some) == induction.N_RANDOM
        for one in some:
            assert len(set(one)) == 3 and not set(one) & set(heads)
            assert where == "anywhere" or {layer for layer, _ in one} <= {2, 3}


def test_a_record_holds_plain_rounded_numbers():
    plain = rounded({"a": torch.tensor([0.123456]), "b": (1, 2.00001), "c": "x"})
    assert plain == {"a": [0.1235], "b": [1, 2.0], "c": "x"}


def test_recorded_heads_carry_the_copying_and_random_ones_mostly_do_not():
    study = recorded("induction")["smollm2"]
    whole = study["whole"]["second copy"]
    without = study["without"]["second copy"] - whole
    assert study["heads"][0] == [18, 6] and without > 5
    rises = sorted(one["second copy"] - whole for one in study["random"]["same layers"])
    assert rises[len(rises) // 2] < without / 3


@pytest.mark.slow
@pytest.mark.skipif(not HERE, reason="SmolLM2 is not here")
def test_the_model_here_copies_with_the_recorded_heads():
    model, study = load("smollm2"), recorded("induction")["smollm2"]
    rows = induction.random_blocks(model.shape.vocab, induction.TO_JUDGE)[:1]
    heads = [tuple(pair) for pair in study["heads"]]
    first, second = induction.copy_losses(model, rows)
    assert first > 12 and second < 4
    assert induction.copy_losses(model, rows, heads)[1] > second + 4
    hooks = Hooks(keep="weights", layers=[18])
    with torch.no_grad():
        model.residual(rows, hooks=hooks)
    on = hooks["weights"][18][0, 6] * induction.copy_mask(rows[0])
    assert float(on.sum(-1)[induction.BLOCK :].mean()) > 0.6
