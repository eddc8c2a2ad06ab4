"""The arguments of `labs grade`.

Nothing of the grader is imported here: the command line has to be quick.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

FENCES = ("bubblewrap", "process-limits")  # as `sandbox.levels` has them
MOST_SETS = 20  # of keys, as `expected.ready` keeps them


def add_arguments(add: Callable[..., Any]) -> None:
    """Add them by an argument parser's `add_argument`."""
    add("submissions", type=Path, nargs="?", metavar="SUBMISSIONS", help="a folder or a .zip")
    add("--out", type=Path, default=Path("grades"), metavar="DIR", help="results; ./grades")
    add("--labs", metavar="NN,NN", help="grade these labs only, such as 02,03")
    add("--seed", type=int, metavar="N", help="the run's secret seed; without it, a fresh one")
    add("--roster", type=Path, metavar="CSV", help="who is in the class; each gets a row")
    add("--late", type=Path, metavar="TOML", help="deadlines, time zone, what a day late costs")
    add("--received", type=Path, metavar="CSV", help="which file is whose, and when it came")
    add("--marks", type=Path, metavar="FILE", help="marks by hand; unless given, OUT-marks.csv")
    ahead = "grade nothing: make what N later runs compare with, so that they start at once"
    add("--prepare", type=int, choices=range(1, MOST_SETS + 1), metavar="N", help=ahead)
    add("--similarity", action="store_true", help="also tell which answers look alike")
    add("--workers", "--jobs", type=_count, metavar="N", help="notebooks at a time; all cores")
    add("--scheduler", metavar="ADDRESS", help="run them on a Dask cluster instead")
    add("--resume", action="store_true", help="run what is new or changed only; the default")
    add("--again", action="store_true", help="grade anew what was graded before")
    add("--fence", metavar="NAME", choices=FENCES, help=f"insist on {' or on '.join(FENCES)}")


def _count(text: str) -> int:
    """A whole number from 1 on; argparse makes a sentence of the error."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)
