"""Lab 05: references, wrong programs and right programs.

merging.py         heads side by side, and their product with W_O
contributions.py   what each head alone adds
layer.py           the whole layer: its parts and right programs
layer_wrong.py     the whole layer as students get it wrong
without.py         the layer with W_O left out
quiz.py            the quiz questions
"""

from .contributions import PER_HEAD_CONTRIBUTIONS
from .layer_wrong import MULTI_HEAD_ATTENTION
from .merging import APPLY_W_O, CONCAT_HEADS
from .quiz import QUIZ
from .without import WITHOUT_W_O

ANSWERS = {
    "lab05.concat_heads": CONCAT_HEADS,
    "lab05.apply_w_o": APPLY_W_O,
    "lab05.per_head_contributions": PER_HEAD_CONTRIBUTIONS,
    "lab05.multi_head_attention": MULTI_HEAD_ATTENTION,
    "lab05.without_w_o": WITHOUT_W_O,
    **QUIZ,
}
