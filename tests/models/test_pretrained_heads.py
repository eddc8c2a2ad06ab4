"""Roles, importance and outliers of heads; what is recorded is what the models show."""

from __future__ import annotations

import pytest
import torch

from labs_lib.models import atlas, importance, roles, small_trials, studies
from labs_lib.models.texts import PAIRS, PROSE, halves, passages


def test_a_role_s_mask_is_true_where_it_would_look():
    masks = roles.role_masks(["The", " cat", ",", " the", " dog"], causal=True)
    assert masks["previous"].nonzero().tolist() == [[i, i - 1] for i in range(1, 5)]
    assert not masks["next"].any(), "nothing ahead is seen"
    assert masks["same word"].nonzero().tolist() == [[3, 0]]
    assert masks["punctuation"].nonzero().tolist() == [[2, 2], [3, 2], [4, 2]]
    assert masks["first"].sum() == 4, "the first query has no choice"


def test_a_head_of_one_role_scores_one_and_an_even_one_scores_chance():
    mask = roles.role_masks(list("abcdef"), causal=False)["previous"]
    weights = torch.stack([mask.float(), torch.full((6, 6), 1 / 6)])
    assert roles.scores_on(weights, mask).tolist() == pytest.approx([1.0, 1 / 6])
    assert roles.by_chance(mask, causal=False) == pytest.approx(1 / 6)
    assert roles.by_offset(mask) == (-1, 1.0)


def test_every_bracket_has_its_partner():
    masks = small_trials.bracket_masks(["(", "a", "(", "b", ")", ")"])
    assert masks["closing to its opening"].nonzero().tolist() == [[4, 2], [5, 0]]
    assert masks["closing to another opening"].nonzero().tolist() == [[4, 0], [5, 2]]
    assert masks["opening to its closing"].nonzero().tolist() == [[0, 5], [2, 4]]


def test_texts_to_choose_by_and_to_judge_on_have_nothing_in_common():
    chosen, judged = (passages(part, 40) for part in ("to choose", "to judge"))
    assert len(set(chosen) | set(judged) | set(passages("to look at", 40))) == 120
    assert not set(PROSE) & {*chosen, *judged}
    sentences = [text for pair in PAIRS for text in pair]
    assert len(set(sentences)) == len(sentences)


def test_a_passage_is_prose_in_one_line_and_its_halves_make_it_up_again():
    for passage in passages("to choose", 30, longest=450):
        assert 350 <= len(passage) <= 450 and "\n" not in passage and "  " not in passage
        assert " ".join(halves(passage)) == passage and all(halves(passage))
    with pytest.raises(ValueError, match=r"'to judge' has .* not 1000"):
        passages("to judge", 1000)


def test_a_partner_is_looked_for_in_its_own_group(minilm):
    together = importance.find_partner(minilm, PAIRS[:6], among=3)
    apart = [importance.find_partner(minilm, PAIRS[i : i + 3]) for i in (0, 3)]
    assert together.mean_loss() == pytest.approx(sum(q.mean_loss() for q in apart) / 2, abs=1e-5)


def test_pruning_in_an_order_takes_the_least_important_first():
    scores = torch.tensor([[0.3, 0.1], [0.2, 0.4]])
    assert importance.order(scores) == [(0, 1), (1, 0), (0, 0), (1, 1)]
    assert sorted(importance.random_order((3, 2), 1)) == [(i, j) for i in range(3) for j in (0, 1)]
    assert importance.rank_agreement(scores, scores) == pytest.approx(1.0)
    assert importance.rank_agreement(scores, -scores) == pytest.approx(-1.0)


@pytest.mark.parametrize("name", studies.STUDIES)
def test_every_study_is_recorded_for_both_models(name):
    found = studies.recorded(name)
    assert list(found) == ["minilm", "smollm2"]


def test_an_unknown_study_is_answered_with_those_there_are():
    with pytest.raises(KeyError, match="roles"):
        studies.recorded("rolls")


@pytest.mark.slow
def test_recorded_scores_of_minilm_are_measured_again(minilm):
    kept = studies.recorded("roles")["minilm"]["scores"]
    texts = passages("to look at", studies.N_LOOKED_AT)
    for role, scores in roles.head_roles(minilm, texts).items():
        torch.testing.assert_close(scores, torch.tensor(kept[role]), atol=2e-3, rtol=0)


def test_recorded_weights_of_a_sentence_are_seen_again(minilm, smollm2):
    for name, model in (("minilm", minilm), ("smollm2", smollm2)):
        kept = studies.recorded("atlas")[name]
        tokens, weights = roles.weights_of(model, atlas.TEXT)
        assert kept["tokens"] == tokens
        unpacked = torch.tensor(atlas.unpacked(kept["weights"], weights.shape) / atlas.WHOLE)
        torch.testing.assert_close(unpacked, weights.double(), atol=1e-4, rtol=0)
        names, said = atlas.says(model)
        assert kept["answer"]["names"] == names
        assert kept["answer"]["said"] == pytest.approx(said, abs=2e-4)


def test_packed_weights_come_back_within_their_grain():
    weights = torch.rand(2, 3, 5, 5, generator=torch.Generator().manual_seed(1))
    weights[0, 0, 0] = torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0])
    back = torch.tensor(atlas.unpacked(atlas.packed(weights), weights.shape) / atlas.WHOLE)
    torch.testing.assert_close(back, weights.double(), atol=0.5 / atlas.WHOLE + 1e-9, rtol=0)
    assert torch.equal(back[0, 0, 0], weights[0, 0, 0].double())


def test_an_untrained_model_has_no_previous_token_head_and_the_trained_one_stays(minilm):
    before = minilm.layers[0].attention.W_Q.clone()
    control = roles.untrained(minilm)
    assert float(roles.head_roles(control, PROSE[:1])["previous"].max()) < 0.05
    assert torch.equal(before, minilm.layers[0].attention.W_Q)


@pytest.mark.slow
def test_heads_silenced_a_layer_at_a_time_cost_what_each_alone_costs(smollm2):
    text = "The ferry left the island at seven."
    heads = [(18, 8), (29, 1)]
    at_once = importance.next_token_by_ablation(smollm2, [text], [layer for layer, _ in heads])
    alone = importance.by_ablation(importance.next_token(smollm2, [text]), heads)
    for row, (layer, head) in zip(at_once, heads, strict=True):
        assert float(row[head]) == pytest.approx(float(alone[layer, head]), abs=2e-3)


@pytest.mark.slow
def test_recorded_importance_is_measured_again(smollm2):
    kept = studies.recorded("importance")["smollm2"]
    question = studies.silence_question("smollm2", smollm2)
    assert question.mean_loss() == pytest.approx(kept["loss"], abs=5e-3)
    few = importance.next_token(smollm2, passages("to choose", 2))
    alike = importance.rank_agreement(importance.by_gradient(few), torch.tensor(kept["gradient"]))
    assert alike > 0.5


def test_a_decoder_cannot_look_from_an_opening_bracket_to_its_closing_one(smollm2):
    assert small_trials.bracket_heads(smollm2)["best opening to its closing"] == 0.0
