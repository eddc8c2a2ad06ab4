"""A class of students who hand in lab 01 in every way that graders have met.

`SUBMISSIONS` maps a student to what they do with their notebook; importing the modules named
`pupils_...` fills it.
"""

from __future__ import annotations

import pupils_in_trouble
import pupils_right
from pupil_cells import (
    BUDGET,
    COURSE,
    MASK,
    POINTS,
    SCORES,
    SDPA,
    STD,
    SUBMISSIONS,
    dump,
    find,
    new_cell,
    released,
    solved,
    write,
)
from pupils_cheating import table_of_visible_answers
from pupils_mean import HOSTILE
from pupils_wrong import WRONG_SCORES

__all__ = [
    "BUDGET",
    "COURSE",
    "HOSTILE",
    "MASK",
    "POINTS",
    "SCORES",
    "SDPA",
    "STD",
    "SUBMISSIONS",
    "WRONG_SCORES",
    "dump",
    "find",
    "new_cell",
    "pupils_in_trouble",
    "pupils_right",
    "released",
    "solved",
    "table_of_visible_answers",
    "write",
]
