"""Read the text of an answer: does it call what the exercise asks the student to write?

The text is parsed and never run. A name counts wherever it is loaded, imported or taken as an
attribute, unless the answer itself defines it; ways around names (`getattr`, `eval`) are doubt.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ..notebook.bindings import MAX_CHARS

_AROUND = {
    "eval", "exec", "compile", "getattr", "__import__", "globals", "locals", "vars", "open",
    "importlib", "import_module", "__dict__", "__builtins__", "__getattribute__", "ctypes",
}  # fmt: skip
_MAGIC = re.compile(r"^([ \t]*)([%!].*)$", re.MULTILINE)


@dataclass(frozen=True)
class Reading:
    """What an answer's text was found to use: forbidden names, and ways around names."""

    forbidden: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def read(source: str, forbidden: Iterable[str]) -> Reading:
    """Read an answer's text for forbidden dotted names.

    Only the last part of each dotted name counts, since a student may import it under any path.
    Lines that are not Python (IPython's magics) are read as words, since they may run what stands
    in them, and so is text that can't be parsed or is longer than any answer.
    """
    wanted = {name.rpartition(".")[2]: name for name in forbidden}
    if not wanted:
        return Reading()
    facts = _facts(source) if len(source) <= MAX_CHARS else None
    if facts is None:
        return Reading((), tuple(sorted(_words(source) & (set(wanted) | _AROUND))))
    found = tuple(sorted(wanted[name] for name in facts.used & set(wanted)))
    doubts = (facts.used | facts.magic) & _AROUND
    doubts |= (facts.magic | facts.strings) & set(wanted)
    return Reading(found, tuple(sorted(doubts)))


class _Facts(NamedTuple):
    """The names that a text uses, and the words of its magic lines and of its strings."""

    used: frozenset[str]
    magic: frozenset[str]
    strings: frozenset[str]


@lru_cache(maxsize=256)
def _facts(source: str) -> _Facts | None:
    """Kept, since each of a notebook's exercises looks at all of its cells; None for no Python."""
    tree = _parse(source)
    if tree is None:
        return None
    magic = _words("\n".join(line[2] for line in _MAGIC.finditer(source)))
    used = frozenset(_loaded(tree, _defined(tree)))
    return _Facts(used, frozenset(magic), frozenset(_strings(tree)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _parse(source: str) -> ast.Module | None:
    try:
        return ast.parse(_MAGIC.sub(r"\1pass", source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _defined(tree: ast.Module) -> set[str]:
    """Names that the answer itself defines, unless the definition is made from that very name."""
    own: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            own |= {node.name} - _names(_evaluated_before(node))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            targets = {t.id for t in node.targets if isinstance(t, ast.Name)}
            own |= targets - _names(node.value.args.defaults)
    return own


def _evaluated_before(node: ast.AST) -> list[ast.AST]:
    """What Python evaluates before it binds the definition's name: bases, decorators, defaults."""
    parts: list[ast.AST] = [*getattr(node, "decorator_list", []), *getattr(node, "bases", [])]
    parts += [keyword.value for keyword in getattr(node, "keywords", [])]
    arguments = getattr(node, "args", None)
    if arguments is not None:
        parts += [d for d in (*arguments.defaults, *arguments.kw_defaults) if d is not None]
    return parts


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _loaded(tree: ast.Module, own: set[str]) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if node.id not in own and isinstance(node.ctx, ast.Load):
                yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.MatchClass):
            yield from node.kwd_attrs
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield alias.name.rpartition(".")[2]
                if alias.name == "*":
                    yield "import_module"  # a star may bring any name: doubt
            if isinstance(node, ast.ImportFrom) and node.module:
                yield from node.module.split(".")


def _strings(tree: ast.Module) -> set[str]:
    docs = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    return {
        word
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
        for word in re.findall(r"\w+", node.value)
    }
