"""What a name means that a student's function uses and nobody defined, or not as a number."""

from __future__ import annotations

import re

from ..exercises import exercises
from ..exercises.kit import Exercise
from .observe import Observation


def told(exercise: Exercise, seen: Observation) -> list[str]:
    """What explains an error: a piece of an earlier lab, or a word of the stub's shapes.

    No line where it is neither, or where something else was raised.
    """
    shapes = re.findall(r"\w+", " ".join(re.findall(r"\[(.*?)\]", exercise.stub)))
    if seen.raised == "TypeError" and re.search(r"\bfunction\b", seen.message):
        functions = [one.called for one in exercises(exercise.lab) if one.called in shapes]
        return [
            f"{functions[0]} is the function that you wrote in this lab, and no number here. The",
            f"number is what {functions[0]}(...) gives, or is worked out from a tensor's .shape.",
        ] if functions else []  # fmt: skip
    name = re.fullmatch(r"name '(\w+)' is not defined", seen.message)
    if seen.raised != "NameError" or name is None:
        return []
    word = name[1]
    earlier = [one for one in exercises() if one.called == word and one.lab < exercise.lab]
    if earlier:
        return [
            f"{word} was built in lab {earlier[-1].lab[3:]} and isn't known in this one. Fetch it:",
            f'{word} = given("{earlier[-1].name}")',
        ]
    if word in shapes:
        return [
            f"{word} is a word of the shapes in the docstring, and no variable here. The size that",
            "it stands for is in the .shape of a tensor.",
        ]
    return []
