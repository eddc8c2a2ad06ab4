"""Lab 12: references, wrong programs and right programs.

assemble.py, assemble_slips.py  one layer's attention in five steps
weights.py   matrices out of a model's file
swap.py      a model's pass with another attention
writing.py   writing on, token by token
launch.py    lab 11's kernel in the place of attend
quiz.py      the quiz questions
"""

from .assemble_slips import ASSEMBLE
from .launch import KERNEL_ATTENTION
from .quiz import QUIZ
from .swap import SWAP
from .weights import LOAD
from .writing import GENERATE

ANSWERS = {
    "lab12.assemble": ASSEMBLE,
    "lab12.load_real_weights": LOAD,
    "lab12.swap_attention": SWAP,
    "lab12.generate": GENERATE,
    "lab12.kernel_attention": KERNEL_ATTENTION,
    **QUIZ,
}
