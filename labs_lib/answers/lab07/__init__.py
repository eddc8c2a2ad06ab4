"""Lab 07: references, wrong programs and right programs.

sequences.py     sequences that repeat
scores.py        the induction score
smearing.py      keys mixed with the key before
composition.py   who reads what whom writes
copying.py       silence, and the loss on the second copy
quiz.py          the quiz questions
"""

from .composition import COMPOSITION_SCORE
from .copying import ABLATE_AND_COPY
from .quiz import QUIZ
from .scores import INDUCTION_SCORE
from .sequences import REPEATED_SEQUENCE
from .smearing import SMEAR_KEYS

ANSWERS = {
    "lab07.repeated_sequence": REPEATED_SEQUENCE,
    "lab07.induction_score": INDUCTION_SCORE,
    "lab07.smear_keys": SMEAR_KEYS,
    "lab07.composition_score": COMPOSITION_SCORE,
    "lab07.ablate_and_copy": ABLATE_AND_COPY,
    **QUIZ,
}
