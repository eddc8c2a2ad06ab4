"""From a student's program to a verdict: one of four outcomes, with the lines that explain it."""

from __future__ import annotations

import dis
import inspect
import linecache
import math
import os
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..exercises.inputs import rules_drawn_from
from ..exercises.kit import Exercise, Measured, Rule
from . import kernel_mistakes, kernels, mistakes, undefined
from .compare import difference
from .observe import Observation, observe_all, quiet, untouched_random_state
from .oracle import VISIBLE_SEED, Oracle
from .syntax import read
from .witness import Witness

PASS, FAIL, NOT_ATTEMPTED, ERROR = "PASS", "FAIL", "NOT ATTEMPTED", "ERROR"
WIDTH = 88  # a notebook breaks longer lines of output in the middle of a word
ROOM = 92  # what it shows; sentences are broken by hand at about WIDTH
NEAR = 0.05  # how far from the right number, as a share of it, an estimate may lie
_READS_A_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")


@dataclass(frozen=True)
class Verdict:
    """The outcome for one exercise; `mistake` is the name of the wrong program recognised."""

    exercise: str
    outcome: str
    lines: tuple[str, ...] = ()
    mistake: str = ""

    @property
    def passed(self) -> bool:
        """Whether the outcome is PASS."""
        return self.outcome == PASS

    def __str__(self) -> str:
        lines = [part for line in _whole(self.lines) for part in _fitted(line)]
        return "\n".join([f"{self.outcome}  {self.exercise}", *(f"  {x}" for x in lines)])


def _whole(lines: Iterable[str]) -> list[str]:
    """The lines; one that is too long goes on up to its sentence's end, so as to be cut as one."""
    found: list[str] = []
    for line in lines:
        before = found[-1] if found else ""
        cut = len(before) > ROOM - 2 and not before.endswith((".", ":", "?", "!"))
        if cut and not _names_a_case(before) and not _names_a_case(line) and not line[:1].isspace():
            found[-1] = f"{before} {line}"
        else:
            found.append(line)
    return found


def _names_a_case(line: str) -> bool:
    return line.lower().startswith("in the case “")


def _fitted(line: str) -> list[str]:
    """A line cut to what a notebook shows; one that names a case is made of parts of any length."""
    case = _names_a_case(line)
    if len(line) <= (WIDTH if case else ROOM - 2):
        return [line]
    indent = "  " if case else ""
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_long_words=False)


def judge(exercise: Exercise, program: Any, oracle: Oracle, source: str | None = None) -> Verdict:
    """Judge a student's program (or value) on the visible cases.

    `source` is the answer's text, for reading which names it uses; found by itself where it can be.
    """
    if exercise.kind == "kernel" and (missing := kernels.no_compiler()):
        return _verdict(exercise, ERROR, missing.split("\n"))
    if program is None:
        return _verdict(exercise, NOT_ATTEMPTED, [_not_attempted(exercise)])
    if exercise.kind == "kernel":
        if not kernels.is_kernel(program):
            return _verdict(exercise, FAIL, [kernel_mistakes.no_kernel(exercise, program)])
        if kernels.untouched(exercise, program):
            return _verdict(exercise, NOT_ATTEMPTED, [_not_attempted(exercise)])
    if exercise.kind == "function" and not callable(program):
        asked = "a class" if f"class {exercise.called}" in exercise.stub else "a function"
        name = type(program).__name__
        lines = [f"{exercise.called} is of type {name}; {asked} is asked"]
        return _verdict(exercise, FAIL, lines)
    value = _normalised(exercise, program)
    got = observe_all(exercise, value, VISIBLE_SEED)
    if got[0].unwritten == exercise.called:
        return _verdict(exercise, NOT_ATTEMPTED, [_not_attempted(exercise)])
    want = oracle.judge(exercise, got)
    if isinstance(want, bool):
        return _judge_value(exercise, got, want, oracle)
    lines, case_index = _first_difference(exercise, want, got)
    if lines:
        return _explain(exercise, program, got, want, lines, case_index, oracle)
    text = source if source is not None else source_of(program)
    broken = _broken(exercise, program, text)
    if broken:
        return _verdict(exercise, FAIL, broken)
    return _verdict(exercise, PASS, _praise(exercise, want, oracle, got))


def source_of(program: Any) -> str:
    """The text of the cell that defines a function, class or kernel (in a file, its own text)."""
    if kernels.is_kernel(program):
        return kernels.text_of(program)
    if isinstance(program, type):
        methods = [m for m in vars(program).values() if inspect.isfunction(m)]
        return source_of(methods[0]) if methods else ""
    try:
        code = inspect.unwrap(program).__code__
        if os.path.exists(code.co_filename):
            return textwrap.dedent(inspect.getsource(code))
        return "".join(linecache.getlines(code.co_filename))
    except (AttributeError, TypeError, ValueError, OSError):
        return ""


def rules_kept(
    exercise: Exercise,
    program: Any,
    seed: int = VISIBLE_SEED,
    prepared: Callable[[Any], Any] = lambda value: value,
) -> dict[str, Measured]:
    """Each structural rule, measured on the program, on inputs of the seed.

    A function's rules come with what it returned meanwhile; `prepared` is applied to each argument.
    """
    kept = {}
    with untouched_random_state(), quiet(), rules_drawn_from(seed):
        for rule in exercise.rules:
            try:
                kept[rule.name] = _measured(rule, exercise, program, prepared)
            except BaseException:  # a program that fails on the rule's inputs doesn't keep it
                kept[rule.name] = Measured(False)
    return kept


def _measured(
    rule: Rule, exercise: Exercise, program: Any, prepared: Callable[[Any], Any]
) -> Measured:
    if exercise.kind == "kernel":
        found = rule.kept(kernels.kernel_of(exercise, program))
        return found if type(found) is Measured else Measured(bool(found))
    witness = Witness(program, prepared)
    found = rule.kept(witness)
    found = found if type(found) is Measured else Measured(bool(found))
    return replace(found, returned=witness.leaves())


def _normalised(exercise: Exercise, program: Any) -> Any:
    if exercise.kind == "choice" and isinstance(program, str):
        return program.strip().lower()
    return program


def _judge_value(
    exercise: Exercise, got: list[Observation], right: bool, oracle: Oracle
) -> Verdict:
    if right:
        because = oracle.because(exercise, got)
        return _verdict(exercise, PASS, because.split("\n") if because else [])
    for mistake in oracle.mistakes(exercise, got):
        return _verdict(exercise, FAIL, mistake.says.split("\n"), mistake.name)
    return _verdict(exercise, FAIL, [_plain_value(exercise, got)])


def _first_difference(
    exercise: Exercise, want: list[Observation], got: list[Observation]
) -> tuple[list[str], int]:
    for index, (w, g) in enumerate(zip(want, got, strict=True)):
        lines = difference(exercise, w, g)
        if lines:
            return lines, index
    return [], -1


def _explain(
    exercise: Exercise,
    program: Any,
    got: list[Observation],
    want: list[Observation],
    lines: list[str],
    index: int,
    oracle: Oracle,
) -> Verdict:
    if exercise.kind == "kernel":
        case = _case_name(exercise, index)
        said, name = kernel_mistakes.explain(exercise, got, want, lines, index, oracle, case)
        return _verdict(exercise, ERROR if got[index].raised else FAIL, said, name)
    if exercise.kind != "function":
        mistake = mistakes.recognise(exercise, got, want, index, oracle)
        says = mistake.says.split("\n") if mistake else [_plain_value(exercise, got)]
        return _verdict(exercise, FAIL, says, mistake.name if mistake else "")
    if got[index].raised and not want[index].raised:
        if calls := got[index].unwritten:
            return _verdict(exercise, ERROR, _calls_unwritten(exercise, calls))
        mistake = mistakes.recognise_error(exercise, got, index, oracle)
        says = mistake.says.split("\n") if mistake else undefined.told(exercise, got[index])
        where = f"in the case “{_case_name(exercise, index)}” {lines[0]}"
        more = [] if mistake else _globals_used(program)
        return _verdict(exercise, ERROR, [*says, where, *more], mistake.name if mistake else "")
    if index == len(want) - 1:
        return _verdict(exercise, FAIL, [
            "Called twice with the same inputs, your function gave two different results:",
            "something is kept between the calls (a global, a default list, a cache).",
        ])  # fmt: skip
    mistake = mistakes.recognise(exercise, got, want, index, oracle)
    says = mistake.says.split("\n") if mistake else []
    if lines[0].startswith("The "):  # whole sentences, which go on where the case is named
        lines = ["the " + " ".join(lines).removeprefix("The ")]
    where = f"In the case “{_case_name(exercise, index)}”: {lines[0]}"
    more = (
        [] if mistake else [*_estimated(exercise, want[index], got[index]), *_globals_used(program)]
    )
    name = mistake.name if mistake else ""
    return _verdict(exercise, FAIL, [*says, where, *lines[1:], *more], name)


def _estimated(exercise: Exercise, want: Observation, got: Observation) -> list[str]:
    """A hint where a number is near the right one, as one drawn from random numbers would be."""
    numbers = [leaf for leaf in (want.leaves.get(""), got.leaves.get("")) if leaf is not None]
    if [leaf.kind for leaf in numbers] != ["number", "number"]:
        return []
    w, g = (float(leaf.value) for leaf in numbers)
    right = not difference(exercise, want, replace(got, changed=()))  # it only changed an input
    if right or not abs(g - w) <= NEAR * abs(w):
        return []
    return ["Near, but not equal. Was it rounded, or drawn at random? A formula is wanted."]


def _broken(exercise: Exercise, program: Any, text: str) -> list[str]:
    look = kernels.read if exercise.kind == "kernel" else read
    reading = look(text, exercise.forbidden)
    if reading.forbidden:
        names = ", ".join(reading.forbidden)
        return [
            f"The values are right, but the answer uses {names},",
            "which is what this exercise asks you to write yourself.",
        ]
    kept = rules_kept(exercise, program) if exercise.rules else {}
    broken = [(rule, kept[rule.name]) for rule in exercise.rules if not kept[rule.name]]
    return [line for rule, found in broken for line in rule.told(found.words)]


def _praise(
    exercise: Exercise, want: list[Observation], oracle: Oracle, got: list[Observation]
) -> list[str]:
    lines = []
    if exercise.is_program:
        cases = len(want) - 1
        lines.append(f"right in {cases} cases" if cases > 1 else "right")
        lines += [f"rule kept: {rule.text}" for rule in exercise.rules]
    because = oracle.because(exercise, got)
    return [*lines, *because.split("\n")] if because else lines


def _plain_value(exercise: Exercise, got: list[Observation]) -> str:
    leaf = got[0].leaves.get("")
    shown = repr(leaf.value) if leaf else "that"
    if exercise.kind == "choice":
        allowed = ", ".join(exercise.choices)
        if leaf is None or leaf.value not in exercise.choices:
            return f"{shown} is not one of the choices: {allowed}"
        return f"{shown} is not it"
    if leaf is None or leaf.kind != "number":
        return f"{shown} is not a number; give one{f' in {exercise.unit}' if exercise.unit else ''}"
    return f"{shown}{' ' + exercise.unit if exercise.unit else ''} is not it"


def _case_name(exercise: Exercise, index: int) -> str:
    cases = exercise.make_cases(VISIBLE_SEED)
    return cases[index].name if index < len(cases) else f"{cases[0].name}, again"


def _not_attempted(exercise: Exercise) -> str:
    if exercise.kind == "kernel" and exercise.called in kernels.not_compiled():
        return (
            "the cell above was refused: mend what its message says, run that cell, then run this "
            "one"
        )
    if exercise.is_program:
        return f"write {exercise.called} in the cell above, run that cell, then run this one"
    return f"give {exercise.called} a value in the cell above, run that cell, then run this one"


def _calls_unwritten(exercise: Exercise, name: str) -> list[str]:
    if name == exercise.called:
        return [f"a line `raise NotImplementedError` is still in {name}"]
    kind = "class" if f"class {exercise.called}" in exercise.stub else "function"
    return [
        f"your {kind} calls {name}, which is not written yet",
        "write that in its own cell, run that cell, then run this one",
    ]


def _globals_used(program: Any) -> list[str]:
    """A hint when the function reads a plain variable of the notebook."""
    code = getattr(program, "__code__", None)
    space = getattr(program, "__globals__", {})
    if code is None:
        return []
    loaded = {one.argval for one in dis.get_instructions(code) if one.opname in _READS_A_GLOBAL}
    names = [
        n
        for n in code.co_names  # attributes too, such as the tensor of torch.tensor
        if n in loaded and _is_size(space.get(n)) and not n.isupper() and not n.startswith("_")
    ]
    if not names:
        return []
    return [
        f"Your function reads {', '.join(names)} from the notebook; "
        "in the check other sizes are used, so take it from the arguments."
    ]


def _is_size(value: Any) -> bool:
    """Whether a global may be what ties a function to one case; infinity and NaN are not."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, (int, list, torch.Tensor))


def _verdict(exercise: Exercise, outcome: str, lines: list[str], mistake: str = "") -> Verdict:
    return Verdict(exercise.name, outcome, tuple(lines), mistake)
