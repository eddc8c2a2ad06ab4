"""What ends a command with one sentence: a thing that can't be done, or a signal."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable
from typing import Any, NoReturn


class UsageError(Exception):
    """What was asked can't be done; the message says why and the way out, in one sentence."""


class Ended(KeyboardInterrupt):
    """A signal that asks the process to end, as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def ended_in_order(run: Callable[..., Any]) -> Callable[..., Any]:
    """Let SIGTERM, and the end of the terminal, end `run` as Ctrl-C does: what is half done is put
    away. A signal that is ignored stays ignored: `nohup` asks for that."""

    def end(number: int, _: object) -> NoReturn:
        raise Ended(number)

    @functools.wraps(run)
    def ran(*given: Any, **more: Any) -> Any:
        before = {}
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                    before[number] = signal.signal(number, end)
        try:
            return run(*given, **more)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    return ran


def ending(stop: KeyboardInterrupt) -> tuple[str, int]:
    """The word for a stop, and the exit code that shells expect."""
    if isinstance(stop, Ended):
        return f"ended by {signal.Signals(stop.number).name}", 128 + stop.number
    return "interrupted", 128 + signal.SIGINT
