"""One cell through nbval's own test, and in plain words what came of it."""

from __future__ import annotations

import re
from typing import Any

from nbval.plugin import IPyNbCell, NbCellError

from labs_lib.grading.run.kernel import KernelGone, TooMuchOutput, WatchedKernel
from labs_lib.grading.run.records import (
    STDOUT_CHARS,
    TEXT_CHARS,
    TRACEBACK_CHARS,
    CellRun,
    cut,
    plain,
)

OUTPUT_S = 10.0  # the longest silence between a reply and the output that belongs to it
NBVAL_RUNTEST = IPyNbCell.runtest  # before the plugin puts its own in place
NO_MEMORY = re.compile(r"can't allocate memory|not enough memory|bad_alloc|Cannot allocate memory")


def observe(
    item: IPyNbCell, cell, kernel: WatchedKernel, seconds: float
) -> tuple[CellRun, str | None]:
    """The result of `item` in `kernel`, and the exercise that flooded the output, if one did."""
    item.parent.kernel, item.parent.timed_out = kernel, False
    item.output_timeout, item.test_outputs, item.differs = OUTPUT_S, [], False
    kernel.begin(seconds, cell.exercise)
    status, reason, loudest = _run(item, kernel)
    outputs = list(item.test_outputs or [])
    shown = _shown_error(outputs)
    if item.parent.timed_out and status in ("ok", "mismatch", "error"):
        status, reason = "timeout", f"it ran for more than {seconds:.3g} s"
    elif status == "error" and _out_of_memory(shown):
        status, reason = "memory", f"{shown['ename']}: the memory it may use was used up"
    elif status == "error" and shown["ename"]:
        reason = f"it raised {shown['ename']}"
    item.comparison_traceback = []
    result = CellRun(
        cell.index,
        cell.exercise,
        cell.role,
        status,
        stdout=_stdout(outputs),
        reason=reason,
        ename=shown["ename"],
        evalue=shown["evalue"],
        traceback=shown["traceback"],
    )
    return result, loudest


def _run(item: IPyNbCell, kernel: WatchedKernel) -> tuple[str, str, str | None]:
    """How nbval's run of a cell ended: its status, why, and which exercise flooded the output."""
    try:
        NBVAL_RUNTEST(item)
    except KernelGone as gone:
        return *gone.death, None
    except TooMuchOutput as flood:
        return "output-flood", str(flood), kernel.sent.get(flood.parent_id)
    except NbCellError as error:
        if item.differs:
            return "mismatch", "its output is not the expected one", None
        return "error", _first_line(error), None
    except Exception as error:  # a message that nbval can't read: student code may forge them
        told = cut(repr(error), TEXT_CHARS)
        return "error", f"the cell's messages could not be read ({told})", None
    return "ok", "", None


def padded(expected: list[dict[str, Any]], stdout: str) -> bool:
    """Whether `stdout` is the expected text with something strewn into it."""
    wanted = _stdout(expected)
    rest = iter(stdout)
    return len(stdout) > len(wanted) and all(letter in rest for letter in wanted)


def _first_line(error: Exception) -> str:
    return cut((str(error).splitlines() or [type(error).__name__])[0], TEXT_CHARS)


def _stdout(outputs: list[dict[str, Any]]) -> str:
    texts = [
        str(output.get("text", ""))
        for output in outputs
        if output.get("output_type") == "stream" and output.get("name") == "stdout"
    ]
    return cut("".join(texts), STDOUT_CHARS)


def _shown_error(outputs: list[dict[str, Any]]) -> dict[str, str]:
    """Name, text and traceback of the first error among the outputs, else empty."""
    for output in outputs:
        if output.get("output_type") == "error":
            lines = "\n".join(str(line) for line in output.get("traceback", []))
            return {
                "ename": cut(str(output.get("ename", "")), TEXT_CHARS),
                "evalue": cut(plain(str(output.get("evalue", ""))), TEXT_CHARS),
                "traceback": cut(plain(lines), TRACEBACK_CHARS),
            }
    return {"ename": "", "evalue": "", "traceback": ""}


def _out_of_memory(shown: dict[str, str]) -> bool:
    return shown["ename"] == "MemoryError" or bool(NO_MEMORY.search(shown["evalue"]))
