"""Attention and nothing else, on sequences that repeat: does a head grow that copies?

A block of distinct random tokens stands once, then comes again in pieces: mostly the next token of
the block follows, and now and then any of it. So neither looking a fixed number of places back nor
naming the token that wasn't seen for longest solves it.
Source of the question: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits";
Olsson et al. 2022, arXiv 2209.11895.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labs_lib.training.layers import Attend, AttentionLayer
from labs_lib.training.retrieval import TEST_SEED

N_TEST = 128
QUIET_START = 0.3  # at first the layers whisper, else their noise drowns the embeddings
Head = tuple[int, int]  # layer, head


def smeared(k: Tensor, own: Tensor) -> Tensor:
    """Return keys [batch, n_head, seq, head_dim] mixed with the key before them.

    own [n_head] is the share of a head's own key. Source: Olsson et al. 2022, argument 2.
    """
    before = torch.cat([k[:, :, :1], k[:, :, :-1]], dim=2)
    return before + own[:, None, None] * (k - before)


class AttentionOnly(nn.Module):
    """Embeddings, attention layers added one on the other, logits: no MLP anywhere."""

    def __init__(self, task: "Induction", attend: Attend | None = None):
        super().__init__()
        d_model, n_token = task.d_model, task.n_token
        self.embedding = nn.Parameter(torch.randn(n_token, d_model) * d_model**-0.5)
        self.position = nn.Parameter(torch.randn(task.seq, d_model) * d_model**-0.5)
        self.layers = nn.ModuleList(
            AttentionLayer(d_model, task.n_head, attend=attend) for _ in range(task.n_layer)
        )
        self.norm = nn.LayerNorm(d_model, elementwise_affine=False)
        self.read_out = nn.Parameter(torch.randn(d_model, n_token) * d_model**-0.5)
        self.mix = nn.Parameter(torch.zeros(task.n_layer, task.n_head)) if task.smeared else None
        with torch.no_grad():
            for layer in self.stack:
                layer.needed_W_O.mul_(QUIET_START)

    def forward(
        self, tokens: Tensor, *, ablate: Collection[Head] = (), keep: list[Tensor] | None = None
    ) -> Tensor:
        """Return logits [batch, seq, n_token] of the tokens after these, [batch, seq].

        ablate: (layer, head) pairs that say nothing. keep: a list to which each layer appends its
        weights [batch, n_head, seq, seq].
        """
        seq = tokens.shape[1]
        mask = torch.ones(seq, seq, dtype=torch.bool).tril()
        x = self.embedding[tokens] + self.position[:seq]  # [batch, seq, d_model]
        for number, layer in enumerate(self.stack):
            q, k, v = layer.project(self.norm(x), self.norm(x))
            if self.mix is not None:
                k = smeared(k, self.mix[number].sigmoid())
            if keep is not None:
                keep.append(layer.weights_of(q, k, mask))
            heads = layer.attend(q, k, v, mask)  # [batch, n_head, seq, head_dim]
            silent = [head for at, head in ablate if at == number]
            if silent:
                heads = heads.index_fill(1, torch.tensor(silent), 0.0)
            x = x + heads.transpose(1, 2).flatten(2) @ layer.needed_W_O
        return self.norm(x) @ self.read_out

    @property
    def stack(self) -> list[AttentionLayer]:
        """The layers, in the order in which x passes them."""
        return cast("list[AttentionLayer]", list(self.layers))


@dataclass(frozen=True)
class Induction:
    """Predict the next token of a block that repeats; the settings name one variant.

    jumps: how often, after the first copy, any token of the block follows in place of the next.
    """

    threads: ClassVar[int] = 1
    watch_every: ClassVar[int] = 20

    n_layer: int = 2
    smeared: bool = False
    n_head: int = 4
    d_model: int = 64
    n_token: int = 32
    seq: int = 32
    shortest: int = 6
    longest: int = 14
    jumps: float = 0.125
    batch: int = 32
    steps: int = 600
    learning_rate: float = 3e-3

    def build(self, attend: Attend | None = None) -> AttentionOnly:
        """Return the untrained model."""
        return AttentionOnly(self, attend)

    def sample(self, batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Return tokens [batch, seq + 1], and which are copied, and which stand in the first copy.

        Both are bool [batch, seq + 1]. A token is copied where the one before stood earlier and
        the next token of the block follows.
        """
        low, high = self.shortest, self.longest + 1
        period = torch.randint(low, high, (batch, 1), generator=generator)
        every = torch.rand(batch, self.n_token, generator=generator).argsort(dim=-1)
        place = torch.arange(self.seq + 1).expand(batch, -1)
        jump = torch.rand(batch, self.seq + 1, generator=generator) < self.jumps
        jump &= place >= period
        to = (torch.rand(batch, self.seq + 1, generator=generator) * period).long()
        last = torch.where(jump, place, -1).cummax(dim=1).values  # of the jumps so far; -1: none
        start = torch.where(last < 0, 0, to.gather(1, last.clamp_min(0)))
        index = (start + place - last.clamp_min(0)) % period
        return every.gather(1, index), (place > period) & ~jump, place < period

    def loss(self, model: AttentionOnly, generator: torch.Generator) -> Tensor:
        """Return the mean cross-entropy in nats, a scalar, of a fresh batch, over all places."""
        tokens, _, _ = self.sample(self.batch, generator)
        return F.cross_entropy(model(tokens[:, :-1]).transpose(1, 2), tokens[:, 1:])

    def watch(self, model: AttentionOnly) -> dict[str, float]:
        """Return the loss in nats where copying helps and in first copies, and two scores a head.

        `induction_L_H` is head H of layer L's weight on all tokens that stand behind an earlier
        copy of the query's, `previous_L_H` its weight on the token before.
        """
        tokens, copied, first = self._test()
        kept: list[Tensor] = []
        logits = model(tokens[:, :-1], keep=kept)
        losses = F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none")
        found = {"copied": losses[copied].mean().item(), "first_copy": losses[first].mean().item()}
        behind = _behind_copies(tokens[:, :-1])  # [batch, seq, seq]
        for layer, weights in enumerate(kept):
            ahead = (weights * behind[:, None]).sum(dim=-1).transpose(1, 2)[copied].mean(dim=0)
            back = weights.diagonal(-1, dim1=-2, dim2=-1).mean(dim=(0, 2))
            for head in range(self.n_head):
                found[f"induction_{layer}_{head}"] = ahead[head].item()
                found[f"previous_{layer}_{head}"] = back[head].item()
        return found

    def evaluate(self, model: AttentionOnly) -> dict[str, float]:
        """Return what `watch` does, and the accuracy on 128 unseen sequences.

        `accuracy` is that where copying helps, `accuracy_first_copy` that where nothing can be
        copied yet; `without_L_H` and `without_L` are the former with a head, or all heads of a
        layer, silent.
        """
        tokens, copied, first = self._test()

        def right(where: Tensor, ablate: Collection[Head] = ()) -> float:
            guess = model(tokens[:, :-1], ablate=ablate).argmax(dim=-1)
            return (guess == tokens[:, 1:])[where].float().mean().item()

        found = {"accuracy": right(copied), "accuracy_first_copy": right(first)}
        for layer in range(self.n_layer):
            every = [(layer, head) for head in range(self.n_head)]
            found |= {f"without_{at}_{head}": right(copied, [(at, head)]) for at, head in every}
            found[f"without_{layer}"] = right(copied, every)
        return found | self.watch(model)

    def _test(self) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens, and for each query, bool [batch, seq], whether the next is copied or in copy one.

        The same for all variants: sequences with jumps.
        """
        always = replace(self, jumps=Induction.jumps)
        made = always.sample(N_TEST, torch.Generator().manual_seed(TEST_SEED))
        return made[0], made[1][:, 1:], made[2][:, 1:]


def _behind_copies(tokens: Tensor) -> Tensor:
    """Where the token before equals the query's, up to the query: bool [batch, seq, seq]."""
    behind = torch.zeros(*tokens.shape, tokens.shape[1], dtype=torch.bool)
    behind[:, :, 1:] = tokens[:, :, None] == tokens[:, None, :-1]
    return behind.tril()
