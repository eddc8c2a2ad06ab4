"""A pytest plugin that makes nbval fit to grade; `runner.py` loads it, one process a notebook.

nbval keeps collecting, executing and comparing. Its methods are patched in place: a check never
shows what was expected, text on standard error never fails it, no comment in a student's answer
skips a cell, and a dead kernel does not pass for a slow one.
"""

from __future__ import annotations

import ctypes
import json
import signal
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbval import plugin as nbval_plugin
from nbval.plugin import IPyNbCell, IPyNbFile

from labs_lib.grading.run import records
from labs_lib.grading.run.kernel import StartFailure, WatchedKernel
from labs_lib.grading.run.session import Cell, Session
from labs_lib.grading.sandbox.policy import Limits

PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
NBVAL_COMPARE = IPyNbCell.compare_outputs
_PLAN = pytest.StashKey[dict[str, Any]]()
_SESSION = pytest.StashKey[Session]()


def pytest_configure(config: pytest.Config) -> None:
    """Take the plan from standard input: what is expected never lies in a file."""
    config.stash[_PLAN] = json.loads(sys.stdin.buffer.read())
    config.pluginmanager.register(LastWord(Path(config.stash[_PLAN]["results"])))
    _guard_process()
    IPyNbFile.setup = _setup_file
    IPyNbCell.setup = lambda item: None
    IPyNbCell.runtest = _run
    IPyNbCell.compare_outputs = _compare
    IPyNbCell.format_output_compare = lambda item, key, left, right: None


def pytest_collection_modifyitems(config: pytest.Config, items: list[IPyNbCell]) -> None:
    """Give each check its expected output and its only options, and plan the session."""
    plan = config.stash[_PLAN]
    limits = Limits(**plan["limits"])
    cells = [_prepare(item, plan) for item in items]
    config.stash[_SESSION] = Session(cells, limits, lambda: _start(config, limits))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """End the kernel, and say that all was said."""
    if _SESSION in session.config.stash:
        session.config.stash[_SESSION].close()
    _write(session.config, "end", exitstatus=int(exitstatus))


class LastWord:
    """Leaves a last record when the run itself fails."""

    def __init__(self, results: Path) -> None:
        self.results = results

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo) -> None:
        """Write down what went wrong in pytest, nbval or here."""
        records.append(self.results, "failure", message=records.cut(str(excinfo.value), 2000))


def _setup_file(file: IPyNbFile) -> None:
    """Only the patterns: the kernel is started by the first cell, where a failure is recorded."""
    file.setup_sanitize_files()


def _prepare(item: IPyNbCell, plan: dict[str, Any]) -> Cell:
    labs = item.cell.metadata.get("labs", {})
    role = labs.get("role", "demo")
    item.options = {"check": role == "check", "skip": False, "check_exception": False}
    item.cell.execution_count = 1
    expected = plan["expected"].get(str(item.cell_num), [])
    item.cell.outputs = [nbformat.from_dict(output) for output in expected]
    return Cell(item.cell_num, labs.get("exercise"), role, item.cell.source)


def _start(config: pytest.Config, limits: Limits) -> WatchedKernel:
    """A kernel; a start that fails is tried once more."""
    name = config.option.nbval_kernel_name
    try:
        return WatchedKernel(name, limits)
    except StartFailure as first:
        _write(config, "note", message=f"first start: {first}")
        return WatchedKernel(name, limits)


def _run(item: IPyNbCell) -> None:
    result = item.config.stash[_SESSION].run(item)
    records.append_cell(Path(item.config.stash[_PLAN]["results"]), result)
    if result.status != "ok":
        raise nbval_plugin.NbCellError(
            item.cell_num, f"{result.status}: {result.reason}", item.cell.source, result.traceback
        )


def _compare(item: IPyNbCell, test: list, ref: list, skip_compare: Any = None) -> bool:
    """nbval's comparison without standard error, and without a word about what was expected."""
    same = NBVAL_COMPARE(item, _heard(test), _heard(ref), skip_compare)
    if not same:
        item.differs = True
        item.comparison_traceback = ["The output is not the expected one."]
    return same


def _heard(outputs: list) -> list:
    return [
        output
        for output in outputs
        if not (output.output_type == "stream" and output.get("name") == "stderr")
    ]


def _write(config: pytest.Config, kind: str, **values: Any) -> None:
    records.append(Path(config.stash[_PLAN]["results"]), kind, **values)


def _guard_process() -> None:
    """Die with the grader, and keep other processes of this account out of the memory of this one,
    which knows what is expected."""
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
