"""How many operations attention takes. A multiplication and its addition count as two FLOPs."""

from labs_lib.arithmetic.parameters import ModelShape
from labs_lib.config import AttentionConfig, LatentAttention

SOFTMAX_OPS = 5
"""Per score: compare for the maximum, subtract it, exponentiate, add to the sum, divide."""


def matmul_flops(n_row: int, n_inner: int, n_column: int) -> int:
    """Return the FLOPs of [n_row, n_inner] @ [n_inner, n_column]."""
    return 2 * n_row * n_inner * n_column


def attention_flops(
    config: AttentionConfig, batch: int, seq: int, seq_k: int | None = None
) -> dict[str, int]:
    """Return the FLOPs of each of the six products of a layer, for seq queries.

    `seq_k` tokens give keys and values (by default the same tokens). None of the six depends on
    n_head while n_head * head_dim stays the same; the softmax does (`softmax_work`). A causal
    mask saves nothing here: the products are counted whole, as a plain implementation does them.
    """
    seq_k = seq if seq_k is None else seq_k
    queries, keys = batch * seq, batch * seq_k
    pairs = matmul_flops(seq, config.head_dim, seq_k) * batch * config.n_head
    return {
        "Q": matmul_flops(queries, config.d_in, config.width),
        "K": matmul_flops(keys, config.d_in, config.kv_width),
        "V": matmul_flops(keys, config.d_in, config.kv_width),
        "QK^T": pairs,
        "AV": pairs,
        "W_O": matmul_flops(queries, config.width, config.d_model),
    }


def softmax_work(
    config: AttentionConfig | LatentAttention, batch: int, seq: int, seq_k: int | None = None
) -> int:
    """Return the elementwise operations of the softmax: five per score, and n_head scores a pair.

    This is the part that grows with the number of heads. Scaling and masking, where they are
    passes of their own, add one per score each.
    """
    seq_k = seq if seq_k is None else seq_k
    return SOFTMAX_OPS * batch * config.n_head * seq * seq_k


def mlp_flops(d_model: int, d_ff: int, n_token: int, gated: bool = False) -> int:
    """Return the FLOPs of the MLP's two products, three if gated, for n_token tokens."""
    return (3 if gated else 2) * matmul_flops(n_token, d_model, d_ff)


def model_flops(shape: ModelShape, batch: int, seq: int) -> dict[str, int]:
    """Return the FLOPs of a forward pass by part: attention, mlp, logits.

    Raises TypeError for latent attention, whose count depends on the order of the products.
    """
    a = shape.attention
    if isinstance(a, LatentAttention):
        raise TypeError("latent attention has two counts; take latent_flops(config, absorbed=...)")
    d_model, n_token = a.d_model, batch * seq
    return {
        "attention": shape.n_layer * sum(attention_flops(a, batch, seq).values()),
        "mlp": shape.n_layer * mlp_flops(d_model, shape.d_ff, n_token, shape.gated),
        "logits": matmul_flops(n_token, d_model, shape.vocab),
    }


def latent_flops(
    config: LatentAttention, batch: int, seq: int, seq_k: int, absorbed: bool
) -> dict[str, int]:
    """Return the FLOPs of latent attention for seq new tokens against a cache of seq_k latents.

    The new tokens are among the seq_k. Not absorbed: the keys and values of all heads are formed
    from the cache, then compared. Absorbed: W_UK moves into the query and W_UV behind the
    weighted sum, so that attention runs on the latents and nothing is formed.
    Source: DeepSeek-V2 report, section 2.1.2.
    """
    c, tokens, cached = config, batch * seq, batch * seq_k
    pairs = batch * c.n_head * seq * seq_k
    flops = {
        "Q": _latent_query_flops(c, tokens),
        "down": matmul_flops(tokens, c.d_model, c.kv_lora_rank + c.qk_rope_head_dim),
        "W_O": matmul_flops(tokens, c.width, c.d_model),
    }
    rows = tokens if absorbed else cached
    flops["W_UK"] = matmul_flops(rows, c.kv_lora_rank, c.n_head * c.qk_nope_head_dim)
    flops["W_UV"] = matmul_flops(rows, c.kv_lora_rank, c.n_head * c.v_head_dim)
    compared = c.kv_lora_rank if absorbed else c.qk_nope_head_dim
    flops["QK^T"] = 2 * pairs * (compared + c.qk_rope_head_dim)
    flops["AV"] = 2 * pairs * (c.kv_lora_rank if absorbed else c.v_head_dim)
    return flops


def _latent_query_flops(c: LatentAttention, tokens: int) -> int:
    q_width = c.n_head * c.qk_head_dim
    if not c.q_lora_rank:
        return matmul_flops(tokens, c.d_model, q_width)
    down = matmul_flops(tokens, c.d_model, c.q_lora_rank)
    return down + matmul_flops(tokens, c.q_lora_rank, q_width)
