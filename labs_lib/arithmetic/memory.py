"""How many bytes attention keeps and moves."""

from labs_lib.arithmetic.flops import matmul_flops
from labs_lib.arithmetic.units import Bytes
from labs_lib.config import AttentionConfig, LatentAttention

ELEMENT_SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int8": 1}


def element_size(dtype: str) -> int:
    """Return the bytes of one element; ValueError for a dtype that is not listed."""
    if dtype not in ELEMENT_SIZES:
        raise ValueError(f"dtype {dtype!r} is not known; {', '.join(ELEMENT_SIZES)} are")
    return ELEMENT_SIZES[dtype]


def weight_bytes(n_param: int, dtype: str = "float16") -> Bytes:
    """Return the bytes of n_param weights."""
    return Bytes(n_param * element_size(dtype))


def cached_elements(config: AttentionConfig | LatentAttention) -> int:
    """Return how many numbers one layer caches for one token.

    Keys and values of n_kv_head heads; with latent attention, one latent and one rotary key.
    """
    if isinstance(config, LatentAttention):
        return config.kv_lora_rank + config.qk_rope_head_dim
    return 2 * config.kv_width


def kv_bytes(
    config: AttentionConfig | LatentAttention,
    n_layer: int,
    seq: int = 1,
    batch: int = 1,
    dtype: str = "float16",
) -> Bytes:
    """Return the bytes of a cache of seq tokens in n_layer layers, for batch sequences."""
    return Bytes(n_layer * batch * seq * cached_elements(config) * element_size(dtype))


def score_bytes(
    config: AttentionConfig | LatentAttention,
    batch: int,
    seq: int,
    seq_k: int | None = None,
    dtype: str = "float16",
) -> Bytes:
    """Return the bytes of one layer's score matrix [batch, n_head, seq, seq_k]: one per head."""
    seq_k = seq if seq_k is None else seq_k
    return Bytes(batch * config.n_head * seq * seq_k * element_size(dtype))


def activation_bytes(
    config: AttentionConfig, batch: int, seq: int, dtype: str = "float16"
) -> dict[str, Bytes]:
    """Return the bytes of each tensor that a plain forward pass of one layer makes or reads.

    All but "scores" and "weights" grow with seq; these two grow with seq squared and n_head.
    """
    per_token = batch * seq * element_size(dtype)
    scores = score_bytes(config, batch, seq, dtype=dtype)
    return {
        "x": Bytes(per_token * config.d_in),
        "q": Bytes(per_token * config.width),
        "k": Bytes(per_token * config.kv_width),
        "v": Bytes(per_token * config.kv_width),
        "scores": scores,
        "weights": scores,
        "heads": Bytes(per_token * config.width),
        "out": Bytes(per_token * config.d_model),
    }


def attention_traffic(
    config: AttentionConfig,
    batch: int,
    seq: int,
    seq_k: int | None = None,
    dtype: str = "float16",
    n_pass: int = 4,
) -> Bytes:
    """Return the bytes that cross to and from memory between q, k, v and the heads' answers.

    q, k and v are read once and the answers written once. `n_pass` counts the reads and writes of
    a whole score matrix: 0 when it never leaves the chip (the least that any kernel can do), 4 for
    product, softmax, product, two more for each of scaling, masking and dropout as a separate
    step. Source: Dao et al. 2022, algorithm 0.
    """
    seq_k = seq if seq_k is None else seq_k
    ends = 2 * batch * (seq * config.width + seq_k * config.kv_width) * element_size(dtype)
    return Bytes(ends + n_pass * score_bytes(config, batch, seq, seq_k, dtype))


def arithmetic_intensity(flops: int, moved: Bytes) -> float:
    """Return FLOPs per byte moved; ZeroDivisionError when nothing moves."""
    return flops / moved


def matmul_intensity(n_row: int, n_inner: int, n_column: int, dtype: str = "float16") -> float:
    """Return FLOPs per byte of one product whose three matrices cross memory once each."""
    elements = n_row * n_inner + n_inner * n_column + n_row * n_column
    moved = Bytes(elements * element_size(dtype))
    return arithmetic_intensity(matmul_flops(n_row, n_inner, n_column), moved)
