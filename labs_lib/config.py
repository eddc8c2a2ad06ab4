"""The geometry of an attention layer, checked when it is made and not when it is used."""

import difflib
import json
import numbers
from dataclasses import dataclass, fields
from typing import Self

from labs_lib import paths

MAX_WIDTH = 2**20
"""Largest width or head count that a configuration takes; far above any published model."""


@dataclass(frozen=True)
class AttentionConfig:
    """The sizes of one attention layer: what is read, how many heads, how wide each is.

    `n_kv_head` defaults to n_head (every query head has its own keys and values), `head_dim` to
    d_model // n_head and `d_in`, the width of a token that comes in, to d_model. With an explicit
    head_dim, n_head * head_dim may differ from d_model, as in PaLM-540B or Qwen3-0.6B. `bias`
    adds one to each of the four projections. All sizes are plain ints once the object exists.

    Raises TypeError for what is not an integer (True, 8.0, "8") and ValueError for an integer
    that cannot be used; both messages name legal values.
    """

    d_model: int
    n_head: int
    # None, or nothing, may be given for these three: what stands there afterwards is an int.
    n_kv_head: int = None  # ty: ignore[invalid-assignment]
    head_dim: int = None  # ty: ignore[invalid-assignment]
    d_in: int = None  # ty: ignore[invalid-assignment]
    bias: bool = False

    def __post_init__(self) -> None:
        d_model = checked_size("d_model", self.d_model)
        n_head = checked_size("n_head", self.n_head)
        self._set(d_model=d_model, n_head=n_head)
        n_kv_head = n_head if self.n_kv_head is None else self.n_kv_head
        self._set(n_kv_head=checked_n_kv_head(n_kv_head, n_head))
        self._set(head_dim=_checked_head_dim(self.head_dim, d_model, n_head))
        self._set(d_in=d_model if self.d_in is None else checked_size("d_in", self.d_in))
        if not isinstance(self.bias, bool):
            raise TypeError(f"bias={self.bias!r} is a {type(self.bias).__name__}; True or False is")

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the attention geometry of a published model listed in data/models.json.

        Raises ValueError for a name that is not listed (the nearest names are offered) and for a
        model with latent attention, whose sizes need `LatentAttention`.
        """
        row = model_row(name)
        if row["mla"] is not None:
            raise ValueError(
                f"{name} has latent attention (MLA), which has no n_kv_head; take its ranks from "
                f"LatentAttention.named({name!r})"
            )
        return cls(row["d_model"], row["n_head"], row["n_kv_head"], row["head_dim"])

    @property
    def group_size(self) -> int:
        """How many query heads share one key/value head."""
        return self.n_head // self.n_kv_head

    @property
    def width(self) -> int:
        """The width that W_O reads: n_head * head_dim, often but not always d_model."""
        return self.n_head * self.head_dim

    @property
    def kv_width(self) -> int:
        """The width of all keys (or all values) of a token: n_kv_head * head_dim."""
        return self.n_kv_head * self.head_dim

    @property
    def kind(self) -> str:
        """MHA, GQA or MQA: one key/value head for each query head, for a group, or for all."""
        if self.n_kv_head == self.n_head:
            return "MHA"
        return "MQA" if self.n_kv_head == 1 else "GQA"

    def _set(self, **values: int) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class LatentAttention:
    """The sizes of one layer of multi-head latent attention (MLA), as in DeepSeek-V2.

    Queries come through q_lora_rank numbers (0: straight from the token), keys and values through
    kv_lora_rank numbers that all heads share and that alone are cached, beside one rotary key of
    qk_rope_head_dim. A head compares qk_nope_head_dim + qk_rope_head_dim numbers and answers with
    v_head_dim. Raises TypeError and ValueError as AttentionConfig does.
    Source: DeepSeek-V2 report (arXiv 2405.04434), section 2.1.
    """

    d_model: int
    n_head: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    q_lora_rank: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "q_lora_rank" and value == 0 and type(value) is int:
                continue
            object.__setattr__(self, field.name, checked_size(field.name, value))

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the latent attention of a published model; ValueError if it has none."""
        row = model_row(name)
        if row["mla"] is None:
            raise ValueError(f"{name} caches keys and values; take AttentionConfig.named({name!r})")
        return cls(row["d_model"], row["n_head"], **row["mla"])

    @property
    def qk_head_dim(self) -> int:
        """How many numbers a query and a key of one head have."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def width(self) -> int:
        """The width that W_O reads: n_head * v_head_dim."""
        return self.n_head * self.v_head_dim


def model_rows() -> list[dict]:
    """Return the published models of data/models.json, one dictionary each."""
    with open(paths.data() / "models.json", encoding="utf-8") as file:
        return json.load(file)["models"]


def model_row(name: str) -> dict:
    """Return one published model; raise ValueError with the nearest names if there is none."""
    rows = {row["name"]: row for row in model_rows()}
    if name not in rows:
        raise ValueError(_unknown_name(name, list(rows)))
    return rows[name]


def divisors(n: int) -> tuple[int, ...]:
    """Return every divisor of n, in rising order."""
    n = checked_size("n", n)
    low = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return tuple(sorted({*low, *(n // d for d in low)}))


def nearest_d_model(d_model: int, n_head: int) -> tuple[int, ...]:
    """Return the legal widths nearest to d_model for n_head heads: itself, or one on each side."""
    d_model, n_head = checked_size("d_model", d_model), checked_size("n_head", n_head)
    below = d_model - d_model % n_head
    candidates = (below,) if below == d_model else (below, below + n_head)
    return tuple(width for width in candidates if 1 <= width <= MAX_WIDTH)


def nearest_n_head(d_model: int, n_head: int) -> tuple[int, ...]:
    """Return the head counts nearest to n_head that divide d_model: itself, or one each side."""
    n_head, allowed = checked_size("n_head", n_head), divisors(d_model)
    below = [count for count in allowed if count <= n_head]
    above = [count for count in allowed if count > n_head]
    return (n_head,) if n_head in allowed else tuple(below[-1:] + above[:1])


def checked_size(name: str, value: object) -> int:
    """Return value as an int from 1 to MAX_WIDTH; raise TypeError or ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"{name}={value!r} is a {type(value).__name__}; {name} is an integer "
            f"from 1 to {MAX_WIDTH:,}"
        )
    size = int(value)
    if not 1 <= size <= MAX_WIDTH:
        nearest = 1 if size < 1 else MAX_WIDTH
        raise ValueError(
            f"{name}={value} is not allowed; {name} goes from 1 to {MAX_WIDTH:,}, "
            f"so the nearest legal value is {nearest}"
        )
    return size


def checked_n_kv_head(n_kv_head: object, n_head: int) -> int:
    """Return n_kv_head as an int that divides n_head; raise TypeError or ValueError otherwise."""
    n_kv_head = checked_size("n_kv_head", n_kv_head)
    if n_head % n_kv_head:
        allowed, near = divisors(n_head), nearest_n_head(n_head, n_kv_head)
        raise ValueError(
            f"n_kv_head={n_kv_head} does not divide n_head={n_head}; {_listed(allowed)} "
            f"{'do' if len(allowed) > 1 else 'does'}, nearest: {_listed(near)}"
        )
    return n_kv_head


def _checked_head_dim(head_dim: object, d_model: int, n_head: int) -> int:
    if head_dim is None:
        if d_model % n_head:
            raise ValueError(_does_not_divide(d_model, n_head))
        return d_model // n_head
    head_dim = checked_size("head_dim", head_dim)
    if n_head * head_dim > MAX_WIDTH:
        raise ValueError(
            f"n_head={n_head} heads of head_dim={head_dim} are {n_head * head_dim:,} wide; "
            f"together they may have {MAX_WIDTH:,}, so head_dim={MAX_WIDTH // n_head} is the most"
        )
    return head_dim


def _does_not_divide(d_model: int, n_head: int) -> str:
    widths, counts = nearest_d_model(d_model, n_head), nearest_n_head(d_model, n_head)
    return (
        f"d_model={d_model} can't be shared out evenly among n_head={n_head} heads; "
        f"{_listed(widths)} can. For d_model={d_model}, "
        f"n_head={_listed(counts, 'or')} would do; an explicit head_dim lifts the condition"
    )


def _listed(values: tuple[int, ...], word: str = "and") -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} {word} {last}" if first else last


def _unknown_name(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(str(name).lower(), names, n=3, cutoff=0.4)
    hint = f"nearest: {', '.join(near)}" if near else f"listed: {', '.join(names)}"
    return f"no model is named {name!r} in data/models.json; {hint}"
