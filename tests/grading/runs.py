"""Small notebooks to be run: exercises with an answer and a check, and who passed."""

from __future__ import annotations

import textwrap
from pathlib import Path

import nbformat
from fences import MIB

from labs_lib.grading.run import CellRun, run_notebook
from labs_lib.grading.run.warm import shared
from labs_lib.grading.sandbox import Limits, Policy

LIMITS = Limits(cell_s=3, grace_s=1, memory_bytes=400 * MIB, output_bytes=1 * MIB, processes=64)


def cell(source: str, role: str, exercise: str | None = None, expected: str | None = None):
    made = nbformat.v4.new_code_cell(textwrap.dedent(source).strip())
    made.metadata["labs"] = {"exercise": exercise, "role": role}
    if role == "check":
        made.metadata["tags"] = ["nbval-check-output"]
    if expected is not None:
        made.outputs = [nbformat.v4.new_output("stream", name="stdout", text=expected)]
    return made


def exercise(name: str, answer: str, check: str | None = None, expected: str | None = None):
    """An answer and its check; a right answer defines `name` so that it gives 7."""
    check = check or f"print('{name}', {name}())"
    return [
        cell(answer, "answer", name),
        cell(check, "check", name, expected or f"{name} 7\n"),
    ]


def right(name: str) -> list:
    return exercise(name, f"def {name}():\n    return base + 2")


def notebook(*parts):
    cells = [cell("base = 5", "setup"), *(made for part in parts for made in part)]
    return nbformat.v4.new_notebook(cells=cells)


def run(tmp_path: Path, *parts, limits: Limits = LIMITS, name: str | None = None, **policy):
    policy = Policy(limits=limits, level=name, **policy)
    return run_notebook(notebook(*parts), policy=policy, out=tmp_path / "out", warm=shared())


def of(runs: list[CellRun], name: str, role: str = "check") -> CellRun:
    (found,) = [one for one in runs if one.exercise == name and one.role == role]
    return found
