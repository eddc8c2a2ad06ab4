"""More wrong programs for one layer's attention in lab 12: slips where its parts meet."""

from __future__ import annotations

import torch

from ..kit import Answer, Wrong
from ..lab08.step_wrong import joined_along
from .assemble import RIGHT, WRONG, Assembled, assemble, variant


class _ResidualToo(Assembled):
    """Adds x, which is the business of the model around the layer."""

    def __call__(self, x, *more, **given):
        out, pair = super().__call__(x, *more, **given)
        return x + out, pair


def _queries_from_zero(self, q, k, v, rotate, past):
    return rotate(q, 0), rotate(k, past), v


def _heads_for_past(self, cache):
    return 0 if cache is None else cache[0].shape[1]


def _length_of_the_pair(self, cache):
    return 0 if cache is None else len(cache)


def _mask_at_the_start_alone(self, new, tokens):
    return Assembled.mask(self, new, tokens) if new == tokens else None


def _as_often_as_heads(self, t, group):
    return t.repeat_interleave(t.shape[1], dim=1)


def _all_cut_alike(self, x, W, n_head, n_kv_head):
    return [self.split(x @ W[name], n_head) for name in ("W_Q", "W_K", "W_V")]


def _head_dim_from_d_model(self, x, W, n_head, n_kv_head):
    counts = {"W_Q": n_head, "W_K": n_kv_head, "W_V": n_kv_head}
    return [
        (x @ W[name]).view(*x.shape[:2], count, x.shape[2] // n_head).transpose(1, 2)
        for name, count in counts.items()
    ]


def _projections_turned(*which):
    def project(self, x, W, n_head, n_kv_head):
        W = {**W, **{name: W[name].T for name in which}}
        return Assembled.project(self, x, W, n_head, n_kv_head)

    return project


def _only_keys_joined(self, cache, k, v):
    return Assembled.joined(self, cache, k, v)[0], v


def _only_values_joined(self, cache, k, v):
    return k, Assembled.joined(self, cache, k, v)[1]


def _merged_to_d_model(self, heads, W_O):
    return heads.transpose(1, 2).reshape(len(heads), heads.shape[2], W_O.shape[1]) @ W_O


def _k_and_v_exchanged(self, x, W, n_head, n_kv_head):
    return Assembled.project(self, x, {**W, "W_K": W["W_V"], "W_V": W["W_K"]}, n_head, n_kv_head)


def _numbers_as_mask(self, new, tokens):
    seen = Assembled.mask(self, new, tokens)
    return torch.zeros(new, tokens).masked_fill(~seen, -torch.inf)


AXIS_OF_TOKENS = (
    "Old and new keys are joined along an axis that isn't the tokens'. In\n"
    "[batch, n_kv_head, tokens, head_dim] it is the number of tokens that grows."
)
CUT_ALIKE = (
    "W_K and W_V are cut into n_head heads, which makes them too narrow. They hold n_kv_head\n"
    "heads of the same head_dim as the queries'."
)

SLIPS = (
    Wrong("residual_added", _ResidualToo(),
        "x is added to what is returned. Wanted is only what the attention adds; the model around\n"
        "it does the sum."),
    Wrong("queries_from_zero", variant(turn=_queries_from_zero),
        "The keys are turned from `past` on and the queries from 0. A query stands where its own\n"
        "key stands."),
    Wrong("heads_for_past", variant(past=_heads_for_past),
        "`past` is the number of heads in the cache. The kept tokens are on its axis 2:\n"
        "[batch, n_kv_head, past, head_dim]."),
    Wrong("length_of_the_pair", variant(past=_length_of_the_pair),
        "However many tokens are kept, the new ones are turned for the same position: len(cache)\n"
        "is the length of the pair, len(cache[0]) the number of texts. Tokens are axis 2 of\n"
        "cache[0]."),
    Wrong("joined_along_the_heads", variant(joined=joined_along(1)), AXIS_OF_TOKENS),
    Wrong("joined_along_the_numbers", variant(joined=joined_along(-1)), AXIS_OF_TOKENS),
    Wrong("values_not_joined", variant(joined=_only_keys_joined),
        "The keys are joined to the kept ones and the values are not. A key hands on a value of\n"
        "its own, so the two grow together."),
    Wrong("keys_not_joined", variant(joined=_only_values_joined),
        "The values are joined to the kept ones and the keys are not. A value is looked for by a\n"
        "key of its own, so the two grow together."),
    *(Wrong(f"turned_round_{'_'.join(which)}", variant(project=_projections_turned(*which)),
        "A projection is turned round. The matrices in W are [d_in, d_out] and used as x @ W, as\n"
        "they are. The shapes tell it only where they aren't square.")
        for which in (("W_Q", "W_K", "W_V"), ("W_K",), ("W_V",), ("W_K", "W_V"))),
    Wrong("k_and_v_exchanged", variant(project=_k_and_v_exchanged),
        "W_K and W_V are exchanged. They have the same shape; only the names tell them apart."),
    Wrong("numbers_as_mask", variant(mask=_numbers_as_mask),
        "The mask holds numbers that are meant to be added, 0 and -inf. attend wants True and\n"
        "False, True = may attend; one that doesn't add its mask makes something else of yours."),
    Wrong("mask_at_the_start_alone", variant(mask=_mask_at_the_start_alone),
        "With a cache there is no mask. One new token may see all, but of several the first must\n"
        "not see the second."),
    Wrong("copies_as_heads", variant(share=_as_often_as_heads),
        "Each key/value head is copied n_kv_head times. A group has n_head // n_kv_head query\n"
        "heads, so that is how many copies it takes."),
    Wrong("head_dim_from_d_model", variant(project=_head_dim_from_d_model),
        "head_dim is made of the width of x, d_model // n_head. Look at what comes out: x @ W_Q\n"
        "has n_head * head_dim numbers for each token, and that needn't be d_model."),
    Wrong("merged_to_d_model", variant(mix=_merged_to_d_model),
        "The heads are joined to as many numbers as x has, d_model. Side by side they have\n"
        "n_head * head_dim, which is what W_O reads, and that needn't be d_model."),
    Wrong("all_cut_alike", variant(project=_all_cut_alike, share=lambda self, t, group: t),
        CUT_ALIKE),
    Wrong("all_cut_alike_and_repeated", variant(project=_all_cut_alike), CUT_ALIKE),
)  # fmt: skip

ASSEMBLE = Answer(reference=assemble, wrong=WRONG + SLIPS, right=RIGHT)
