"""Lab 11's kernel in the place of attend, in lab 12: reference, right and wrong programs."""

from __future__ import annotations

import math

import torch

from ..kit import Answer, Right, Wrong


class Launched:
    """The right program in parts, so that a variant replaces one of them."""

    def __call__(self, kernel, n_kv_head):
        def attend(q, k, v, mask=None):
            return self.attend(kernel, n_kv_head, q, k, v, mask)

        return attend

    def attend(self, kernel, n_kv_head, q, k, v, mask):
        k, v = (self.once(t, n_kv_head) for t in (k, v))
        q, k, v = (self.laid(t) for t in (q, k, v))
        o, lse = self.room(q)
        grid = self.grid(*q.shape[:3])
        kernel[grid, self.block(q)](q, k, v, o, lse, *self.sizes(q, k, n_kv_head, mask))
        return self.returned(q, o, lse)

    def once(self, t, n_kv_head):
        return t[:, :: t.shape[1] // n_kv_head]

    def laid(self, t):
        return t.contiguous()

    def room(self, q):
        return torch.empty_like(q), torch.empty(q.shape[:3], device=q.device)

    def grid(self, batch, n_head, n_q):
        return math.ceil(n_q / 64), n_head, batch

    def block(self, q):
        return 64

    def sizes(self, q, k, n_kv_head, mask):
        n_q, head_dim = q.shape[2:]
        heads = q.shape[1], k.shape[1]
        return *heads, n_q, k.shape[2], head_dim, self.scale(q), self.causal(q, k, mask)

    def scale(self, q):
        return 1 / math.sqrt(q.shape[3])

    def causal(self, q, k, mask):
        return int(mask is not None)

    def returned(self, q, o, lse):
        return o


def variant(**parts):
    """The right program with some of its parts replaced."""
    return type("Variant", (Launched,), parts)()


def kernel_attention(kernel, n_kv_head):
    """The reference under the exercise's name and signature."""
    return Launched()(kernel, n_kv_head)


def _first_of_each_group(self, t, n_kv_head):
    return t.unflatten(1, (n_kv_head, -1))[:, :, 0]


def _mean_of_copies(self, t, n_kv_head):
    return t.unflatten(1, (n_kv_head, -1)).mean(dim=2)


def _by_index(self, t, n_kv_head):
    group = t.size(1) // n_kv_head
    return t[:, [group * h for h in range(n_kv_head)]]


def _by_the_corner(self, q, k, mask):
    """From the mask's first row: does the first query miss the last key?"""
    hidden = mask is not None and not mask[0, -1]
    return 1 if hidden else 0


def _filled(self, q):
    return torch.full(q.shape, math.nan), torch.full((*q.shape[:3],), math.nan)


RIGHT = (
    Right("parts", Launched()),
    Right("first_of_each_group", variant(once=_first_of_each_group)),
    Right("mean_of_copies", variant(once=_mean_of_copies)),
    Right("heads_by_index", variant(once=_by_index)),
    Right("a_block_with_three_numbers", variant(block=lambda self, q: (64, 1, 1))),
    Right("causal_from_the_corner", variant(causal=_by_the_corner)),
    Right("room_of_nan", variant(room=_filled)),
    Right("rounded_up_by_hand", variant(grid=lambda self, b, h, n: (-(-n // 64), h, b))),
    Right("a_lambda", lambda kernel, n_kv_head: (
        lambda q, k, v, mask: Launched().attend(kernel, n_kv_head, q, k, v, mask))),
)  # fmt: skip


def _repeated(self, t, n_kv_head):
    return t


def _top_left(self, q, k, mask):
    return int(mask is not None and q.shape[2] == k.shape[2])


def _into_q(self, q):
    return q, torch.empty(q.shape[:3])


class _OneRoomForAll(Launched):
    """o and lse are made once and written again and again."""

    def __call__(self, kernel, n_kv_head):
        self.kept = None
        return super().__call__(kernel, n_kv_head)

    def room(self, q):
        if self.kept is None:
            self.kept = Launched.room(self, q)
        return self.kept


class _TilesOfKeys(Launched):
    def attend(self, kernel, n_kv_head, q, k, v, mask):
        self.n_k = k.shape[2]
        return super().attend(kernel, n_kv_head, q, k, v, mask)

    def grid(self, batch, n_head, n_q):
        return math.ceil(self.n_k / 64), n_head, batch


class _SharedHeadsInTheGrid(Launched):
    def attend(self, kernel, n_kv_head, q, k, v, mask):
        self.n_kv_head = n_kv_head
        return super().attend(kernel, n_kv_head, q, k, v, mask)

    def grid(self, batch, n_head, n_q):
        return math.ceil(n_q / 64), self.n_kv_head, batch


WRONG = (
    Wrong("first_copies", variant(once=lambda self, t, n: t[:, :n]),
        "k and v are cut to the first n_kv_head heads. Copies stand side by side, so these are\n"
        "mostly copies of head 0: take every (n_head // n_kv_head)-th head."),
    Wrong("every_n_kv_head_th", variant(once=lambda self, t, n: t[:, ::n][:, :n]),
        "Every n_kv_head-th head is taken. A key/value head has n_head // n_kv_head copies, so\n"
        "that is the step."),
    Wrong("stepped_by_n_kv_head", variant(once=lambda self, t, n: t[:, ::n],
        sizes=lambda self, q, k, n, mask: (
            q.shape[1], n, *Launched.sizes(self, q, k, n, mask)[2:])),
        "Every n_kv_head-th head is taken. A key/value head has n_head // n_kv_head copies, so\n"
        "that is the step."),
    Wrong("last_copies", variant(once=lambda self, t, n: t[:, -n:]),
        "k and v are cut to the last n_kv_head heads. Copies stand side by side, so these are\n"
        "mostly copies of the last head: take one of each group."),
    Wrong("repeated_heads", variant(once=_repeated),
        "The numbers are right, but the kernel is handed every copy, with n_kv_head = n_head. It\n"
        "shares by itself: give it n_kv_head heads."),
    Wrong("repeated_heads_unsaid", variant(once=_repeated,
        sizes=lambda self, q, k, n, mask: (
            q.shape[1], n, *Launched.sizes(self, q, k, n, mask)[2:])),
        "k and v are handed over with all copies, and the kernel is told of n_kv_head heads. The\n"
        "tensors and the numbers have to agree."),
    Wrong("no_ceiling", variant(grid=lambda self, b, h, n: (n // 64, h, b)),
        "n_q // 64 rounds down: what is left over, or all of a short text, gets no block and is\n"
        "never written. Round up."),
    Wrong("a_block_too_many", variant(grid=lambda self, b, h, n: (n // 64 + 1, h, b)),
        "n_q // 64 + 1 is one block too many where n_q is a multiple of 64. Round up."),
    Wrong("lse_too", variant(returned=lambda self, q, o, lse: (o, lse)),
        "o and lse are returned. Whoever calls attend wants one tensor, the heads' answers."),
    Wrong("a_block_for_each_query", variant(block=lambda self, q: q.shape[2],
        grid=lambda self, b, h, n: (1, h, b)),
        "The block hasn't 64 threads. That number is built into this kernel, whatever the sizes\n"
        "are; there are as many blocks as it takes."),
    Wrong("one_block", variant(grid=lambda self, b, h, n: (1, h, b)),
        "There is one block for each head, whatever the length: from query 64 on nothing is\n"
        "written."),
    Wrong("grid_axes_exchanged", variant(grid=lambda self, b, h, n: (h, math.ceil(n / 64), b)),
        "The grid is (n_head, tiles, batch). The kernel takes blockIdx.x for the tile and\n"
        "blockIdx.y for the head."),
    Wrong("batch_and_head_exchanged", variant(
        grid=lambda self, b, h, n: (math.ceil(n / 64), b, h)),
        "The grid is (tiles, batch, n_head). The kernel takes blockIdx.y for the head and\n"
        "blockIdx.z for the text."),
    Wrong("tiles_of_keys", _TilesOfKeys(),
        "The grid counts keys. A block takes 64 queries; in a step of one token all other blocks\n"
        "would find nothing to do."),
    Wrong("a_tile_for_each_query", variant(grid=lambda self, b, h, n: (n, h, b)),
        "There is a block for each query. A block takes 64 of them, so most find nothing to do."),
    Wrong("shared_heads_in_the_grid", _SharedHeadsInTheGrid(),
        "The grid has n_kv_head blocks along its second axis. It is query heads that are counted\n"
        "there: the others' answers are never written."),
    Wrong("batch_forgotten", variant(grid=lambda self, b, h, n: (math.ceil(n / 64), h)),
        "The grid has no third number: only the first text of the batch gets blocks."),
    Wrong("never_causal", variant(causal=lambda self, q, k, mask: 0),
        "causal is 0 although there is a mask: every query sees what comes after it."),
    Wrong("always_causal", variant(causal=lambda self, q, k, mask: 1),
        "causal is 1 although there is no mask. None means that every query sees every key."),
    Wrong("causal_only_when_square", variant(causal=_top_left),
        "causal is 1 only for as many queries as keys. With a cache there are more keys, and of\n"
        "several new tokens the first must not see the last."),
    Wrong("scale_by_d_model", variant(scale=lambda self, q: (q.shape[1] * q.shape[3]) ** -0.5),
        "The scale is 1/sqrt(n_head * head_dim). A head's query has head_dim numbers."),
    Wrong("scale_by_keys", variant(scale=lambda self, q: q.shape[2] ** -0.5),
        "The scale is made of the number of queries. It is 1/sqrt(head_dim), whatever the length."),
    Wrong("no_scale", variant(scale=lambda self, q: 1.0),
        "The scale is 1: the kernel multiplies by what it is given and makes none of its own."),
    Wrong("scale_upside_down", variant(scale=lambda self, q: q.shape[3] ** 0.5),
        "The scale is sqrt(head_dim). The kernel multiplies by it, so it has to be 1/sqrt(...)."),
    Wrong("scale_without_root", variant(scale=lambda self, q: 1 / q.shape[3]),
        "The scale is 1/head_dim: the root is missing."),
    Wrong("queries_and_keys_exchanged", variant(
        sizes=lambda self, q, k, n, mask: (lambda s: (*s[:2], s[3], s[2], *s[4:]))(
            Launched.sizes(self, q, k, n, mask))),
        "n_q and n_k are exchanged. Equal for a prompt, so only a later step shows it."),
    Wrong("keys_counted_as_queries", variant(
        sizes=lambda self, q, k, n, mask: (lambda s: (*s[:3], s[2], *s[4:]))(
            Launched.sizes(self, q, k, n, mask))),
        "n_k is the number of queries. Equal for a prompt, so only a later step shows it."),
    Wrong("not_contiguous", variant(laid=lambda self, t: t),
        "What a step or a transpose leaves is a view with gaps, and the kernel reads memory as it\n"
        "lies. Ask for .contiguous() first."),
    Wrong("q_not_contiguous", type("Variant", (Launched,), {
        "laid": lambda self, t: t if t.shape[2] == getattr(self, "n_q", -1) else t.contiguous(),
        "attend": lambda self, kernel, n, q, k, v, mask: (
            setattr(self, "n_q", q.shape[2]),
            Launched.attend(self, kernel, n, q, k.contiguous(), v.contiguous(), mask))[1]})(),
        "What a step or a transpose leaves is a view with gaps, and the kernel reads memory as it\n"
        "lies. Ask for .contiguous() first."),
    Wrong("written_into_q", variant(room=_into_q),
        "o is q: the kernel overwrites its own queries. Give it a tensor of its own to write to."),
    Wrong("lse_returned", variant(returned=lambda self, q, o, lse: lse),
        "lse is returned. The heads' answers are in o."),
    Wrong("q_returned", variant(returned=lambda self, q, o, lse: q),
        "q is returned as it came. The kernel writes into o."),
    Wrong("one_room_for_all_calls", _OneRoomForAll(),
        "o is made once, and every call writes over what the one before returned. Make it inside\n"
        "attend."),
)  # fmt: skip

KERNEL_ATTENTION = Answer(reference=kernel_attention, wrong=WRONG, right=RIGHT)
