"""Which fence this machine can build, and in words what it keeps out."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from labs_lib.grading.sandbox import bubblewrap, holding, refused
from labs_lib.grading.sandbox.holding import Holding
from labs_lib.grading.sandbox.policy import Policy

BUBBLEWRAP = "bubblewrap"
PROCESS_LIMITS = "process-limits"
LEVELS = (BUBBLEWRAP, PROCESS_LIMITS)

NO_SECCOMP = (
    "No system call was refused by number, since Linux has no seccomp here or the processor is "
    "neither x86-64 nor ARM: memory that no process is seen to hold had the machine's own bounds."
)


class Level(NamedTuple):
    """The fence in use: its name in `LEVELS`, and a sentence for the report."""

    name: str
    sentence: str


class SandboxUnavailable(RuntimeError):
    """The level that was asked for can't be had on this machine."""


def level(policy: Policy | None = None, held: Holding | None = None) -> Level:
    """The best level that works here, or the one that `policy` (or LABS_SANDBOX_LEVEL) insists on.

    `held` says what holds memory and processes; without it this process finds that out, and may
    step into a control group of its own for it. Raises SandboxUnavailable with the reason if the
    level asked for does not work, and ValueError for a name that is no level.
    """
    policy = policy or Policy()
    wanted = policy.level or os.environ.get("LABS_SANDBOX_LEVEL") or None
    if wanted is not None and wanted not in LEVELS:
        raise ValueError(f"level={wanted!r} is not one of {', '.join(LEVELS)}")
    if wanted == PROCESS_LIMITS:
        return Level(PROCESS_LIMITS, _and_held(_limits_sentence("as asked for"), held))
    obstacle = _obstacle(Path(policy.python))
    if obstacle is None:
        return Level(BUBBLEWRAP, _and_held(_fence_sentence(), held))
    if wanted == BUBBLEWRAP:
        raise SandboxUnavailable(
            f"level={wanted!r} was asked for, but {obstacle}; install bubblewrap, allow user "
            f"namespaces, or ask for {PROCESS_LIMITS!r}"
        )
    return Level(PROCESS_LIMITS, _and_held(_limits_sentence(f"because {obstacle}"), held))


@cache
def _obstacle(python: Path) -> str | None:
    """Tried once for each interpreter: the answer does not change while a program runs."""
    return bubblewrap.probe(Policy(python=python))


def _and_held(sentence: str, held: Holding | None) -> str:
    told = (held or holding.here()).sentence()
    return f"{sentence} {told[0].upper()}{told[1:]}."


def _fence_sentence() -> str:
    user = "as a user of its own" if os.getuid() == 0 else "without any capability"
    told = (
        f"Student code ran in bubblewrap, {user}: no network, a read-only system, a private home, "
        "and limits on time, memory, processes, files and output."
    )
    if refused.here():
        return told
    return f"{told} {NO_SECCOMP}"


def _limits_sentence(reason: str) -> str:
    limits = "time, memory, processes, files and output"
    if sys.platform == "win32":
        limits = "time, memory and output"
    elif sys.platform == "linux" and os.getuid() == 0:
        limits += " (as root, which no limit on files it may read can hold)"
    return (
        f"Student code ran as an ordinary process, {reason}: limits on {limits}, but it could "
        "read the files of this account and use the network. A program that means harm can compute "
        "with the course's own answers there, change marks and others' files, and end other "
        "processes of this account."
    )
