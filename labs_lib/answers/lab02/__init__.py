"""Lab 02: references, wrong programs and right programs."""

from .config import HEAD_CONFIG
from .head_dim import HEAD_DIM
from .heads import SPLIT_HEADS
from .memory import IS_CONTIGUOUS_PER_HEAD, STRIDES_AFTER_SPLIT
from .merge import MERGE_HEADS
from .quiz import QUIZ

ANSWERS = {
    "lab02.head_dim": HEAD_DIM,
    "lab02.HeadConfig": HEAD_CONFIG,
    "lab02.split_heads": SPLIT_HEADS,
    "lab02.merge_heads": MERGE_HEADS,
    "lab02.strides_after_split": STRIDES_AFTER_SPLIT,
    "lab02.is_contiguous_per_head": IS_CONTIGUOUS_PER_HEAD,
    **QUIZ,
}
