"""What learning platforms call a student's file: whose it is, and when it came.

The end of such a name is the student's own choice. It may look like another platform's name, or
like another student's, so a name is read as the platform made it from which most names beside it
come, and the student's part begins where the platform's first ends.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

_MOODLE = re.compile(
    r"(?P<name>.+?)_(?P<number>[^_]+)_assignsubmission_(?:file|onlinetext)_?(?P<rest>.*)", re.S
)
_CANVAS = re.compile(
    r"(?P<name>.+?)(?P<late>_LATE)?_(?P<number>\d+)_(?P<upload>\d+)_(?P<rest>.+)", re.S
)
_BLACKBOARD = re.compile(
    r"(?P<name>.+?)_attempt_(?P<when>\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d)(?:_(?P<rest>.+)|\.txt)", re.S
)
_FORMS = (_BLACKBOARD, _MOODLE, _CANVAS)


@dataclass(frozen=True)
class Carrier:
    """What a name says: whose it is, their number on the platform, and what it is.

    `when` is the platform's own time of an attempt (by its server's clock, as YYYY-MM-DD-HH-MM-SS),
    `late` whether it called the attempt late, `others` further readings of whose it is, the
    likeliest first; `on_canvas` says that the number is Canvas's.
    """

    name: str
    number: str = ""
    rest: str = ""
    when: str = ""
    late: bool = False
    others: tuple[str, ...] = ()
    on_canvas: bool = False


def carriers(names: Iterable[str]) -> dict[str, Carrier]:
    """The parts of the names that a learning platform made, by name; others have no entry.

    Moodle: `Ann Lee_77_assignsubmission_file_lab.ipynb`. Canvas: `leeann_LATE_99_680_lab.ipynb`.
    Blackboard: `Lab 1_alee_attempt_2026-10-25-02-30-00_lab.ipynb`, and a receipt that ends in .txt.
    """
    readings = {name: _readings(name) for name in names}
    votes: dict[re.Pattern[str], set[str]] = defaultdict(set)
    for name, found in readings.items():
        for one in found:
            votes[one.re].add(_vote(one, name))

    def rank(one: re.Match[str]) -> tuple[int, int]:
        return len(votes[one.re]), -_end_of_prefix(one)

    chosen = {name: max(found, key=rank) for name, found in readings.items() if found}
    titled = {one["name"] for one in chosen.values() if one.re is _BLACKBOARD}
    return {name: _carrier(one, titled) for name, one in chosen.items()}


def is_platform_name(name: str) -> bool:
    """Whether any learning platform may have made a name."""
    return bool(_readings(name))


def is_receipt(name: str) -> bool:
    """Whether a file is what Blackboard writes of each attempt, which is no student's."""
    found = _BLACKBOARD.fullmatch(name)
    return found is not None and not found["rest"]


def classroom_assignment(folder: str) -> str:
    """The assignment of a folder that GitHub Classroom's `clone student-repos` makes,
    `lab-1-submissions`, in which a student's repository is `lab-1-NAME`; empty for others."""
    stem, dash, kind = folder.rpartition("-")
    return stem if dash and kind == "submissions" else ""


def _readings(name: str) -> list[re.Match[str]]:
    return [found for form in _FORMS if (found := form.fullmatch(name))]


def _vote(found: re.Match[str], name: str) -> str:
    """Canvas gives a number to each upload: equal ones are in a title that all names share."""
    return f"{found['number']}_{found['upload']}" if found.re is _CANVAS else name


def _end_of_prefix(found: re.Match[str]) -> int:
    return found.start("rest") if found["rest"] is not None else found.end()


def _carrier(found: re.Match[str], titled: set[str]) -> Carrier:
    rest = found["rest"] or ""
    if found.re is _BLACKBOARD:
        words = found["name"].split("_")
        longer = tuple("_".join(words[n:]) for n in range(1, len(words)))
        name = "_".join(words[_title(titled) :]).strip()
        return Carrier(name, "", rest, found["when"], others=longer)
    name, number = found["name"].strip(), found["number"]
    if found.re is _MOODLE:
        return Carrier(name, number, rest)
    return Carrier(name, number, rest, late=found["late"] is not None, on_canvas=True)


def _title(titled: set[str]) -> int:
    """How many words of Blackboard's names are the assignment's title: what all of them begin
    with; all but the last where there is one student only."""
    split = [name.split("_") for name in titled]
    shortest = min(map(len, split)) - 1
    if len(split) == 1:
        return shortest
    same = 0
    while same < shortest and len({words[same] for words in split}) == 1:
        same += 1
    return same
