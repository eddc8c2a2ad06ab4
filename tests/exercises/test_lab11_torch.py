"""Lab 11's exercises in torch: no two mistakes are taken for each other, and examples are true."""

from __future__ import annotations

import pytest
import torch

from labs_lib.answers.lab11 import ANSWERS
from labs_lib.checking.observe import observe_all
from labs_lib.checking.oracle import LiveOracle, matches
from labs_lib.checking.verdict import judge, rules_kept
from labs_lib.exercises.lab11_rules import hidden_tiles_skipped, one_tile_at_a_time
from labs_lib.exercises.lab11_torch import FUNCTIONS

PAIRS = [pytest.param(item, ANSWERS[item.name], id=item.name) for item in FUNCTIONS]


def kept(item, program):
    return all(bool(one) for one in rules_kept(item, program).values())


@pytest.mark.parametrize(("item", "answer"), PAIRS)
def test_no_two_mistakes_are_taken_for_each_other(item, answer):
    want = observe_all(item, answer.reference, seed=1)
    assert not [one.raised for one in want if one.raised]
    seen = {wrong.name: observe_all(item, wrong.program, 1) for wrong in answer.wrong}
    by_rule = [w for w in answer.wrong if w.says in [rule.broken for rule in item.rules]]
    for wrong in answer.wrong:
        if wrong in by_rule:
            assert matches(item, want, seen[wrong.name]), wrong.name
            assert not kept(item, wrong.program), wrong.name
        else:
            assert not matches(item, want, seen[wrong.name]), wrong.name
    names = [name for name in seen if name not in [w.name for w in by_rule]]
    says = {wrong.name: wrong.says for wrong in answer.wrong}  # one sentence can't be mistaken
    alike = [
        (a, b) for i, a in enumerate(names) for b in names[i + 1 :]
        if says[a] != says[b] and matches(item, seen[a], seen[b])
    ]  # fmt: skip
    assert alike == []


def test_the_examples_of_the_stubs_are_true():
    forward, causal, traffic = (
        ANSWERS[f"lab11.{name}"].reference
        for name in ("flash_forward", "flash_causal_skip", "io_bytes")
    )
    q, k = torch.zeros(1, 1, 2, 1), torch.tensor([[[[1.0], [2.0]]]])
    out, lse = forward(q, k, torch.tensor([[[[2.0], [4.0]]]]), 1, 1)
    assert out.flatten().tolist() == [3.0, 3.0]
    assert lse.flatten().tolist() == pytest.approx([0.6931] * 2, abs=1e-4)
    out, _ = causal(q, torch.zeros(1, 1, 3, 1), torch.tensor([[[[3.0], [5.0], [10.0]]]]))
    assert out.flatten().tolist() == [4.0, 6.0]
    assert traffic(2, 3, 1, 2, 2) == {"naive": 68, "flash": 28}


def test_float32_inside_is_told_however_its_sums_are_taken():
    item, oracle = FUNCTIONS[0], LiveOracle()
    for inside, named in ((torch.float32, "float32_throughout"), (torch.float64, "")):

        def program(q, k, v, block_q=16, block_k=16, inside=inside):
            """Tiles of a size of its own, from the last key on: other sums than anybody's."""
            wide = [t.flip(2).to(inside) for t in (k, v)]
            out, lse = ANSWERS[item.name].reference(q.to(inside), *wide, 5, 3)
            return out.to(q.dtype), lse.to(torch.float32 if q.element_size() == 2 else q.dtype)

        verdict = judge(item, program, oracle)
        assert (verdict.mistake, verdict.passed) == (named, not named)


def test_the_rules_see_what_is_hidden_in_lists_and_loops():
    def listed(q, k, v, block_q=16, block_k=16):
        scores = [q @ k[:, :, j : j + 1].mT / q.shape[3] ** 0.5 for j in range(k.shape[2])]
        weights = torch.cat(scores, -1).softmax(-1)
        return weights @ v, torch.cat(scores, -1).logsumexp(-1)

    assert not one_tile_at_a_time(listed)
    assert not hidden_tiles_skipped(listed)
