"""Real modules, whose parameters, operations and bytes can be counted, and their sizes drawn."""

import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from labs_lib.arithmetic import (
    ModelShape,
)
from labs_lib.attention.heads import split_heads
from labs_lib.attention.multi_head import MultiHeadAttention
from labs_lib.config import AttentionConfig, LatentAttention

GRID = settings(max_examples=40, deadline=None, derandomize=True)


@st.composite
def configs(draw, bias=True):
    n_kv_head, group = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    n_head, head_dim = n_kv_head * group, draw(st.integers(1, 9))
    split = draw(st.booleans())
    d_model = n_head * head_dim if split else draw(st.integers(1, 40))
    d_in = draw(st.one_of(st.none(), st.integers(1, 20)))
    with_bias = bias and draw(st.booleans())
    return AttentionConfig(d_model, n_head, n_kv_head, head_dim, d_in=d_in, bias=with_bias)


@st.composite
def latents(draw):
    sizes = [draw(st.integers(1, 9)) for _ in range(6)]
    return LatentAttention(*sizes, q_lora_rank=draw(st.integers(0, 7)))


def counted(run):
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


class Latent(nn.Module):
    """Latent attention as plain layers, without rotation: both orders of its products."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        q_width = c.n_head * c.qk_head_dim
        if c.q_lora_rank:
            self.q_down = nn.Linear(c.d_model, c.q_lora_rank, bias=False)
            self.q_norm = nn.RMSNorm(c.q_lora_rank)
        self.q_up = nn.Linear(c.q_lora_rank or c.d_model, q_width, bias=False)
        self.kv_down = nn.Linear(c.d_model, c.kv_lora_rank + c.qk_rope_head_dim, bias=False)
        self.kv_norm = nn.RMSNorm(c.kv_lora_rank)
        self.W_UK = nn.Parameter(torch.rand(c.n_head, c.kv_lora_rank, c.qk_nope_head_dim))
        self.W_UV = nn.Parameter(torch.rand(c.n_head, c.kv_lora_rank, c.v_head_dim))
        self.out = nn.Linear(c.width, c.d_model, bias=False)

    def forward(self, x, cache, absorbed):
        c = self.c
        q = self.q_up(self.q_norm(self.q_down(x)) if c.q_lora_rank else x)
        q, q_rope = split_heads(q, c.n_head).split([c.qk_nope_head_dim, c.qk_rope_head_dim], -1)
        latent, k_rope = self.kv_down(x).split([c.kv_lora_rank, c.qk_rope_head_dim], -1)
        new = torch.cat([self.kv_norm(latent), k_rope], -1)
        cache = torch.cat([cache, new], 1)[:, None]  # [batch, 1, seq_k, rank + rope]
        latent, k_rope = cache.split([c.kv_lora_rank, c.qk_rope_head_dim], -1)
        k = latent if absorbed else latent @ self.W_UK
        v = latent if absorbed else latent @ self.W_UV
        q = q @ self.W_UK.mT if absorbed else q
        weights = (q @ k.mT + q_rope @ k_rope.mT).softmax(-1)
        heads = weights @ v
        heads = heads @ self.W_UV if absorbed else heads
        return self.out(heads.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, d_model, d_ff, gated, bias):
        super().__init__()
        self.up = nn.Linear(d_model, d_ff, bias)
        self.gate = nn.Linear(d_model, d_ff, bias) if gated else None
        self.down = nn.Linear(d_ff, d_model, bias)

    def forward(self, x):
        up = self.up(x).relu()
        return self.down(up if self.gate is None else up * self.gate(x))


class Model(nn.Module):
    """The stack that ModelShape describes, made of real layers."""

    def __init__(self, shape):
        super().__init__()
        a, s = shape.attention, shape
        norms = {"none": nn.Identity, "scale": nn.RMSNorm, "scale and shift": nn.LayerNorm}
        norm = norms[s.norm]
        self.tokens = nn.Embedding(s.vocab, a.d_model)
        self.positions = nn.Embedding(s.n_position, a.d_model) if s.n_position else None
        self.attends = nn.ModuleList(MultiHeadAttention(a) for _ in range(s.n_layer))
        self.mlps = nn.ModuleList(
            MLP(a.d_model, s.d_ff, s.gated, s.mlp_bias) for _ in range(s.n_layer)
        )
        self.norms = nn.ModuleList(norm(a.d_model) for _ in range(s.n_layer * s.norms_per_layer))
        self.final = norm(a.d_model) if s.final_norm else nn.Identity()
        scales = range(2 * s.n_layer * s.qk_norm)
        self.qk_norms = nn.ModuleList(nn.RMSNorm(a.head_dim) for _ in scales)
        self.logits = nn.Linear(a.d_model, s.vocab, bias=False)
        if s.tied:
            self.logits.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens)
        for attend, mlp in zip(self.attends, self.mlps, strict=True):
            x = x + attend(x)
            x = x + mlp(x)
        return self.logits(self.final(x))


@st.composite
def shapes(draw):
    n_head, head_dim, bias = draw(st.integers(1, 3)), draw(st.integers(1, 6)), draw(st.booleans())
    return ModelShape(
        AttentionConfig(n_head * head_dim, n_head, bias=bias),
        n_layer=draw(st.integers(1, 3)),
        vocab=draw(st.integers(1, 30)),
        d_ff=draw(st.integers(1, 20)),
        gated=draw(st.booleans()),
        tied=draw(st.booleans()),
        n_position=draw(st.integers(0, 9)),
        attention_bias="all" if bias else "none",
        mlp_bias=draw(st.booleans()),
        norm=draw(st.sampled_from(["none", "scale", "scale and shift"])),
        norms_per_layer=draw(st.integers(1, 4)),
        final_norm=draw(st.booleans()),
        qk_norm=draw(st.booleans()),
    )
