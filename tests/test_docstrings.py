"""What a reader calls says what it does, and of which shapes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "labs_lib"
ROOMS = (
    *("arithmetic", "attention", "checking", "claims.py", "config.py", "cuda", "exercises"),
    *("models", "notebook", "plots", "training", "widgets", "workbook"),
)
SHAPED = ("attention", "models", "plots", "training", "widgets")
NAMES_A_SHAPE = re.compile(r"\[[^\]]+\]|any shape|scalar")
MODULES = [
    file
    for room in ROOMS
    for file in sorted((PACKAGE / room).rglob("*.py") if "." not in room else [PACKAGE / room])
]


def public(tree):
    """Public functions and classes of a module, and methods of classes: (its class, what it is)."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield None, node
            for own in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(own, ast.FunctionDef) and not own.name.startswith("_"):
                    yield node, own


def is_told(owner, node):
    """Whether it has words of its own, or those of the class that it is written for."""
    only_a_name = len(node.body) == 1 and ast.unparse(node.body[0]) == "..."  # in a protocol
    overrides = owner is not None and bool(owner.bases)
    return ast.get_docstring(node) is not None or only_a_name or overrides


def takes_or_gives_tensors(node):
    arguments = [*node.args.args, *node.args.kwonlyargs]
    notes = [a.annotation for a in arguments if a.annotation] + [node.returns or ast.Constant("")]
    return any(re.search(r"\bTensor\b", ast.unparse(note)) for note in notes)


@pytest.mark.parametrize("file", MODULES, ids=lambda f: f.relative_to(PACKAGE).as_posix())
def test_every_public_name_says_what_it_does_and_of_which_shapes(file):
    shaped = file.relative_to(PACKAGE).parts[0] in SHAPED
    for owner, node in public(ast.parse(file.read_text(encoding="utf-8"))):
        name = f"{owner.name}.{node.name}" if owner else node.name
        assert is_told(owner, node), f"{name} has no docstring"
        words = f"{ast.get_docstring(node)} {ast.get_docstring(owner) if owner else ''}"
        if isinstance(node, ast.FunctionDef) and shaped and takes_or_gives_tensors(node):
            told = NAMES_A_SHAPE.search(words) or ast.get_docstring(node) is None
            assert told, f"{name} takes or gives tensors; name their shapes: [batch, seq]"
