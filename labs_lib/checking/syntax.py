"""Read the text of an answer: does it call what the exercise asks the student to write?

The text is parsed and never run. A name counts wherever it is loaded, imported or taken as an
attribute, unless the answer itself defines it; ways around names (`getattr`, `eval`, ...) are doubt.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

_AROUND = {
    "eval", "exec", "compile", "getattr", "__import__", "globals", "locals", "vars", "open",
    "importlib", "import_module", "__dict__", "__builtins__", "__getattribute__", "ctypes",
}  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """What an answer's text was found to use: forbidden names, and ways around names."""

    forbidden: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def read(source: str, forbidden: Iterable[str]) -> Reading:
    """Read an answer's text for forbidden dotted names.

    Only the last part of each dotted name counts, since a student may import it under any path.
    Lines that are not Python (IPython's magics) are left out; text that can't be parsed is read
    as words.
    """
    wanted = {name.rpartition(".")[2]: name for name in forbidden}
    if not wanted:
        return Reading()
    tree = _parse(source)
    if tree is None:
        words = set(re.findall(r"\w+", source))
        return Reading((), tuple(sorted(words & set(wanted))))
    own = _defined(tree)
    used = set(_loaded(tree, own))
    found = tuple(sorted(wanted[name] for name in used & set(wanted)))
    doubts = tuple(sorted((used & _AROUND) | _strings(tree) & set(wanted)))
    return Reading(found, doubts)


def _parse(source: str) -> ast.Module | None:
    lines = [
        " " * 0 + "pass" if re.match(r"\s*[%!]", line) else line for line in source.split("\n")
    ]
    try:
        return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _defined(tree: ast.Module) -> set[str]:
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef))
    }


def _loaded(tree: ast.Module, own: set[str]) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in own:
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield alias.name.rpartition(".")[2]
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
