"""A time limit for a call in this process, so that an endless loop ends in a sentence."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator


class TooSlow(BaseException):
    """A call ran past its time limit. Not an `Exception`, so that `except Exception` lets it by."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Raise `TooSlow` inside after `seconds`, where the platform has interval timers.

    Only the main thread of a POSIX process can be interrupted so; elsewhere nothing is limited
    and Jupyter's own interrupt button remains.
    """
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def ring(signum: int, frame: object) -> None:
        raise TooSlow(f"it ran for more than {seconds:g} seconds; is there a loop without an end?")

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
