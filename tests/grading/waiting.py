"""Waiting for other processes, and finding those that a word on their command line marks."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil


def processes_with(word: str) -> list[int]:
    """The processes with this word on their command line that have not ended."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "status"])
        if word in (process.info["cmdline"] or [])
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def gone_within(word: str, seconds: float) -> bool:
    """Whether no process with this word is left after so many seconds, or before."""
    deadline = time.monotonic() + seconds
    while processes_with(word) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not processes_with(word)


def wait_for(promise: Callable[[], object], seconds: float) -> None:
    """Wait until a promise is kept; fail if it takes longer."""
    deadline = time.monotonic() + seconds
    while not promise():
        assert time.monotonic() < deadline
        time.sleep(0.05)
