"""Lab 03: references, wrong programs and right programs.

per_head.py      a small matrix for each head
wide.py          the small matrices side by side
unstack.py       a fused matrix taken apart
all_at_once.py   all heads without a loop
quiz.py          the quiz questions
"""

from .all_at_once import FUSED_MULTI_HEAD
from .per_head import PER_HEAD_QKV
from .quiz import QUIZ
from .unstack import UNSTACK_FROM_FUSED_QKV
from .wide import STACK_PROJECTIONS

ANSWERS = {
    "lab03.per_head_qkv": PER_HEAD_QKV,
    "lab03.stack_projections": STACK_PROJECTIONS,
    "lab03.fused_multi_head": FUSED_MULTI_HEAD,
    "lab03.unstack_from_fused_qkv": UNSTACK_FROM_FUSED_QKV,
    **QUIZ,
}
