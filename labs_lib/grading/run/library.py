"""Which modules of the course's library a notebook's kernel imports before any student's line."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat

from labs_lib.notebook.cells import role

LIBRARY = "labs_lib"


def library_modules(notebook: nbformat.NotebookNode, handout: Path | None) -> list[str]:
    """What the course's own set-up imports of the library in `handout`, and what checks import."""
    setup = [cell.source for cell in notebook.cells if role(cell) == "setup"]
    text = "\n".join(line for source in setup for line in source.splitlines() if line[:1] != "%")
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    found = [name for node in ast.walk(tree) for name in _imported(node)]
    found = [name for name in dict.fromkeys(found) if name.partition(".")[0] == LIBRARY]
    if not found or handout is None:
        return []
    rooms = Path(handout, LIBRARY, "exercises").glob("lab*.py")
    asked = sorted(f"{LIBRARY}.exercises.{path.stem}" for path in rooms)
    return [*found, *asked, f"{LIBRARY}.nbval_plugin"]


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []
