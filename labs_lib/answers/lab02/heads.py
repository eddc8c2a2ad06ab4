"""Lab 02: a row of numbers cut into heads."""

from __future__ import annotations

import torch

from labs_lib.attention.heads import split_heads

from ...exercises.lab02 import COPIED
from ..kit import Answer, Right, Wrong, decorated


class _Layer:
    def split(self, x, n_head):
        return x.unflatten(2, (n_head, -1)).permute(0, 2, 1, 3)


def _as_strided(x, n_head):
    batch, seq, width = x.shape
    size = (batch, n_head, seq, width // n_head)
    stride_b, stride_t, stride_w = x.stride()
    strides = (stride_b, width // n_head * stride_w, stride_t, stride_w)
    return x.as_strided(size, strides, x.storage_offset())


def _split_by_hand(x, n_head):
    """The loop of the notebook: right in float32, and a copy."""
    batch, seq, width = x.shape
    out = torch.zeros(batch, n_head, seq, width // n_head)
    for place in range(width):
        out[:, place // (width // n_head), :, place % (width // n_head)] = x[..., place]
    return out


SPLIT_HEADS = Answer(
    reference=split_heads,
    wrong=(
        Wrong(
            "direct_reshape",
            lambda x, n_head: x.reshape(x.shape[0], n_head, x.shape[1], -1),
            "The shape is right and the numbers are not: this is one reshape straight to\n"
            "[batch, n_head, seq, head_dim]. It cuts the row of numbers anew, so that a head gets\n"
            "pieces of several tokens. Cut the width first and move the axis after.",
        ),
        Wrong(
            "tokens_first_transposed",
            lambda x, n_head: x.reshape(
                x.shape[0], n_head, x.shape[2] // n_head, x.shape[1]).transpose(2, 3),
            "The sequence is cut here together with the width, so that tokens are mixed. Only the\n"
            "last axis of x may be cut.",
        ),
        Wrong(
            "batch_and_heads_in_one",
            lambda x, n_head: x.reshape(
                x.shape[0] * n_head, x.shape[1], x.shape[2] // n_head),
            "This is view(batch * n_head, seq, head_dim): heads and sequences share one axis, and\n"
            "its blocks hold pieces of several tokens. Keep four axes.",
        ),
        Wrong(
            "no_transpose",
            lambda x, n_head: x.unflatten(2, (n_head, -1)),
            "This is [batch, seq, n_head, head_dim]: rightly cut, but still token by token. The\n"
            "head has to come before the token.",
        ),
        Wrong(
            "every_nth_number",
            lambda x, n_head: x.unflatten(2, (-1, n_head)).permute(0, 3, 1, 2),
            "A head has every n_head-th number of a row here. The numbers of a head are\n"
            "neighbours: when you cut an axis in two, the outer part is named first.",
        ),
        Wrong(
            "n_head_as_head_dim",
            lambda x, n_head: x.unflatten(2, (-1, n_head)).transpose(1, 2),
            "The last axis has length n_head: the width was cut into pieces of n_head numbers.\n"
            "n_head is how many pieces there are, not how long each is.",
        ),
        Wrong(
            "last_axes_swapped",
            lambda x, n_head: x.unflatten(2, (n_head, -1)).permute(0, 2, 3, 1),
            "Each head is [head_dim, seq] here: it lies on its side. That is what the keys look\n"
            "like inside a product; here every head is wanted as [seq, head_dim].",
        ),
        Wrong(
            "heads_before_batch",
            lambda x, n_head: x.unflatten(2, (n_head, -1)).permute(2, 0, 1, 3),
            "The heads come before the batch here. The batch stays the first axis.",
        ),
        Wrong(
            "wrong_pair_swapped",
            lambda x, n_head: x.unflatten(2, (n_head, -1)).transpose(2, 3),
            "Rightly cut, but the wrong two axes were swapped: this is [batch, seq, head_dim,\n"
            "n_head]. The token and the head have to change places.",
        ),
        Wrong(
            "whole_width_for_each_head",
            lambda x, n_head: x[:, None].expand(-1, n_head, -1, -1),
            "Each head has the whole row of a token here. The width is shared out: every number\n"
            "goes to one head.",
        ),
        Wrong(
            "cuts_the_tokens",
            lambda x, n_head: torch.stack(x.chunk(n_head, dim=1), dim=1),
            "This cuts the axis of the tokens into n_head pieces. Each head has a block of every\n"
            "token's row: cut the last axis.",
        ),
        Wrong(
            "all_axes_reversed",
            lambda x, n_head: x.unflatten(2, (n_head, -1)).permute(3, 2, 1, 0),
            "Rightly cut, but then all four axes were reversed, which is what .T does. Only two\n"
            "of them change places.",
        ),
        Wrong(
            "swapped_then_reshaped",
            lambda x, n_head: x.transpose(1, 2).reshape(
                x.shape[0], n_head, x.shape[1], x.shape[2] // n_head),
            "The shape is right and the numbers are not: axes were moved, and then a reshape cut\n"
            "the numbers anew, so that the rows of a head hold one number of several tokens. Cut\n"
            "the width first; the swap comes last, and no reshape after it.",
        ),
        Wrong(
            "a_float_as_a_size",
            lambda x, n_head: x.view(*x.shape[:2], n_head, x.shape[2] / n_head).transpose(1, 2),
            "The operator / always makes a float, and no shape takes one. Divide with //.",
        ),
        Wrong(
            "heads_before_batch_and_mixed",
            lambda x, n_head: x.reshape(
                -1, n_head, x.shape[1], x.shape[2] // n_head).transpose(0, 1),
            "This reshapes straight to [batch, n_head, seq, head_dim], which gives a head pieces\n"
            "of several tokens, and then swaps batch and head. Cut the width only, so that batch\n"
            "and seq stay as they are; then swap the token and the head.",
        ),
        Wrong(
            "by_hand",
            _split_by_hand,
            "The numbers are in their places, but they are float32 whatever x is: that is what\n"
            "torch.zeros makes, and .float() too. To cut an axis and to swap two axes nothing new\n"
            "has to be made, and no number touched.",
        ),
        Wrong(
            "heads_backwards",
            lambda x, n_head: x.unflatten(2, (n_head, -1)).transpose(1, 2).flip(1),
            "The heads come in reverse order: head 0 has the last numbers of each row.",
        ),
        Wrong(
            "copied",
            lambda x, n_head: x.unflatten(2, (n_head, -1)).transpose(1, 2).contiguous(),
            COPIED,
        ),
        Wrong(
            "stacked_slices",
            lambda x, n_head: torch.stack(x.chunk(n_head, dim=2), dim=1),
            COPIED,
        ),
        Wrong(
            "gradient_lost",
            lambda x, n_head: x.detach().unflatten(2, (n_head, -1)).transpose(1, 2),
            "The gradient is lost on the way: the output no longer depends on the inputs for "
            "autograd. Leave out .detach(), .numpy() and no_grad().",
        ),
        Wrong(
            "only_the_first_head",
            lambda x, n_head: x.unflatten(2, (n_head, -1)).transpose(1, 2)[:, :1].expand(
                -1, n_head, -1, -1),
            "Every head holds the numbers of head 0.",
        ),
    ),
    right=(
        Right("unflatten_and_swapaxes", lambda x, n: x.unflatten(-1, (n, -1)).swapaxes(1, 2)),
        Right("reshape", lambda x, n_head: x.reshape(*x.shape[:2], n_head, -1).transpose(-2, -3)),
        Right("movedim", lambda x, n_head: x.unflatten(2, (n_head, -1)).movedim(2, 1)),
        Right("einsum", lambda x, n: torch.einsum("bthd->bhtd", x.unflatten(2, (n, -1)))),
        Right("unfold", lambda x, n: x.unfold(2, x.shape[2] // n, x.shape[2] // n).transpose(1, 2)),
        Right("as_strided", _as_strided),
        Right("a_method", _Layer().split),
        Right("decorated", decorated(split_heads)),
        Right("extra_default", lambda x, n_head, check=False: split_heads(x, n_head)),
    ),
)  # fmt: skip
