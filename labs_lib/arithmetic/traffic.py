"""Bytes that cross between memory and chip in one head's attention."""

from labs_lib.arithmetic.units import Bytes

LSE_BYTES = 4  # the log-sum-exp is float32 whatever the inputs are


def naive_traffic(seq_q: int, seq_k: int, head_dim: int, itemsize: int = 2) -> Bytes:
    """Return the bytes of product, softmax and product, each from memory to memory.

    Four times a whole score matrix crosses: written, read, written as weights, read. q, k and v
    are read once, the output is written once. Source: Dao et al. 2022, algorithm 0.
    """
    ends = 2 * (seq_q + seq_k) * head_dim
    return Bytes((ends + 4 * seq_q * seq_k) * itemsize)


def flash_traffic(seq_q: int, seq_k: int, head_dim: int, block_q: int, itemsize: int = 2) -> Bytes:
    """Return the bytes of a kernel that keeps block_q queries and walks over all keys.

    k and v are read once for each tile of queries, q is read and the output written once, and
    for each query a log-sum-exp of 4 bytes. Source: Dao 2023, algorithm 1.
    Raises ValueError for a tile without a query.
    """
    if block_q < 1:
        raise ValueError(f"block_q={block_q}: a tile has at least one query")
    n_tile = -(-seq_q // block_q)
    elements = 2 * seq_q * head_dim + n_tile * 2 * seq_k * head_dim
    return Bytes(elements * itemsize + seq_q * LSE_BYTES)


def naive_backward_traffic(seq_q: int, seq_k: int, head_dim: int, itemsize: int = 2) -> Bytes:
    """Return the bytes of plain attention's backward pass, each step from memory to memory.

    Seven times a whole matrix crosses: weights read for d_v, their gradient written, both read for
    the scores' gradient, that written, and read for d_q and for d_k. Source: Dao et al. 2022,
    algorithm 3.
    """
    ends = 4 * (seq_q + seq_k) * head_dim
    return Bytes((ends + 7 * seq_q * seq_k) * itemsize)


def first_flash_traffic(
    seq_q: int, seq_k: int, head_dim: int, block_k: int, itemsize: int = 2
) -> Bytes:
    """Return the bytes of the first FlashAttention, which keeps block_k keys and walks over all
    queries: for each tile of keys q and the output so far with its m and l are read, and the
    output, m and l written again.

    Source: Dao et al. 2022, algorithm 1. Raises ValueError for a tile without a key.
    """
    if block_k < 1:
        raise ValueError(f"block_k={block_k}: a tile has at least one key")
    n_tile = -(-seq_k // block_k)
    per_tile = 3 * seq_q * head_dim + 4 * seq_q
    return Bytes((2 * seq_k * head_dim + n_tile * per_tile) * itemsize)


def io_bytes(
    seq_q: int, seq_k: int, head_dim: int, block_q: int, itemsize: int = 2
) -> dict[str, int]:
    """Return the bytes of both ways as plain numbers: {"naive": ..., "flash": ...}.

    Arguments, sources and errors are those of `naive_traffic` and `flash_traffic`.
    """
    return {
        "naive": int(naive_traffic(seq_q, seq_k, head_dim, itemsize)),
        "flash": int(flash_traffic(seq_q, seq_k, head_dim, block_q, itemsize)),
    }
