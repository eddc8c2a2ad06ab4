"""`labs check`: run a notebook's checks by nbval, in another process, and show the outcomes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from .. import nbval_plugin
from ..errors import UsageError
from ..exercises import exercise as find_exercise
from ..exercises import exercises, labs
from ..exercises import lab as find_lab
from ..exercises.kit import Exercise, Lab
from ..paths import home
from . import check_plugin, files
from .unsaved import unsaved

OUTCOMES = {"PASS": "green", "FAIL": "red", "NOT ATTEMPTED": "yellow", "ERROR": "red"}
CELL_SECONDS = 120.0


@dataclass(frozen=True)
class Outcome:
    """What one exercise's check came to, and what it says of it in one line."""

    exercise: str
    outcome: str
    sentence: str = ""


@dataclass(frozen=True)
class Report:
    """The outcomes of a notebook's exercises, in the course's order, and what else went wrong.

    `told` is what its cells with the tag `told` printed.
    """

    notebook: Path
    lab: Lab
    outcomes: list[Outcome]
    notes: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every exercise of the lab passes."""
        return all(one.outcome == "PASS" for one in self.outcomes)


def check(which: Sequence[str] = (), console: Console | None = None) -> bool:
    """Run the checks of the named notebooks (all of `notebooks/` without a name) and print them.

    Args:
        which: lab numbers (`2`, `02`, `lab02`) or paths of notebooks.

    Returns:
        Whether every exercise passes.

    Raises:
        UsageError, UnknownLab: if a name is no lab and no notebook; nothing is run then.
    """
    console = console or Console(highlight=False)
    chosen = [(path, lab_of(path)) for path in _chosen(which)]
    passed = True
    for path, lab in chosen:
        with console.status(f"running {path.name} …"):
            report = run_checks(path, lab)
        show(report, console)
        if note := unsaved(path):
            console.print(Text(f"  {note}", style="yellow"), soft_wrap=True)
        passed = passed and report.passed
    return passed


def run_checks(notebook: Path, lab: Lab, seconds: float = CELL_SECONDS) -> Report:
    """Run one notebook by nbval and read off each exercise's outcome; `seconds` limits a cell."""
    records, trouble = _run(notebook, seconds)
    checks = {r["exercise"]: r for r in records if r["role"] == "check"}
    answers = {r["exercise"]: r for r in records if r["role"] == "answer" and not r["ok"]}
    outcomes = [
        _outcome(item.name, checks.get(item.name), answers.get(item.name), trouble)
        for item in exercises(lab.number)
    ]
    notes = [_note(r) for r in records if r["role"] != "check" and not r["ok"]]
    told = [line for r in records if r["told"] and r["ok"] for line in r["stdout"].splitlines()]
    return Report(notebook, lab, outcomes, notes, told)


def lab_of(notebook: Path) -> Lab:
    """The lab that a notebook's checks belong to, whatever the file is called.

    Raises:
        UsageError: if it has no check of the course.
    """
    cells = files.read(notebook)["cells"]
    known = {item.name: item.lab for item in exercises()}
    found = [known[n] for n in map(files.exercise_of_check, cells) if n in known]
    if not found:
        raise UsageError(f"{notebook.name} has no check of this course in it, so nothing is run")
    return find_lab(max(set(found), key=found.count))


def show(report: Report, console: Console) -> None:
    """Print a notebook's outcomes, one line per exercise."""
    lab = report.lab
    console.print(Text(f"{lab.number:02d} · {lab.title}", style="bold"), soft_wrap=True)
    width = max((len(one.exercise) for one in report.outcomes), default=0)
    for one in report.outcomes:
        line = Text(f"  {one.outcome:<14}", style=OUTCOMES[one.outcome])
        line.append(f"{one.exercise:<{width}}  {one.sentence}".rstrip(), style="default")
        console.print(line, soft_wrap=True)
    for note in report.notes:
        console.print(Text(f"  {note}", style="dim"), soft_wrap=True)
    count = sum(one.outcome == "PASS" for one in report.outcomes)
    console.print(f"  {count} of {len(report.outcomes)} pass", soft_wrap=True)
    for line in report.told:
        console.print(Text(f"  {line}"), soft_wrap=True)


def _chosen(which: Sequence[str]) -> list[Path]:
    if not which:
        found = files.all_notebooks()
        if not found:
            raise UsageError(f"there is no notebook in {files.folder()}")
        return found
    return [_one(name) for name in which]


def _one(name: str) -> Path:
    path = Path(name).expanduser()
    if path.suffix == ".ipynb" or (path.exists() and not path.is_dir()):
        if not path.is_file():
            listing = ", ".join(f"{lab.number:02d}" for lab in labs())
            raise UsageError(f"there is no notebook {name}; the course has the labs {listing}")
        return path.resolve()
    return files.notebook_of(find_lab(name).stem)


def _run(notebook: Path, seconds: float) -> tuple[list[dict[str, Any]], str]:
    """The records of the notebook's cells, and a sentence if nbval itself came to nothing."""
    with tempfile.TemporaryDirectory(prefix="labs-check-") as folder:
        ini, report = Path(folder, "check.ini"), Path(folder, "cells.jsonl")
        ini.write_text("[pytest]\n", encoding="utf-8")
        command = [
            *(sys.executable, "-m", "pytest", "--nbval-lax", "--nbval-current-env", "-q"),
            *("-p", "no:cacheprovider", "-p", check_plugin.__name__, "--noconftest"),
            *("-c", str(ini), "--rootdir", folder, f"--nbval-cell-timeout={seconds:g}"),
            str(notebook),
        ]
        done = subprocess.run(
            command,
            env=_environment(notebook, report),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
    last = done.stdout.strip().splitlines()[-1:] or [f"pytest ended with {done.returncode}"]
    return [json.loads(line) for line in lines], "" if lines else f"nothing ran: {last[0]}"


def _environment(notebook: Path, report: Path) -> dict[str, str]:
    """The process's environment; progress is kept only for the student's own notebooks."""
    env = dict(os.environ)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "LABS_RUN"):
        env.pop(name, None)
    package = str(Path(__file__).resolve().parents[2])
    env["PYTHONPATH"] = os.pathsep.join([package, *filter(None, [env.get("PYTHONPATH")])])
    env |= {
        nbval_plugin.VARIABLE: "1",
        check_plugin.VARIABLE: str(report),
        "LABS_HOME": str(home()),
    }
    if not notebook.resolve().is_relative_to(files.folder().resolve()):
        env["LABS_STATE"] = "off"
    elif env.get("LABS_STATE", "").lower() != "off":
        env["LABS_STATE"] = str(files.own_state().resolve())
    return env


def _outcome(
    name: str, record: dict[str, Any] | None, answer: dict[str, Any] | None, trouble: str
) -> Outcome:
    if record is None:
        why = trouble or f"its check cell is missing; `labs reset {name}` brings it back"
        return Outcome(name, "ERROR", why)
    text = record["stdout"] if record["ok"] else record["evalue"]
    head, *rest = text.strip().split("\n")
    outcome = head.removesuffix(name).strip()
    if record["ok"]:
        if outcome == "PASS":
            first = rest[:1] if find_exercise(name).is_program else rest
            return Outcome(name, "PASS", _said(first))
        return Outcome(
            name, "ERROR", f"its check cell was changed; `labs reset {name}` brings it back"
        )
    if record["ename"] != "CheckFailed" or outcome not in OUTCOMES:
        return Outcome(name, "ERROR", _error(record))
    if outcome == "NOT ATTEMPTED" and answer is not None:
        return Outcome(name, "ERROR", f"its answer cell fails: {_error(answer)}")
    if outcome == "NOT ATTEMPTED":
        return Outcome(name, outcome, _not_attempted(find_exercise(name)))
    return Outcome(name, outcome, _said(rest))


def _said(lines: Sequence[str]) -> str:
    """The explanation of a verdict as one line; where it has none, the case that went wrong."""
    lines = [line.strip() for line in lines]
    case = next((n for n, x in enumerate(lines) if x.lower().startswith("in the case “")), None)
    return " ".join(lines[:case] if case else lines)


def _not_attempted(item: Exercise) -> str:
    """The check's own words speak of the cell above, and in a terminal there is none."""
    if item.is_program:
        return f"write {item.called} in its cell of the notebook and save it"
    return f"give {item.called} a value in its cell of the notebook and save it"


def _note(record: dict[str, Any]) -> str:
    where = f"cell {record['cell']} ({record['first_line'].strip() or 'empty'})"
    return f"{where} fails: {_error(record)}"


def _error(record: dict[str, Any]) -> str:
    first = next(iter(record["evalue"].strip().splitlines()), "")
    if first.startswith("Kernel dead"):
        return "not run, because the kernel died in an earlier cell"
    return f"{record['ename']}: {first}" if record["ename"] else first
