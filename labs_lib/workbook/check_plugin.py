"""pytest plugin of `labs check`: writes down what each cell of a notebook came to, line by line.

It runs in the pytest process that nbval lives in and imports nothing heavy. The file named by
`LABS_CELL_REPORT` gets one JSON object per code cell: exercise, role, ok, stdout, error.
"""

from __future__ import annotations

import json
import os
import time
from queue import Empty
from typing import Any

import pytest

from ..notebook.cells import checked_exercise, exercise_name, role

VARIABLE = "LABS_CELL_REPORT"
MOST_TEXT = 20_000
TOLD = "told"  # the tag of a cell whose words `labs check` repeats


class KernelDied(RuntimeError):
    """The notebook's kernel ended while a cell ran."""


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Run every cell plainly: stored outputs and nbval's own markers don't count here."""
    for item in items:
        if hasattr(item, "cell"):
            item.cell.outputs = []
            item.options.update(check=False, check_exception=False, skip=False)


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item: Any) -> None:
    """Notice a dead kernel within a second; nbval alone waits for the cell's whole time limit."""
    kernel = getattr(item.parent, "kernel", None)
    if kernel is not None and not hasattr(kernel, "labs_patient_await"):
        kernel.labs_patient_await = kernel.await_reply
        kernel.await_reply = lambda msg_id, timeout=None: _await_reply(kernel, msg_id, timeout)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """Append the cell's record to the report file once it ran, or couldn't."""
    report = yield
    if hasattr(item, "cell") and (call.when == "call" or (call.when == "setup" and call.excinfo)):
        line = json.dumps(_record(item, call), ensure_ascii=True)
        with open(os.environ[VARIABLE], "a", encoding="utf-8") as file:
            file.write(line + "\n")
    return report


def _record(item: Any, call: Any) -> dict[str, Any]:
    cell = item.cell
    outputs = item.test_outputs or []
    stdout = "".join(o.text for o in outputs if o.output_type == "stream" and o.name == "stdout")
    error = next((o for o in outputs if o.output_type == "error"), None)
    failed = call.excinfo is not None
    if failed and error is not None:
        ename, evalue = error.ename, error.evalue
    else:
        ename, evalue = ("", str(call.excinfo.value)) if failed else ("", "")
    checked = role(cell) in ("", "demo", "check") and checked_exercise(cell.source)
    return {
        "cell": item.cell_num + 1,
        "exercise": exercise_name(cell) or checked or "",
        "role": "check" if checked else role(cell),
        "first_line": next((x for x in cell.source.splitlines() if x.strip()), "")[:80],
        "told": TOLD in cell.metadata.get("tags", []),
        "ok": not failed,
        "stdout": stdout[:MOST_TEXT],
        "ename": ename,
        "evalue": evalue[:MOST_TEXT],
    }


def _await_reply(kernel: Any, msg_id: str, timeout: float | None) -> None:
    end = time.monotonic() + (timeout or float("inf"))
    while True:
        try:
            return kernel.labs_patient_await(msg_id, timeout=min(1.0, end - time.monotonic()))
        except Empty:
            if not kernel.is_alive():
                raise KernelDied("the notebook's kernel died while this cell ran") from None
            if time.monotonic() >= end:
                raise
