"""SmolLM2-135M-Instruct: a Llama-style decoder with rotary positions and shared KV heads.

Source: Ben Allal et al. 2025, arXiv 2502.02737; Touvron et al. 2023, arXiv 2302.13971, section 2.2.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labs_lib.models.bpe import Tokenizer
from labs_lib.models.hooks import Hooks
from labs_lib.models.kv_cache import KVCache
from labs_lib.models.layer import Attend, AttentionLayer, Pass, Shape, sdpa, unfilled
from labs_lib.models.model import Model

SHAPE = Shape(
    n_layer=30,
    d_model=576,
    n_head=9,
    n_kv_head=3,
    head_dim=64,
    d_ff=1536,
    vocab=49_152,
    context=8192,
)
ROTARY_BASE = 100_000.0
NORM_EPSILON = 1e-5


class SmolLM2(Model):
    """The decoder; `model(ids)` returns a logit for each token of the vocabulary.

    `attend(q, k, v, mask)` may be replaced at any time by another function of the same contract:
    k and v come repeated to all query heads, the mask is bool [seq_q, seq_k].
    """

    causal = True

    def __init__(self, tokenizer: Tokenizer | None = None, attend: Attend = sdpa):
        super().__init__()
        self.shape, self.tokenizer, self.attend = SHAPE, tokenizer, attend
        self.embed = unfilled(SHAPE.vocab, SHAPE.d_model)
        self.layers = nn.ModuleList(Layer(SHAPE) for _ in range(SHAPE.n_layer))
        self.norm = unfilled(SHAPE.d_model)

    @classmethod
    def load(cls, folder: Path, attend: Attend = sdpa) -> SmolLM2:
        """Return the model of a folder that holds model.safetensors and tokenizer.json."""
        from safetensors.torch import load_file

        with torch.device("meta"):
            model = cls(Tokenizer.load(folder / "tokenizer.json"), attend)
        model.load_state_dict(load_file(folder / "model.safetensors"), assign=True)
        return model.requires_grad_(False).eval()

    def forward(
        self,
        ids: Tensor,
        *,
        hooks: Hooks | None = None,
        attend: Attend | None = None,
        cache: KVCache | None = None,
        last: bool = False,
    ) -> Tensor:
        """Return logits [batch, seq, vocab] for token ids [batch, seq]; `last`, of the last only.

        With a cache, ids are the tokens that follow on those in it, and are added to it.
        Raises ValueError for ids that the model can't read.
        """
        x = self.residual(ids, hooks=hooks, attend=attend, cache=cache)
        if last:
            x = x[:, -1:]
        return rms_norm(x, self.norm) @ self.embed.T

    def residual(
        self,
        ids: Tensor,
        *,
        hooks: Hooks | None = None,
        attend: Attend | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        """Return the residual stream after the last layer: [batch, seq, d_model]."""
        past = 0 if cache is None else len(cache)
        self._check(ids, past)
        if hooks is not None:
            hooks.begin(self.shape.n_layer, self.shape.n_head)
        seq, device = ids.shape[1], self.embed.device
        mask = torch.ones(seq, past + seq, dtype=torch.bool, device=device).tril(past)
        cos, sin = rotary_turns(torch.arange(past, past + seq, device=device), self.shape.head_dim)
        turns = cos.to(self.embed.dtype), sin.to(self.embed.dtype)
        along = Pass(attend or self.attend, mask, turns, hooks, cache)
        x = self.embed[ids.to(device)]  # [batch, seq, d_model]
        for number, layer in enumerate(self.layers):
            if hooks is not None:
                hooks.see(number, "residual", x)
            x = layer(x, along, number)
        if hooks is not None:
            hooks.see(self.shape.n_layer, "residual", x)
        return x

    def losses(self, ids: Tensor, **how) -> Tensor:
        """Return how surprising each next token was, in nats: [batch, seq - 1]."""
        logits = self(ids, **how)[:, :-1]  # [batch, seq - 1, vocab]
        return F.cross_entropy(
            logits.transpose(1, 2), ids[:, 1:].to(logits.device), reduction="none"
        )

    def ids(self, text: str) -> Tensor:
        """Return the token ids of a text: [1, seq]."""
        return torch.tensor([self.words.encode(text)], dtype=torch.long)

    def row(self, text: str) -> Tensor:
        return self.ids(text)

    def look(self, ids: Tensor, hooks: Hooks) -> None:
        self.residual(ids, hooks=hooks)

    def _check(self, ids: Tensor, past: int) -> None:
        self.check_ids(ids)
        if past + ids.shape[1] > self.shape.context:
            raise ValueError(
                f"{past + ids.shape[1]} tokens are more than the {self.shape.context} that the "
                "model was trained to read; shorten the text"
            )


class Layer(nn.Module):
    """A layer of the decoder: attention, then an MLP with a gate, each behind a norm."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.norm_attention = unfilled(shape.d_model)
        self.attention = AttentionLayer(shape, bias=False)
        self.norm_mlp = unfilled(shape.d_model)
        self.W_gate = unfilled(shape.d_model, shape.d_ff)
        self.W_up = unfilled(shape.d_model, shape.d_ff)
        self.W_down = unfilled(shape.d_ff, shape.d_model)

    def forward(self, x: Tensor, along: Pass, number: int) -> Tensor:
        """Return the residual stream [batch, seq, d_model] behind this layer, which is `number`."""
        x = x + self.attention(rms_norm(x, self.norm_attention), along, number)
        return x + self.mlp(rms_norm(x, self.norm_mlp))

    def mlp(self, x: Tensor) -> Tensor:
        """Return the gated MLP of x [..., d_model], in the same shape."""
        return (F.silu(x @ self.W_gate) * (x @ self.W_up)) @ self.W_down


def rms_norm(x: Tensor, gain: Tensor) -> Tensor:
    """Return x [..., d_model] divided by its root mean square, times a gain [d_model].

    Source: Zhang & Sennrich 2019, arXiv 1910.07467.
    """
    return F.rms_norm(x, gain.shape, gain, NORM_EPSILON)


def rotary_turns(positions: Tensor, head_dim: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines [seq, head_dim / 2] of the angles of positions [seq]."""
    exponents = torch.arange(0, head_dim, 2, device=positions.device).float() / head_dim
    angles = positions[:, None].float() * ROTARY_BASE**-exponents
    return angles.cos(), angles.sin()
