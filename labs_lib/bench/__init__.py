"""`labs bench`: what is fast, beside what it must be compared with, measured in one run."""

from labs_lib.bench.registry import BENCHES, Bench
from labs_lib.bench.rows import Row, Unavailable, WrongResult

__all__ = ["BENCHES", "Bench", "Row", "Unavailable", "WrongResult"]
