"""Lab 06: references, wrong programs and right programs.

describing.py   entropy, previous token
resting.py      sink
silencing.py    one head silent
pruning.py      heads cut out
importance.py   the gradient of a gate
rounding.py     int8
quiz.py         the quiz questions
"""

from .describing import ATTENTION_ENTROPY, PREVIOUS_TOKEN_SCORE
from .importance import HEAD_IMPORTANCE
from .pruning import PRUNE
from .quiz import QUIZ
from .resting import SINK_SCORE
from .rounding import QUANTISE_INT8
from .silencing import ABLATE_HEAD

ANSWERS = {
    "lab06.attention_entropy": ATTENTION_ENTROPY,
    "lab06.previous_token_score": PREVIOUS_TOKEN_SCORE,
    "lab06.sink_score": SINK_SCORE,
    "lab06.ablate_head": ABLATE_HEAD,
    "lab06.head_importance": HEAD_IMPORTANCE,
    "lab06.prune": PRUNE,
    "lab06.quantise_int8": QUANTISE_INT8,
    **QUIZ,
}
