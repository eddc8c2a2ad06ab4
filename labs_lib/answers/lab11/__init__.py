"""Lab 11: references, wrong programs and right programs of its exercises.

parts.py     a forward pass with one part changed
forward.py   flash_forward: tiles over queries and keys
causal.py    flash_causal_skip: hidden pairs, and tiles that need not be computed
gqa.py       flash_gqa: shared heads without copies
backward.py  flash_backward: gradients from recomputed weights
traffic.py   io_bytes: what crosses between memory and chip
kernel.py    flash_kernel: a right one, spoilt a word at a time
quiz.py      the quiz questions
"""

from .backward import FLASH_BACKWARD
from .causal import FLASH_CAUSAL_SKIP
from .forward import FLASH_FORWARD
from .gqa import FLASH_GQA
from .kernel import FLASH_KERNEL
from .quiz import QUIZ
from .traffic import IO_BYTES

ANSWERS = {
    "lab11.flash_forward": FLASH_FORWARD,
    "lab11.flash_causal_skip": FLASH_CAUSAL_SKIP,
    "lab11.flash_gqa": FLASH_GQA,
    "lab11.flash_backward": FLASH_BACKWARD,
    "lab11.flash_kernel": FLASH_KERNEL,
    "lab11.io_bytes": IO_BYTES,
    **QUIZ,
}
