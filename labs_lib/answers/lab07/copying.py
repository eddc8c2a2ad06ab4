"""Answers to ablate_and_copy."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from labs_lib.attention import induction

from ..kit import Answer, Right, Wrong


def _causal(q, k):
    return torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()


def _attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def _is(like, silent, axis=1):
    """True at the numbers in `silent` along an axis of a tensor's shape."""
    shape = [1] * like.ndim
    shape[axis] = like.shape[axis]
    return torch.tensor([i in silent for i in range(like.shape[axis])]).view(shape)


def _silence(heads, silent):
    return heads.masked_fill(_is(heads, silent), 0.0)


def _loss(logits, tokens, first=None, shift=1, reduction="mean"):
    """The mean loss of the predictions made from place `first` on."""
    first = tokens.shape[1] // 2 if first is None else first
    end = tokens.shape[1] - shift
    return F.cross_entropy(
        logits[:, first:end].flatten(0, 1),
        tokens[:, first + shift : end + shift].flatten(),
        reduction=reduction,
    )


def _with(silence=_silence, attend=_attend, loss=_loss):
    """A program that silences, attends or measures in another way."""

    def program(q, k, v, logits_of, tokens, silent):
        return loss(logits_of(silence(attend(q, k, v), silent)), tokens)

    return program


def _before_the_softmax(q, k, v, logits_of, tokens, silent):
    heads = _attend(q.masked_fill(_is(q, silent), 0.0), k, v)
    return _loss(logits_of(heads), tokens)


def _not_scaled(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)


def _scores_forbidden(q, k, v, logits_of, tokens, silent):
    """Masks the silent heads' scores away, so that softmax spreads them over all places."""
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~_causal(q, k), -1e9)
    weights = scores.masked_fill(_is(scores, silent), -1e9).softmax(dim=-1)
    return _loss(logits_of(weights @ v), tokens)


def _whole(heads, silent):
    return heads


def _only_these(heads, silent):
    return heads.masked_fill(~_is(heads, silent), 0.0)


def _one_of(pick):
    def silence(heads, silent):
        return _silence(heads, [pick(silent)] if silent else [])

    return silence


def _moved(by):
    return lambda heads, silent: _silence(heads, [(h + by) % heads.shape[1] for h in silent])


def _along(axis):
    return lambda heads, silent: heads.masked_fill(_is(heads, silent, axis), 0.0)


def _mean_kept(heads, silent):
    return torch.where(_is(heads, silent), heads.mean(dim=2, keepdim=True), heads)


def _louder(heads, silent):
    left = heads.shape[1] - len(silent)
    return _silence(heads, silent) * (heads.shape[1] / left)


def _rise(q, k, v, logits_of, tokens, silent):
    heads = _attend(q, k, v)
    silenced = _loss(logits_of(_silence(heads, silent)), tokens)
    return silenced - _loss(logits_of(heads), tokens)


def _logits_silenced(q, k, v, logits_of, tokens, silent):
    """Silences numbers of the logits in place of heads."""
    logits = logits_of(_attend(q, k, v))
    return _loss(logits.masked_fill(_is(logits, silent, 2), 0.0), tokens)


def _accuracy(logits, tokens):
    half = tokens.shape[1] // 2
    hits = logits[:, half:-1].argmax(dim=-1) == tokens[:, half + 1 :]
    return hits.to(logits).mean()


def _loop(q, k, v, logits_of, tokens, silent):
    heads = _attend(q, k, v).clone()
    for head in silent:
        heads[:, head] = 0.0
    logits, (batch, seq) = logits_of(heads), tokens.shape
    lost = [
        -logits[b, i].log_softmax(dim=-1)[tokens[b, i + 1]]
        for b in range(batch)
        for i in range(seq // 2, seq - 1)
    ]
    return torch.stack(lost).mean()


def _values_zeroed(q, k, v, logits_of, tokens, silent):
    return _loss(logits_of(_attend(q, k, v.masked_fill(_is(v, silent), 0.0))), tokens)


def _weights_zeroed(q, k, v, logits_of, tokens, silent):
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~_causal(q, k), -math.inf)
    weights = scores.softmax(dim=-1).masked_fill(_is(scores, silent), 0.0)
    return _loss(logits_of(weights @ v), tokens)


def _by_transposing(q, k, v, logits_of, tokens, silent):
    gate = torch.ones(q.shape[1], dtype=q.dtype)
    gate[silent] = 0.0
    logits = logits_of(_attend(q, k, v) * gate.view(-1, 1, 1))
    half = tokens.shape[1] // 2
    lost = F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
    return lost[:, half:].mean()


def _softmax_first(logits, tokens):
    return _loss(logits.softmax(dim=-1), tokens)


def _last_prediction(logits, tokens):
    return F.cross_entropy(logits[:, -2], tokens[:, -1])


def _first_copy_and_the_next(logits, tokens):
    half = tokens.shape[1] // 2
    return F.cross_entropy(logits[:, :half].flatten(0, 1), tokens[:, 1 : half + 1].flatten())


def _not_flattened(logits, tokens):
    half = tokens.shape[1] // 2
    return F.cross_entropy(logits[:, half:-1], tokens[:, half + 1 :])


def _cut_at_one_end(logits, tokens):
    half = tokens.shape[1] // 2
    return F.cross_entropy(logits[:, half:].flatten(0, 1), tokens[:, half + 1 :].flatten())


ABLATE_AND_COPY = Answer(
    reference=induction.ablate_and_copy,
    wrong=(
        Wrong(
            "before_the_softmax",
            _before_the_softmax,
            "The silent heads' scores are zero, and they still speak: softmax of equal scores\n"
            "hands on the mean of all values so far. Silence what comes out.",
        ),
        Wrong(
            "scores_forbidden",
            _scores_forbidden,
            "All scores of the silent heads are a large negative number: equal scores again, so\n"
            "that softmax spreads them, over places still to come as well. Silence what comes out.",
        ),
        Wrong(
            "scale_forgotten",
            _with(attend=_not_scaled),
            "The scores are not divided by the root of head_dim.",
        ),
        Wrong(
            "not_causal",
            _with(attend=F.scaled_dot_product_attention),
            "The heads see what is still to come, the token to be predicted too. Attention is\n"
            "causal here.",
        ),
        Wrong(
            "whole_sequence",
            _with(loss=lambda logits, tokens: _loss(logits, tokens, 0)),
            "The first copy is in the mean as well. Nothing can be copied there; it hides what\n"
            "the silent heads did.",
        ),
        Wrong(
            "first_copy",
            _with(loss=lambda logits, tokens: _loss(
                logits[:, : tokens.shape[1] // 2], tokens[:, : tokens.shape[1] // 2], 0)),
            "This is the loss on the first copy. Wanted is the second.",
        ),
        Wrong(
            "first_copy_and_the_next",
            _with(loss=_first_copy_and_the_next),
            "These are the predictions made in the first copy. Wanted are those of the second.",
        ),
        Wrong(
            "last_prediction_only",
            _with(loss=_last_prediction),
            "Only the last prediction counts here. All that are made in the second copy do.",
        ),
        Wrong(
            "softmax_first",
            _with(loss=_softmax_first),
            "The logits went through a softmax before the cross entropy, which makes one of its\n"
            "own. Hand it the logits.",
        ),
        Wrong(
            "not_flattened",
            _with(loss=_not_flattened),
            "F.cross_entropy takes axis 1 of [batch, places, vocab] for the vocabulary. Flatten\n"
            "texts and places into one axis, of the logits and of the tokens.",
        ),
        Wrong(
            "cut_at_one_end",
            _with(loss=_cut_at_one_end),
            "There is one prediction more than tokens in each text: what is predicted at the last\n"
            "place has no token to compare with. Cut the logits at their end as well.",
        ),
        Wrong(
            "one_place_early",
            _with(loss=lambda logits, tokens: _loss(logits, tokens, tokens.shape[1] // 2 - 1)),
            "One prediction too many: the one made at the end of the first copy. Its own token\n"
            "hasn't stood before, so nothing can be copied there.",
        ),
        Wrong(
            "one_place_late",
            _with(loss=lambda logits, tokens: _loss(logits, tokens, tokens.shape[1] // 2 + 1)),
            "The first prediction of the second copy is missing. It is made at place seq / 2.",
        ),
        Wrong(
            "not_shifted",
            _with(loss=lambda logits, tokens: _loss(logits, tokens, shift=0)),
            "Logits are compared with the token at their own place, which the model has just\n"
            "read. Those at place i predict the token at i + 1.",
        ),
        Wrong(
            "shifted_the_wrong_way",
            _with(loss=lambda logits, tokens: F.cross_entropy(
                logits[:, tokens.shape[1] // 2 + 1 :].flatten(0, 1),
                tokens[:, tokens.shape[1] // 2 : -1].flatten())),
            "Logits and tokens are cut at the wrong ends: each prediction is compared with the\n"
            "token before it. Those at place i predict the token at i + 1.",
        ),
        Wrong(
            "summed",
            _with(loss=lambda logits, tokens: _loss(logits, tokens, reduction="sum")),
            "The losses are added up. Wanted is their mean.",
        ),
        Wrong(
            "in_bits",
            _with(loss=lambda logits, tokens: _loss(logits, tokens) / math.log(2)),
            "These are bits. Wanted are nats: the natural logarithm.",
        ),
        Wrong(
            "sign_lost",
            _with(loss=lambda logits, tokens: -_loss(logits, tokens)),
            "The sign is turned: the logarithm of a probability is negative, the loss is not.",
        ),
        Wrong(
            "perplexity",
            _with(loss=lambda logits, tokens: _loss(logits, tokens).exp()),
            "This is e to the loss, the perplexity. Wanted is the loss.",
        ),
        Wrong(
            "accuracy",
            _with(loss=_accuracy),
            "This is the share of tokens that were guessed right. Wanted is the loss in nats.",
        ),
        Wrong(
            "nobody_silent",
            _with(_whole),
            "This is the loss with all heads speaking: the list silent has no effect.",
        ),
        Wrong(
            "the_others_silent",
            _with(_only_these),
            "Only the heads of the list speak. They are the silent ones.",
        ),
        Wrong(
            "first_of_the_list",
            _with(_one_of(lambda silent: silent[0])),
            "With one head it is right; of a longer list, only the first is silent.",
        ),
        Wrong(
            "last_of_the_list",
            _with(_one_of(lambda silent: silent[-1])),
            "With one head it is right; of a longer list, only the last is silent.",
        ),
        Wrong(
            "the_one_after",
            _with(_moved(1)),
            "Other heads are silent, each the one after. Counting starts at 0.",
        ),
        Wrong(
            "the_one_before",
            _with(_moved(-1)),
            "Other heads are silent, each the one before. Counting starts at 0.",
        ),
        Wrong(
            "places_silent",
            _with(_along(2)),
            "Places are silent, in all heads: the zeros went along the wrong axis. The heads'\n"
            "answers are [batch, n_head, seq, head_dim].",
        ),
        Wrong(
            "numbers_silent",
            _with(_along(3)),
            "Some numbers of every head are zero: the zeros went along head_dim.",
        ),
        Wrong(
            "texts_silent",
            _with(_along(0)),
            "Whole texts are silent: the zeros went along the batch.",
        ),
        Wrong(
            "logits_silent",
            _logits_silenced,
            "The logits of some tokens are zero. Silence the heads' answers, before the rest of\n"
            "the model sees them.",
        ),
        Wrong(
            "mean_in_place",
            _with(_mean_kept),
            "The silent heads hand on their mean over all places, those to come included. (Mean\n"
            "ablation is another measurement.) Here they answer zeros.",
        ),
        Wrong(
            "others_louder",
            _with(_louder),
            "The others speak louder, to make up for the silent ones, as in dropout. They are to\n"
            "go on as before.",
        ),
        Wrong(
            "rise",
            _rise,
            "This is by how much the loss rises. Wanted is the loss itself.",
        ),
    ),
    right=(
        Right("loop", _loop),
        Right("values_zeroed", _values_zeroed),
        Right("weights_zeroed_after_the_softmax", _weights_zeroed),
        Right("gate_and_transposed_logits", _by_transposing),
        Right("a_plain_number", lambda *args: float(induction.ablate_and_copy(*args))),
    ),
)  # fmt: skip
