"""A process and everything below it: who is there, and how much memory they hold."""

from __future__ import annotations

import contextlib
import os
import sys
import time

import psutil

PAGE = 4096
if sys.platform == "linux":
    import resource

    PAGE = resource.getpagesize()


def descendants(pid: int) -> list[int]:
    """`pid` and all processes below it that are alive now."""
    if sys.platform != "linux":
        try:
            below = psutil.Process(pid).children(recursive=True)
        except psutil.Error:
            return [pid]
        return [pid, *(process.pid for process in below)]
    found = [pid]
    for parent in found:
        found.extend(_children(parent))
    return found


def memory(pids: list[int], limit: int = 0) -> int:
    """Bytes that the processes hold: all their private pages, and the largest shared part.

    Pages that a fork has not written to are counted for each process. Where that sum is over
    `limit` it is taken again, slowly and exactly: each page divided by those who hold it.
    """
    private, shared = 0, 0
    for pid in pids:
        resident, common = _resident(pid)
        private += resident - common
        shared = max(shared, common)
    if private + shared <= limit:
        return private + shared
    return min(private + shared, sum(map(_proportional, pids)))


def active(pid: int) -> bool:
    """Whether a process with this number still does anything."""
    try:
        return _runs(psutil.Process(pid))
    except psutil.Error:
        return False


def end(pids: list[int], *, timeout: float = 5.0) -> bool:
    """Kill the processes and wait until none of them runs; False if one still does."""
    alive = []
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            process.kill()
            alive.append(process)
    deadline = time.monotonic() + timeout
    while True:
        alive = [process for process in alive if _runs(process)]
        if not alive or time.monotonic() > deadline:
            return not alive
        time.sleep(0.005)


def _runs(process: psutil.Process) -> bool:
    """Whether it still does anything; an orphan may stay a zombie until init reaps it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for task in tasks:
        with (
            contextlib.suppress(OSError),
            open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file,
        ):
            found += [int(child) for child in file.read().split()]
    return found


def _resident(pid: int) -> tuple[int, int]:
    """Resident bytes of one process, and how many of them are shared."""
    if sys.platform != "linux":
        try:
            return psutil.Process(pid).memory_info().rss, 0
        except psutil.Error:
            return 0, 0
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            _, resident, shared, *_ = file.read().split()
    except (OSError, ValueError):
        return 0, 0
    return int(resident) * PAGE, int(shared) * PAGE


def _proportional(pid: int) -> int:
    """Bytes of one process, each page divided by the number of its holders.

    All that is resident where this isn't told: nothing, for one that has ended and is still listed.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            sizes = dict(line.split(":", 1) for line in file if line.startswith("Pss:"))
        return 1024 * int(sizes["Pss"].split()[0])
    except (OSError, KeyError, ValueError):
        return _resident(pid)[0]
