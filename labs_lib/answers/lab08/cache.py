"""The cache of lab 08: reference, wrong programs and right programs."""

from __future__ import annotations

import torch

from labs_lib.attention import cache

from ..kit import Answer, Right, Wrong


class KVCache(cache.KVCache):
    """The course's cache, made as the lab asks."""

    def __init__(self, batch, n_kv_head, head_dim, capacity, dtype=torch.float32):
        super().__init__(batch, n_kv_head, head_dim, capacity, dtype=dtype)


class Kept:
    """The right cache in parts, so that a variant replaces one of them."""

    def __init__(self, batch, n_kv_head, head_dim, capacity, dtype=torch.float32):
        self.length, self.capacity = 0, capacity
        self.make((batch, n_kv_head, capacity, head_dim), dtype)

    def make(self, shape, dtype):
        self.k, self.v = (torch.zeros(shape, dtype=dtype) for _ in range(2))

    def append(self, k, v):
        self.check(k.shape[2])
        self.write(k, v, self.length, self.length + k.shape[2])
        self.length += k.shape[2]
        return self.read()

    def check(self, new):
        if self.length + new > self.capacity:
            raise ValueError(f"{self.length} + {new} tokens, room for {self.capacity}")

    def write(self, k, v, start, stop):
        self.k[:, :, start:stop], self.v[:, :, start:stop] = k, v

    def read(self):
        return self.k[:, :, : self.length], self.v[:, :, : self.length]


class Grown(Kept):
    """A cache that grows by concatenation, and counts what it may hold."""

    axis = 2

    def make(self, shape, dtype):
        batch, n_kv_head, _, head_dim = shape
        self.k, self.v = (torch.empty(batch, n_kv_head, 0, head_dim, dtype=dtype) for _ in "kv")

    def write(self, k, v, start, stop):
        self.k = torch.cat([self.k, k], dim=self.axis)
        self.v = torch.cat([self.v, v], dim=self.axis)

    def read(self):
        return self.k, self.v


class _ListOfParts(Kept):
    """Copies of the parts in two lists, joined when they are read."""

    def make(self, shape, dtype):
        self.k, self.v = [], []

    def write(self, k, v, start, stop):
        self.k.append(k.clone())
        self.v.append(v.clone())

    def read(self):
        return torch.cat(self.k, dim=2), torch.cat(self.v, dim=2)


class _OneTensor(Kept):
    """Keys and values in one tensor, the slots written one after another."""

    def make(self, shape, dtype):
        self.both = torch.full((2, *shape), float("nan"), dtype=dtype)

    def write(self, k, v, start, stop):
        for slot in range(start, stop):
            self.both[:, :, :, slot] = torch.stack([k, v])[:, :, :, slot - start]

    def read(self):
        return tuple(self.both.narrow(3, 0, self.length).unbind())


class _Module(torch.nn.Module):
    """A module with buffers; length is computed."""

    def __init__(self, batch, n_kv_head, head_dim, capacity, dtype=torch.float32, name="cache"):
        super().__init__()
        self.register_buffer("k", torch.zeros(capacity, batch, n_kv_head, head_dim, dtype=dtype))
        self.register_buffer("v", torch.zeros_like(self.k))
        self.filled = []

    @property
    def length(self):
        return sum(self.filled)

    @torch.no_grad()
    def append(self, k, v):
        start, stop = self.length, self.length + k.size(2)
        if stop > len(self.k):
            raise ValueError("full")
        self.k[start:stop].copy_(k.permute(2, 0, 1, 3))
        self.v[start:stop].copy_(v.permute(2, 0, 1, 3))
        self.filled.append(k.size(2))
        return self.k[:stop].permute(1, 2, 0, 3), self.v[:stop].permute(1, 2, 0, 3)


RIGHT = (
    Right("two_buffers", Kept),
    Right("grows_by_cat", Grown),
    Right("list_of_copies", _ListOfParts),
    Right("one_tensor_for_both", _OneTensor),
    Right("a_module_with_buffers", _Module),
    Right("a_maker", lambda *sizes: Kept(*sizes)),
)


def variant(base=Kept, **parts):
    """A cache with some of its parts replaced."""
    return type("Variant", (base,), parts)


def _one_memory_for_equal_sizes():
    memory = {}

    def make(self, shape, dtype):
        if (shape, dtype) not in memory:
            memory[shape, dtype] = [torch.zeros(shape, dtype=dtype) for _ in range(2)]
        self.k, self.v = memory[shape, dtype]

    return variant(make=make)


class _ListOnTheClass(Kept):
    parts: list = []  # noqa: RUF012  one list for all caches is the mistake

    def make(self, shape, dtype):
        self.parts.clear()

    def write(self, k, v, start, stop):
        self.parts.append((k.clone(), v.clone()))

    def read(self):
        return tuple(torch.cat(t, dim=2) for t in zip(*self.parts, strict=True))


class _KeepsWhatItIsGiven(_ListOfParts):
    def write(self, k, v, start, stop):
        self.k.append(k)
        self.v.append(v)


class _FirstIsKeptAsGiven(Grown):
    def write(self, k, v, start, stop):
        if start == 0:
            self.k, self.v = k, v
        else:
            super().write(k, v, start, stop)


class _TestedTooLate(Kept):
    def append(self, k, v):
        start = self.length
        self.length += k.shape[2]
        if self.length > self.capacity:
            raise ValueError("full")
        self.write(k, v, start, self.length)
        return self.read()


class _ReadBeforeWritten(Kept):
    def append(self, k, v):
        before = tuple(t.clone() for t in self.read())
        super().append(k, v)
        return before


class _Window(Grown):
    """Never refuses: the oldest tokens go."""

    def check(self, new):
        pass

    def append(self, k, v):
        super().append(k, v)
        self.k, self.v = self.k[:, :, -self.capacity :], self.v[:, :, -self.capacity :]
        self.length = self.k.shape[2]
        return self.read()


class _CountsCalls(Kept):
    def append(self, k, v):
        self.check(k.shape[2])
        self.write(k, v, self.length, self.length + k.shape[2])
        self.length += 1
        return self.read()


class _NewestAlone(Kept):
    def append(self, k, v):
        super().append(k, v)
        return k.clone(), v.clone()


class _Asserts(Kept):
    def check(self, new):
        assert self.length + new <= self.capacity


class _FullTooEarly(Kept):
    def check(self, new):
        if self.length + new >= self.capacity:
            raise ValueError("full")


class _Unchecked(Kept):
    def check(self, new):
        pass


class _OverwritesTheLast(Kept):
    def append(self, k, v):
        self.check(k.shape[2])
        start = max(self.length - 1, 0)
        self.write(k, v, start, start + k.shape[2])
        self.length = start + k.shape[2]
        return self.read()


WRONG = (
    Wrong("one_memory_for_all", _one_memory_for_equal_sizes(),
        "Two caches of equal size write into the same memory. What belongs to one text has to be\n"
        "made in __init__, for each cache anew."),
    Wrong("a_list_on_the_class", _ListOnTheClass,
        "The parts are kept in a list that stands on the class (or is a default argument): one\n"
        "list for all caches. Make it in __init__ and put it on self."),
    Wrong("keeps_what_it_is_given", _KeepsWhatItIsGiven,
        "The cache holds the caller's own tensors. When the caller uses that memory again, the\n"
        "kept keys change. Keep copies; writing into a slice of your own tensor makes one."),
    Wrong("first_is_kept_as_given", _FirstIsKeptAsGiven,
        "The first k and v are kept as they are given; only later ones are copied by torch.cat.\n"
        "When the caller uses that memory again, the first keys change."),
    Wrong("not_stored", variant(write=lambda self, k, v, start, stop: None),
        "The length grows, but what comes back is zeros: new keys and values are never stored."),
    Wrong("read_before_written", _ReadBeforeWritten,
        "What comes back lacks the newest tokens: they are stored after the answer is read. A\n"
        "token attends to itself as well, so store first."),
    Wrong("newest_alone", _NewestAlone,
        "Only the new tokens come back. The point of the cache is what was there before."),
    Wrong("whole_room", variant(read=lambda self: (self.k, self.v)),
        "The whole room comes back, unused slots included. Attention would give weight to slots\n"
        "that hold no token. Return the first `length` of them."),
    Wrong("overwrites_the_last", _OverwritesTheLast,
        "Each new part is written over the last kept token: the first free slot is `length`, not\n"
        "length - 1."),
    Wrong("always_at_the_front", variant(
        write=lambda self, k, v, start, stop: Kept.write(self, k, v, 0, stop - start)),
        "Every part is written into the first slots, over the oldest tokens. Write behind what is\n"
        "there, from slot `length` on."),
    Wrong("counts_calls", _CountsCalls,
        "`length` counts calls of append, not tokens. A call may bring several tokens."),
    Wrong("newest_first", variant(Grown, write=lambda self, k, v, start, stop: (
        setattr(self, "k", torch.cat([k, self.k], 2)),
        setattr(self, "v", torch.cat([v, self.v], 2)))),
        "The new tokens come back in front of the old ones. Slot j is to hold the token at\n"
        "position j: oldest first."),
    Wrong("grown_on_the_head_axis", variant(Grown, axis=1),
        "The tensors are joined along the axis of the heads, not of the tokens. Tokens are axis 2\n"
        "of [batch, n_kv_head, tokens, head_dim]."),
    Wrong("grown_on_the_batch_axis", variant(Grown, axis=0),
        "The tensors are joined along the axis of the texts, not of the tokens. Tokens are axis 2\n"
        "of [batch, n_kv_head, tokens, head_dim]."),
    Wrong("grown_on_the_last_axis", variant(Grown, axis=3),
        "The tensors are joined along the numbers of a head, not the tokens. Tokens are axis 2 of\n"
        "[batch, n_kv_head, tokens, head_dim]."),
    Wrong("keys_twice", variant(
        write=lambda self, k, v, start, stop: Kept.write(self, k, k, start, stop)),
        "The keys are kept twice and the values not at all."),
    Wrong("swapped", variant(read=lambda self: Kept.read(self)[::-1]),
        "Keys and values come back in the other order: keys first."),
    Wrong("first_head_alone", variant(
        write=lambda self, k, v, start, stop: Kept.write(self, k[:, :1], v[:, :1], start, stop)),
        "All heads hold head 0's keys and values: one head is spread over the others."),
    Wrong("first_text_alone", variant(
        write=lambda self, k, v, start, stop: Kept.write(self, k[:1], v[:1], start, stop)),
        "All texts hold text 0's keys and values: one text is spread over the batch."),
    Wrong("always_float32", variant(
        make=lambda self, shape, dtype: Kept.make(self, shape, torch.float32)),
        "The cache is float32 whatever dtype is asked for, and rounds what it is given."),
    Wrong("half_to_save_memory", variant(
        make=lambda self, shape, dtype: Kept.make(self, shape, torch.float16),
        read=lambda self: tuple(t.float() for t in Kept.read(self))),
        "The numbers are rounded to half precision on the way. That saves bytes and is not what\n"
        "was asked: what comes back is to be what was put in."),
    Wrong("unchecked", _Unchecked,
        "Too many tokens are not refused by you: torch stops with an error of its own that speaks\n"
        "of shapes. Compare length + new with capacity first and raise ValueError."),
    Wrong("grows_for_ever", variant(Grown, check=lambda self, new: None),
        "More tokens than capacity are taken without a word. The cache has room for capacity\n"
        "tokens of a text; refuse more with a ValueError."),
    Wrong("drops_the_oldest", _Window,
        "When the cache is full, the oldest tokens are dropped in silence, and the model forgets\n"
        "how the text began. Here it is to refuse, with a ValueError."),
    Wrong("full_one_too_early", _FullTooEarly,
        "Tokens that fit exactly are refused: length + new may be as large as capacity."),
    Wrong("tested_too_late", _TestedTooLate,
        "The length is raised before the test, so after a refusal the cache counts tokens that it\n"
        "doesn't hold, and refuses what would fit. Test first, then change anything."),
    Wrong("asserts", _Asserts,
        "The test is right, but it is an assert, and `python -O` leaves asserts out. Raise a\n"
        "ValueError, which is always there."),
)  # fmt: skip


KV_CACHE = Answer(reference=KVCache, wrong=WRONG, right=RIGHT)
