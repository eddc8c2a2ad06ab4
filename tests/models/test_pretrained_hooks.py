"""Attention can be exchanged, looked into, silenced and cut out."""

from __future__ import annotations

import pytest
import torch

from labs_lib.attention.flash import flash_attention
from labs_lib.attention.online_softmax import attention_one_pass
from labs_lib.attention.single_head import scaled_dot_product_attention
from labs_lib.models import Hooks, KVCache, generate, load, prune, stream
from labs_lib.models.pruning import heads_left

TEXT = "An old clock on the wall, an old clock in the hall."
PAIR = ["A short one.", "A longer one, so that the first has to be padded to its length."]


def by_a_loop(q, k, v, mask):
    """A student's attention: head by head, query by query."""
    out = torch.empty_like(q)
    seen = None if mask is None else mask.expand(*q.shape[:3], k.shape[2])
    for b, h, i in torch.cartesian_prod(*map(torch.arange, q.shape[:3])).tolist():
        scores = k[b, h] @ q[b, h, i] / q.shape[-1] ** 0.5
        if seen is not None:
            scores[~seen[b, h, i]] = float("-inf")
        out[b, h, i] = scores.softmax(dim=0) @ v[b, h]
    return out


ATTENDS = {
    "reference": scaled_dot_product_attention,
    "one pass": lambda q, k, v, mask: attention_one_pass(q, k, v, mask, block=5)[0],
    "flash": lambda q, k, v, mask: flash_attention(q, k, v, mask=mask),
    "loop": by_a_loop,
}


def run(model, text=TEXT, **how):
    ids = model.ids(text)
    with torch.no_grad():
        return model(*ids, **how) if isinstance(ids, tuple) else model(ids, **how)


@pytest.fixture(params=["minilm", "smollm2"])
def model(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("name", ["reference", "one pass", "flash"])
def test_models_say_the_same_with_the_references_attention(model, name):
    torch.testing.assert_close(run(model, attend=ATTENDS[name]), run(model), rtol=0, atol=3e-3)


@pytest.mark.parametrize("name", list(ATTENDS))
def test_padded_texts_say_the_same_with_any_attention(minilm, name):
    got = minilm.sentence_vectors(PAIR, attend=ATTENDS[name])
    torch.testing.assert_close(got, minilm.sentence_vectors(PAIR), rtol=0, atol=1e-5)


def test_a_students_own_loop_drives_the_decoder(smollm2):
    assert generate(smollm2, "The capital of France is", 1, attend=by_a_loop) == " Paris"


def test_attention_can_be_given_when_loading(minilm):
    calls = []

    def counted(q, k, v, mask):
        calls.append(q.shape)
        return scaled_dot_product_attention(q, k, v, mask)

    run(load("minilm", attend=counted))
    assert len(calls) == 6


def test_wrong_attention_is_noticed_in_what_comes_out(smollm2):
    unscaled = run(smollm2, attend=lambda q, k, v, m: scaled_dot_product_attention(8 * q, k, v, m))
    assert (unscaled - run(smollm2)).abs().max() > 1


def test_attention_of_a_wrong_shape_is_refused(minilm):
    with pytest.raises(ValueError, match=r"attend returned .* in layer 0; it is to be"):
        run(minilm, attend=lambda q, k, v, mask: q[..., :8])


def test_kept_weights_are_those_that_the_attention_uses(model):
    """Attention is linear in v: given one-hot values, it returns its weights."""
    asked = Hooks(keep=("weights", "q", "k"), layers=[2])
    run(model, hooks=asked)
    seen = asked["weights"][2]
    q, k = asked["q"][2], asked["k"][2]
    k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    seq = q.shape[-2]
    one_hot = torch.eye(seq).expand(*q.shape[:2], seq, seq)
    mask = torch.ones(seq, seq, dtype=torch.bool)
    mask = mask.tril() if model.shape.n_layer == 30 else mask
    torch.testing.assert_close(seen, scaled_dot_product_attention(q, k, one_hot, mask))
    torch.testing.assert_close(seen.sum(dim=-1), torch.ones(seen.shape[:-1]))


def test_kept_heads_are_weights_times_values_and_make_the_layers_output(model):
    layer = model.layers[3].attention
    asked = Hooks(keep=("weights", "v", "heads", "residual"), layers=[3])
    outputs = []
    handle = layer.register_forward_hook(lambda _, __, out: outputs.append(out))
    run(model, hooks=asked)
    handle.remove()
    values = asked["v"][3].repeat_interleave(model.shape.group, dim=1)
    torch.testing.assert_close(
        asked["heads"][3], asked["weights"][3] @ values, rtol=1e-4, atol=1e-5
    )
    total = layer.contributions(asked["heads"][3]).sum(dim=1)
    total = total if layer.b_O is None else total + layer.b_O
    torch.testing.assert_close(total, outputs[0], rtol=1e-4, atol=1e-4)


def test_residual_stream_is_kept_from_the_first_to_the_last_layer(model):
    asked = Hooks(keep="residual")
    run(model, hooks=asked)
    stream_ = asked.stacked("residual")
    assert stream_.shape[0] == model.shape.n_layer + 1
    assert stream_.shape[-1] == model.shape.d_model


def test_only_what_was_asked_for_is_kept(minilm):
    asked = Hooks(keep="q", layers=[1, 4])
    run(minilm, hooks=asked)
    assert sorted(asked["q"]) == [1, 4]
    with pytest.raises(KeyError, match="'weights' was not kept"):
        asked["weights"]


def test_hooks_without_a_task_change_nothing(model):
    torch.testing.assert_close(run(model, hooks=Hooks()), run(model), rtol=0, atol=0)


def test_silenced_head_is_one_whose_gate_is_zero(model):
    gate = torch.ones(model.shape.n_layer, model.shape.n_head)
    gate[1, 2] = gate[3, 0] = 0
    silenced = run(model, hooks=Hooks(ablate=[(1, 2), (3, 0)]))
    torch.testing.assert_close(silenced, run(model, hooks=Hooks(gate=gate)))
    assert (silenced - run(model)).abs().max() > 1e-3


@pytest.mark.slow
def test_gates_gradient_says_what_closing_a_head_a_little_does(smollm2):
    gate = torch.ones(30, 9, requires_grad=True)
    ids = smollm2.ids(TEXT)
    smollm2.losses(ids, hooks=Hooks(gate=gate)).mean().backward()
    layer, head = divmod(int(gate.grad.abs().argmax()), 9)
    losses = []
    for step in (1e-2, -1e-2):
        moved = torch.ones(30, 9)
        moved[layer, head] += step
        with torch.no_grad():
            losses.append(smollm2.losses(ids, hooks=Hooks(gate=moved)).mean())
    measured = (losses[0] - losses[1]) / 2e-2
    torch.testing.assert_close(measured, gate.grad[layer, head], rtol=0.05, atol=1e-3)


def test_edit_may_put_anything_in_a_heads_place(minilm):
    def mean_of_head_two(layer, heads):
        if layer == 0:
            heads = heads.clone()
            heads[:, 2] = heads[:, 2].mean(dim=1, keepdim=True)
        return heads

    edited = run(minilm, hooks=Hooks(edit=mean_of_head_two))
    assert (edited - run(minilm)).abs().max() > 1e-2
    with pytest.raises(ValueError, match="the shape has to stay"):
        run(minilm, hooks=Hooks(edit=lambda layer, heads: heads[:, :3]))


@pytest.mark.parametrize(
    "heads",
    [
        [(0, 2)],
        [(1, 0), (1, 1), (1, 2), (4, 8)],
        [(2, h) for h in range(9)],
        [(3, 0), (3, 4), (3, 8)],
    ],
    ids=["one", "a whole group", "a whole layer's first nine", "one of each group"],
)
def test_pruned_model_says_what_the_ablated_one_says(model, heads):
    smaller = prune(model, heads)
    wanted = run(model, hooks=Hooks(ablate=heads))
    torch.testing.assert_close(run(smaller), wanted, rtol=0, atol=2e-3)
    assert set(heads_left(model)) - set(heads_left(smaller)) == set(heads)
    assert smaller.embed is model.embed


def test_pruned_model_is_smaller_and_its_heads_keep_their_numbers(smollm2):
    def count(model):
        return sum(p.numel() for p in model.parameters())

    one = prune(smollm2, [(0, 4)])
    assert count(smollm2) - count(one) == 2 * 576 * 64  # W_Q and W_O; K and V have other readers
    group = prune(one, [(0, 3), (0, 5)])
    assert count(smollm2) - count(group) == 3 * 2 * 576 * 64 + 2 * 576 * 64
    asked = Hooks(keep=("weights", "k"), layers=[0])
    run(group, hooks=asked)
    assert (asked["weights"][0].shape[1], asked["k"][0].shape[1]) == (6, 2)
    again = run(group, hooks=Hooks(ablate=[(0, 6)]))
    torch.testing.assert_close(again, run(prune(group, [(0, 6)])), rtol=0, atol=2e-3)
    with pytest.raises(ValueError, match="head 4 of layer 0 was pruned before"):
        prune(one, [(0, 4)])


@pytest.mark.slow
def test_generation_is_the_same_with_and_without_a_cache(smollm2):
    prompt = "Once upon a time, in a small village,"
    cached = list(stream(smollm2, prompt, 5))
    assert cached == list(stream(smollm2, prompt, 5, cached=False))
    assert len(cached) == 5


@pytest.mark.slow
def test_logits_with_a_cache_are_those_without_however_the_text_is_cut(smollm2):
    ids = smollm2.ids(TEXT)
    whole = run(smollm2)
    for cuts in ([4], [1, 2, 3], [ids.shape[1] - 1]):
        cache, parts = KVCache(), []
        with torch.no_grad():
            for piece in torch.tensor_split(ids, cuts, dim=1):
                parts.append(smollm2(piece, cache=cache))
        torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=3e-3)
        assert len(cache) == ids.shape[1]


@pytest.mark.slow
def test_silenced_heads_stay_silent_while_the_model_writes(smollm2):
    heads = [(layer, head) for layer in range(5, 25) for head in (0, 4, 8)]
    prompt = "The capital of France is"
    cached = list(stream(smollm2, prompt, 4, hooks=Hooks(ablate=heads)))
    assert cached == list(stream(smollm2, prompt, 4, cached=False, hooks=Hooks(ablate=heads)))
    assert cached == list(stream(prune(smollm2, heads), prompt, 4))


def test_generation_leaves_no_gradient_and_no_mode_behind(smollm2):
    list(stream(smollm2, "a", 1))
    assert torch.is_grad_enabled()
    assert not any(p.requires_grad for p in smollm2.parameters())


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (torch.zeros(1, 0, dtype=torch.long), "no token to read"),
        (torch.zeros(3, dtype=torch.long), r"\[batch, seq\]"),
        (torch.zeros(1, 3), "whole numbers"),
        (torch.ones(1, 3, dtype=torch.bool), "whole numbers"),
        (torch.zeros(0, 3, dtype=torch.long), "no token to read"),
        (torch.tensor([[49_152, 7]]), "from 7 to 49152; .* 0 to 49151"),
        (torch.tensor([[-1]]), "0 to 49151"),
        (torch.zeros(1, 8193, dtype=torch.long), "8193 tokens are more than the 8192"),
    ],
)
def test_ids_that_cannot_be_read_are_refused(smollm2, ids, words):
    with pytest.raises(ValueError, match=words):
        smollm2(ids)


def test_too_long_text_is_refused_and_not_cut_off(minilm):
    with pytest.raises(ValueError, match="602 tokens; the model reads 1 to 512"):
        minilm.sentence_vectors("word " * 600)
    with pytest.raises(ValueError, match="no text was given"):
        minilm.sentence_vectors([])


def test_mask_of_another_shape_is_refused(minilm):
    ids, real = minilm.ids(PAIR)
    with pytest.raises(ValueError, match="bool of the shape of ids"):
        minilm(ids, real.float())
    with pytest.raises(ValueError, match="bool of the shape of ids"):
        minilm(ids, real[:, :-1])


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Hooks(keep="scores"), "keep has scores; there are weights"),
        (lambda: Hooks(ablate=[(6, 0)]), "head 0 of layer 6 does not exist"),
        (lambda: Hooks(ablate=[(0, 12)]), "head 12 of layer 0 does not exist"),
        (lambda: Hooks(gate=torch.ones(6, 11)), r"gate has shape \(6, 11\)"),
        (lambda: Hooks(keep="q", layers=[9]), "layer 9 does not exist"),
    ],
)
def test_hooks_for_what_is_not_there_are_refused(minilm, made, words):
    with pytest.raises(ValueError, match=words):
        run(minilm, hooks=made())


def test_cache_of_other_texts_is_refused(smollm2):
    cache = KVCache()
    with torch.no_grad():
        smollm2(torch.zeros(1, 2, dtype=torch.long), cache=cache)
        with pytest.raises(ValueError, match="begin with a new KVCache"):
            smollm2(torch.zeros(2, 2, dtype=torch.long), cache=cache)


def test_prompt_of_several_texts_is_refused(smollm2):
    with pytest.raises(ValueError, match="one text at a time"):
        list(stream(smollm2, torch.zeros(2, 2, dtype=torch.long), 1))
    with pytest.raises(ValueError, match="max_new is -1"):
        list(stream(smollm2, "a", -1))
