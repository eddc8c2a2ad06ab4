"""Lab 02: heads put side by side again."""

from __future__ import annotations

import torch

from labs_lib.attention.heads import merge_heads

from ..kit import Answer, Right, Wrong, decorated


def _permute_back(x):
    batch, n_head, seq, head_dim = x.shape
    return x.permute(0, 2, 1, 3).contiguous().view(batch, seq, n_head * head_dim)


def _slots(start, dtype=None):
    """A loop that writes head h to the places from start(h, head_dim) on."""

    def merge(x):
        batch, n_head, seq, head_dim = x.shape
        out = x.new_zeros(batch, seq, n_head * head_dim, dtype=dtype)
        for head in range(n_head):
            out[..., start(head, head_dim) : start(head, head_dim) + head_dim] = x[:, head]
        return out

    return merge


def _picked(x):
    return torch.cat([x[head] for head in range(x.shape[1])], dim=-1)


_JOINED = (
    "Sequences were joined here, where heads belong: the first axis of x is the batch, so that\n"
    "a loop over x runs over the sequences and list(x) is a list of them. The heads are the\n"
    "second axis."
)
_NO_LIST = (
    "torch.cat, like stack and hstack, takes a list or a tuple of tensors; here it is given a\n"
    "single one. (A list made of x itself would be one of sequences: the batch comes first.)"
)

MERGE_HEADS = Answer(
    reference=merge_heads,
    wrong=(
        Wrong(
            "direct_reshape",
            lambda x: x.reshape(x.shape[0], x.shape[2], -1),
            "The shape is right and the numbers are not: this reshapes at once, so that a row\n"
            "holds several tokens of one head. Bring head and token into order first.",
        ),
        Wrong(
            "direct_view",
            lambda x: x.view(x.shape[0], x.shape[2], -1),
            "view refuses to join axes that don't lie next to each other. Don't follow torch's\n"
            "advice yet: a reshape straight from here would give the right shape with the wrong\n"
            "numbers. First bring head and token into order.",
        ),
        Wrong(
            "view_after_the_swap",
            lambda x: x.transpose(1, 2).view(x.shape[0], x.shape[2], -1),
            "The order is right. But after the swap the axes to be joined don't always lie next\n"
            "to each other in memory, and view never copies; here a copy is needed.",
        ),
        Wrong(
            "numbers_dealt_out",
            lambda x: x.permute(0, 2, 3, 1).flatten(2),
            "The heads are dealt out like cards: number 0 of every head, then number 1. They\n"
            "belong side by side, each in one piece.",
        ),
        Wrong(
            "heads_on_top_of_each_other",
            lambda x: x.flatten(1, 2),
            "The heads stand one below the other, as more tokens. They belong side by side, as\n"
            "more width.",
        ),
        Wrong(
            "summed",
            lambda x: x.sum(1),
            "The heads were added up. Merging computes nothing: all numbers stay.",
        ),
        Wrong(
            "averaged",
            lambda x: x.mean(1),
            "This is the mean of the heads. Merging computes nothing: all numbers stay.",
        ),
        Wrong(
            "names_in_the_old_order",
            lambda x: x.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1),
            "The second axis of the result is as long as there are heads. x comes as [batch,\n"
            "n_head, seq, head_dim]: take seq from its third axis.",
        ),
        Wrong(
            "read_as_batch_seq_n_head",
            lambda x: x.flatten(2),
            "The second axis of the result is as long as there are heads. x comes as [batch,\n"
            "n_head, seq, head_dim]: head and number are joined, not token and number.",
        ),
        Wrong(
            "joined_token_and_head",
            lambda x: x.transpose(1, 2).flatten(1, 2),
            "The axes are in order, but the wrong two were joined: token and head. Join head and\n"
            "number, the last two.",
        ),
        Wrong(
            "head_and_number_swapped",
            lambda x: x.transpose(1, 3).reshape(x.shape[0], x.shape[2], -1),
            "Head and number changed places, so that the last axis counts heads. Head and token\n"
            "are the two to be swapped.",
        ),
        Wrong(
            "slot_overwritten",
            _slots(lambda head, head_dim: 0),
            "Every head was written to the same place, so that the last one is left and the rest\n"
            "is empty. Head 1 begins where head 0 ends.",
        ),
        Wrong(
            "slots_overlap",
            _slots(lambda head, head_dim: head),
            "Head h was written from place h on, over the head before it. A head is head_dim\n"
            "numbers long: where does head h begin?",
        ),
        Wrong(
            "not_joined",
            lambda x: x.transpose(1, 2),
            "The order is right, but head and number are still two axes: make one width of them.",
        ),
        Wrong("sequences_side_by_side", lambda x: torch.cat(list(x), dim=-1), _JOINED),
        Wrong("sequences_one_after_another", lambda x: torch.cat(list(x), dim=1), _JOINED),
        Wrong(
            "sequences_and_heads_in_one",
            lambda x: torch.cat(list(x)),
            "Batch and heads became one axis, [batch * n_head, seq, head_dim]: sequences stand\n"
            "one below the other. The batch stays an axis; it is the heads that are joined, to\n"
            "more width.",
        ),
        Wrong(
            "a_sequence_taken_for_a_head",
            _picked,
            "The first axis is the batch: an index without a comma picks a sequence with all its\n"
            "heads. In x the heads are the second axis.",
        ),
        Wrong("cat_of_one_tensor", lambda x: torch.cat(x, dim=-1), _NO_LIST),
        Wrong("concat_of_one_tensor", lambda x: torch.concat(x, dim=-1), _NO_LIST),
        Wrong("hstack_of_one_tensor", lambda x: torch.hstack(x), _NO_LIST),
        Wrong("stack_of_one_tensor", lambda x: torch.stack(x, dim=-1), _NO_LIST),
        Wrong(
            "heads_backwards",
            lambda x: x.flip(1).transpose(1, 2).flatten(2),
            "The heads come in reverse order: head 0 belongs first.",
        ),
        Wrong(
            "on_its_side",
            lambda x: x.transpose(2, 3).flatten(1, 2),
            "This is [batch, width, seq]: tokens run along the last axis. The width is to be last.",
        ),
        Wrong(
            "tokens_swapped_with_numbers",
            lambda x: x.transpose(2, 3).reshape(x.shape[0], x.shape[2], -1),
            "Token and number were swapped, where head and token should be: rows hold pieces of\n"
            "several tokens.",
        ),
        Wrong(
            "only_the_last_head",
            lambda x: x[:, -1:].expand(-1, x.shape[1], -1, -1).transpose(1, 2).flatten(2),
            "Every block of the width holds the last head.",
        ),
        Wrong(
            "by_hand_in_float32",
            _slots(lambda head, head_dim: head * head_dim, dtype=torch.float32),
            "The numbers are in their places, but they are float32 whatever x is: that is what\n"
            "torch.zeros makes, and .float() too. No new tensor has to be filled here: order the\n"
            "axes, then join two.",
        ),
        Wrong(
            "batch_mixed",
            lambda x: x.transpose(0, 2).transpose(0, 1).reshape(
                x.shape[0], x.shape[2], x.shape[1] * x.shape[3]),
            "The batch was moved as well, so that rows hold tokens of other sequences. Only head\n"
            "and token change places.",
        ),
        Wrong(
            "gradient_lost",
            lambda x: x.detach().transpose(1, 2).flatten(2),
            "The gradient is lost on the way: the output no longer depends on the inputs for "
            "autograd. Leave out .detach(), .numpy() and no_grad().",
        ),
    ),
    right=(
        Right("loop", _slots(lambda head, head_dim: head * head_dim)),
        Right("cat_of_heads", lambda x: torch.cat(list(x.unbind(1)), dim=-1)),
        Right("permute_contiguous_view", _permute_back),
        Right("einsum", lambda x: torch.einsum("bhtd->bthd", x).reshape(
            x.shape[0], x.shape[2], -1)),
        Right("swapaxes", lambda x: x.swapaxes(-3, -2).reshape(x.shape[0], x.shape[2], -1)),
        Right("float64_inside", lambda x: x.double().transpose(1, 2).flatten(2).to(x.dtype)),
        Right("decorated", decorated(merge_heads)),
        Right("extra_default", lambda x, out=None: merge_heads(x)),
    ),
)  # fmt: skip
