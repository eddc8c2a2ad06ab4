"""Put a student's answers into the instructor's notebook.

Checks, their order, points, kernel and metadata come from the instructor's copy alone. Only cells
that count are kept: set-up, the answers that were tried, and their checks.

Answers in CUDA come first, each as the text of one `%%cuda` cell of ours: they are compiled and
checked by a process that has run no line of the student's Python.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from nbformat import NotebookNode, from_dict

from ...cuda.tokens import tokenize
from ...notebook.bindings import MAX_CHARS, cuda_text, is_cuda, kernel_names
from ...notebook.cells import KEY, exercise_name, role
from ...notebook.matching import Answer, Piece
from ..run.runner import CHECK_TAG

MARKERS = (
    "NBVAL_IGNORE_OUTPUT",
    "NBVAL_CHECK_OUTPUT",
    "NBVAL_RAISES_EXCEPTION",
    "NBVAL_SKIP",
    "PYTEST_VALIDATE_IGNORE_OUTPUT",
)


def transplant(
    ours: NotebookNode,
    answers: Mapping[str, Answer],
    expected: Mapping[str, str],
    kernels: Mapping[str, str] = MappingProxyType({}),
) -> NotebookNode:
    """The notebook to run: our set-up and checks, the student's answers, what is to be printed.

    `kernels` maps the exercises that ask for a kernel to its name. Exercises that were not tried,
    or that a person has to look at, are left out with their checks.
    """
    setup, first, then = [], [], []
    for cell in ours.cells:
        kind, name = role(cell), exercise_name(cell)
        if kind == "setup":
            (setup if kernels else then).append(_code(cell.source, cell.id, {"role": "setup"}))
        if name not in answers or not answers[name].attempted or answers[name].doubt:
            continue
        if name in kernels and not kernel_text(answers[name], kernels[name]):
            continue
        cells = first if name in kernels else then
        if kind == "answer":
            label = {"role": "answer", "exercise": name}
            for number, source in enumerate(_sources(answers[name], kernels.get(name)), 1):
                cells.append(_code(source, f"{cell.id[:56]}-{number}", label))
        elif kind == "check":
            cells.append(_check(cell, name, expected.get(name)))
    return _notebook([*setup, *first, *then])


def kernel_text(answer: Answer, called: str) -> str:
    """The CUDA C++ of an answer: the last `%%cuda` cell with the kernel, else the last one.

    A stub that still stands below a kernel does not take its place.
    """
    cells = [piece.source for piece in answer.pieces if is_cuda(piece.source)]
    named = [source for source in cells if called in kernel_names(source)]
    named = [source for source in named if not _empty(source, called)] or named
    return cuda_text((named or cells)[-1]) if cells else ""


def _empty(source: str, called: str) -> bool:
    """Whether the kernel's body holds nothing but comments."""
    words = " ".join(token.text for token in tokenize(cuda_text(source)[:MAX_CHARS]))
    return bool(re.search(rf"\b{re.escape(called)} \([^()]*\) \{{ \}}", words))


def _sources(answer: Answer, called: str | None) -> list[str]:
    """The texts to run. The magic's line is ours: what a student asks for there doesn't count."""
    if called is None:
        return [neutral(piece.source) for piece in answer.pieces]
    return [f"%%cuda --traced --only {called}\n{neutral(kernel_text(answer, called))}"]


def of_solution(ours: NotebookNode) -> dict[str, Answer]:
    """The answers of a solution notebook, as if a student had written them."""
    return {
        exercise_name(cell): Answer(
            exercise_name(cell), (Piece(cell.source, number, ""),), attempted=True
        )
        for number, cell in enumerate(ours.cells, 1)
        if role(cell) == "answer"
    }


def neutral(source: str) -> str:
    """A student's text with nbval's comment markers made harmless, also inside a docstring."""
    lines = source.splitlines(keepends=True)
    for number, line in enumerate(lines):
        comment = line.strip()
        if comment.startswith("#") and comment.lstrip("#").strip() in MARKERS:
            lines[number] = line.replace("NBVAL_", "NBVAL-").replace("PYTEST_", "PYTEST-")
    return "".join(lines)


def _check(cell: NotebookNode, name: str, expected: str | None) -> dict[str, Any]:
    made = _code(cell.source, cell.id, {"role": "check", "exercise": name})
    made["metadata"]["tags"] = [CHECK_TAG]
    if expected is not None:
        made["outputs"] = [{"output_type": "stream", "name": "stdout", "text": expected}]
        made["execution_count"] = 1
    return made


def _code(source: str, cell_id: str, label: Mapping[str, str]) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": cell_id,
        "metadata": {KEY: dict(label)},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def _notebook(cells: list[dict[str, Any]]) -> NotebookNode:
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells})
