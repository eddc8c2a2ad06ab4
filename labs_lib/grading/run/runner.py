"""From a prepared notebook to one result for each of its code cells, by a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Generator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import nbformat

from labs_lib.grading.run import records
from labs_lib.grading.run.library import library_modules
from labs_lib.grading.run.pytest_arguments import arguments
from labs_lib.grading.run.records import CellRun
from labs_lib.grading.run.warm import NoAnswer, Warm, steady_environment
from labs_lib.grading.sandbox import Policy, level, write_kernelspec

CHECK_TAG = "nbval-check-output"
ATTEMPTS = 2  # a failure of the machine is tried once more
MARGIN_S = 30.0  # what starting pytest and ending everything may take besides


def run_notebook(
    notebook: Path | nbformat.NotebookNode,
    *,
    policy: Policy,
    out: Path,
    warm: Warm | None = None,
) -> list[CellRun]:
    """Run one prepared notebook behind the fence and return a `CellRun` for each code cell.

    Code cells carry `labs: {exercise, role}` in their metadata, with the roles setup, answer,
    check and demo; check cells carry the tag nbval-check-output and the outputs to compare with.
    `warm` makes it soon: pytest and the kernels are forked. After a failure of the machine all is
    started from nothing.
    `out` receives cells.jsonl (as it goes), junit.xml and pytest.log; no expected value lies in
    any of them. Raises ValueError for a notebook that isn't prepared.
    """
    if not isinstance(notebook, nbformat.NotebookNode):
        notebook = nbformat.read(notebook, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    _require_prepared(cells)
    out = Path(out).absolute()
    out.mkdir(parents=True, exist_ok=True)
    results = out / "cells.jsonl"
    results.unlink(missing_ok=True)
    for attempt in range(1, ATTEMPTS + 1):
        found = level(policy)
        records.append(results, "attempt", number=attempt, **found._asdict())
        ended = _run_once(notebook, policy, out, warm if attempt == 1 else None)
        runs = _complete(cells, out, ended)
        if all(run.status != "infrastructure" for run in runs):
            break
    return runs


def _require_prepared(cells: list[nbformat.NotebookNode]) -> None:
    for index, cell in enumerate(cells):
        if cell.metadata.get("labs", {}).get("role") != "check":
            continue
        if CHECK_TAG not in cell.metadata.get("tags", []):
            raise ValueError(f"check cell {index} lacks the tag {CHECK_TAG!r}: nbval would pass it")
        if not cell.outputs:
            raise ValueError(
                f"check cell {index} holds no output to compare with: nbval would pass it; "
                "run the solution first and store what it prints"
            )


def _run_once(
    notebook: nbformat.NotebookNode, policy: Policy, out: Path, warm: Warm | None
) -> str | None:
    """Run pytest in a clean private folder; what went wrong with it, or None."""
    limits = policy.limits
    with _clean_folder() as folder:
        _write_bare(notebook, folder / "notebook.ipynb")
        modules = library_modules(notebook, policy.handout)
        kernels = None if warm is None else warm.kernels_for(policy, modules)
        write_kernelspec(folder / "jupyter", policy=policy, warm=kernels)
        plan = {
            "limits": asdict(limits),
            "results": str(out / "cells.jsonl"),
            "expected": _expected(notebook),
        }
        run = _cold if warm is None else warm.run
        seconds = limits.notebook_s + 2 * limits.startup_s + MARGIN_S
        try:
            code = run(
                folder / "notebook.ipynb",
                out / "junit.xml",
                environment=_environment(folder),
                log=out / "pytest.log",
                plan=json.dumps(plan),
                seconds=seconds,
            )
        except TimeoutError:
            return "the run did not end in its time"
        except NoAnswer as trouble:
            return str(trouble)
    return None if code in (0, 1) else f"pytest left with {code}"


def _cold(
    notebook: Path,
    report: Path,
    *,
    environment: dict[str, str],
    log: Path,
    plan: str,
    seconds: float,
) -> int:
    """pytest in a process that starts from nothing; see `Warm.run`."""
    asked = arguments(notebook.parent)
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pytest", *asked, f"--junitxml={report}", str(notebook)],
            cwd=notebook.parent,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.communicate(plan.encode(), timeout=seconds)
        except subprocess.TimeoutExpired as late:
            raise TimeoutError from late
        finally:
            _end(process)
    return process.returncode


@contextlib.contextmanager
def _clean_folder() -> Generator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="labs-run-")).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_bare(notebook: nbformat.NotebookNode, path: Path) -> None:
    """The notebook without a single output, and without a kernel of its own choice."""
    bare = nbformat.from_dict(json.loads(json.dumps(notebook)))
    bare.metadata.pop("kernelspec", None)
    for cell in bare.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.source = records.storable(cell.source)
    nbformat.write(bare, path)


def _expected(notebook: nbformat.NotebookNode) -> dict[str, list[Any]]:
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return {
        str(index): cell.outputs
        for index, cell in enumerate(cells)
        if cell.metadata.get("labs", {}).get("role") == "check"
    }


def _environment(folder: Path) -> dict[str, str]:
    """The grader's environment, without what steers pytest or Jupyter from outside."""
    return steady_environment() | {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "JUPYTER_PATH": str(folder / "jupyter"),
        "JUPYTER_CONFIG_DIR": str(folder / "jupyter"),
        "IPYTHONDIR": str(folder / "ipython"),
        "TMPDIR": str(folder),
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    """End pytest; the fence ends its kernels with it."""
    if process.poll() is None:
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    process.wait()


def _complete(cells: list[nbformat.NotebookNode], out: Path, trouble: str | None) -> list[CellRun]:
    """Exactly one result for each cell: a cell without a record, or whose test pytest did not
    run as recorded, is the machine's failure, never a pass."""
    found = {run.index: run for run in records.read_results(out / "cells.jsonl")}
    verdicts = _verdicts(out / "junit.xml")
    runs = []
    for index, cell in enumerate(cells):
        labs = cell.metadata.get("labs", {})
        run = found.get(index)
        if run is None or verdicts.get(index) != (run.status == "ok"):
            reason = trouble or _last_failure(out) or "nbval did not report this cell"
            missing = CellRun(
                index, labs.get("exercise"), labs.get("role", "demo"), "infrastructure"
            )
            run = _keep_failure(run) or replace(missing, reason=reason)
        runs.append(run)
    return runs


def _keep_failure(run: CellRun | None) -> CellRun | None:
    """A recorded failure counts even when pytest was killed before it wrote its report."""
    return run if run is not None and run.status != "ok" else None


def _verdicts(path: Path) -> dict[int, bool]:
    """Per cell whether pytest ran its test once and it passed; skipped counts as not passed."""
    try:
        cases = list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return {}
    verdicts: dict[int, bool] = {}
    for case in cases:
        index = int(case.attrib["name"].removeprefix("Cell "))
        passed = not any(case.find(name) is not None for name in ("failure", "error", "skipped"))
        verdicts[index] = passed and index not in verdicts
    return verdicts


def _last_failure(out: Path) -> str | None:
    failures = [
        line["message"]
        for line in records.read_lines(out / "cells.jsonl")
        if line["kind"] == "failure"
    ]
    return failures[-1] if failures else None
