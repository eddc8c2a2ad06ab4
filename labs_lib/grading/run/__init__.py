"""Run one prepared notebook through nbval behind the fence, one result for each code cell."""

from labs_lib.grading.run.records import STATUSES, CellRun, read_results
from labs_lib.grading.run.runner import run_notebook

__all__ = ["STATUSES", "CellRun", "read_results", "run_notebook"]
