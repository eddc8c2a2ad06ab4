"""Which submissions look alike, as a hint for a person who reads both, never as a verdict.

Answers are compared by the fingerprints of their tokens. What the course itself gives or expects
(stubs, references, known right and wrong programs) is taken out first, and a passage counts the
less the more students have it. Everything stays on this machine.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from ...answers import answer
from ...checking.verdict import source_of
from ...notebook.cells import exercise_name, role
from ...notebook.matching import match
from ...notebook.reading import Unreadable
from ...workbook.plain_pages import escaped, plain_page
from ..course import Course
from ..intake.candidates import parse, sort_files
from ..intake.collect import Submission
from .fingerprints import hashes, winnowed
from .report import cell

CROWD = 25  # of a passage that more students share, only neighbours in the list are compared
FEWEST = 4  # marks that a pair has to share
LEAST = 0.5  # of the smaller one's weight
MOST_PAIRS = 200
SHOWN = 40
_WORDS = (
    "A hint for a person who reads both texts, never a verdict: short programs are alike by nature."
)

Texts = Mapping[str, Mapping[str, str]]  # student -> exercise -> the text of the answer


@dataclass(frozen=True)
class Pair:
    """Two students, how much of the smaller one's own text the other has too (0 to 1), how many
    marks they share, and in which exercises."""

    first: str
    second: str
    likeness: float
    shared: int
    exercises: tuple[str, ...]


def alike(texts: Texts, known: Mapping[str, Iterable[str]]) -> list[Pair]:
    """Pairs of students whose answers look alike, the likeliest first.

    `known` maps exercises to texts that the course gives or expects. The work grows with the number
    of students, not with its square: only those who share a mark are ever compared.
    """
    common = {name: _all_hashes(sources) for name, sources in known.items()}
    marks: dict[str, dict[tuple[str, int], None]] = {}
    for student, answers in texts.items():
        own = marks[student] = {}
        for name, text in answers.items():
            left = [mark for mark in hashes(text) if mark not in common.get(name, set())]
            own.update(dict.fromkeys((name, mark) for mark in winnowed(left)))
    holders: dict[tuple[str, int], list[str]] = defaultdict(list)
    for student, own in marks.items():
        for mark in own:
            holders[mark].append(student)
    weights = {m: 1 / math.log2(1 + len(who)) for m, who in holders.items()}
    return _pairs(marks, holders, weights)


def similarity_files(
    submissions: Sequence[Submission], courses: Sequence[Course]
) -> dict[str, bytes]:
    """`similarity.csv` and `similarity.html` for a class, by name; for the instructor alone."""
    texts, strange = {}, []
    for one in submissions:
        try:
            texts[one.student] = _texts(one, courses)
        except Exception:  # its row says why: a hint is no reason to lose the report
            strange.append(one.student)
    known = {e.name: _given(course, e.name) for course in courses for e in course.exercises}
    pairs = alike(texts, known)
    return {
        "similarity.csv": _table(pairs).encode("utf-8", "replace"),
        "similarity.html": _page(pairs, texts, strange).encode("utf-8", "replace"),
    }


def _pairs(
    marks: Mapping[str, Any],
    holders: Mapping[tuple[str, int], list[str]],
    weights: Mapping[tuple[str, int], float],
) -> list[Pair]:
    shared: dict[tuple[str, str], Counter] = defaultdict(Counter)
    weight: dict[tuple[str, str], float] = defaultdict(float)
    for mark, students in holders.items():
        few = len(students) <= CROWD
        for pair in combinations(students, 2) if few else pairwise(students):
            shared[pair][mark[0]] += 1
            weight[pair] += weights[mark]
    whole = {student: sum(weights[mark] for mark in own) for student, own in marks.items()}
    found = []
    for (first, second), by_exercise in shared.items():
        smaller = min(whole[first], whole[second])
        likeness, count = weight[first, second] / smaller, sum(by_exercise.values())
        if count >= FEWEST and likeness >= LEAST:
            names = tuple(name for name, _ in by_exercise.most_common())
            found.append(Pair(first, second, likeness, count, names))
    found.sort(key=lambda pair: (-weight[pair.first, pair.second], pair.first, pair.second))
    return found[:MOST_PAIRS]


def _all_hashes(sources: Iterable[str]) -> set[int]:
    return {mark for source in sources for mark in hashes(source)}


def _texts(submission: Submission, courses: Sequence[Course]) -> dict[str, str]:
    """The answers of a student by exercise; what can't be read has none."""
    files = sort_files(submission, courses)
    texts: dict[str, str] = {}
    for course in courses:
        candidate = files.notebooks.get(course.lab.name)
        if candidate is None:
            continue
        try:
            student = parse(candidate).notebook
        except Unreadable:
            continue
        for name, found in match(student, course.notebook, course.asked).items():
            if found.attempted:
                texts[name] = found.source
    return texts


def _given(course: Course, name: str) -> list[str]:
    """What the course itself gives or expects for an exercise: shared by everybody."""
    found = answer(name)
    programs = [found.reference, *(one.program for one in (*found.right, *found.wrong))]
    kernel = name in course.kernels
    own = [f"%%cuda\n{p}" if kernel else source_of(p) for p in programs]
    stub = next(item.stub for item in course.asked if item.name == name)
    cells = course.solution().cells
    solved = [c.source for c in cells if role(c) == "answer" and exercise_name(c) == name]
    return [stub, *solved, *own]


def _table(pairs: Sequence[Pair]) -> str:
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["student", "other", "likeness", "shared", "exercises"])
    for pair in pairs:
        who = (cell(pair.first), cell(pair.second))
        table.writerow([*who, f"{pair.likeness:.0%}", pair.shared, "; ".join(pair.exercises)])
    return text.getvalue()


def _page(pairs: Sequence[Pair], texts: Texts, strange: Sequence[str] = ()) -> str:
    title = "Answers that look alike"
    parts = [f"<h1>{title}</h1><p>{_WORDS}</p>"]
    if strange:
        parts.append(
            f"<p>Not compared, since they couldn't be read: {escaped(', '.join(strange))}.</p>"
        )
    for pair in pairs[:SHOWN]:
        told = f"{pair.first} and {pair.second}: {pair.likeness:.0%}, {pair.shared} passages"
        parts.append(f"<h2>{escaped(told)}</h2>")
        for name in pair.exercises[:3]:
            cells = "".join(
                f"<td><pre>{escaped(texts[who].get(name, '')[:4000])}</pre></td>"
                for who in (pair.first, pair.second)
            )
            parts.append(f"<h3>{escaped(name)}</h3><table><tr>{cells}</tr></table>")
    if not pairs:
        parts.append("<p>None do.</p>")
    style = "td { vertical-align: top; width: 50%; } pre { white-space: pre-wrap; }"
    return plain_page(title, style, *parts)
