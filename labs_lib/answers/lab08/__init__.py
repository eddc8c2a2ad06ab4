"""Lab 08: references, wrong programs and right programs.

cache.py        keys and values kept
step.py         one step with a cache: its parts and right programs
step_wrong.py   one step as students get it wrong
sizes.py        the bytes of a cache
grouped.py      query heads that share keys and values
pooling.py      ordinary heads made into shared ones
compress.py     packed keys and values
absorb.py       attention on packed ones
slips.py, head_slips.py, latent_slips.py  what a first try gets wrong, in all of them
quiz.py         the quiz questions
"""

from __future__ import annotations

from dataclasses import replace

from ..kit import Answer, Wrong
from . import head_slips, latent_slips, slips
from .absorb import ABSORB
from .cache import KV_CACHE
from .compress import COMPRESS
from .grouped import GROUPED
from .pooling import POOLING
from .quiz import QUIZ
from .sizes import KV_BYTES
from .step_wrong import DECODE_STEP


def _with(answer: Answer, more: tuple[Wrong, ...]) -> Answer:
    """An answer with more wrong programs; those it has come first when one is to be named."""
    return replace(answer, wrong=(*answer.wrong, *more))


ANSWERS = {
    "lab08.kv_cache": _with(KV_CACHE, slips.KV_CACHE_SLIPS),
    "lab08.decode_step": _with(DECODE_STEP, slips.DECODE_STEP_SLIPS),
    "lab08.kv_bytes": _with(KV_BYTES, slips.KV_BYTES_SLIPS),
    "lab08.grouped_query_attention": _with(GROUPED, head_slips.GROUPED_SLIPS),
    "lab08.mha_to_gqa": _with(POOLING, head_slips.POOLING_SLIPS),
    "lab08.mla_compress": _with(COMPRESS, latent_slips.COMPRESS_SLIPS),
    "lab08.mla_absorb": _with(ABSORB, latent_slips.ABSORB_SLIPS),
    **QUIZ,
}
