"""Answers to without_w_o: the heads side by side, or a refusal."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from labs_lib.attention.fused import fused_multi_head
from labs_lib.attention.multi_head import without_w_o

from ..kit import Answer, Right, Wrong


def _refuse(x, W_V):
    if W_V.shape[1] != x.shape[-1]:
        raise ValueError(f"heads of {W_V.shape[1]} numbers don't fit a token of {x.shape[-1]}")


def _heads(x, W_Q, W_K, W_V, n_head, mask=None, scale=None):
    q, k, v = ((x @ W).unflatten(-1, (n_head, -1)).transpose(1, 2) for W in (W_Q, W_K, W_V))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def _program(merge, *, refuse=_refuse, **more):
    """The right program with another merge: `merge(heads, x)`."""

    def program(x, W_Q, W_K, W_V, n_head, mask=None):
        refuse(x, W_V)
        return merge(_heads(x, W_Q, W_K, W_V, n_head, mask, **more), x)

    return program


def _merge(heads, x):
    return heads.transpose(1, 2).flatten(2)


def _after_refusing(change):
    """`change` in the place of what is computed, once the widths fit."""

    def program(x, W_Q, W_K, W_V, n_head, mask=None):
        _refuse(x, W_V)
        return change(x, W_Q, W_K, W_V, n_head, mask)

    return program


def _asserts(x, W_Q, W_K, W_V, n_head, mask=None):
    assert W_V.shape[1] == x.shape[-1], "the heads don't fit"
    return fused_multi_head(x, W_Q, W_K, W_V, n_head, mask)


def _made_to_fit(x, W_Q, W_K, W_V, n_head, mask=None):
    out = fused_multi_head(x, W_Q, W_K, W_V, n_head, mask)
    return F.pad(out, (0, x.shape[-1] - out.shape[-1]))  # a negative padding cuts off


def _none_where_it_does_not_fit(x, W_Q, W_K, W_V, n_head, mask=None):
    if W_V.shape[1] == x.shape[-1]:
        return fused_multi_head(x, W_Q, W_K, W_V, n_head, mask)
    return None


def _error_returned(x, W_Q, W_K, W_V, n_head, mask=None):
    if W_V.shape[1] != x.shape[-1]:
        return ValueError("the heads don't fit")
    return fused_multi_head(x, W_Q, W_K, W_V, n_head, mask)


def _too_plainly(x, W_V):
    if W_V.shape[1] != x.shape[-1]:
        raise Exception("the heads don't fit")


def _seq_compared(x, W_V):
    if W_V.shape[1] != x.shape[1]:
        raise ValueError("the heads don't fit")


def _too_wide_only(x, W_V):
    if W_V.shape[1] > x.shape[-1]:
        raise ValueError("the heads are too wide")


def _too_narrow_only(x, W_V):
    if W_V.shape[1] < x.shape[-1]:
        raise ValueError("the heads are too narrow")


def _if_divisible(x, W_Q, W_K, W_V, n_head, mask=None):
    if x.shape[-1] % n_head:
        raise ValueError("n_head does not divide d_model")
    return fused_multi_head(x, W_Q, W_K, W_V, n_head, mask)


def _head_dim_from_d_model(x, W_Q, W_K, W_V, n_head, mask=None):
    if x.shape[-1] % n_head:
        raise ValueError("n_head does not divide d_model")
    sizes = n_head, x.shape[-1] // n_head
    q, k, v = ((x @ W).view(*x.shape[:2], *sizes).transpose(1, 2) for W in (W_Q, W_K, W_V))
    return _merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask), x)


def _folded(x, W_Q, W_K, W_V, n_head, mask=None):
    """Through a W_O that is the identity."""
    _refuse(x, W_V)
    return _merge(_heads(x, W_Q, W_K, W_V, n_head, mask), x) @ torch.eye(x.shape[-1], dtype=x.dtype)


def _by_torch_refusal(x, W_Q, W_K, W_V, n_head, mask=None):
    out = torch.cat(list(_heads(x, W_Q, W_K, W_V, n_head, mask).unbind(1)), dim=-1)
    if out.size(2) == x.size(2):
        return out
    raise ValueError(out.shape, x.shape)


class _Layer:
    def forward(self, x, W_Q, W_K, W_V, n_head, mask=None, **extra):
        return without_w_o(x, W_Q, W_K, W_V, n_head, mask)


WITHOUT_W_O = Answer(
    reference=without_w_o,
    wrong=(
        Wrong(
            "refuses_nothing",
            fused_multi_head,
            "Heads of any width go through. Without W_O nothing brings them to d_model numbers,\n"
            "so x + answer fails later, or broadcasts in silence. Refuse where it is made.",
        ),
        Wrong(
            "asserts",
            _asserts,
            "The test is right, but it is an assert, and `python -O` leaves asserts out.\n"
            "Raise a ValueError, which is always there.",
        ),
        Wrong(
            "made_to_fit",
            _made_to_fit,
            "Heads that don't fit are padded with zeros or cut off, and nobody is told. Refuse\n"
            "them; to bring one width to another was W_O's business.",
        ),
        Wrong(
            "refuses_wide_heads_only",
            _program(_merge, refuse=_too_wide_only),
            "Heads that are too narrow together go through. They don't fit x either.",
        ),
        Wrong(
            "refuses_narrow_heads_only",
            _program(_merge, refuse=_too_narrow_only),
            "Heads that are too wide together go through. They don't fit x either.",
        ),
        Wrong(
            "asks_whether_n_head_divides",
            _if_divisible,
            "What is refused is an n_head that doesn't divide d_model. The question is another\n"
            "one: are the heads together, the columns of W_V, as wide as x?",
        ),
        Wrong(
            "head_dim_from_d_model",
            _head_dim_from_d_model,
            "head_dim is made of d_model here, so heads of another width end in an error of\n"
            "torch's. The columns of W_V say how wide the heads are together: compare those with\n"
            "the width of x.",
        ),
        Wrong(
            "x_added",
            _program(lambda heads, x: x + _merge(heads, x)),
            "x is added already. Wanted is what the layer adds; the block does the adding.",
        ),
        Wrong(
            "averaged_over_heads",
            _program(lambda heads, x: heads.mean(1).repeat(1, 1, heads.shape[1])),
            "The heads are averaged. Leaving W_O out leaves the merge in: the heads stand side\n"
            "by side.",
        ),
        Wrong(
            "direct_reshape",
            _program(lambda heads, x: heads.reshape(x.shape)),
            "The shape is right, and each row holds several tokens of one head. Swap head and\n"
            "token before you join head and head_dim.",
        ),
        Wrong(
            "dealt_out",
            _program(lambda heads, x: heads.permute(0, 2, 3, 1).flatten(2)),
            "The heads are dealt out like cards: number 0 of every head, then number 1. Each\n"
            "head's numbers stand together.",
        ),
        Wrong(
            "not_merged",
            _program(lambda heads, x: heads),
            "The heads are right and still an axis of their own. Side by side they are as wide\n"
            "as x.",
        ),
        Wrong(
            "values_without_attention",
            _after_refusing(lambda x, W_Q, W_K, W_V, n_head, mask: x @ W_V),
            "Every token hands on its own value: W_O was to be left out, not the attention.",
        ),
        Wrong(
            "values_not_projected",
            _after_refusing(lambda x, W_Q, W_K, W_V, n_head, mask: fused_multi_head(
                x, W_Q, W_K, torch.eye(x.shape[-1], dtype=x.dtype), n_head, mask)),
            "The heads hand on x itself: W_V was left out together with W_O. Only W_O goes.",
        ),
        Wrong(
            "mask_ignored",
            _after_refusing(lambda x, W_Q, W_K, W_V, n_head, mask: fused_multi_head(
                x, W_Q, W_K, W_V, n_head)),
            "The mask changes nothing: masked keys still get weight. It is the sixth argument.",
        ),
        Wrong(
            "mask_inverted",
            _after_refusing(lambda x, W_Q, W_K, W_V, n_head, mask: _merge(_heads(
                x, W_Q, W_K, W_V, n_head,
                mask if mask is None else torch.where(mask, -1e9, 0.0).to(x.dtype)), x)),
            "The mask is read the wrong way round. True means: may attend.",
        ),
        Wrong(
            "one_wide_head",
            _after_refusing(lambda x, W_Q, W_K, W_V, n_head, mask: _merge(_heads(
                x, W_Q, W_K, W_V, 1, mask if mask is None else mask.view(-1, 1, *mask.shape[-2:])),
                x)),
            "This is one head as wide as all of them together: n_head is never used.",
        ),
        Wrong(
            "scale_by_d_model",
            _after_refusing(lambda x, W_Q, W_K, W_V, n_head, mask: _merge(_heads(
                x, W_Q, W_K, W_V, n_head, mask, x.shape[-1] ** -0.5), x)),
            "The scores are divided by the root of d_model. A head's query and key have only\n"
            "head_dim numbers, and it is their count that makes the scores grow.",
        ),
        Wrong(
            "no_scale",
            _program(_merge, scale=1.0),
            "The scores are not divided at all. By what do they grow with head_dim?",
        ),
        Wrong(
            "none_where_refused",
            _none_where_it_does_not_fit,
            "Where it should refuse, it returns None, and the caller goes on with it. Raise a\n"
            "ValueError.",
        ),
        Wrong(
            "error_returned",
            _error_returned,
            "Where it should refuse, it returns a ValueError, and the caller goes on with it. An\n"
            "error stops nobody unless it is raised.",
        ),
        Wrong(
            "any_exception",
            _program(_merge, refuse=_too_plainly),
            "It refuses, but with another kind of error. A ValueError is wanted: whoever calls it\n"
            "can then catch that and nothing else.",
        ),
        Wrong(
            "seq_compared",
            _program(_merge, refuse=_seq_compared),
            "What is compared with the width is the number of tokens, x.shape[1]. The width of a\n"
            "token is the last axis of x.",
        ),
        Wrong(
            "queries_and_keys_swapped",
            _after_refusing(lambda x, W_Q, W_K, W_V, n_head, mask: fused_multi_head(
                x, W_K, W_Q, W_V, n_head, mask)),
            "W_Q and W_K are exchanged: keys ask and queries answer.",
        ),
        Wrong(
            "keys_and_values_swapped",
            _after_refusing(lambda x, W_Q, W_K, W_V, n_head, mask: fused_multi_head(
                x, W_Q, W_V, W_K, n_head, mask)),
            "W_K and W_V are exchanged: the scores are made with the values.",
        ),
        Wrong(
            "mask_inverted_to_minus_infinity",
            _after_refusing(lambda x, W_Q, W_K, W_V, n_head, mask: fused_multi_head(
                x, W_Q, W_K, W_V, n_head, mask if mask is None else ~mask)),
            "The mask is read the wrong way round. True means: may attend.",
        ),
        Wrong(
            "split_by_a_reshape",
            _after_refusing(lambda x, W_Q, W_K, W_V, n_head, mask: F.scaled_dot_product_attention(
                *((x @ W).reshape(len(x), n_head, x.shape[1], -1) for W in (W_Q, W_K, W_V)),
                attn_mask=mask).reshape(x.shape)),
            "The shape is right, and a direct reshape to [batch, n_head, seq, head_dim] mixes\n"
            "tokens into heads. Cut the width first and swap the axes in a step of its own.",
        ),
    ),
    right=(
        Right("parts", _program(_merge)),
        Right("w_o_is_the_identity", _folded),
        Right("computed_and_then_refused", _by_torch_refusal),
        Right("a_method", _Layer().forward),
        Right("float64_inside", lambda x, W_Q, W_K, W_V, n_head, mask=None: without_w_o(
            x.double(), W_Q.double(), W_K.double(), W_V.double(), n_head, mask).to(x.dtype)),
    ),
)  # fmt: skip
