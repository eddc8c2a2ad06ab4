"""Lab 04: references, wrong programs and right programs.

params.py   parameters of a layer
model.py    parameters of a model, and whose they are
config.py   the heads of a published configuration
flops.py    operations of the products and of the softmax
values.py   the two numbers
quiz.py     the quiz questions
"""

from .config import READ_CONFIG
from .flops import ATTENTION_FLOPS, SOFTMAX_WORK
from .model import MODEL_PARAMS, PARAM_SHARE
from .params import ATTENTION_PARAMS
from .quiz import QUIZ
from .values import QUARTER_VOCAB, WEIGHTS_GIB

ANSWERS = {
    "lab04.attention_params": ATTENTION_PARAMS,
    "lab04.read_config": READ_CONFIG,
    "lab04.model_params": MODEL_PARAMS,
    "lab04.param_share": PARAM_SHARE,
    "lab04.quarter_vocab": QUARTER_VOCAB,
    "lab04.weights_gib": WEIGHTS_GIB,
    "lab04.attention_flops": ATTENTION_FLOPS,
    "lab04.softmax_work": SOFTMAX_WORK,
    **QUIZ,
}
