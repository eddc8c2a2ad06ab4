"""Guesses that a student typed into `predict("labNN.name", ...)`, read from a cell's text."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from .bindings import parse


def guesses(source: str) -> dict[str, str]:
    """The text of each guess that isn't `None`, by the name that it is kept under."""
    lines = source.encode("utf-8").split(b"\n")
    return {
        name: _segment(lines, node)
        for name, node in _calls(source)
        if not (isinstance(node, ast.Constant) and node.value is None)
    }


def with_guesses(source: str, known: Mapping[str, str]) -> str:
    """The cell's text with the known guesses in place of `None`."""
    return _replaced(
        source,
        {
            name: known[name]
            for name, node in _calls(source)
            if name in known and isinstance(node, ast.Constant) and node.value is None
        },
    )


def without_guesses(source: str) -> str:
    """The cell's text with `None` in place of every guess."""
    return _replaced(source, dict.fromkeys(guesses(source), "None"))


def _calls(source: str) -> list[tuple[str, ast.expr]]:
    tree = parse(source) if "predict(" in source else None
    return [
        (node.args[0].value, node.args[1])
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "predict"
        and len(node.args) == 2
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ]


def _replaced(source: str, texts: Mapping[str, str]) -> str:
    lines = source.encode("utf-8").split(b"\n")
    places = [(node, texts[name]) for name, node in _calls(source) if name in texts]
    for node, text in sorted(places, key=lambda p: (p[0].lineno, p[0].col_offset), reverse=True):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        made = lines[first][: node.col_offset] + text.encode("utf-8")
        lines[first : last + 1] = [made + lines[last][node.end_col_offset :]]
    return b"\n".join(lines).decode("utf-8")


def _segment(lines: list[bytes], node: ast.expr) -> str:
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    if first == last:
        return lines[first][node.col_offset : node.end_col_offset].decode("utf-8")
    parts = [lines[first][node.col_offset :], *lines[first + 1 : last]]
    return b"\n".join([*parts, lines[last][: node.end_col_offset]]).decode("utf-8")
