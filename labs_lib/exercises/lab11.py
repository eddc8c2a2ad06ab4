"""Lab 11, flash attention: what is asked."""

from __future__ import annotations

from .kit import Lab
from .lab11_kernel import FLASH_KERNEL
from .lab11_quiz import QUIZ
from .lab11_torch import FUNCTIONS

LAB = Lab(
    number=11,
    slug="flash_attention",
    title="Flash attention",
    minutes=150,
    question=(
        "Attention compares every token with every other, and yet no n × n tensor has to exist. "
        "What does that save, counted in bytes, and what does it cost?"
    ),
)

FORWARD, CAUSAL, GQA, BACKWARD, BYTES = FUNCTIONS

EXERCISES = (FORWARD, BYTES, CAUSAL, GQA, FLASH_KERNEL, BACKWARD, *QUIZ)
