"""A head that often has nothing to do: where does its weight go?

A query names a key; beside it on the shelf lies the vector that is wanted. Half of the queries
name a key that isn't there: then nothing is to be added, a vector of zeros. Softmax still has to
spend 1.
Source of the question: Xiao et al. 2023, arXiv 2309.17453; Gu et al. 2025, arXiv 2410.10781.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labs_lib.training.layers import Attend, AttentionLayer
from labs_lib.training.retrieval import N_KEY, N_TEST, N_VALUE, TEST_SEED, distinct


def softmax_or_nothing(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return attention whose rows may add up to less than 1: one more score, 0, without a key.

    q, k, v and the answer are [batch, n_head, seq, head_dim]; no mask is used here.
    Source: Miller 2023, "Attention Is Off By One".
    """
    k, v = (F.pad(t, (0, 0, 0, 1)) for t in (k, v))  # a key of zeros scores 0, says 0
    return F.scaled_dot_product_attention(q, k, v)


class Asker(nn.Module):
    """Slots and a query become vectors; what one attention layer says is the answer."""

    wanted: Tensor  # what each value should add: [N_VALUE, d_model]

    def __init__(self, task: "NoOp", attend: Attend | None):
        super().__init__()
        self.key = nn.Embedding(N_KEY, task.d_model)
        self.value = nn.Embedding(N_VALUE, task.d_model)
        self.query = nn.Embedding(N_KEY, task.d_model)
        self.position = nn.Parameter(torch.randn(task.d_model))  # of the first slot
        self.mark = nn.Parameter(torch.randn(task.d_model))
        core = softmax_or_nothing if task.may_say_nothing else attend
        self.attention = AttentionLayer(task.d_model, task.n_head, attend=core)
        self.register_buffer("wanted", torch.randn(N_VALUE, task.d_model))
        self.first = task.first

    def forward(self, keys: Tensor, values: Tensor, query: Tensor) -> Tensor:
        """Return [batch, d_model] for keys, values [batch, n_slot + 1] and query [batch]."""
        asked, slots = self.embed(keys, values, query)
        return self.attention(asked, slots)[:, 0]

    def embed(self, keys: Tensor, values: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Return the query [batch, 1, d_model] and the slots [batch, slots, d_model]."""
        slots = self.key(keys) + self.value(values)
        first, others = slots[:, :1] + self.position, slots[:, 1:]
        if self.first == "a mark":
            first = (self.mark + self.position).expand_as(first)
        shelf = others if self.first == "nothing" else torch.cat([first, others], dim=1)
        return self.query(query)[:, None], shelf


@dataclass(frozen=True)
class NoOp:
    """What stands in the first slot, and whether a row may add up to less than 1."""

    threads: ClassVar[int] = 1

    first: str = "a mark"  # or "nothing", or "an ordinary token"
    may_say_nothing: bool = False
    n_head: int = 1
    n_slot: int = 8
    d_model: int = 64
    batch: int = 128
    steps: int = 1200
    learning_rate: float = 3e-3

    def build(self, attend: Attend | None = None) -> Asker:
        """Return the untrained model."""
        return Asker(self, attend)

    def sample(self, batch: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Return keys, values [batch, n_slot + 1], query, slot [batch] and present [batch], bool.

        Slot 0 is the first, which nobody asks for; where it holds an ordinary token, that token's
        key is on the shelf but never named.
        """
        keys = distinct(batch, self.n_slot + 2, N_KEY, generator)
        values = torch.randint(N_VALUE, (batch, self.n_slot + 1), generator=generator)
        slot = torch.randint(1, self.n_slot + 1, (batch,), generator=generator)
        present = torch.rand(batch, generator=generator) < 0.5
        named = keys.gather(1, slot[:, None])[:, 0]
        query = torch.where(present, named, keys[:, -1])  # the last key lies on no shelf
        return keys[:, :-1], values, query, slot, present

    def loss(self, model: Asker, generator: torch.Generator) -> Tensor:
        """Return the mean squared error, a scalar, of a fresh batch, over all numbers."""
        keys, values, query, slot, present = self.sample(self.batch, generator)
        missed = model(keys, values, query) - self._wanted(model, values, slot, present)
        return missed.square().mean()

    def evaluate(self, model: Asker) -> dict[str, float]:
        """Return, where the key is present or absent, the error and the weight on the first slot.

        `nothing_...` is what a row lacks to 1; `size_...` the size of what a slot would add.
        """
        generator = torch.Generator().manual_seed(TEST_SEED)
        keys, values, query, slot, present = self.sample(N_TEST, generator)
        wanted = self._wanted(model, values, slot, present)
        wrong = (model(keys, values, query) - wanted).square().mean(dim=-1)
        asked, shelf = model.embed(keys, values, query)
        row = model.attention.weights(asked, shelf)[:, :, 0].mean(dim=1)  # [batch, slots]
        adds = (shelf @ model.attention.W_V @ model.attention.needed_W_O).norm(dim=-1)
        found = {}
        for name, chosen in (("present", present), ("absent", ~present)):
            found[f"error_{name}"] = wrong[chosen].mean().item()
            first = row[chosen, 0] if model.first != "nothing" else torch.zeros(1)
            found[f"first_{name}"] = first.mean().item()
            found[f"nothing_{name}"] = (1 - row[chosen].sum(-1)).abs().mean().item()
        found["size_first"] = adds[:, 0].mean().item() if model.first != "nothing" else 0.0
        found["size_others"] = adds[:, -self.n_slot :].mean().item()
        return found

    def _wanted(self, model: Asker, values: Tensor, slot: Tensor, present: Tensor) -> Tensor:
        value = values.gather(1, slot[:, None])[:, 0]
        return model.wanted[value] * present[:, None]
