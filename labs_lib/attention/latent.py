"""Multi-head latent attention (MLA): one short latent a token is kept, not its keys and values.

Source: DeepSeek-V2 report, arXiv 2405.04434, section 2.1; equation numbers below are its own. The
report's RMSNorm behind the two down-projections (section 3.1.2) is left out: it would come before
what is cached and changes none of the shapes.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from labs_lib.attention.heads import merge_heads, split_heads
from labs_lib.attention.rotary import rotate
from labs_lib.attention.single_head import attention_weights, causal_mask
from labs_lib.attention.single_head import scaled_dot_product_attention as sdpa
from labs_lib.config import LatentAttention

Rotate = Callable[[Tensor, int], Tensor]
LatentCache = tuple[Tensor, Tensor]
"""The latents [batch, seq, kv_lora_rank] and the rotary keys [batch, seq, qk_rope_head_dim]."""


def mla_cache(
    x: Tensor, W_DKV: Tensor, W_KR: Tensor, rotate: Rotate, cache: LatentCache | None = None
) -> LatentCache:
    """Return what is kept of all tokens so far: a latent and one rotary key for all heads.

    x is [batch, new, d_model], W_DKV [d_model, kv_lora_rank] and W_KR [d_model, qk_rope_head_dim];
    cache holds the tokens before. `rotate(t, start)` turns [..., seq, width] by positions from
    `start` on. Source: equations 9 and 15.
    """
    past = 0 if cache is None else cache[0].shape[1]
    latent, rotary_key = x @ W_DKV, rotate(x @ W_KR, past)
    if cache is None:
        return latent, rotary_key
    return torch.cat([cache[0], latent], dim=1), torch.cat([cache[1], rotary_key], dim=1)


def mla_compress(
    x: Tensor,
    W_DKV: Tensor,
    W_KR: Tensor,
    W_UK: Tensor,
    W_UV: Tensor,
    n_head: int,
    rotate: Rotate,
    cache: LatentCache | None = None,
) -> tuple[Tensor, Tensor, LatentCache]:
    """Return keys and values of all tokens so far, unpacked from latents, and the cache of these.

    As mla_cache; W_UK is [kv_lora_rank, n_head * qk_nope_head_dim] and W_UV
    [kv_lora_rank, n_head * v_head_dim]. A head's key is its own unpacked numbers and then the
    rotary key, [batch, n_head, seq, qk_nope_head_dim + qk_rope_head_dim]; its value is
    [batch, n_head, seq, v_head_dim]. Source: equations 9 to 11, 15 and 17.
    """
    latent, rotary_key = cache = mla_cache(x, W_DKV, W_KR, rotate, cache)
    own = split_heads(latent @ W_UK, n_head)  # [batch, n_head, seq, qk_nope_head_dim]
    shared = rotary_key.unsqueeze(1).expand(-1, n_head, -1, -1)
    return torch.cat([own, shared], dim=-1), split_heads(latent @ W_UV, n_head), cache


def mla_absorb(
    q: Tensor,
    q_rotary: Tensor,
    latent: Tensor,
    rotary_key: Tensor,
    W_UK: Tensor,
    W_UV: Tensor,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the heads' answers straight from latents; no key and no value is ever formed.

    q is [batch, n_head, seq_q, qk_nope_head_dim]; q_rotary [batch, n_head, seq_q, qk_rope_head_dim]
    is turned already; latent [batch, seq_k, kv_lora_rank] and rotary_key
    [batch, seq_k, qk_rope_head_dim] are the cache; mask is bool and broadcasts to
    [batch, n_head, seq_q, seq_k]. The result is [batch, n_head, seq_q, v_head_dim].

    q (latent W_UK)ᵀ = (q W_UKᵀ) latentᵀ, and weights (latent W_UV) = (weights latent) W_UV: all
    heads read the one latent, as in multi-query attention. Source: section 2.1.2 and appendix C.
    """
    batch, n_head, seq_q, nope = q.shape
    W_UK, W_UV = (W.unflatten(1, (n_head, -1)).transpose(0, 1) for W in (W_UK, W_UV))
    asked = q @ W_UK.mT  # [batch, n_head, seq_q, kv_lora_rank]
    scores = _under_one_another(asked) @ latent.mT + _under_one_another(q_rotary) @ rotary_key.mT
    scores = scores / math.sqrt(nope + q_rotary.shape[-1])
    weights = attention_weights(scores.view(batch, n_head, seq_q, -1), mask)
    found = _under_one_another(weights) @ latent  # [batch, n_head * seq_q, kv_lora_rank]
    return found.view(batch, n_head, seq_q, -1) @ W_UV


class MultiHeadLatentAttention(nn.Module):
    """A causal layer of latent attention with its rotary part, as the configuration says.

    With `absorb=True` it works on the latents alone; both ways give the same numbers. Matrices are
    used as x @ W. With q_lora_rank 0 queries come straight from the token (W_DQ is None).
    """

    def __init__(self, config: LatentAttention):
        super().__init__()
        self.config = c = config
        rotary, nope = c.qk_rope_head_dim, c.qk_nope_head_dim
        self.W_DQ = _matrix(c.d_model, c.q_lora_rank) if c.q_lora_rank else None
        self.W_UQ = _matrix(c.q_lora_rank or c.d_model, c.n_head * nope)
        self.W_QR = _matrix(c.q_lora_rank or c.d_model, c.n_head * rotary)
        self.W_DKV, self.W_KR = _matrix(c.d_model, c.kv_lora_rank), _matrix(c.d_model, rotary)
        self.W_UK = _matrix(c.kv_lora_rank, c.n_head * nope)
        self.W_UV = _matrix(c.kv_lora_rank, c.n_head * c.v_head_dim)
        self.W_O = _matrix(c.width, c.d_model)

    def forward(
        self, x: Tensor, cache: LatentCache | None = None, absorb: bool = False
    ) -> tuple[Tensor, LatentCache]:
        """Return the output for the next tokens x [batch, new, d_model], and the cache with them.

        Source: equations 12 to 19.
        """
        past = 0 if cache is None else cache[0].shape[1]
        q, q_rotary = self.queries(x, past)
        mask = causal_mask(x.shape[1], past + x.shape[1], x.device)
        if absorb:
            cache = mla_cache(x, self.W_DKV, self.W_KR, rotate, cache)
            heads = mla_absorb(q, q_rotary, *cache, self.W_UK, self.W_UV, mask)
        else:
            weights = self.W_DKV, self.W_KR, self.W_UK, self.W_UV
            k, v, cache = mla_compress(x, *weights, self.config.n_head, rotate, cache)
            heads = sdpa(torch.cat([q, q_rotary], dim=-1), k, v, mask)
        return merge_heads(heads) @ self.W_O, cache

    def queries(self, x: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """Return both parts of the queries, [batch, n_head, new, width], the second one turned."""
        x = x if self.W_DQ is None else x @ self.W_DQ
        q, q_rotary = (split_heads(x @ W, self.config.n_head) for W in (self.W_UQ, self.W_QR))
        return q, rotate(q_rotary, start)


def _under_one_another(heads: Tensor) -> Tensor:
    """The rows of all heads as one matrix: [batch, n_head * seq, width]."""
    return heads.flatten(1, 2)


def _matrix(d_in: int, d_out: int) -> nn.Parameter:
    return nn.Parameter((2 * torch.rand(d_in, d_out) - 1) / math.sqrt(d_in))
