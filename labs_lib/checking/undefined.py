"""What a name means that a student's function uses and nobody defined."""

from __future__ import annotations

import re

from ..exercises import exercises
from ..exercises.kit import Exercise
from .observe import Observation


def told(exercise: Exercise, seen: Observation) -> list[str]:
    """What explains a NameError: a piece of an earlier lab, or a word of the stub's shapes.

    No line where it is neither, or where something else was raised.
    """
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
    if any(word in re.findall(r"\w+", shape) for shape in re.findall(r"\[(.*?)\]", exercise.stub)):
        return [
            f"{word} is a word of the shapes in the docstring, and no variable here. The size that",
            "it stands for is in the .shape of a tensor.",
        ]
    return []
