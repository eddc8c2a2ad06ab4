"""The arguments of `labs grade` on what a class brings beside its submissions.

Nothing else is imported here: the command line has to be quick.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def add_arguments(add: Callable[..., Any]) -> None:
    """Add them by an argument parser's `add_argument`."""
    add("--roster", type=Path, metavar="CSV", help="who is in the class; each gets a row")
    add("--late", type=Path, metavar="TOML", help="deadlines, time zone, what a day late costs")
    add("--received", type=Path, metavar="CSV", help="which file is whose, and when it came")
    add("--marks", type=Path, metavar="FILE", help="marks by hand; unless given, OUT-marks.csv")
    ahead = "grade nothing: make what N later runs compare with, so that they start at once"
    add("--prepare", type=int, choices=range(1, 21), metavar="N", help=ahead)
    add("--similarity", action="store_true", help="also tell which answers look alike")
