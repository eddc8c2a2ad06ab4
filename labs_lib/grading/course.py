"""The instructor's side of one lab: its exercises, its notebook, and what is untouched in it."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from ..errors import UsageError
from ..exercises import UnknownLab, exercises, labs
from ..exercises import lab as find_lab
from ..exercises.kit import Exercise, Lab
from ..notebook import reading
from ..notebook.cells import exercise_name, role
from ..notebook.labelling import Asked
from ..notebook.regions import has_region, replace_region, strip_markers
from ..paths import home

Names = str | int | Iterable[str | int] | None


@dataclass(frozen=True)
class Course:
    """A lab with what grading needs of it."""

    lab: Lab

    @cached_property
    def exercises(self) -> list[Exercise]:
        """The lab's exercises, in the order of the notebook."""
        return exercises(self.lab.number)

    @cached_property
    def asked(self) -> list[Asked]:
        """The exercises as matching needs them."""
        try:
            stubs = self._stubs()
        except UsageError:  # told where the notebook itself is needed
            stubs = {}
        return [
            Asked(e.name, e.called, stubs.get(e.name, e.stub.strip()), e.is_program)
            for e in self.exercises
        ]

    @cached_property
    def kernels(self) -> dict[str, str]:
        """The exercises that ask for a CUDA kernel, each with the kernel's name."""
        return {e.name: e.called for e in self.exercises if e.kind == "kernel"}

    @property
    def file(self) -> Path:
        """The released solution notebook."""
        return home() / "solutions" / f"{self.lab.stem}.ipynb"

    @cached_property
    def notebook(self) -> NotebookNode:
        """The solution notebook without outputs.

        Raises:
            UsageError: if it is missing, can't be read, or lacks a cell of an exercise.
        """
        way_out = f"`labs release {self.lab.number:02d}` makes it"
        try:
            found = reading.read(self.file.read_bytes()).notebook
        except (OSError, reading.Unreadable) as error:
            raise UsageError(
                f"the solution notebook {self.file} can't be read ({error}); {way_out}"
            ) from error
        for kind in ("answer", "check"):
            names = [exercise_name(cell) for cell in found.cells if role(cell) == kind]
            wrong = {e.name for e in self.exercises} ^ set(names)
            if wrong or len(names) != len(set(names)):
                raise UsageError(
                    f"the {kind} cells of {self.file} don't fit the exercises of {self.lab.name} "
                    f"({', '.join(sorted(wrong)) or 'one stands twice'}); {way_out}"
                )
        return found

    def solution(self) -> NotebookNode:
        """The notebook with its own answers, without the markers around them."""
        solved = copy.deepcopy(self.notebook)
        for cell in solved.cells:
            if role(cell) == "answer":
                cell.source = strip_markers(cell.source)
        return solved

    def _stubs(self) -> dict[str, str]:
        known = {item.name: item for item in self.exercises}
        stubs = {}
        for cell in self.notebook.cells:
            if role(cell) == "answer" and has_region(cell.source):
                name = exercise_name(cell)
                stubs[name] = replace_region(cell.source, known[name].stub)
        return stubs


def chosen(names: Names) -> list[Course]:
    """The labs to grade: those named (`"02,03"`, or a list), else the whole course.

    Raises:
        UsageError: for a lab that doesn't exist, or if none is named.
    """
    if names is None:
        return [Course(lab) for lab in labs()]
    words = [names] if isinstance(names, str | int) else list(names)
    parts = [part.strip() for word in words for part in str(word).split(",") if part.strip()]
    if not parts:
        raise UsageError("no lab is named; give for example --labs 02,03, or leave it out")
    try:
        found = {find_lab(part).number: find_lab(part) for part in parts}
    except UnknownLab as error:
        raise UsageError(str(error)) from error
    return [Course(found[number]) for number in sorted(found)]


def stub_of(course: Course) -> NotebookNode:
    """The notebook as students got it: stubs in place of answers."""
    stubs = {item.name: item.stub for item in course.asked}
    handed = copy.deepcopy(course.notebook)
    for cell in handed.cells:
        if role(cell) == "answer":
            cell.source = stubs[exercise_name(cell)]
    return nbformat.from_dict(handed)
