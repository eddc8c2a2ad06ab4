"""Two retrieval tasks that ask what one softmax row can and cannot do.

Each example is a short shelf of slots, each with a position, a key and a value; a query token looks
at the shelf through one attention layer and a linear read-out names the value.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labs_lib.training.layers import Attend, AttentionLayer

N_KEY = 16
N_VALUE = 16
N_TEST = 4096
TEST_SEED = 10_000  # no training seed comes near it


def uniform(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the mean of the values for each query, as a control: attention that cannot choose.

    q, k, v and the answer are [batch, n_head, seq, head_dim].
    """
    return v.mean(dim=-2, keepdim=True).expand(*q.shape[:3], v.shape[-1])


def distinct(batch: int, n: int, of: int, generator: torch.Generator) -> Tensor:
    """Return [batch, n] integers below `of`, no two alike in a row."""
    return torch.rand(batch, of, generator=generator).argsort(dim=-1)[:, :n]


class Retriever(nn.Module):
    """Slots and a query become vectors, one attention layer looks, linear read-outs answer."""

    def __init__(
        self, task: "TwoRules | TwoTargets", n_query: int, n_answer: int, attend: Attend | None
    ):
        super().__init__()
        self.key = nn.Embedding(N_KEY, task.d_model)
        self.value = nn.Embedding(N_VALUE, task.d_model)
        self.position = nn.Embedding(task.n_slot, task.d_model)
        self.query = nn.Embedding(n_query, task.d_model)
        self.attention = AttentionLayer(task.d_model, task.n_head, attend=attend)
        self.read_out = nn.Linear(task.d_model, n_answer * N_VALUE)

    def forward(self, keys: Tensor, values: Tensor, query: Tensor) -> Tensor:
        """Return logits [batch, n_answer, N_VALUE]; the query's tokens [batch, n] are summed."""
        look = self.attention(*self.embed(keys, values, query)).squeeze(1)  # [batch, d_model]
        return self.read_out(look).unflatten(-1, (-1, N_VALUE))

    def weights(self, keys: Tensor, values: Tensor, query: Tensor) -> Tensor:
        """Return the attention row of each head over the slots: [batch, n_head, n_slot]."""
        return self.attention.weights(*self.embed(keys, values, query)).squeeze(2)

    def embed(self, keys: Tensor, values: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Return the query [batch, 1, d_model] and the slots [batch, n_slot, d_model]."""
        slots = self.key(keys) + self.value(values) + self.position.weight
        return self.query(query).sum(dim=1, keepdim=True), slots


@dataclass(frozen=True)
class TwoRules:
    """The query token says which rule holds: the value beside this key, or at this position."""

    threads: ClassVar[int] = 1

    n_head: int = 1
    attention: str = "learned"  # or "uniform", the control
    n_slot: int = 8
    d_model: int = 64
    batch: int = 128
    steps: int = 1500
    learning_rate: float = 3e-3

    @property
    def chance(self) -> float:
        """Accuracy of guessing among the values on the shelf."""
        return 1 / self.n_slot

    def build(self, attend: Attend | None = None) -> Retriever:
        """Return the untrained model; its query tokens are N_KEY keys, then n_slot positions."""
        return Retriever(
            self, N_KEY + self.n_slot, 1, uniform if self.attention == "uniform" else attend
        )

    def sample(self, batch: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Return keys, values [batch, n_slot], query [batch, 1], slot [batch], by_key [batch]."""
        keys = distinct(batch, self.n_slot, N_KEY, generator)
        values = distinct(batch, self.n_slot, N_VALUE, generator)
        slot = torch.randint(self.n_slot, (batch,), generator=generator)
        by_key = torch.rand(batch, generator=generator) < 0.5
        asked_key = keys.gather(1, slot[:, None]).squeeze(1)
        query = torch.where(by_key, asked_key, N_KEY + slot)
        return keys, values, query[:, None], slot, by_key

    def loss(self, model: Retriever, generator: torch.Generator) -> Tensor:
        """Return the mean cross-entropy in nats, a scalar, of a fresh batch."""
        keys, values, query, slot, _ = self.sample(self.batch, generator)
        target = values.gather(1, slot[:, None])
        return F.cross_entropy(model(keys, values, query).flatten(0, 1), target.flatten())

    def evaluate(self, model: Retriever) -> dict[str, float]:
        """Return accuracy and mean weight on the right slot per rule, on 4,096 unseen examples."""
        keys, values, query, slot, by_key = self.sample(N_TEST, _test_generator())
        guess = model(keys, values, query)[:, 0].argmax(dim=-1)
        right = (guess == values.gather(1, slot[:, None]).squeeze(1)).float()
        row = model.weights(keys, values, query).mean(dim=1)  # [batch, n_slot], mean over heads
        weight = row.gather(1, slot[:, None]).squeeze(1)
        return {
            "accuracy": right.mean().item(),
            "accuracy_by_key": right[by_key].mean().item(),
            "accuracy_by_position": right[~by_key].mean().item(),
            "weight_by_key": weight[by_key].mean().item(),
            "weight_by_position": weight[~by_key].mean().item(),
        }


@dataclass(frozen=True)
class TwoTargets:
    """The query names two keys; name both values, in their order (`ordered`) or as a set."""

    threads: ClassVar[int] = 1

    n_head: int = 1
    ordered: bool = True
    n_slot: int = 8
    d_model: int = 64
    batch: int = 128
    steps: int = 1500
    learning_rate: float = 3e-3

    @property
    def chance(self) -> float:
        """Accuracy of guessing two of the values on the shelf."""
        pairs = self.n_slot * (self.n_slot - 1)
        return (1 if self.ordered else 2) / pairs

    def build(self, attend: Attend | None = None) -> Retriever:
        """Return the untrained model; query tokens are N_KEY first targets, then N_KEY second."""
        return Retriever(self, 2 * N_KEY, 2 if self.ordered else 1, attend)

    def sample(self, batch: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Return keys, values [batch, n_slot], query [batch, 2] and the right slots [batch, 2]."""
        keys = distinct(batch, self.n_slot, N_KEY, generator)
        values = distinct(batch, self.n_slot, N_VALUE, generator)
        slots = distinct(batch, 2, self.n_slot, generator)
        asked = keys.gather(1, slots)
        query = asked + torch.tensor([0, N_KEY if self.ordered else 0])
        return keys, values, query, slots

    def loss(self, model: Retriever, generator: torch.Generator) -> Tensor:
        """Return the mean cross-entropy in nats, a scalar; in a set, each value has half."""
        keys, values, query, slots = self.sample(self.batch, generator)
        target = values.gather(1, slots)
        logits = model(keys, values, query)  # [batch, 2 or 1, N_VALUE]
        if self.ordered:
            return F.cross_entropy(logits.flatten(0, 1), target.flatten())
        both = F.one_hot(target, N_VALUE).float().mean(dim=1)
        return F.cross_entropy(logits[:, 0], both)

    def evaluate(self, model: Retriever) -> dict[str, float]:
        """Return accuracy for both values and for each, and each head's mean weight on each."""
        keys, values, query, slots = self.sample(N_TEST, _test_generator())
        target, logits = values.gather(1, slots), model(keys, values, query)
        if self.ordered:
            named = logits.argmax(dim=-1) == target  # [batch, 2]
        else:
            top = logits[:, 0].topk(2).indices
            named = (top[:, None] == target[:, :, None]).any(dim=-1)
        first, second = named.float().mean(dim=0).tolist()
        finals = {"accuracy": named.all(dim=-1).float().mean().item()}
        finals |= {"accuracy_first": first, "accuracy_second": second}
        rows = model.weights(keys, values, query)  # [batch, n_head, n_slot]
        for head in range(self.n_head):
            first, second = rows[:, head].gather(1, slots).mean(dim=0).tolist()
            finals |= {f"head_{head}_on_first": first, f"head_{head}_on_second": second}
        return finals


def _test_generator() -> torch.Generator:
    return torch.Generator().manual_seed(TEST_SEED)
