"""Models of attention alone: what they are asked, what is recorded, and the one that is kept."""

from __future__ import annotations

import pytest
import torch

from labs_lib.training.induction import Induction, _behind_copies, smeared
from labs_lib.training.kept import kept_model, kept_path
from labs_lib.training.loop import build, train, watch
from labs_lib.training.records import load_record


def sample(count=400, **settings):
    return Induction(**settings).sample(count, torch.Generator().manual_seed(0))


def test_a_copied_token_stood_before_behind_the_same_token_and_the_first_copy_is_all_new():
    tokens, copied, first = sample(60)
    for row, is_copied, is_first in zip(tokens.tolist(), copied, first, strict=True):
        period = int(is_first.sum())
        assert len(set(row[:period])) == period and set(row[period:]) <= set(row[:period])
        follows = {row[i - 1]: row[i] for i in range(1, period)} | {row[period - 1]: row[0]}
        for place in range(1, len(row)):
            if is_copied[place]:
                assert row[place] == follows[row[place - 1]] and row[place - 1] in row[: place - 1]


def test_blocks_of_all_lengths_come_again_and_one_time_in_eight_anything_follows():
    _, copied, first = sample()
    assert first.sum(1).unique().tolist() == list(range(6, 15))
    later = ~first & ~first.roll(1, 1)
    assert 0.82 < float(copied[later].float().mean()) < 0.93
    assert bool(sample(jumps=0.0)[1][later].all())


def test_weights_behind_copies_are_where_the_token_before_is_the_query_s():
    behind = _behind_copies(torch.tensor([[4, 9, 4, 4]]))[0]
    assert behind.nonzero().tolist() == [[2, 1], [3, 1], [3, 3]]


def test_smeared_keys_know_the_token_before_and_nothing_ahead():
    k = torch.arange(8.0).view(1, 2, 4, 1)
    mixed = smeared(k, torch.tensor([1.0, 0.25]))
    assert mixed[0, 0].flatten().tolist() == [0, 1, 2, 3]
    assert mixed[0, 1].flatten().tolist() == [4, 4.25, 5.25, 6.25]


@pytest.mark.parametrize("smear", [False, True])
def test_a_model_of_attention_alone_never_looks_ahead(smear):
    model = build(Induction(smeared=smear), 0)
    tokens = torch.randint(32, (1, 32))
    changed = tokens.clone()
    changed[0, 20:] = (changed[0, 20:] + 1) % 32
    assert torch.equal(model(tokens)[:, :20], model(changed)[:, :20])


def test_a_training_is_watched_from_before_its_first_step():
    run = train(Induction(n_layer=1), steps=20, show=False)
    assert [step for step, _ in run.watched] == [0, 20]
    assert watch(Induction(), build(Induction(), 0), 19) == {}
    again = type(run).from_json(run.to_json())
    assert [step for step, _ in again.watched] == [0, 20]


def test_an_interrupt_of_the_first_look_still_gives_a_run(stop_at_call):
    run = train(Induction(n_layer=1), steps=20, show=False, attend=stop_at_call(1))
    assert run.interrupted and run.steps == 0 and run.watched == []


def test_recorded_two_layers_and_smeared_keys_copy_and_one_layer_does_not():
    made = load_record("induction")
    assert made.spread("two layers").low > 0.97
    assert made.spread("one layer, smeared keys").low > 0.94
    assert made.spread("one layer").high < 0.3
    for variant in made.variants:
        assert made.spread(variant, "accuracy_first_copy").high < 0.1
    for run in made.of("two layers"):
        assert run.final["without_0"] < 0.2


def test_the_kept_model_is_the_recorded_one_and_small():
    assert kept_path().stat().st_size < 100_000
    recorded = load_record("induction").of("two layers")[0].final
    found = Induction().evaluate(kept_model())
    for name in ("accuracy", "induction_1_0", "previous_0_1", "without_0"):
        assert found[name] == pytest.approx(recorded[name], abs=0.02)
