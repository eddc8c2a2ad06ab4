"""Lab 01: references, wrong programs and right programs."""

from .attention import ANSWERS as _ATTENTION
from .mask import ANSWERS as _MASK
from .numbers import ANSWERS as _NUMBERS
from .quiz import ANSWERS as _QUIZ
from .scores import ANSWERS as _SCORES

ANSWERS = {**_SCORES, **_MASK, **_ATTENTION, **_NUMBERS, **_QUIZ}
