"""Why a kernel is gone: a status word of the grader, and the sentence that a student reads."""

from __future__ import annotations

from typing import NamedTuple

from labs_lib.grading.sandbox.groups import Group
from labs_lib.grading.sandbox.policy import MIB, Limits

XCPU = 24  # the number of SIGXCPU, which Windows lacks


class Death(NamedTuple):
    """A status word and a sentence."""

    status: str
    sentence: str


def told_by_group(group: Group | None, limits: Limits) -> Death | None:
    """What a control group has refused to a kernel, if that is why it can't go on."""
    if group is None:
        return None
    if group.out_of_memory():
        return of_memory(f"more than {_mib(limits.memory_bytes)}", limits)
    if group.robbed():
        return Death("infrastructure", "the memory of the machine was used up")
    return of_processes(limits) if group.refused_processes() else None


def told_by_watcher(held: int, limits: Limits) -> Death | None:
    """Whether the bytes that were seen are too many."""
    return of_memory(_mib(held), limits) if held > limits.memory_bytes else None


def told_by_exit(code: int | None, limits: Limits) -> Death:
    """What an exit code tells, which is above 128 or below 0 for a signal."""
    signum = -code if code is not None and code < 0 else (code or 0) - 128
    if signum == XCPU:
        spent = f"{limits.cpu_s:g} s"
        return Death("timeout", f"the kernel used up its {spent} of processor time")
    if signum > 0:
        return Death("crash", f"the kernel was ended by signal {signum}")
    return Death("crash", f"the kernel left with exit code {code}")


def of_memory(held: str, limits: Limits) -> Death:
    """More memory than allowed."""
    return Death("memory", f"{held} held where {_mib(limits.memory_bytes)} are allowed")


def of_processes(limits: Limits) -> Death:
    """More processes than allowed."""
    return Death("crash", f"more than {limits.processes} processes were started")


def _mib(size: int) -> str:
    return f"{size / MIB:.0f} MiB"
