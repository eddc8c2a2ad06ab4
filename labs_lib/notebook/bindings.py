"""What a cell's text binds and uses, read from its syntax tree; the text is never run."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache

from .cells import checked_exercise

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS = ("body", "orelse", "finalbody", "handlers")
MAX_CHARS = 30_000  # no answer is longer, and a tree takes hundreds of times the memory of its text
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_NO_NAMES = ("__launch_bounds__", "__attribute__", "__align__")


def parse(source: str) -> ast.Module | None:
    """The text's tree, with IPython's magic lines left out.

    None where it is no Python, and where it is longer than any answer.
    """
    return None if len(source) > MAX_CHARS else _parsed(source)


@lru_cache(maxsize=256)
def _parsed(source: str) -> ast.Module | None:
    if source.lstrip().startswith("%%"):
        return None
    lines = [re.sub(r"^(\s*)[%!].*", r"\1pass", line) for line in source.split("\n")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def binds(source: str, name: str, *, as_function: bool) -> bool:
    """Whether a cell gives `name` a value of the kind asked for, at its top level.

    A function may come from `def`, `class`, or an assignment of anything but a plain constant; a
    value from any assignment but that of None. Text that doesn't parse is read by its line starts.
    A `%%cuda` cell gives names to its kernels.
    """
    if is_cuda(source):
        return as_function and name in kernel_names(source)
    tree = parse(source)
    if tree is None:
        kind = r"(?:async\s+)?(?:def|class)\s+{0}\b|{0}\s*=\s*lambda" if as_function else r"{0}\s*="
        return re.search("^(?:" + kind.format(re.escape(name)) + ")", source, re.M) is not None
    return name in _given(source)[0 if as_function else 1]


@lru_cache(maxsize=1024)
def _given(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a text may give a function, and those that it gives a value.

    Kept, since each cell is asked about every exercise of the course.
    """
    functions: set[str] = set()
    values: set[str] = set()
    tree = parse(source)
    for node in _statements(tree.body if tree is not None else ()):
        if isinstance(node, _FUNCTIONS):
            functions.add(node.name)
            continue
        targets = _targets(node)
        value = getattr(node, "value", None) if targets else None
        if not isinstance(value, (ast.Constant, ast.UnaryOp)):
            functions.update(targets)
        if not (isinstance(value, ast.Constant) and value.value is None):
            values.update(targets)
    return frozenset(functions), frozenset(values)


def is_cuda(source: str) -> bool:
    """Whether a cell is CUDA C++: its first line with anything on it begins with `%%cuda`."""
    return bool(re.match(r"%%cuda(?:[ \t]|$)", source.lstrip().partition("\n")[0]))


def cuda_text(source: str) -> str:
    """The CUDA C++ of a `%%cuda` cell, which is all below its first line."""
    return source.lstrip().partition("\n")[2]


def kernel_names(source: str) -> list[str]:
    """The kernels that a text of CUDA C++ defines or declares; comments don't count."""
    tokens = re.findall(r"\w+|[(){};]", _COMMENT.sub(" ", source[:MAX_CHARS]))
    found: list[str] = []
    waiting = False
    for token, after in zip(tokens, [*tokens[1:], ""], strict=True):
        if token == "__global__":
            waiting = True
        elif token in ";{}":
            waiting = False
        elif waiting and after == "(" and token.isidentifier() and token not in _NO_NAMES:
            found.append(token)
            waiting = False
    return found


def bound_names(source: str) -> set[str]:
    """Every name that a cell binds at its top level: definitions, imports, assignments, kernels."""
    if is_cuda(source):
        return set(kernel_names(source))
    tree = parse(source)
    return set() if tree is None else set(_bound(source))


@lru_cache(maxsize=256)
def _bound(source: str) -> frozenset[str]:
    tree = parse(source)
    return frozenset(n for node in _statements(tree.body if tree else ()) for n in _names(node))


def used_names(source: str) -> set[str]:
    """Every name that a cell loads anywhere; all its words where it is no Python."""
    return set(re.findall(r"\w+", source)) if len(source) > MAX_CHARS else set(_used(source))


@lru_cache(maxsize=256)
def _used(source: str) -> frozenset[str]:
    tree = parse(source)
    if tree is None:
        return frozenset(re.findall(r"\w+", source))
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def checked_call(source: str) -> str:
    """The exercise whose check a cell's text is; empty for all other text, whatever it is."""
    called = "check" in source and parse(source) is not None
    return checked_exercise(source) if called else ""


def new_definitions(source: str, known: str) -> str:
    """The imports, functions and classes of a cell that binds names which `known` doesn't."""
    tree = parse(source)
    if tree is None:
        return ""
    old = bound_names(known)
    lines = source.split("\n")
    parts = []
    for node in tree.body:
        wanted = isinstance(node, (*_FUNCTIONS, ast.Import, ast.ImportFrom))
        if wanted and set(_names(node)) - old:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            parts.append("\n".join(lines[first - 1 : node.end_lineno]))
    return "\n".join(parts)


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every statement that runs with the cell, also inside its branches and loops."""
    waiting = list(body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, _FUNCTIONS):
            for block in _BLOCKS:
                waiting += getattr(node, block, None) or []


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, _FUNCTIONS):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    return _targets(node)


def _targets(node: ast.AST) -> list[str]:
    if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
