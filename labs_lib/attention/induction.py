"""Induction: repeated sequences, heads that copy what came next, and what they are built from.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; Olsson et al. 2022,
arXiv 2209.11895.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
from torch import Tensor
from torch.nn import functional as F

from .single_head import scaled_dot_product_attention


def repeated_sequence(block: Tensor, times: int) -> tuple[Tensor, Tensor]:
    """Return block [batch, period] `times` times in a row, and the places that copying gives.

    Tokens are [batch, times * period], the places bool [times * period]: True where the token
    before has stood earlier, so that the token here is the one that came next then.
    """
    period = block.shape[1]
    tokens = block.repeat(1, times)
    return tokens, torch.arange(times * period) > period


def induction_score(weights: Tensor, tokens: Tensor, real: Tensor | None = None) -> Tensor:
    """Return each head's mean weight on the token after the last earlier copy of its own: [n_head].

    weights is [batch, n_head, seq, seq], tokens [batch, seq]. The mean goes over all queries whose
    token has stood before, of all texts; real is bool [batch, seq], False where a text is padded.
    """
    place = torch.arange(tokens.shape[1])
    same = (tokens[:, :, None] == tokens[:, None, :]) & (place[:, None] > place)
    counts = same.any(dim=-1) if real is None else same.any(dim=-1) & real  # [batch, seq]
    last = torch.where(same, place, -1).amax(dim=-1)  # [batch, seq]
    after = (last + 1)[:, None, :, None].expand(-1, weights.shape[1], -1, 1)
    found = weights.gather(-1, after)[..., 0]  # [batch, n_head, seq]
    return (found * counts[:, None]).sum(dim=(0, 2)) / counts.sum()


def smear_keys(k: Tensor, own: Tensor) -> Tensor:
    """Return keys [batch, n_head, seq, head_dim], each mixed with the one before it.

    own [n_head] is the share of the own key, the rest is the key before; the first stays as it is.
    Source: Olsson et al. 2022, argument 2.
    """
    share = own[:, None, None]
    mixed = share * k[:, :, 1:] + (1 - share) * k[:, :, :-1]
    return torch.cat([k[:, :, :1], mixed], dim=2)


def composition_score(W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor, n_head: int) -> Tensor:
    """Return how strongly later heads read, as keys, what earlier heads write: [n_head, n_head].

    W_Q, W_K are those of the later layer, W_V, W_O those of the earlier; rows are later heads.
    Source: Elhage et al. 2021, K-composition.
    """
    W_Q, W_K, W_V = (W.unflatten(1, (n_head, -1)).transpose(0, 1) for W in (W_Q, W_K, W_V))
    asks = W_Q @ W_K.mT  # [n_head, d_model of the query, d_model of the key]
    writes = W_V @ W_O.unflatten(0, (n_head, -1))  # [n_head, d_model read, d_model written]
    through = asks[:, None] @ writes.mT  # [later, earlier, d_model, d_model]
    sizes = torch.linalg.matrix_norm(asks)[:, None] * torch.linalg.matrix_norm(writes)
    return torch.linalg.matrix_norm(through) / sizes


def ablate_and_copy(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    logits_of: Callable[[Tensor], Tensor],
    tokens: Tensor,
    silent: Collection[int],
) -> Tensor:
    """Return the loss in nats on the second copy, with the heads in `silent` saying nothing.

    q, k, v are [batch, n_head, seq, head_dim], causal; logits_of takes the heads' answers of this
    shape to logits [batch, seq, vocab]; tokens [batch, seq] are a block and the same block again.
    The mean goes over the predictions made in the second copy.
    """
    seq = tokens.shape[1]
    causal = torch.ones(seq, seq, dtype=torch.bool).tril()
    heads = scaled_dot_product_attention(q, k, v, causal)
    heads = heads.index_fill(1, torch.tensor(list(silent), dtype=torch.long), 0.0)
    logits = logits_of(heads)[:, seq // 2 : -1]  # [batch, seq / 2 - 1, vocab]
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, seq // 2 + 1 :].flatten())
