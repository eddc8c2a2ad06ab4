"""What is asked: every lab's exercises as data, without an answer.

`labs_lib.exercises.labNN` holds `LAB` (a `Lab`) and `EXERCISES` (a tuple of `Exercise`).
The answers stand in `labs_lib.answers.labNN`, which no module here imports.
"""

from .registry import UnknownExercise, UnknownLab, exercise, exercises, lab, labs

__all__ = ["UnknownExercise", "UnknownLab", "exercise", "exercises", "lab", "labs"]
