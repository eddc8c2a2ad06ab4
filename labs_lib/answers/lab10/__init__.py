"""Lab 10: references, wrong programs and right programs.

parts.py       what several of them compute
rows.py        safe_softmax and log_sum_exp: the whole row is at hand
states.py      rescale and merge_softmax_states: what is kept of scores that have gone by
stream.py      online_softmax: blocks that come one at a time
attention.py   attention_one_pass as students get it wrong
attention_parts.py  attention_one_pass with one part changed
attention_right.py  attention_one_pass: odd but right
attention_slips.py  attention_one_pass: slips of shape, of Python and of a first try
slips.py, state_slips.py  such slips for rows.py, and for states.py and stream.py
quiz.py        the quiz questions
"""

from .attention import ATTENTION_ONE_PASS
from .quiz import QUIZ
from .rows import LOG_SUM_EXP, SAFE_SOFTMAX
from .states import MERGE_SOFTMAX_STATES, RESCALE
from .stream import ONLINE_SOFTMAX

ANSWERS = {
    "lab10.safe_softmax": SAFE_SOFTMAX,
    "lab10.log_sum_exp": LOG_SUM_EXP,
    "lab10.rescale": RESCALE,
    "lab10.online_softmax": ONLINE_SOFTMAX,
    "lab10.merge_softmax_states": MERGE_SOFTMAX_STATES,
    "lab10.attention_one_pass": ATTENTION_ONE_PASS,
    **QUIZ,
}
