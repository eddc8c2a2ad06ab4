"""Lab 02: strides, and heads that lie in one piece."""

from __future__ import annotations

import torch

from labs_lib.attention.heads import is_contiguous_per_head, strides_after_split

from ..kit import Answer, Right, Wrong


def _from_a_tensor(batch, seq, n_head, head_dim):
    x = torch.empty(batch, seq, n_head * head_dim)
    return x.view(batch, seq, n_head, head_dim).transpose(1, 2).stride()


def _without_memory(batch, seq, n_head, head_dim):
    x = torch.empty(batch, seq, n_head, head_dim, device="meta")
    return x.permute(0, 2, 1, 3).stride()


def _addresses(x):
    """Compare with the numbers that would lie there: read head 0 as one block of memory."""
    seq, head_dim = x.shape[-2:]
    block = torch.arange(seq * head_dim).view(seq, head_dim)
    steps = [n if size > 1 else 0 for n, size in zip(x.stride()[-2:], (seq, head_dim), strict=True)]
    rows, columns = torch.arange(seq)[:, None], torch.arange(head_dim)[None, :]
    return torch.equal(rows * steps[0] + columns * steps[1], block)


def _can_be_joined(x):
    try:
        x.view(*x.shape[:2], -1)
    except RuntimeError:
        return False
    return True


STRIDES_AFTER_SPLIT = Answer(
    reference=strides_after_split,
    wrong=(
        Wrong(
            "as_if_copied",
            lambda b, t, h, d: (h * t * d, t * d, d, 1),
            "These are the strides of a new tensor of the final shape, as .contiguous() would\n"
            "leave them. A split copies nothing, so the numbers still lie token after token.",
        ),
        Wrong(
            "before_the_transpose",
            lambda b, t, h, d: (t * h * d, h * d, d, 1),
            "These are the strides before the transpose, in the order [batch, seq, n_head,\n"
            "head_dim]. The swap of the two axes swaps their strides as well.",
        ),
        Wrong(
            "in_bytes",
            lambda b, t, h, d: (4 * t * h * d, 4 * d, 4 * h * d, 4),
            "These are bytes. torch counts strides in elements, whatever an element weighs.",
        ),
        Wrong(
            "batch_counted",
            lambda b, t, h, d: (b * t * h * d, d, h * d, 1),
            "The first stride is too long: one sequence is seq * width numbers, however many\n"
            "sequences there are.",
        ),
        Wrong(
            "batch_as_long_as_one_head",
            lambda b, t, h, d: (t * d, d, h * d, 1),
            "The first stride is the length of one head. The next sequence begins behind all\n"
            "heads of this one.",
        ),
        Wrong(
            "only_the_gap",
            lambda b, t, h, d: (t * h * d, d, (h - 1) * d, 1),
            "For the token this counts only what lies between, the other heads. A stride is the\n"
            "whole way from one place to the next, so the head itself counts too.",
        ),
        Wrong(
            "neighbours_without_a_step",
            lambda b, t, h, d: (t * h * d, d, h * d, 0),
            "The last stride is 0, so every number of a head would lie at the same place. To the\n"
            "next place it is one step.",
        ),
        Wrong(
            "backwards",
            lambda b, t, h, d: (1, h * d, d, t * h * d),
            "These are the strides from the last axis to the first. The order is that of the\n"
            "axes, [batch, n_head, seq, head_dim].",
        ),
        Wrong(
            "n_head_for_head_dim",
            lambda b, t, h, d: (t * h * d, h, h * d, 1),
            "The next head is n_head numbers away here. A head is head_dim numbers long.",
        ),
        Wrong(
            "last_axis_strided",
            lambda b, t, h, d: (t * h * d, 1, h * d, h),
            "A head has every n_head-th number here. The numbers of a head are neighbours.",
        ),
        Wrong(
            "own_axis_counted",
            lambda b, t, h, d: (b * t * h * d, h * d, t * h * d, d),
            "Each of these is how far a whole axis reaches: it counts the axis itself. A stride\n"
            "is one step along the axis, so only what lies inside it counts.",
        ),
        Wrong(
            "own_axis_counted_and_not_swapped",
            lambda b, t, h, d: (b * t * h * d, t * h * d, h * d, d),
            "Each of these is how far a whole axis reaches: it counts the axis itself. A stride\n"
            "is one step along the axis, so only what lies inside it counts.",
        ),
        Wrong(
            "tokens_for_numbers",
            lambda b, t, h, d: (t * h * d, t, h * d, 1),
            "The next head is seq numbers away here. Within a token a head is followed by the\n"
            "next: how many numbers does it hold?",
        ),
        Wrong(
            "a_token_to_the_next_head",
            lambda b, t, h, d: (t * h * d, h * d, h * d, 1),
            "The next head is a whole token away here. The heads of a token lie inside it, side\n"
            "by side.",
        ),
        Wrong(
            "the_example",
            lambda b, t, h, d: (8, 2, 4, 1),
            "These are the strides of the example, whatever sizes come in.",
        ),
        Wrong(
            "the_sizes",
            lambda b, t, h, d: (b, h, t, d),
            "These are the sizes of the axes. A stride is a distance in memory.",
        ),
        Wrong(
            "only_three",
            lambda b, t, h, d: (t * h * d, h * d, 1),
            "These are the three strides of the tensor before the split. After it there are four\n"
            "axes.",
        ),
    ),
    right=(
        Right("asks_a_tensor", _from_a_tensor),
        Right("asks_a_meta_tensor", _without_memory),
        Right("a_list", lambda batch, seq, n_head, head_dim: [
            seq * n_head * head_dim, head_dim, n_head * head_dim, 1]),
        Right("extra_default", lambda b, t, h, d, itemsize=1: (t * h * d, d, h * d, itemsize)),
    ),
)  # fmt: skip


_ROWS_ALONE = (
    "This asks how far apart the rows are, and nothing else. The numbers within a row must be\n"
    "neighbours as well: look at the stride of the last axis, too."
)

IS_CONTIGUOUS_PER_HEAD = Answer(
    reference=is_contiguous_per_head,
    wrong=(
        Wrong(
            "the_whole_tensor",
            lambda x: x.is_contiguous(),
            "This asks whether the whole tensor lies in one piece. Take every second head of a\n"
            "new tensor: there are gaps between the heads, and yet each head is in one piece.",
        ),
        Wrong(
            "only_the_rows",
            lambda x: x.stride(-1) == 1,
            "This asks whether the numbers of one row are neighbours. The rows themselves may\n"
            "still lie far apart: look at the stride of the token too.",
        ),
        Wrong(
            "one_token_forgotten",
            lambda x: x.stride(-1) == 1 and x.stride(-2) == x.shape[-1],
            "With one token there is no next row, so its stride means nothing, and you look at it.",
        ),
        Wrong(
            "only_the_distance_of_rows",
            lambda x: x.shape[-2] == 1 or x.stride(-2) == x.shape[-1],
            _ROWS_ALONE,
        ),
        Wrong(
            "only_the_distance_of_rows_and_one_token_forgotten",
            lambda x: x.stride(-2) == x.shape[-1],
            _ROWS_ALONE,
        ),
        Wrong(
            "upside_down",
            lambda x: not is_contiguous_per_head(x),
            "True and False are the wrong way round.",
        ),
        Wrong(
            "heads_follow_heads",
            lambda x: x.stride(1) == x.shape[2] * x.shape[3],
            "This asks how far the next head is. Where the heads lie doesn't matter here, only\n"
            "what lies inside one.",
        ),
        Wrong(
            "as_before_the_split",
            lambda x: x.transpose(1, 2).is_contiguous(),
            "This asks whether the tokens lie in one piece with all their heads, which is how the\n"
            "split found them.",
        ),
        Wrong(
            "one_head_of_every_sequence",
            lambda x: x[:, 0].is_contiguous(),
            "x[:, 0] is head 0 of every sequence at once, [batch, seq, head_dim], and between two\n"
            "of these lie other heads. Look at a single head.",
        ),
        Wrong(
            "rows_can_be_joined",
            _can_be_joined,
            "This asks whether the rows of a head can be joined to one. That also works where a\n"
            "gap of always the same length lies between two numbers.",
        ),
        Wrong(
            "an_answer_for_each_head",
            lambda x: [head.is_contiguous() for head in x[0]],
            "This answers head by head. One True or False is wanted, for all heads together.",
        ),
        Wrong(
            "any_order",
            lambda x: x[0, 0].is_contiguous() or x[0, 0].t().is_contiguous(),
            "Blocks stored column by column pass here too. They have no gaps, but the numbers of\n"
            "a row are not neighbours.",
        ),
        Wrong(
            "always_false",
            lambda x: False,
            "Here it says False of a tensor that does have each head in one piece. Compare its\n"
            "strides with those that one head would have alone.",
        ),
        Wrong(
            "always_true",
            lambda x: True,
            "Here it says True of a tensor whose heads have gaps or lie in another order. Look at\n"
            "both of a head's strides.",
        ),
        Wrong(
            "own_storage",
            lambda x: x.untyped_storage().nbytes() == x.numel() * x.element_size(),
            "This asks whether the memory holds nothing else. A split tensor fills its memory\n"
            "too, and its heads are in pieces.",
        ),
    ),
    right=(
        Right("asks_one_head", lambda x: x[0, 0].is_contiguous()),
        Right("asks_every_head", lambda x: all(h.is_contiguous() for s in x for h in s)),
        Right("compares_addresses", _addresses),
        Right("no_copy_needed", lambda x: x[0, 0].contiguous().data_ptr() == x.data_ptr()),
        Right("a_0d_tensor", lambda x: torch.tensor(is_contiguous_per_head(x))),
    ),
)  # fmt: skip
