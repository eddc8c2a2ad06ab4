"""The fallback: an ordinary process with limits, its own session and a clean environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from labs_lib.grading.sandbox.environment import clean_environment
from labs_lib.grading.sandbox.policy import MIB, Limits, Policy
from labs_lib.grading.sandbox.room import Room

LAUNCHER = Path(__file__).with_name("launch.py")
# What Python, its libraries and their threads map without ever touching it.
ADDRESS_HEADROOM = 1024 * MIB


def command(policy: Policy, room: Room, kernel: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The argv and environment of a kernel whose own command line is `kernel`."""
    limits = resource_limits(policy.limits)
    limits["RLIMIT_NPROC"] += _threads_of_this_user()
    settings = launcher_settings(limits, supervise=True)
    python = str(Path(policy.python).absolute())
    environment = clean_environment(
        policy,
        home=str(room.home),
        scratch=str(room.home),
        handout=None if policy.handout is None else str(policy.handout),
        run_json=None if room.run_json is None else str(room.run_json),
    )
    return [python, "-I", "-S", str(LAUNCHER), settings, *kernel], environment


def resource_limits(limits: Limits) -> dict[str, int]:
    """The limits by the names of the `resource` module; bytes, seconds and counts."""
    return {
        "RLIMIT_AS": limits.memory_bytes + ADDRESS_HEADROOM,
        "RLIMIT_CPU": max(1, int(limits.cpu_s)),
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NPROC": limits.processes,
        "RLIMIT_NOFILE": 1024,
        "RLIMIT_CORE": 0,
    }


def launcher_settings(limits: dict[str, int], *, supervise: bool) -> str:
    """The first argument of launch.py."""
    return json.dumps({"limits": limits, "supervise": supervise})


def _threads_of_this_user() -> int:
    """RLIMIT_NPROC counts every thread of the user, so what runs already is no one's fault."""
    if sys.platform != "linux" or os.getuid() == 0:
        return 0
    mine = os.getuid()
    return sum(
        process.info["num_threads"] or 0
        for process in psutil.process_iter(["uids", "num_threads"])
        if process.info["uids"] is not None and process.info["uids"].real == mine
    )
