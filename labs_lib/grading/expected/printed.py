"""What a graded check printed against what it was to print, in words for a student.

Shapes, types and the names of results may be told; a wanted number never is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from ...answers import Wrong
from ...checking.kernel_mistakes import around
from ...checking.verdict import NOT_ATTEMPTED
from ...exercises.kit import Exercise

_NUMBERS = re.compile(r"[-+]?\d*\.\d+(?:e[-+]?\d+)?|[-+]?\d+e[-+]?\d+|\d{5,}|[\w+/=]{41,}", re.I)
NOTE = "  | "  # what a trace says of the kernel's own lines; it is shown and never compared


class Cases(Protocol):
    """What a wrong program prints, made case by case."""

    def __len__(self) -> int: ...

    def case(self, index: int) -> list[str]:
        """The lines of one case."""


Mistakes = Sequence[tuple[Wrong, str | Cases]]  # a wrong program and what it prints
Known = Sequence[tuple[Wrong, Cases]]


def explain(
    item: Exercise, printed: str, expected: str, mistakes: Mistakes
) -> tuple[str, list[str], str]:
    """Status, lines and the mistake's name for a text that is not the expected one."""
    got, want = Printed(printed), Printed(expected)
    if got.name != item.name:
        return "fail", ["Your notebook changed what the check prints, so it proves nothing."], ""
    if not got.cases:
        asked = {"function": "a function", "kernel": "a kernel"}.get(item.kind, "a value")
        return "fail", [f"{item.called} is {got.first or 'nothing'}; {asked} is asked."], ""
    if not item.is_program:
        return _wrong_value(item, mistakes, got)
    index = next((i for i, pair in enumerate(_pairs(want, got)) if pair[0] != pair[1]), None)
    if index is None:
        return "fail", _broken_rules(item, want, got), ""
    known = [(wrong, Printed(x) if isinstance(x, str) else x) for wrong, x in mistakes]
    if item.kind == "kernel":
        mistake = _recognise_kernel(known, want, got, index)
        status, lines = _difference_of_kernel(item, want, got, index)
    else:
        mistake = _recognise(known, want, got, index)
        status, lines = _difference(item, want, got, index)
    if mistake is None:
        return status, lines, ""
    return "fail", [*mistake.says.split("\n"), *lines], mistake.name


def masked(text: str, longest: int = 300) -> str:
    """Text that a student's program made while it saw hidden inputs, with nothing left that could
    be one of their numbers."""
    return _NUMBERS.sub("\N{HORIZONTAL ELLIPSIS}", text)[:longest]


class Printed:
    """A graded text taken apart: name, blocks of cases, rules."""

    def __init__(self, text: str) -> None:
        lines = text.rstrip("\n").split("\n")
        self.name, self.first = lines[0], lines[1].strip() if len(lines) > 1 else ""
        self.cases: list[list[str]] = []
        self.notes: list[list[str]] = []
        self.rules: dict[str, str] = {}
        self.counted: dict[str, dict[str, str]] = {}
        self.returned: dict[str, list[str]] = {}  # by rule, what came back while it was measured
        for line in lines[1:]:
            rule = re.fullmatch(r"rule (.*?): (kept|broken)(?: (\{.*\}))?", line)
            if re.fullmatch(r"case \d+", line):
                self.cases.append([])
                self.notes.append([])
            elif rule:
                self.rules[rule[1]] = rule[2]
                self.counted[rule[1]] = _words(rule[3])
                self.returned[rule[1]] = []
            elif self.rules:
                self.returned[next(reversed(self.rules))].append(line)
            elif self.cases and line.startswith(NOTE):
                self.notes[-1].append(line.removeprefix(NOTE))
            elif self.cases:
                self.cases[-1].append(line)

    def __len__(self) -> int:
        return len(self.cases)

    def case(self, index: int) -> list[str]:
        """The lines of one case."""
        return self.cases[index]

    def is_not_attempted(self, name: str) -> bool:
        """Whether the check of `name` found nothing to check."""
        return self.name == name and self.first == NOT_ATTEMPTED


def _words(text: str | None) -> dict[str, str]:
    """What a broken rule counted, as short texts; nothing where it was not told."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return {str(key): str(value)[:40] for key, value in found.items()}


def _pairs(want: Printed, got: Printed) -> list[tuple[list[str] | None, list[str] | None]]:
    length = max(len(want.cases), len(got.cases))
    padded = [one.cases + [None] * (length - len(one.cases)) for one in (want, got)]
    return list(zip(*padded, strict=True))


def _recognise(mistakes: Known, want: Printed, got: Printed, index: int) -> Wrong | None:
    """The known mistake that prints the same; else the one that shares the first wrong case.

    One that is wrong where the program is right is another mistake: its sentence would be false.
    """
    best = None
    right = [i for i, pair in enumerate(_pairs(want, got)) if pair[0] == pair[1]]
    for wrong, theirs in mistakes:
        shared = index < len(got.cases)
        if len(theirs) != len(got.cases) or (shared and theirs.case(index) != got.cases[index]):
            continue
        agreed = sum(theirs.case(i) == case for i, case in enumerate(got.cases))
        if agreed == len(got.cases):
            return wrong
        fits = shared and all(theirs.case(i) == got.cases[i] for i in right)
        if fits and (best is None or agreed > best[0]):
            best = (agreed, wrong)
    return best[1] if best else None


def _recognise_kernel(mistakes: Known, want: Printed, got: Printed, index: int) -> Wrong | None:
    """The known mistake that prints the same in the first wrong case, and in most around it."""
    best = None
    window = around(index, len(got.cases) - 1)
    for wrong, theirs in mistakes:
        if len(theirs) != len(got.cases) or theirs.case(index) == want.cases[index]:
            continue
        if theirs.case(index) != got.cases[index]:
            continue
        agreed = sum(theirs.case(i) == got.cases[i] for i in window)
        if agreed == len(window):
            return wrong
        if best is None or agreed > best[0]:
            best = (agreed, wrong)
    return best[1] if best else None


def _difference_of_kernel(
    item: Exercise, want: Printed, got: Printed, index: int
) -> tuple[str, list[str]]:
    """What stopped the kernel, or what its trace found, in the trace's own sentences."""
    if index >= len(want.cases) or index >= len(got.cases):
        return _difference(item, want, got, index)
    notes = got.notes[index]
    raised = next((x.strip() for x in got.cases[index] if x.startswith("  raised ")), "")
    if raised:
        kind = raised.removeprefix("raised KernelFault: ").partition(":")[0]
        status = {"timeout": "timeout", "killed": "crash"}.get(kind)
        status = status or ("fail" if "KernelFault" in raised else "error")
    elif any(x not in want.cases[index] for x in got.cases[index] if x.startswith("  findings: ")):
        status = "fail"
    else:
        return _difference(item, want, got, index)
    names = [case.name for case in item.make_cases(0)]
    first, *more = notes or [raised or "its trace found something wrong"]
    return status, [f"In the case “{names[index % len(names)]}”: {first}", *more]


def _difference(item: Exercise, want: Printed, got: Printed, index: int) -> tuple[str, list[str]]:
    names = [case.name for case in item.make_cases(0)]
    where = f"In the case “{names[index]}”" if index < len(names) else "In the last case"
    theirs = got.cases[index] if index < len(got.cases) else []
    ours = want.cases[index] if index < len(want.cases) else []
    raised = next((line.strip() for line in theirs if line.startswith("  raised ")), "")
    if raised:
        kind, _, message = raised.removeprefix("raised ").partition(":")
        status = {"TooSlow": "timeout", "MemoryError": "memory"}.get(kind, "error")
        return status, [f"{where} it raised {kind}{message and ':'}{masked(message)}"]
    if index == len(names):
        return "fail", [
            "Called twice with the same inputs, it gave two different results: something is kept",
            "between the calls (a global, a default list, a cache).",
        ]
    changed = [line.strip() for line in theirs if line not in ours and "changed its input" in line]
    if changed:
        return "fail", [f"{where} it {changed[0]}; whoever called it still needs that tensor."]
    return "fail", [f"{where} {masked(_first_line(ours, theirs))}"]


def _first_line(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """What differs, without a wanted number: shapes, types and paths may be told."""
    mine, their = (
        dict(line.strip().partition(": ")[::2] for line in one) for one in (ours, theirs)
    )
    if unlike := their.get("['not as asked']"):
        return unlike.removeprefix("text ")[1:-1]  # without its quotes
    if set(mine) != set(their):
        return f"it returned {_listed(their)}; wanted is {_listed(mine)}."
    for path, text in mine.items():
        head, other = _head(text), _head(their[path])
        if text != their[path]:
            label = "" if path == "value" else f"{path}: "
            if head != other:
                return f"{label}it returned {other}; wanted is {head}."
            return f"{label}the values differ from the wanted ones."
    return "the values differ from the wanted ones."


def _head(text: str) -> str:
    found = re.match(r"((?:tensor|array) \w+) (\[[\d, ]*\])", text)
    return f"{found[1]} of shape {found[2]}" if found else text.partition(" ")[0]


def _listed(paths: Mapping[str, str]) -> str:
    return ", ".join(paths) if paths else "nothing"


def _wrong_value(item: Exercise, mistakes: Mistakes, got: Printed) -> tuple[str, list[str], str]:
    for wrong, text in mistakes:
        if isinstance(text, str) and Printed(text).cases == got.cases:
            return "fail", wrong.says.split("\n"), wrong.name
    shown = " ".join(line.strip().removeprefix("value: ") for line in got.cases[0])[:120]
    if item.kind == "choice":
        return "fail", [f"{shown} is not it; the choices are {', '.join(item.choices)}."], ""
    return "fail", [f"{shown}{' ' + item.unit if item.unit else ''} is not it."], ""


def _broken_rules(item: Exercise, want: Printed, got: Printed) -> list[str]:
    broken = [
        line
        for rule in item.rules
        if got.rules.get(rule.name) != "kept"
        for line in rule.told(got.counted.get(rule.name, {}))
    ]
    wrong = [
        f"Where “{rule.text}” was measured, the values differ from the wanted ones."
        for rule in item.rules
        if got.returned.get(rule.name) != want.returned.get(rule.name)
    ]
    return broken or wrong or ["Something else than the check printed into its output."]
