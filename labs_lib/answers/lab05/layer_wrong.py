"""The whole layer of lab 05 as students get it wrong."""

from __future__ import annotations

import math
import textwrap

import torch
from torch import nn
from torch.nn import functional as F

from ..kit import Answer, Wrong
from .layer import RIGHT, MultiHeadAttention, Parts, variant


def _direct_split(self, x, n_head):
    return x.reshape(x.shape[0], n_head, x.shape[1], -1)


def _direct_merge(self, heads):
    return heads.reshape(heads.shape[0], heads.shape[2], -1)


def _tiled(self, x):
    return x.repeat(1, self.group, 1, 1)


def _attend_like(**changes):
    """Another attention core from a right one's pieces: scores, hidden, weighed, times v."""

    def attend(self, q, k, v, mask):
        scores = q @ k.mT / math.sqrt(self.head_dim)
        return changes["weigh"](scores, mask) @ v

    return attend


def _hidden(scores, mask):
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def _after_softmax(scores, mask):
    weights = scores.softmax(-1)
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


def _always_causal(scores, mask):
    seq_q, seq_k = scores.shape[-2:]
    return _hidden(scores, torch.ones(seq_q, seq_k, dtype=torch.bool).tril(seq_k - seq_q)).softmax(
        -1
    )


def _within_each_head(self, heads):
    """Each head times its own block on W_O's diagonal; nothing crosses."""
    blocks = [
        self.W_O[h * self.head_dim : (h + 1) * self.head_dim, h * self.head_dim :][
            :, : self.head_dim
        ]
        for h in range(self.n_head)
    ]
    return torch.cat([heads[:, h] @ block for h, block in enumerate(blocks)], dim=-1)


class _ValuesTiled(Parts):
    def attend(self, q, k, v, mask):
        v = v[:, :: self.group].repeat(1, self.group, 1, 1)  # the shared values, tiled
        return super().attend(q, k, v, mask)


class _CheckedWhenRun(Parts):
    def check(self, d_model, n_head, n_kv_head):
        self.given = d_model, n_head, n_kv_head

    def forward(self, x, context=None, mask=None):
        Parts.check(self, *self.given)
        return super().forward(x, context, mask)


class _ContextOrX(Parts):
    def forward(self, x, context=None, mask=None):
        return super().forward(x, context or x, mask)


class _LengthOfContext(Parts):
    def forward(self, x, context=None, mask=None):
        heads = super().forward(x, context, mask)
        return heads.reshape((x if context is None else context).shape)


class _WideKV(Parts):
    def make(self, d_model, kv_width):
        super().make(d_model, d_model)

    def split(self, x, n_head):
        return super().split(x, self.n_head)

    def share(self, x):
        return x


class _WithoutSuper(Parts):
    def __init__(self, d_model, n_head, n_kv_head=None):
        self.make(d_model, d_model)


class _Pair(Parts):
    def forward(self, x, context=None, mask=None):
        return super().forward(x, context, mask), None


class _ZeroForAll(Parts):
    def __init__(self, d_model, n_head, n_kv_head=None):
        super().__init__(d_model, n_head, n_kv_head or n_head)


class _PlainTensors(Parts):
    def make(self, d_model, kv_width):
        nn.Module.__setattr__(self, "sizes", (d_model, kv_width))
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            width = d_model if name in ("W_Q", "W_O") else kv_width
            setattr(self, name, torch.randn(d_model, width) * d_model**-0.5)


class _Biased(Parts):
    def make(self, d_model, kv_width):
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            width = d_model if name in ("W_Q", "W_O") else kv_width
            setattr(self, name, nn.Linear(d_model, width))

    def project(self, x, context):
        return self.W_Q(x), self.W_K(context), self.W_V(context)

    def mix(self, concat):
        return self.W_O(concat)


class _AllTurnedOver(Parts):
    """Every matrix kept as [out, in] and used through F.linear."""

    def make(self, d_model, kv_width):
        super().make(d_model, kv_width)
        self.W_K, self.W_V = (nn.Parameter(W.mT.contiguous()) for W in (self.W_K, self.W_V))

    def project(self, x, context):
        return F.linear(x, self.W_Q), F.linear(context, self.W_K), F.linear(context, self.W_V)

    def mix(self, concat):
        return F.linear(concat, self.W_O)


def _starting(change):
    """The right layer whose new matrices are changed in place, `change(parameter)`."""

    def make(self, d_model, kv_width):
        Parts.make(self, d_model, kv_width)
        for parameter in self.parameters():
            change(parameter.data)

    return variant(make=make)


class _OtherNames(Parts):
    def make(self, d_model, kv_width):
        super().make(d_model, kv_width)
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            setattr(self, name.lower().replace("_", ""), getattr(self, name))
            delattr(self, name)


def _asserted(self, d_model, n_head, n_kv_head):
    assert d_model % n_head == 0 and n_kv_head > 0 and n_head % n_kv_head == 0


def _width_unchecked(self, d_model, n_head, n_kv_head):
    Parts.check(self, n_head, n_head, n_kv_head)


def _kv_unchecked(self, d_model, n_head, n_kv_head):
    if d_model % n_head or n_kv_head < 1:
        raise ValueError("n_head")


def _sign_unchecked(self, d_model, n_head, n_kv_head):
    if d_model % n_head or n_kv_head == 0 or n_head % n_kv_head:
        raise ValueError("sizes")


class _XAdded(Parts):
    def forward(self, x, context=None, mask=None):
        return x + super().forward(x, context, mask)


def _mixes(what):
    return textwrap.fill(
        f"The shape is right, but {what} mixes tokens into heads: a reshape keeps the order of "
        "the numbers. Cut or join the width first and swap the axes in a step of its own.",
        width=88,
    )


def _sign_and_zero_unchecked(self, d_model, n_head, n_kv_head):
    if d_model % n_head or n_head % n_kv_head:
        raise ValueError("sizes")


WRONG = (
    Wrong("scale_by_d_model", variant(
        divisor=lambda self, q: math.sqrt(self.W_Q.shape[0])),
        "The scores are divided by the root of d_model. A head's query and key have only\n"
        "head_dim numbers, and it is their count that makes the scores grow."),
    Wrong("scale_by_head_dim", variant(divisor=lambda self, q: self.head_dim),
        "The scores are divided by head_dim. Their variance grows with head_dim; what is the\n"
        "standard deviation then?"),
    Wrong("scale_by_n_head", variant(divisor=lambda self, q: math.sqrt(self.n_head)),
        "The scores are divided by the root of n_head. How many heads there are changes nothing\n"
        "in one head's scores; how many numbers a query has does."),
    Wrong("scale_by_seq", variant(divisor=lambda self, q: math.sqrt(q.shape[-2])),
        "The scores are divided by the root of the number of tokens. A score is a sum over\n"
        "head_dim products, whatever the length of the text."),
    Wrong("no_scale", variant(divisor=lambda self, q: 1.0),
        "The scores are not divided at all. Look at lab 01: by what do they grow with head_dim?"),
    Wrong("direct_reshape_in_the_split", variant(split=_direct_split),
        _mixes("reshaping straight to [batch, n_head, seq, head_dim]")),
    Wrong("direct_reshape_in_the_merge", variant(merge=_direct_merge),
        _mixes("joining heads without swapping head and token")),
    Wrong("direct_reshape_both_ways", variant(split=_direct_split, merge=_direct_merge),
        _mixes("a direct reshape, there and back (also view(batch * n_head, ...)),")),
    Wrong("split_dealt_out", variant(
        split=lambda self, x, n: x.unflatten(-1, (-1, n)).movedim(-1, 1)),
        "Head h takes every n_head-th column. The columns of one head stand together: head h\n"
        "has the block of head_dim columns that begins at h * head_dim."),
    Wrong("merge_dealt_out", variant(merge=lambda self, h: h.permute(0, 2, 3, 1).flatten(2)),
        "The heads are dealt out like cards before W_O: number 0 of every head, then number 1. So\n"
        "the rows of W_O meet numbers of other heads. Join n_head and head_dim in that order."),
    Wrong("heads_merged_in_reverse", variant(
        merge=lambda self, h: h.flip(1).transpose(1, 2).flatten(2)),
        "The heads stand in the reverse order before W_O, so that head 0 meets the last rows."),
    Wrong("tile", variant(share=_tiled),
        "The shared heads are tiled: 0, 1, 2, 0, 1, 2. Query head h uses key/value head\n"
        "h // (n_head // n_kv_head), so neighbours share: 0, 0, 1, 1, 2, 2."),
    Wrong("values_tiled", _ValuesTiled,
        "The keys are shared by neighbours and the values are tiled. A query head needs keys and\n"
        "values of the same key/value head."),
    Wrong("not_shared", variant(share=lambda self, t: t),
        "The key/value heads are as few as W_K and W_V make them, and the query heads are more.\n"
        "Each has to stand beside every query head that uses it."),
    Wrong("group_size_for_n_kv_head", variant(
        share=lambda self, t: t if self.group == 1 else t[:, [
            min(h // self.n_kv_head, self.n_kv_head - 1) for h in range(self.n_head)]]),
        "n_kv_head is taken for the size of a group. Six heads that share three make groups of\n"
        "two: n_head // n_kv_head heads each."),
    Wrong("first_head_for_all", variant(
        share=lambda self, t: t if self.group == 1 else t[:, :1].expand(-1, self.n_head, -1, -1)),
        "All query heads use key/value head 0, as if n_kv_head were 1. Each group has its own."),
    Wrong("softmax_over_queries", variant(weigh=lambda self, s, mask: s.softmax(-2)),
        "The softmax runs over the queries: each column sums to 1. Each query's row of weights\n"
        "over the keys should."),
    Wrong("softmax_over_heads", variant(weigh=lambda self, s, mask: s.softmax(1)),
        "The softmax runs over the heads, so that they compete with one another. Each head has\n"
        "a softmax of its own, over the keys."),
    Wrong("no_softmax", variant(
        weigh=lambda self, s, mask: s if mask is None else s.masked_fill(~mask, 0.0)),
        "The scores are used as weights: there is no softmax."),
    Wrong("mask_ignored", variant(hide=lambda self, s, mask: s),
        "The mask changes nothing: masked keys still get weight."),
    Wrong("mask_inverted", variant(
        hide=lambda self, s, mask: s if mask is None else s.masked_fill(mask, -1e9)),
        "The mask is read the wrong way round. True means: may attend (torch's own\n"
        "nn.MultiheadAttention says the opposite)."),
    Wrong("mask_inverted_to_minus_infinity", variant(
        hide=lambda self, s, mask: s if mask is None else s.masked_fill(mask, -math.inf)),
        "The mask is read the wrong way round. True means: may attend (torch's own\n"
        "nn.MultiheadAttention says the opposite)."),
    Wrong("masked_scores_are_zero", variant(
        hide=lambda self, s, mask: s if mask is None else s * mask),
        "Masked scores are set to 0, and exp(0) = 1: such keys still get weight."),
    Wrong("mask_added_as_a_number", variant(
        hide=lambda self, s, mask: s if mask is None else s + mask.to(s.dtype)),
        "The mask is added to the scores as 0 and 1. That favours the allowed keys a little and\n"
        "forbids none."),
    Wrong("mask_after_softmax", variant(attend=_attend_like(weigh=_after_softmax)),
        "The mask comes after the softmax: the masked weights are gone, and what is left no\n"
        "longer sums to 1. Mask the scores."),
    Wrong("always_causal", variant(attend=_attend_like(weigh=_always_causal)),
        "A causal mask is applied whatever is given. Without a mask every query may see every\n"
        "key, and a given mask need not be causal."),
    Wrong("context_ignored", variant(
        project=lambda self, x, c: (x @ self.W_Q, x @ self.W_K, x @ self.W_V)),
        "Keys and values come from x although a context is given. Right only in self-attention."),
    Wrong("context_or_x", _ContextOrX,
        "`context or x` asks a tensor whether it is true, and a tensor of several numbers has no\n"
        "answer. Ask whether context is None."),
    Wrong("length_of_context", _LengthOfContext,
        "The output is cut to the length of the context. As many tokens come out as went in as\n"
        "x: those that asked."),
    Wrong("queries_from_context", variant(
        project=lambda self, x, c: (c @ self.W_Q, c @ self.W_K, c @ self.W_V)),
        "The queries come from the context too. x asks, the context answers."),
    Wrong("values_from_x", variant(
        project=lambda self, x, c: (x @ self.W_Q, c @ self.W_K, x @ self.W_V)),
        "The keys come from the context and the values from x. A key and its value belong to\n"
        "the same token."),
    Wrong("keys_from_x", variant(
        project=lambda self, x, c: (x @ self.W_Q, x @ self.W_K, c @ self.W_V)),
        "The values come from the context and the keys from x. A key and its value belong to\n"
        "the same token."),
    Wrong("x_is_the_context", variant(
        project=lambda self, x, c: (c @ self.W_Q, x @ self.W_K, x @ self.W_V)),
        "x and context have changed places: x has to ask, and the context to be looked at."),
    Wrong("keys_as_values", variant(
        project=lambda self, x, c: (x @ self.W_Q, c @ self.W_K, c @ self.W_K)),
        "The values are the keys: W_V is never used. What a head hands on is context @ W_V."),
    Wrong("keys_and_values_swapped", variant(
        project=lambda self, x, c: (x @ self.W_Q, c @ self.W_V, c @ self.W_K)),
        "W_K and W_V are exchanged: the scores are made with the values."),
    Wrong("w_o_forgotten", variant(mix=lambda self, concat: concat),
        "W_O is made and never used: these are the heads side by side. Each must be able to\n"
        "write into all d_model numbers."),
    Wrong("w_o_before_the_concat", variant(
        merge=_within_each_head, mix=lambda self, concat: concat),
        "Each head goes through a block of W_O of its own and they are put side by side after\n"
        "that: nothing a head writes reaches the others' places. First concat, then W_O."),
    Wrong("w_o_on_merged_tokens", variant(
        merge=lambda self, h: h.transpose(1, 2).flatten(2).mean(1, keepdim=True).expand(
            -1, h.shape[2], -1)),
        "All tokens get the same output: they were averaged before W_O. W_O mixes the numbers\n"
        "of one token, never tokens."),
    Wrong("w_o_twice", variant(mix=lambda self, concat: concat @ self.W_O @ self.W_O),
        "The heads go through W_O twice."),
    Wrong("w_o_turned_over", variant(mix=lambda self, concat: F.linear(concat, self.W_O)),
        "W_O is turned over. It is [n_head * head_dim, d_model], used as concat @ W_O;\n"
        "F.linear and nn.Linear take [out, in]."),
    Wrong("w_q_turned_over", variant(
        project=lambda self, x, c: (x @ self.W_Q.T, c @ self.W_K, c @ self.W_V)),
        "W_Q is turned over. It is [d_model, d_model], used as x @ W_Q."),
    Wrong("all_turned_over", _AllTurnedOver,
        "All four matrices are kept as [out, in] and used turned over. Keep them as [in, out],\n"
        "used as x @ W_Q; or make them nn.Linear, whose weights are put in the right way round."),
    Wrong("x_added", _XAdded,
        "x is added to the output. The block around this layer does that; the layer returns\n"
        "what it adds."),
    Wrong("zero_taken_for_not_given", _ZeroForAll,
        "n_kv_head=0 makes an ordinary layer in silence, since 0 counts as False in `or`. Ask\n"
        "whether it is None, and refuse 0."),
    Wrong("kv_as_wide_as_queries", _WideKV,
        "W_K and W_V are as wide as W_Q here. They make n_kv_head heads, not n_head:\n"
        "[d_model, n_kv_head * head_dim]."),
    Wrong("without_super", _WithoutSuper,
        "super().__init__() has to come first: before it torch doesn't know the layer as one, and\n"
        "takes no parameters."),
    Wrong("pair_returned", _Pair,
        "forward returns a pair. torch's own layer gives its weights as well; here the output\n"
        "alone is wanted."),
    Wrong("checked_when_run", _CheckedWhenRun,
        "Illegal sizes can be made here and are found out only when the layer runs. By then the\n"
        "error points at the wrong place. Test in __init__."),
    Wrong("asserts", variant(check=_asserted),
        "The tests are right, but they are asserts, and `python -O` leaves asserts out. Raise a\n"
        "ValueError, which is always there."),
    Wrong("width_unchecked", variant(check=_width_unchecked),
        "A d_model that n_head doesn't divide goes through: head_dim is rounded down and some\n"
        "numbers belong to no head."),
    Wrong("kv_heads_unchecked", variant(check=_kv_unchecked),
        "An n_kv_head that doesn't divide n_head goes through. Eight heads can't share three\n"
        "evenly: 8 // 3 is 2, and twice three are six."),
    Wrong("sign_unchecked", variant(check=_sign_unchecked),
        "n_kv_head=-2 goes through: -2 divides 8 without a remainder. Test for at least 1."),
    Wrong("zero_divides", variant(check=_sign_and_zero_unchecked),
        "n_head % 0 stops with a ZeroDivisionError, and -2 goes through. Test for at least 1\n"
        "before you divide."),
    Wrong("plain_tensors", _PlainTensors,
        "The values are right, but the matrices are plain tensors: parameters() is empty, so no\n"
        "optimizer would ever train them. Wrap them in torch.nn.Parameter."),
    Wrong("with_biases", _Biased,
        "The values are right, and the layer has more parameters than four matrices: nn.Linear\n"
        "adds a bias of its own unless it is told bias=False."),
    Wrong("weights_under_other_names", _OtherNames,
        "The check puts its own matrices in, and finds none where the table says. The layer may\n"
        "be right; give its matrices these four names, or add a method load."),
    Wrong("large_to_start_with", _starting(lambda W: W.normal_()),
        "The values are right, but the matrices start too large: numbers of size 1 make each\n"
        "product √d_in times as large as what goes in, and a few layers end in NaN. Start from\n"
        "torch.randn divided by the root of d_in."),
    Wrong("unset_to_start_with", _starting(lambda W: W.fill_(math.nan)),
        "The values are right, but a new layer holds NaN or infinity: torch.empty sets nothing,\n"
        "it shows what the memory held before. Start from small random numbers."),
    Wrong("equal_to_start_with", _starting(lambda W: W.fill_(0.02)),
        "The values are right, but all numbers of a matrix start equal. Then all heads are alike\n"
        "and get equal gradients: they would stay alike. Start from small random numbers."),
    Wrong("zeros_to_start_with", _starting(lambda W: W.zero_()),
        "All four matrices start at zero. Then the output is zero and so is every gradient:\n"
        "nothing could ever be learnt. Start from small random numbers."),
)  # fmt: skip

MULTI_HEAD_ATTENTION = Answer(reference=MultiHeadAttention, wrong=WRONG, right=RIGHT)
