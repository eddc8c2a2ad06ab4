"""Read how an answer is written: names it must not use, and ways around being measured.

Values can't be forged in a graded run, but what a rule measures can be, inside the student's own
process. So the text is read outside of it; what can't be told apart there is doubt, for a person.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...checking.kernels import read as read_kernel
from ...checking.syntax import read
from ...exercises.kit import Exercise
from ...notebook.bindings import MAX_CHARS, binds, is_cuda, parse, used_names
from ...notebook.matching import Answer, Piece
from .kernel_text import doubts
from .transplant import kernel_text
from .ways import around, from_the_library, in_python, opaque, out_of_torch, rebound

_MEDDLING = {
    "get_ipython", "builtins", "__builtins__", "setattr", "delattr", "ctypes", "settrace",
    "_getframe", "get_objects", "rules_kept", "graded_text", "ast_transformers",
    "input_transformers_cleanup", "input_transformers_post", "__code__", "user_ns",
    "run_cell", "run_line_magic", "setprofile", "f_globals", "f_locals",
}  # fmt: skip
_HIDING = {"exec", "eval", "compile", "__import__", "importlib", "import_module", "globals"}
_MEASURING = {"check", "given"}  # what the course's own cells call by name


@dataclass(frozen=True)
class Structure:
    """Forbidden names in the answer itself; sentences for what a person has to look at."""

    forbidden: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def structure(exercise: Exercise, answers: Mapping[str, Answer]) -> Structure:
    """Read the answer to one exercise, and what it reaches in the student's other cells."""
    if exercise.kind == "kernel":
        text = kernel_text(answers[exercise.name], exercise.called)
        return Structure(read_kernel(text, exercise.forbidden).forbidden, tuple(doubts(text)))
    own, reached, rest = _reach(exercise, answers)
    found = read("\n\n".join(own), exercise.forbidden)
    told = [f"its text holds {name}, a way around names" for name in found.doubts]
    for text in reached:
        told += [f"a cell that it uses holds {name}" for name in _held(text, exercise)]
    for text in rest:
        held = _aside(text, exercise)
        told += [f"a cell that may change other objects holds {name}" for name in held]
    told += [f"it takes {m} from the course" for m in from_the_library([*own, *reached])]
    if exercise.rules or exercise.forbidden:
        told += _on_the_side(exercise, own, reached, rest)
    return Structure(found.forbidden, tuple(dict.fromkeys(told)))


def _held(text: str, exercise: Exercise) -> tuple[str, ...]:
    found = read(text, exercise.forbidden)
    return found.forbidden + found.doubts


def _aside(text: str, exercise: Exercise) -> list[str]:
    """What a cell that the answer doesn't name holds, where it may reach the answer all the same.

    That a text holds a forbidden word in a string is nothing, and a text that is no Python at all
    was never run.
    """
    found = read(text, exercise.forbidden)
    words = {name.rpartition(".")[2] for name in exercise.forbidden}
    around_names = [name for name in found.doubts if name not in words]
    if parse(text) is None:
        return list(found.doubts) if opaque(text) else []
    if _patches(text):
        return [*found.forbidden, *around_names]
    return [name for name in around_names if name in _HIDING]


def _on_the_side(
    exercise: Exercise, own: Sequence[str], reached: Sequence[str], rest: Sequence[str]
) -> list[str]:
    """Doubts about what can't be named in advance: other ways there, and what measures."""
    every = [*own, *reached, *rest]
    doubts = [f"it goes by {name}" for name in around([*own, *reached], exercise.forbidden)]
    if any(rule.by_torch for rule in exercise.rules):
        doubts += [
            f"it works by {name}, where no rule counts" for name in out_of_torch([*own, *reached])
        ]
    doubts += ["it is no plain Python" for text in [*own, *reached] if parse(text) is None]
    doubts += [f"a cell uses {name}" for name in sorted(_meddling(every))]
    renamed = {name for text in every for name in rebound(text)} & _MEASURING
    return doubts + [f"a cell gives {name} another meaning" for name in sorted(renamed)]


def _reach(
    exercise: Exercise, answers: Mapping[str, Answer]
) -> tuple[list[str], list[str], list[str]]:
    """The texts that define the answer, those that they use by name, and all others."""
    pieces = [_text(p) for a in answers.values() if a.attempted for p in a.pieces]
    of_place = [_text(p) for p in answers[exercise.name].pieces]
    function = exercise.kind == "function"
    own = [t for t in of_place if binds(t, exercise.called, as_function=function)] or of_place
    rest = [text for text in dict.fromkeys(pieces) if text not in own]
    reached: list[str] = []
    names = {exercise.called, *(name for text in own for name in used_names(text))}
    while True:
        found = [text for text in rest if rebound(text) & names]
        if not found:
            return own, reached, rest
        reached += found
        rest = [text for text in rest if text not in found]
        names |= {name for text in found for name in used_names(text)}


def _text(piece: Piece) -> str:
    """A cell's text as Python; CUDA cells run elsewhere and are none."""
    return "" if is_cuda(piece.source) else in_python(piece.source)


@lru_cache(maxsize=256)
def _patches(source: str) -> bool:
    """Whether a cell stores into attributes or items of other objects."""
    tree = parse(source)
    return tree is not None and any(
        isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store)
        for node in ast.walk(tree)
    )


def _meddling(texts: Sequence[str]) -> set[str]:
    """Names by which a cell can change what measures it."""
    return {name for text in texts if len(text) <= MAX_CHARS for name in _meddles(text)}


@lru_cache(maxsize=256)
def _meddles(text: str) -> frozenset[str]:
    found: set[str] = set()
    tree = parse(text)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Name):
            found |= {node.id} & _MEDDLING
        elif isinstance(node, ast.Attribute):
            system = isinstance(node.value, ast.Name) and node.value.id == "sys"
            found |= {node.attr} & _MEDDLING
            found |= {"sys.modules"} if system and node.attr == "modules" else set()
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            module = getattr(node, "module", "") or ""
            words = {w for n in (module, *(a.name for a in node.names)) for w in n.split(".")}
            found |= words & (_MEDDLING | {"checking"})
    return frozenset(found)
