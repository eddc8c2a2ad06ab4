"""`begin_lab`: what every lab's first cell calls."""

from __future__ import annotations

import ast
import contextlib

import torch

from ..exercises import lab as find_lab

_current = ""


def begin_lab(name: str | int) -> None:
    """Begin a lab: one torch thread (small tensors run faster); checks take names not yet defined.

    Raises:
        UnknownLab: if there is no such lab.
    """
    global _current
    _current = find_lab(name).name
    torch.set_num_threads(1)
    with contextlib.suppress(ImportError):
        from IPython import get_ipython

        shell = get_ipython()
        if shell is not None and not any(
            isinstance(t, _UndefinedIsNone) for t in shell.ast_transformers
        ):
            shell.ast_transformers.append(_UndefinedIsNone())


def current_lab() -> str:
    """The lab that this notebook began, such as `lab02`; empty before `begin_lab`."""
    return _current


class _UndefinedIsNone(ast.NodeTransformer):
    """`check("lab02.head_dim", head_dim)` says NOT ATTEMPTED where head_dim is not defined."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if getattr(node.func, "id", "") != "check" or len(node.args) != 2:
            return node
        name, value = node.args
        if isinstance(name, ast.Constant) and isinstance(value, ast.Name):
            looked_up = ast.parse(f"globals().get({value.id!r})", mode="eval").body
            node.args[1] = ast.fix_missing_locations(ast.copy_location(looked_up, value))
        return node
