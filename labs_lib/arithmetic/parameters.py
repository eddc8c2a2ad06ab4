"""How many parameters an attention layer and a whole model have."""

from dataclasses import dataclass
from typing import Self

from labs_lib.config import AttentionConfig, LatentAttention, checked_size, model_row

BIASES = ("none", "qkv", "all")
NORMS = {"none": 0, "scale": 1, "scale and shift": 2}


@dataclass(frozen=True)
class ModelShape:
    """What decides the number of parameters of a stack of attention and MLP layers.

    `d_ff` is the inner width of the MLP; a gated MLP has three matrices instead of two. `tied`
    says that the output reuses the embedding matrix. `n_position` counts learned position
    vectors, 0 where positions are computed. `attention_bias` is "none", "qkv" or "all". `norm`
    is "none", "scale" (RMSNorm) or "scale and shift" (LayerNorm); `norms_per_layer` of them stand
    in a layer, one more at the end if `final_norm`, and `qk_norm` adds a scale of head_dim for
    queries and one for keys. `other` is what this scheme has no name for.
    Raises ValueError for an unknown word, TypeError and ValueError for an impossible size.
    """

    attention: AttentionConfig | LatentAttention
    n_layer: int
    vocab: int
    d_ff: int
    gated: bool = False
    tied: bool = True
    n_position: int = 0
    attention_bias: str = "none"
    mlp_bias: bool = False
    norm: str = "none"
    norms_per_layer: int = 2
    final_norm: bool = True
    qk_norm: bool = False
    other: int = 0

    def __post_init__(self) -> None:
        for name in ("n_layer", "vocab", "d_ff"):
            checked_size(name, getattr(self, name))
        _one_of("attention_bias", self.attention_bias, BIASES)
        _one_of("norm", self.norm, tuple(NORMS))

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the shape of a published model of data/models.json.

        Raises ValueError for a model that is not one dense stack of equal layers (experts,
        an encoder beside a decoder) or whose MLP width was not published.
        """
        row = model_row(name)
        if row["stack"] is None:
            raise ValueError(f"{name} cannot be counted as one stack of layers: {row['note']}")
        attend = AttentionConfig if row["mla"] is None else LatentAttention
        sizes = {key: row[key] for key in ("n_layer", "vocab", "d_ff", "gated", "tied")}
        return cls(attend.named(name), **sizes, **row["stack"])


def attention_params(config: AttentionConfig, bias: str | None = None) -> int:
    """Return the parameters of W_Q, W_K, W_V and W_O, and of their biases.

    `bias` is "none", "qkv" or "all"; by default what config.bias says. With one head width for
    all heads the number does not depend on n_head as long as n_head * head_dim stays the same.
    """
    bias = ("all" if config.bias else "none") if bias is None else _one_of("bias", bias, BIASES)
    qkv_width = config.width + 2 * config.kv_width
    weights = config.d_in * qkv_width + config.width * config.d_model
    return weights + {"none": 0, "qkv": qkv_width, "all": qkv_width + config.d_model}[bias]


def latent_params(config: LatentAttention, norms: bool = True) -> int:
    """Return the parameters of a latent attention layer; norms counts those of the two latents.

    Down and up for queries (or one matrix where q_lora_rank is 0), down with the rotary key for
    keys and values, up for each, and W_O. Source: DeepSeek-V2 report, equations 37 to 47.
    """
    c, q_width = config, config.n_head * config.qk_head_dim
    q = (
        c.d_model * c.q_lora_rank + c.q_lora_rank * q_width
        if c.q_lora_rank
        else c.d_model * q_width
    )
    down = c.d_model * (c.kv_lora_rank + c.qk_rope_head_dim)
    up = c.kv_lora_rank * c.n_head * (c.qk_nope_head_dim + c.v_head_dim)
    return q + down + up + c.width * c.d_model + (c.q_lora_rank + c.kv_lora_rank) * norms


def mlp_params(d_model: int, d_ff: int, gated: bool = False, bias: bool = False) -> int:
    """Return the parameters of an MLP: up and down, and a gate beside up if gated."""
    n_up = 2 if gated else 1
    return (n_up + 1) * d_model * d_ff + bias * (n_up * d_ff + d_model)


def params_by_part(shape: ModelShape) -> dict[str, int]:
    """Return the parameters of a model by part: attention, mlp, embeddings, norms, other."""
    a, d_model = shape.attention, shape.attention.d_model
    if isinstance(a, LatentAttention):
        attention = latent_params(a)
    else:
        attention = attention_params(a, shape.attention_bias)
    n_norm = shape.n_layer * shape.norms_per_layer + shape.final_norm
    norms = n_norm * NORMS[shape.norm] * d_model
    if shape.qk_norm:
        width = a.qk_head_dim if isinstance(a, LatentAttention) else a.head_dim
        norms += shape.n_layer * 2 * width
    n_table = 1 if shape.tied else 2
    return {
        "attention": shape.n_layer * attention,
        "mlp": shape.n_layer * mlp_params(d_model, shape.d_ff, shape.gated, shape.mlp_bias),
        "embeddings": (n_table * shape.vocab + shape.n_position) * d_model,
        "norms": norms,
        "other": shape.other,
    }


def model_params(shape: ModelShape) -> int:
    """Return the number of parameters of a whole model."""
    return sum(params_by_part(shape).values())


def param_share(shape: ModelShape) -> dict[str, float]:
    """Return each part's share of all parameters; the shares sum to 1."""
    parts = params_by_part(shape)
    total = sum(parts.values())
    return {part: count / total for part, count in parts.items()}


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is not known; {', '.join(map(repr, allowed))} are")
    return value
