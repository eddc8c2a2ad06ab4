"""Ordinary heads made into shared ones, in lab 08: reference, wrong and right programs."""

from __future__ import annotations

import numpy as np
import torch

from labs_lib.attention import grouped

from ..kit import Answer, Right, Wrong


def _checked(n_head, n_kv_head):
    if n_kv_head < 1 or n_head % n_kv_head:
        raise ValueError(f"{n_kv_head} of {n_head}")


def _each(pool, check=_checked):
    """Both matrices through pool(W, n_head, n_kv_head)."""

    def program(W_K, W_V, n_head, n_kv_head):
        check(n_head, n_kv_head)
        return pool(W_K, n_head, n_kv_head), pool(W_V, n_head, n_kv_head)

    return program


def _grouped(W, n_head, n_kv_head):
    """[d_model, n_kv_head, group, head_dim]."""
    return W.unflatten(1, (n_kv_head, n_head // n_kv_head, -1))


def _mean(W, n_head, n_kv_head):
    return _grouped(W, n_head, n_kv_head).mean(dim=2).flatten(1)


def _in_loops(W_K, W_V, n_head, n_kv_head):
    """Head after head, added up and divided."""
    if n_head % n_kv_head != 0:
        raise ValueError("n_kv_head does not divide n_head")
    group, made = n_head // n_kv_head, []
    for W in (W_K, W_V):
        heads = W.chunk(n_head, dim=1)
        blocks = [sum(heads[g * group : (g + 1) * group]) / group for g in range(n_kv_head)]
        made.append(torch.cat(blocks, dim=1))
    return made


def _as_a_product(W, n_head, n_kv_head):
    """A product with a matrix that holds 1/group where a head belongs to a group."""
    group, head_dim = n_head // n_kv_head, W.shape[1] // n_head
    small = torch.eye(n_kv_head, dtype=W.dtype).repeat_interleave(group, 0) / group
    return W @ torch.kron(small, torch.eye(head_dim, dtype=W.dtype))


def _with_einsum(W, n_head, n_kv_head):
    return torch.einsum("dkge->dke", _grouped(W, n_head, n_kv_head)).reshape(
        W.shape[0], -1) / (n_head // n_kv_head)  # fmt: skip


def _group_by_group(W, n_head, n_kv_head):
    heads = W.unflatten(1, (n_head, -1))
    group = n_head // n_kv_head
    return torch.stack([heads[:, g * group : (g + 1) * group].mean(1)
                        for g in range(n_kv_head)], 1).flatten(1)  # fmt: skip


def _keys_alone(W_K, W_V, n_head, n_kv_head):
    _checked(n_head, n_kv_head)
    return _mean(W_K, n_head, n_kv_head), _grouped(W_V, n_head, n_kv_head)[:, :, 0].flatten(1)


def _values_whole(W_K, W_V, n_head, n_kv_head):
    _checked(n_head, n_kv_head)
    return _mean(W_K, n_head, n_kv_head), W_V


def _group_for_count(W, n_head, n_kv_head):
    """n_kv_head taken for the size of a group."""
    return W.unflatten(1, (n_head // n_kv_head, n_kv_head, -1)).mean(dim=2).flatten(1)


def _by_rows(W, n_head, n_kv_head):
    """The rows are cut in the place of the columns."""
    d_model, width = W.shape[0], W.shape[1] // n_head * n_kv_head
    return W.reshape(n_head // n_kv_head, d_model, width).mean(dim=0)


def _within_heads(W, n_head, n_kv_head):
    """Means of neighbouring numbers of a head, so that all heads stay and get narrower."""
    return W.unflatten(1, (-1, n_head // n_kv_head)).mean(dim=2)


def _largest(W, n_head, n_kv_head):
    heads = _grouped(W, n_head, n_kv_head)
    place = heads.norm(dim=(0, 3), keepdim=True).argmax(dim=2, keepdim=True)
    return heads.take_along_dim(place, dim=2).flatten(1)


def _asserted(n_head, n_kv_head):
    assert n_head % n_kv_head == 0


def _numpys(W, n_head, n_kv_head):
    """Through numpy and back; only where no gradient is asked for."""
    if W.requires_grad:
        return _mean(W, n_head, n_kv_head)
    heads = W.numpy().reshape(W.shape[0], n_kv_head, n_head // n_kv_head, -1)
    return torch.from_numpy(np.mean(heads, axis=2).reshape(W.shape[0], -1))


RIGHT = (
    Right("in_loops", _in_loops),
    Right("a_product_with_a_matrix", _each(_as_a_product)),
    Right("einsum", _each(_with_einsum)),
    Right("group_by_group", _each(_group_by_group)),
    Right("through_numpy", _each(_numpys)),
    Right("a_lambda", lambda W_K, W_V, n, m: _each(_mean)(W_K, W_V, n, m)),
)

WRONG = (
    Wrong("sum", _each(lambda W, n, m: _grouped(W, n, m).sum(dim=2).flatten(1)),
        "The heads of a group are added up. Then keys and values are too large by the size of the\n"
        "group, and so are the scores; take the mean."),
    Wrong("divided_by_n_head", _each(lambda W, n, m: _grouped(W, n, m).sum(2).flatten(1) / n),
        "The sum of a group is divided by n_head. A group has n_head // n_kv_head heads."),
    Wrong("divided_by_n_kv_head", _each(lambda W, n, m: _grouped(W, n, m).sum(2).flatten(1) / m),
        "The sum of a group is divided by n_kv_head. A group has n_head // n_kv_head heads."),
    Wrong("divided_by_root", _each(
        lambda W, n, m: _grouped(W, n, m).sum(2).flatten(1) / (n // m) ** 0.5),
        "The sum of a group is divided by the root of its size. That would keep the spread of\n"
        "random heads; wanted is the mean."),
    Wrong("first", _each(lambda W, n, m: _grouped(W, n, m)[:, :, 0].flatten(1)),
        "Only the first head of each group is kept and the others are thrown away. Take the mean."),
    Wrong("last", _each(lambda W, n, m: _grouped(W, n, m)[:, :, -1].flatten(1)),
        "Only the last head of each group is kept and the others are thrown away. Take the mean."),
    Wrong("first_heads", _each(lambda W, n, m: W[:, : W.shape[1] // n * m]),
        "The first n_kv_head heads are kept, which all belong to the first groups. Each group is\n"
        "to leave one head, the mean of its own."),
    Wrong("largest", _each(_largest),
        "The head with the largest numbers is kept in each group. Wanted is the mean."),
    Wrong("dealt_out", _each(lambda W, n, m: (
        W.unflatten(1, (n // m, m, -1)).mean(dim=1).flatten(1))),
        "Heads h, h + n_kv_head, ... are merged. Neighbours make a group: with six heads and\n"
        "three groups, 0 and 1, 2 and 3, 4 and 5."),
    Wrong("group_size_for_n_kv_head", _each(_group_for_count),
        "n_kv_head is taken for the size of a group. Wanted is n_kv_head groups."),
    Wrong("within_heads", _each(_within_heads),
        "Neighbouring columns are averaged, numbers of one and the same head. Whole heads are to\n"
        "be merged, number by number: each head's head_dim columns stand together."),
    Wrong("by_rows", _each(_by_rows),
        "The shape fits, but rows of different input numbers are averaged. Cut the columns only:\n"
        "the first axis stays d_model."),
    Wrong("values_first_head", _keys_alone,
        "The keys are averaged, and of the values only each group's first head is kept."),
    Wrong("values_whole", _values_whole,
        "Only W_K is merged. Values are shared and kept as keys are."),
    Wrong("exchanged", lambda W_K, W_V, n, m: _each(_mean)(W_V, W_K, n, m),
        "W_K and W_V come back in the other order."),
    Wrong("repeated_again", _each(lambda W, n, m: (
        _grouped(W, n, m).mean(2, keepdim=True).expand(-1, -1, n // m, -1).flatten(1))),
        "The means are repeated for all n_head heads: nothing gets smaller. One for each group is\n"
        "enough."),
    Wrong("not_refused", _each(
        lambda W, n, m: W.unflatten(1, (n, -1))[:, : n // m * m]
        .unflatten(1, (m, -1)).mean(dim=2).flatten(1), check=lambda n, m: None),
        "An n_kv_head that doesn't divide n_head goes through without an error: heads are left\n"
        "out, or nothing comes back. Refuse it with a ValueError."),
    Wrong("refused_by_torch", _each(_mean, check=lambda n, m: None),
        "An n_kv_head that doesn't divide n_head is not refused by you: torch stops with an error\n"
        "of its own. Test it first and raise a ValueError."),
    Wrong("asserts", _each(_mean, check=_asserted),
        "The test is right, but it is an assert, and `python -O` leaves asserts out. Raise a\n"
        "ValueError, which is always there."),
)  # fmt: skip

POOLING = Answer(reference=grouped.mha_to_gqa, wrong=WRONG, right=RIGHT)
