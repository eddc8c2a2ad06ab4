"""How far a run is, in a line on a terminal, or in lines elsewhere."""

from __future__ import annotations

import time
from typing import TextIO


class Progress:
    """Tells how many submissions are graded, and how long the rest may take.

    Time is estimated from notebooks that were run in this call; what was known costs nothing.
    """

    def __init__(self, stream: TextIO, total: int) -> None:
        self.stream, self.total, self.done, self.run = stream, total, 0, 0
        self.began = time.monotonic()
        self.live = stream.isatty()

    def step(self, student: str, *, ran: bool) -> None:
        """One more submission is graded; `ran` unless all of it was known."""
        self.done += 1
        self.run += ran
        each = (time.monotonic() - self.began) / self.run if self.run else 0.0
        left = each * (self.total - self.done)
        text = f"graded {self.done} of {self.total}, about {_minutes(left)} left ({student})"
        self._write(f"\r\x1b[K{text}" if self.live else f"{text}\n")

    def say(self, text: str) -> None:
        """A line of its own."""
        self._write(f"\r\x1b[K{text}\n" if self.live else f"{text}\n")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
