"""The bytes of a cache in lab 08: reference, wrong programs and right programs."""

from __future__ import annotations

import math

import numpy as np

from labs_lib.arithmetic import memory
from labs_lib.arithmetic.memory import kv_bytes as cache_size
from labs_lib.config import AttentionConfig

from ..kit import Answer, Right, Wrong

_DTYPES = {size: name for name, size in reversed(memory.ELEMENT_SIZES.items())}


def kv_bytes(n_layer, n_head, n_kv_head, head_dim, seq, batch=1, element_bytes=2):
    """The course's own arithmetic, in the lab's form."""
    config = AttentionConfig(n_head * head_dim, n_head, n_kv_head)
    size = cache_size(config, n_layer, seq, batch, _DTYPES[element_bytes])
    return {"bytes": int(size), "GB": size.GB.value, "GiB": size.GiB.value}


def _variant(count=lambda L, h, kv, d, t, b, e: 2 * L * kv * d * t * b * e, *, GB=None, GiB=None):
    """A program that counts bytes in one way and then makes units of them."""

    def program(n_layer, n_head, n_kv_head, head_dim, seq, batch=1, element_bytes=2):
        size = count(n_layer, n_head, n_kv_head, head_dim, seq, batch, element_bytes)
        return {
            "bytes": size,
            "GB": size / 10**9 if GB is None else GB(size, seq),
            "GiB": size / 2**30 if GiB is None else GiB(size, seq),
        }

    return program


def _counted(n_layer, n_head, n_kv_head, head_dim, seq, batch=1, element_bytes=2):
    """Counted in a loop over layers, keys and values."""
    total = 0
    for _ in range(n_layer):
        for _ in ("keys", "values"):
            total += batch * seq * n_kv_head * head_dim * element_bytes
    return {"bytes": total, "GB": total * 1e-9, "GiB": total / 1024 / 1024 / 1024}


def _with_numpy(n_layer, n_head, n_kv_head, head_dim, seq, batch=1, element_bytes=2):
    total = np.prod([2, n_layer, n_kv_head, head_dim, seq, batch, element_bytes], dtype=np.int64)
    return {"GiB": np.float64(total) / 1024**3, "GB": total / 1e9, "bytes": total}


RIGHT = (
    Right("counted_in_loops", _counted),
    Right("numpy_numbers", _with_numpy),
    Right("one_product", _variant()),
    Right("by_the_head", _variant(
        lambda L, h, kv, d, t, b, e: math.prod((L, t, b)) * kv * (d * e + d * e))),
)  # fmt: skip

WRONG = (
    Wrong("keys_alone", _variant(lambda L, h, kv, d, t, b, e: L * kv * d * t * b * e),
        "That is half: keys and values are both kept."),
    Wrong("query_heads", _variant(lambda L, h, kv, d, t, b, e: 2 * L * h * d * t * b * e),
        "That counts n_head heads. Only keys and values are kept, and they have n_kv_head."),
    Wrong("queries_too", _variant(
        lambda L, h, kv, d, t, b, e: L * (2 * kv + h) * d * t * b * e),
        "The queries are counted as well. A query is used in its own step and never again."),
    Wrong("one_layer", _variant(lambda L, h, kv, d, t, b, e: 2 * kv * d * t * b * e),
        "That is one layer's cache. Every layer has keys and values of its own."),
    Wrong("one_token", _variant(lambda L, h, kv, d, t, b, e: 2 * L * kv * d * b * e),
        "That is the cache of one token; there are seq of them."),
    Wrong("one_text", _variant(lambda L, h, kv, d, t, b, e: 2 * L * kv * d * t * e),
        "That is the cache of one text; there are batch of them, and they share nothing."),
    Wrong("elements", _variant(lambda L, h, kv, d, t, b, e: 2 * L * kv * d * t * b),
        "These are numbers, not bytes: each takes element_bytes."),
    Wrong("always_two_bytes", _variant(lambda L, h, kv, d, t, b, e: 2 * L * kv * d * t * b * 2),
        "Two bytes are taken for every number, whatever element_bytes says."),
    Wrong("bits", _variant(lambda L, h, kv, d, t, b, e: 16 * L * kv * d * t * b * e),
        "That is eight times too many: bits, not bytes."),
    Wrong("heads_forgotten", _variant(lambda L, h, kv, d, t, b, e: 2 * L * d * t * b * e),
        "That is the cache of one key/value head. There are n_kv_head of them."),
    Wrong("tokens_squared", _variant(lambda L, h, kv, d, t, b, e: 2 * L * kv * d * t * t * b * e),
        "That grows with the square of seq. Scores do; a cache has one row a token."),
    Wrong("binary_for_decimal", _variant(GB=lambda n, t: n / 2**30),
        "The number under GB is in GiB: divided by 2**30. A GB has 10**9 bytes."),
    Wrong("decimal_for_binary", _variant(GiB=lambda n, t: n / 10**9),
        "The number under GiB is in GB: divided by 10**9. A GiB has 2**30 bytes."),
    Wrong("exchanged", _variant(GB=lambda n, t: n / 2**30, GiB=lambda n, t: n / 10**9),
        "GB and GiB are exchanged. GiB is the larger unit, so its number is the smaller one."),
    Wrong("mebibytes_by_a_thousand", _variant(GB=lambda n, t: n / 2**20 / 1000),
        "The number under GB is MiB divided by 1,000: two units mixed, which is neither GB nor\n"
        "GiB. Divide bytes by 10**9."),
    Wrong("megabytes_by_1024_for_decimal", _variant(GB=lambda n, t: n / 10**6 / 1024),
        "The number under GB is MB divided by 1,024: two units mixed, which is neither GB nor\n"
        "GiB. Divide bytes by 10**9."),
    Wrong("mebibytes_by_a_thousand_for_binary", _variant(GiB=lambda n, t: n / 2**20 / 1000),
        "The number under GiB is MiB divided by 1,000: two units mixed, which is neither GB nor\n"
        "GiB. Divide bytes by 2**30."),
    Wrong("both_mixed", _variant(
        GB=lambda n, t: n / 10**6 / 1024, GiB=lambda n, t: n / 2**20 / 1000),
        "Both numbers mix thousands with 1,024s, which gives neither GB nor GiB. Divide bytes by\n"
        "10**9 for one and by 2**30 for the other."),
    Wrong("both_mixed_the_other_way", _variant(
        GB=lambda n, t: n / 2**20 / 1000, GiB=lambda n, t: n / 10**6 / 1024),
        "Both numbers mix thousands with 1,024s, which gives neither GB nor GiB. Divide bytes by\n"
        "10**9 for one and by 2**30 for the other."),
    Wrong("megabytes_by_1024", _variant(GiB=lambda n, t: n / 10**6 / 1024),
        "The number under GiB is MB divided by 1,024: two units mixed, which is neither GB nor\n"
        "GiB. Divide bytes by 2**30."),
    Wrong("whole_gigabytes", _variant(GB=lambda n, t: n // 10**9, GiB=lambda n, t: n // 2**30),
        "The gigabytes are rounded down to whole ones. Divide with /, not //."),
    Wrong("two_decimals", _variant(
        GB=lambda n, t: round(n / 10**9, 2), GiB=lambda n, t: round(n / 2**30, 2)),
        "The gigabytes are rounded to two decimals. Round when you print, not when you count."),
)  # fmt: skip

KV_BYTES = Answer(reference=kv_bytes, wrong=WRONG, right=RIGHT)
