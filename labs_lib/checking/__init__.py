"""Run a student's programs on an exercise's cases and say what is right, wrong and why."""

from .check import CheckFailed, check
from .given import NotGiven, given
from .hints import hint
from .lab import begin_lab
from .predictions import predict, recall
from .yours import yours

__all__ = [
    "CheckFailed",
    "NotGiven",
    "begin_lab",
    "check",
    "given",
    "hint",
    "predict",
    "recall",
    "yours",
]
