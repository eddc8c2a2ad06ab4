"""The explorers of a lab as its readers meet them: no answer is written yet, and nothing is run
but the cell that shows one."""

from __future__ import annotations

import ast
import base64
import builtins
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from nbformat import NotebookNode

from ..cuda import Trace, recorded
from ..notebook.bindings import parse
from ..widgets.explorer import Explorer

WIDGETS = "labs_lib.widgets."


@dataclass(frozen=True)
class Live:
    """An explorer that a page can run: its script, its state as JSON, and its still picture."""

    script: str
    state: str
    message: str
    title: str
    picture: bytes


def live(cells: list[NotebookNode]) -> dict[str, Live]:
    """Cell id -> the explorer that the cell shows, where a browser can run it by itself."""
    widgets = dict(_widgets(cells))
    found = {}
    for cell in cells:
        shown = _shown(cell.source, widgets) if cell.cell_type == "code" else None
        if isinstance(shown, Explorer):
            found[cell["id"]] = _live(shown)
    return found


def shows(source: str, names: set[str]) -> bool:
    """Whether a cell calls one of these functions."""
    tree = parse(source)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call)) if tree else ()
    return any(isinstance(call.func, ast.Name) and call.func.id in names for call in calls)


def _live(shown: Explorer) -> Live:
    names = (*shown.names, "title", "knobs", "own", "data")
    state = {name: _plain(getattr(shown, name)) for name in names}
    return Live(shown.script, json.dumps(state), shown.message, shown.title, shown.picture)


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, memoryview)):
        return {"bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value


def _widgets(cells: list[NotebookNode]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions that a lab imports and that give an explorer which a browser runs."""
    for cell in cells:
        tree = parse(cell.source) if cell.cell_type == "code" else None
        for node in tree.body if tree else ():
            module = node.module if isinstance(node, ast.ImportFrom) else None
            if isinstance(node, ast.ImportFrom) and module and module.startswith(WIDGETS):
                for alias in node.names:
                    widget = getattr(import_module(module), alias.name)
                    if getattr(widget, "__annotations__", {}).get("return") == "Explorer":
                        yield alias.name, widget


def _shown(source: str, widgets: Mapping[str, Callable[..., Any]]) -> Any:
    """What a cell shows that calls a widget, where no function of the student's is written."""
    if not shows(source, set(widgets)) or (tree := parse(source)) is None:
        return None
    shown = tree.body.pop()
    if not isinstance(shown, ast.Expr):
        return None
    last = ast.Expression(shown.value)
    names = _Unwritten(widgets, print=lambda *words: None, tiled=_without_source("scores_tiled"))
    exec(compile(tree, "cell", "exec"), {}, names)
    return eval(compile(last, "cell", "eval"), {}, names)


class _Unwritten(dict):
    """The names of a cell; what nobody has written is None."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, None)


def _without_source(name: str) -> Trace:
    """A recorded trace without the kernel's text, which answers an exercise."""
    return Trace.from_dict({**recorded.trace(name).to_dict(), "source": ""})
