"""One attention layer for the small trainings, with every variant that a lab compares."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labs_lib.config import divisors

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


def sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return torch's attention of q, k, v [batch, n_head, seq, head_dim].

    A boolean mask says True where a query may attend.
    """
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class AttentionLayer(nn.Module):
    """Multi-head attention in plain torch whose core, `attend`, can be exchanged.

    `sliced=True` lets each head read only its own head_dim inputs, `output=False` leaves W_O out,
    `n_kv_head < n_head` shares K and V between neighbouring query heads. Weights are [d_in, d_out],
    used as `x @ W`; their initial values come from the global generator. Raises ValueError when the
    numbers of heads do not divide.
    """

    def __init__(
        self,
        d_model: int,
        n_head: int,
        *,
        n_kv_head: int | None = None,
        sliced: bool = False,
        output: bool = True,
        attend: Attend | None = None,
    ):
        super().__init__()
        n_kv_head = n_head if n_kv_head is None else n_kv_head
        _check_heads(d_model, n_head, n_kv_head, sliced)
        self.n_head, self.n_kv_head, self.head_dim = n_head, n_kv_head, d_model // n_head
        self.sliced = sliced
        self.attend = sdpa if attend is None else attend
        self.W_Q = self._projection(d_model, n_head)
        self.W_K = self._projection(d_model, n_kv_head)
        self.W_V = self._projection(d_model, n_kv_head)
        self.W_O = nn.Parameter(torch.randn(d_model, d_model) * d_model**-0.5) if output else None

    def forward(
        self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Return [batch, seq, d_model]: x attends to memory, or to itself when there is none."""
        q, k, v = self.project(x, x if memory is None else memory)
        heads = self.attend(q, k, v, mask)  # [batch, n_head, seq, head_dim]
        joined = heads.transpose(1, 2).flatten(2)  # [batch, seq, d_model]
        return joined if self.W_O is None else joined @ self.W_O

    def weights(
        self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Return the attention weights [batch, n_head, seq_q, seq_k] of whatever `attend` computes.

        Attention is linear in v: given the identity matrix as values, it returns its weights.
        """
        q, k, _ = self.project(x, x if memory is None else memory)
        return self.weights_of(q, k, mask)

    def weights_of(self, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the same for queries and keys as `project` gives them."""
        seq_k = k.shape[-2]
        one_hot = torch.eye(seq_k, dtype=k.dtype).expand(*k.shape[:2], seq_k, seq_k)
        return self.attend(q, k, one_hot, mask)

    def project(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return q, k, v [batch, n_head, seq, head_dim], with each shared KV head repeated."""
        q = self._heads(x, self.W_Q)
        k, v = self._heads(memory, self.W_K), self._heads(memory, self.W_V)
        group = self.n_head // self.n_kv_head
        if group > 1:  # query head h uses KV head h // group
            k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        return q, k, v

    @property
    def needed_W_O(self) -> nn.Parameter:
        """W_O [d_model, d_model]; raises ValueError for a layer without one."""
        if self.W_O is None:
            raise ValueError("this layer was made with output=False, so it has no W_O")
        return self.W_O

    def _projection(self, d_model: int, heads: int) -> nn.Parameter:
        if self.sliced:
            return nn.Parameter(
                torch.randn(heads, self.head_dim, self.head_dim) * self.head_dim**-0.5
            )
        return nn.Parameter(torch.randn(d_model, heads * self.head_dim) * d_model**-0.5)

    def _heads(self, x: Tensor, W: Tensor) -> Tensor:
        if self.sliced:
            slices = x.unflatten(-1, (self.n_head, self.head_dim)).transpose(1, 2)
            return slices @ W  # head h sees its own head_dim inputs and nothing else
        return (x @ W).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


def _check_heads(d_model: int, n_head: int, n_kv_head: int, sliced: bool) -> None:
    if n_head < 1 or d_model % n_head:
        legal = list(divisors(d_model))
        raise ValueError(f"n_head={n_head} does not divide d_model={d_model}; these do: {legal}")
    if n_kv_head < 1 or n_head % n_kv_head:
        legal = list(divisors(n_head))
        raise ValueError(
            f"n_kv_head={n_kv_head} does not divide n_head={n_head}; these do: {legal}"
        )
    if sliced and n_kv_head != n_head:
        raise ValueError(
            f"sliced=True gives each query head its own slice, so n_kv_head={n_kv_head} must be "
            f"n_head={n_head}; leave n_kv_head out"
        )
