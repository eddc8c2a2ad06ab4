"""Lab 01: references, wrong programs and right programs."""

from .attention import ANSWERS as _ATTENTION
from .numbers import ANSWERS as _NUMBERS
from .pieces import ANSWERS as _PIECES
from .quiz import ANSWERS as _QUIZ

ANSWERS = {**_PIECES, **_ATTENTION, **_NUMBERS, **_QUIZ}
