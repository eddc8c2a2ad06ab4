"""Take the bodies out of functions that answer a lab, so that their modules stay importable.

The text is rewritten by its syntax tree, in place: signatures, docstrings and line numbers stay.
"""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from importlib import resources

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Top = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class WithholdingError(ValueError):
    """An entry of withheld.toml that names nothing."""


@cache
def entries() -> dict[str, tuple[str, ...]]:
    """What is withheld from each lab on, as `withheld.toml` says: lab name -> `module:name`s."""
    text = (resources.files("labs_lib") / "withheld.toml").read_text(encoding="utf-8")
    return {lab: tuple(table["withheld"]) for lab, table in tomllib.loads(text).items()}


def withheld_from(lab: str) -> dict[str, dict[str, str]]:
    """What a handout from `lab` on keeps back: module -> name -> the lab that it answers."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for answered, names in entries().items():
        for entry in names if answered >= lab else ():
            module, _, name = entry.partition(":")
            found[module][name] = answered
    return dict(found)


def withhold(source: str, names: dict[str, str], module: str) -> str:
    """A module's text with the bodies of the named functions and classes' methods kept back.

    Raises:
        WithholdingError: if the module holds no such function or class.
    """
    lines = source.split("\n")
    tree = ast.parse(source)
    top = {node.name: node for node in tree.body if isinstance(node, (*_FUNCTIONS, ast.ClassDef))}
    missing = sorted(set(names) - set(top))
    if missing:
        raise WithholdingError(f"withheld.toml names {module}:{missing[0]}, which does not exist")
    for name, lab in names.items():
        for function in _functions(top[name]):
            _empty(lines, function, f"{module}.{name}", lab)
    return "\n".join(lines)


def _functions(node: _Top) -> Iterable[ast.FunctionDef | ast.AsyncFunctionDef]:
    if not isinstance(node, ast.ClassDef):
        return [node]
    return [child for child in node.body if isinstance(child, _FUNCTIONS)]


def _empty(
    lines: list[str], function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, lab: str
) -> None:
    """Put one `raise` in place of the statements and comments below the docstring."""
    documented = ast.get_docstring(function, clean=False) is not None
    statements = function.body[1:] if documented else function.body
    raising = (
        f'from labs_lib.withheld import Withheld; raise Withheld("{name} answers {lab}, which '
        'this copy of the course leaves to you")'
    )
    if not statements:
        lines[_last_line(function.body[0]) - 1] += f"; {raising}"
        return
    first, column = statements[0].lineno - 1, statements[0].col_offset
    before = lines[first][:column]
    if before.strip():  # the body stands on the line of its signature
        start = first
    else:
        start = _last_line(function.body[0]) if documented else _after_signature(lines, first)
    end = _end(lines, function)
    lines[start:end] = [before + raising, *[""] * (end - start - 1)]


def _last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _after_signature(lines: list[str], first: int) -> int:
    """The line after the signature: comments above the first statement go as well."""
    start = first
    while lines[start - 1].strip().startswith("#") or not lines[start - 1].strip():
        start -= 1
    return start


def _end(lines: list[str], function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The line where the function ends, comments below its last statement included."""
    end = _last_line(function)
    for number in range(end, len(lines)):
        text = lines[number]
        inside = len(text) - len(text.lstrip()) > function.col_offset
        if text.strip() and not (inside and text.strip().startswith("#")):
            break
        end = number + 1 if text.strip() else end
    return end
