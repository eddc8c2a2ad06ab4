"""One notebook from its first cell to its last, whatever the student's code does to the kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from queue import Empty
from typing import NamedTuple

from labs_lib.grading.run.kernel import KernelGone, StartFailure, TooMuchOutput, WatchedKernel
from labs_lib.grading.run.observe import observe, padded
from labs_lib.grading.run.records import CellRun
from labs_lib.grading.sandbox.policy import Limits
from labs_lib.notebook.bindings import is_cuda

DEADLY = ("crash", "memory", "output-flood")


@dataclass(frozen=True)
class Cell:
    """A code cell: its number, whose it is, what it is for, and its source."""

    index: int
    exercise: str | None
    role: str
    source: str

    def result(self, status: str, reason: str, cause: str = "") -> CellRun:
        """A result of this cell that printed nothing."""
        return CellRun(self.index, self.exercise, self.role, status, reason=reason, cause=cause)


class Blame(NamedTuple):
    """Why an exercise runs no more; not `certain` while another one may have done it."""

    status: str
    reason: str
    certain: bool


class Session:
    """Runs cells in order, in one kernel as long as it lives.

    A cell that ends the kernel costs its exercise only: a fresh kernel gets the set-up and the
    answers of all exercises that did no harm. Where another exercise's thread may have done it,
    the check is repeated alone.
    """

    def __init__(
        self,
        cells: Iterable[Cell],
        limits: Limits,
        start: Callable[[], WatchedKernel],
    ) -> None:
        self.cells = list(cells)
        self.limits = limits
        self.start = start
        self.kernel: WatchedKernel | None = None
        self.blamed: dict[str | None, Blame] = {}
        self.replayed: list[Cell] = []
        self.last: Cell | None = None
        self.no_kernel: str | None = None
        self.retried: set[int] = set()
        self.deadline = time.monotonic() + limits.notebook_s

    def run(self, item) -> CellRun:
        """Run the cell of one pytest item of nbval."""
        began = time.monotonic()
        cell = self.cells[item.cell_num]
        try:
            result = self._attempt(item, cell)
        except StartFailure as failure:
            self.no_kernel = str(failure)
            result = cell.result("infrastructure", str(failure))
        item.parent.kernel = None
        return replace(result, seconds=round(time.monotonic() - began, 3))

    def close(self) -> None:
        """End the kernel."""
        self._drop()

    def _attempt(self, item, cell: Cell) -> CellRun:
        while True:
            if self.no_kernel is not None:
                return cell.result("infrastructure", self.no_kernel)
            if self._time_left() <= 0:
                reason = f"the {self.limits.notebook_s:g} s for the whole notebook were used up"
                return cell.result("not-run", reason, cause="timeout")
            if cell.exercise in self.blamed:
                return self._after_blame(item, cell)
            if not self._stand_up(cell) or self.kernel is None:
                continue
            kernel = self.kernel
            result, loudest = observe(item, cell, kernel, self._cell_time(cell))
            self.last = cell
            if self._harmless(kernel, cell, result, loudest):
                return self._confirm(item, cell, result)

    def _harmless(
        self, kernel: WatchedKernel, cell: Cell, result: CellRun, loudest: str | None
    ) -> bool:
        """Draw the consequences of a result; False when the cell must be run once more."""
        deadly = result.status in DEADLY
        hosted = kernel.hosted
        if deadly or not kernel.is_alive():
            self._drop()
        if not deadly and result.status != "timeout":
            if cell.role in ("setup", "answer"):
                self.replayed.append(cell)
            return True
        if loudest is not None and loudest != cell.exercise:
            self.blamed[loudest] = Blame(result.status, result.reason, certain=True)
            return False
        if cell.exercise is not None:
            alone = result.status == "timeout" or not hosted - {cell.exercise}
            self.blamed[cell.exercise] = Blame(result.status, result.reason, certain=alone)
        elif cell.index not in self.retried:
            self.retried.add(cell.index)
            return False
        return True

    def _confirm(self, item, cell: Cell, result: CellRun) -> CellRun:
        """Repeat alone what another exercise may have spoilt."""
        if cell.role != "check":
            return result
        blame = self.blamed.get(cell.exercise)
        spoilt = blame is not None and not blame.certain
        if not spoilt and result.status == "mismatch" and self.kernel is not None:
            others = self.kernel.hosted - {cell.exercise}
            spoilt = bool(others) and padded(item.cell.outputs, result.stdout)
        if not spoilt:
            return result
        again = self._alone(item, cell)
        return again if again.status == "ok" else result

    def _after_blame(self, item, cell: Cell) -> CellRun:
        status, reason, certain = self.blamed[cell.exercise]
        if cell.role == "check" and not certain:
            return self._alone(item, cell)
        return cell.result("not-run", f"its exercise was stopped before: {reason}", cause=status)

    def _alone(self, item, cell: Cell) -> CellRun:
        """The check in a fresh kernel with the set-up and its own answer, nothing else."""
        kernel = self.start()
        try:
            for before in self.cells[: cell.index]:
                own = before.exercise == cell.exercise and before.role == "answer"
                if own or before.role == "setup":
                    kernel.run_quietly(before.source, self._cell_time(before), before.exercise)
            result, _ = observe(item, cell, kernel, self._cell_time(cell))
            return replace(result, alone=True)
        except (KernelGone, TooMuchOutput, Empty) as trouble:
            status, reason = _told(trouble)
            self.blamed[cell.exercise] = Blame(status, reason, certain=True)
            return replace(cell.result("not-run", reason, cause=status), alone=True)
        finally:
            kernel.stop()

    def _stand_up(self, upto: Cell) -> bool:
        """Have a kernel with all that went before; False when one more exercise was blamed."""
        if self.kernel is not None and self.kernel.is_alive():
            return True
        if self.kernel is not None:
            self._drop()
            if self.last is not None and self.last.exercise is not None:
                reason = "the kernel ended after the cell had finished"
                self.blamed.setdefault(self.last.exercise, Blame("crash", reason, certain=False))
                self.last = None
                return False
        self.kernel = kernel = self.start()
        for cell in [cell for cell in self.replayed if self._needed(cell, upto)]:
            try:
                kernel.run_quietly(cell.source, self._cell_time(cell), cell.exercise)
            except (KernelGone, TooMuchOutput, Empty) as trouble:
                self._blame_replay(kernel, cell, trouble)
                return False
        return True

    def _needed(self, cell: Cell, upto: Cell) -> bool:
        """Whether a cell is to be repeated: CUDA is compiled again for its own check alone."""
        foreign = is_cuda(cell.source) and cell.exercise != upto.exercise
        return cell.exercise not in self.blamed and not foreign

    def _blame_replay(self, kernel: WatchedKernel, cell: Cell, trouble: Exception) -> None:
        status, reason = _told(trouble)
        parent = getattr(trouble, "parent_id", None)
        loudest = kernel.sent.get(parent) or cell.exercise
        if loudest is None:  # the set-up is ours: that it fails again is no student's doing
            if cell.index in self.retried:
                self.no_kernel = f"the set-up could not be repeated: {reason}"
            self.retried.add(cell.index)
        else:
            others = kernel.hosted - {loudest}
            self.blamed[loudest] = Blame(status, reason, certain=not others)
        self._drop()

    def _drop(self) -> None:
        if self.kernel is not None:
            self.kernel.stop()
        self.kernel = None

    def _time_left(self) -> float:
        return self.deadline - time.monotonic()

    def _cell_time(self, cell: Cell) -> float:
        """The set-up is the course's own and imports much, so it has the time of a start."""
        longest = self.limits.startup_s if cell.role == "setup" else self.limits.cell_s
        return max(0.1, min(longest, self._time_left()))


def _told(trouble: Exception) -> tuple[str, str]:
    """Status and sentence of what stopped a cell that was run quietly."""
    if isinstance(trouble, KernelGone):
        return trouble.death
    if isinstance(trouble, TooMuchOutput):
        return "output-flood", str(trouble)
    return "timeout", "it did not finish in time when it was run again"
