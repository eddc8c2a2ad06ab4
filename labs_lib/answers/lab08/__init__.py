"""Lab 08: references, wrong programs and right programs.

cache.py        keys and values kept
step.py         one step with a cache: its parts and right programs
step_wrong.py   one step as students get it wrong
sizes.py        the bytes of a cache
grouped.py      query heads that share keys and values
pooling.py      ordinary heads made into shared ones
compress.py     packed keys and values
absorb.py       attention on packed ones
quiz.py         the quiz questions
"""

from .absorb import ABSORB
from .cache import KV_CACHE
from .compress import COMPRESS
from .grouped import GROUPED
from .pooling import POOLING
from .quiz import QUIZ
from .sizes import KV_BYTES
from .step_wrong import DECODE_STEP

ANSWERS = {
    "lab08.kv_cache": KV_CACHE,
    "lab08.decode_step": DECODE_STEP,
    "lab08.kv_bytes": KV_BYTES,
    "lab08.grouped_query_attention": GROUPED,
    "lab08.mha_to_gqa": POOLING,
    "lab08.mla_compress": COMPRESS,
    "lab08.mla_absorb": ABSORB,
    **QUIZ,
}
