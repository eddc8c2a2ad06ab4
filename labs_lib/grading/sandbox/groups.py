"""Control groups of Linux: what one kernel may take, held by the system at each moment.

A group is a folder in each hierarchy that has a controller which is needed: one for all in version
2 of control groups, one for each controller in version 1. `places` says where one may be made.
The standard library is enough for it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

PROCS = "cgroup.procs"
CHILDREN = "cgroup.subtree_control"
CONTROLLERS = ("memory", "pids")
NEEDED = (("memory.max", "memory.limit_in_bytes"), ("pids.max",))  # one of each
OOM_EVENTS = (("memory.events", "oom_kill"), ("memory.oom_control", "oom_kill"))
LIMIT_EVENTS = (("memory.events", "oom"),)
MOST_HELD = (("memory.max_usage_in_bytes", ""), ("memory.memsw.max_usage_in_bytes", ""))
SPARE_PROCESSES = 8  # of the fence itself: bubblewrap twice, a shell, what becomes the kernel
_NAME = re.compile(r"labs-(\d+)-(\d+)-(\d+)(-grader)?")
STEP_S = 0.002
NEAR_BYTES = 1 << 20  # pages are taken in batches


class Group:
    """One kernel's control group."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(folders)

    @classmethod
    def make(cls, above: Sequence[Path], name: str, memory_bytes: int, processes: int) -> Group:
        """A new group with its limits in each folder of `above`; OSError with nothing left."""
        group = cls([folder / name for folder in above])
        try:
            for folder in group.folders:
                folder.mkdir()
            group._limit(memory_bytes, processes + SPARE_PROCESSES)
        except OSError:
            group.end()
            raise
        return group

    def join(self, pid: int) -> None:
        """Put a process into the group; what it starts from now on is born there."""
        for folder in self.folders:
            write(folder / PROCS, str(pid))

    def entering(self, argv: Sequence[str]) -> list[str]:
        """A command that enters the group before it becomes `argv`."""
        enter = "; ".join(f"echo $$ >{shlex.quote(str(one / PROCS))}" for one in self.folders)
        return ["/bin/sh", "-c", f'{{ {enter}; }} 2>/dev/null; exec "$@"', "sh", *argv]

    def pids(self) -> set[int]:
        """The processes that are in the group in each of its hierarchies."""
        return set.intersection(*map(_members, self.folders))

    def out_of_memory(self) -> bool:
        """Whether one of its processes was ended since the group's own memory was used up."""
        if not self.robbed():
            return False
        limit = self._counted((("memory.limit_in_bytes", ""),))  # version 1 counts no events of it
        return self._counted(LIMIT_EVENTS) > 0 or self._counted(MOST_HELD) > limit - NEAR_BYTES > 0

    def robbed(self) -> bool:
        """Whether one of its processes was ended for memory, be it the group's or the machine's."""
        return self._counted(OOM_EVENTS) > 0

    def refused_processes(self) -> bool:
        """Whether a process or thread too many was asked for."""
        return self._counted((("pids.events", "max"),)) > 0

    def end(self, seconds: float = 5.0) -> bool:
        """End every process in the group and remove it; False if something is left."""
        gone = [remove(folder, seconds) for folder in self.folders]
        return all(gone)

    def _limit(self, memory_bytes: int, processes: int) -> None:
        wanted = {  # in this order: memory with swap can't be below memory
            "memory.max": memory_bytes,
            "memory.swap.max": 0,
            "memory.oom.group": 1,
            "memory.limit_in_bytes": memory_bytes,
            "memory.memsw.limit_in_bytes": memory_bytes,
            "pids.max": processes,
        }
        done = set()
        for name, value in wanted.items():
            for path in self._files(name):
                write(path, str(value))
                done.add(name)
        for names in NEEDED:
            if done.isdisjoint(names):
                raise FileNotFoundError(f"a group has no {' or '.join(names)} here")

    def _files(self, name: str) -> Iterator[Path]:
        return (path for path in (folder / name for folder in self.folders) if path.exists())

    def _counted(self, events: Sequence[tuple[str, str]]) -> int:
        """The highest count of an event; a file with one number alone has no name for it."""
        found = 0
        for name, event in events:
            for path in self._files(name):
                with contextlib.suppress(OSError, ValueError):
                    for line in path.read_text(encoding="ascii").splitlines():
                        words = line.split()
                        if words[:-1] == [event] * bool(event):
                            found = max(found, int(words[-1]))
        return found


def write(path: Path, text: str) -> None:
    """Write to a file of a control group: one call, and never a new file."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def remove(folder: Path, seconds: float = 5.0) -> bool:
    """End what is in a group and below it, and remove the folders; False if something is left."""
    deadline = time.monotonic() + seconds
    while folder.is_dir():
        below = [Path(path) for path, _, _ in os.walk(folder, topdown=False)]
        for one in below:
            _end_members(one)
        for one in below:
            with contextlib.suppress(OSError):
                one.rmdir()
        if folder.is_dir():
            if time.monotonic() > deadline:
                return False
            time.sleep(STEP_S)
    return True


def name_for(pid: int) -> str:
    """What the groups of a grader are called: its namespace of processes, number and birth."""
    namespace = os.stat("/proc/self/ns/pid").st_ino
    return f"labs-{namespace}-{pid}-{_born(pid)}"


def sweep(folder: Path) -> None:
    """Remove the groups in `folder` and in those beside it (other logins, other jobs) whose grader,
    of this user, has ended without doing it."""
    namespace, mine = os.stat("/proc/self/ns/pid").st_ino, os.getuid()
    for path in {*folder.glob("labs-*"), *folder.parent.glob("*/labs-*")}:
        named = _NAME.fullmatch(path.name)
        if named is None or int(named[1]) != namespace:
            continue
        with contextlib.suppress(OSError):
            if path.stat().st_uid != mine or _born(int(named[2])) == int(named[3]):
                continue
            if named[4]:  # where a grader stood itself: who is left there is none of ours
                path.rmdir()
            else:
                remove(path)


def _born(pid: int) -> int:
    """When a process began, in ticks since the machine did; 0 for none (proc(5), field 22)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[19])


def _members(folder: Path) -> set[int]:
    try:
        return set(map(int, (folder / PROCS).read_text(encoding="ascii").split()))
    except (OSError, ValueError):
        return set()


def _end_members(folder: Path) -> None:
    """Let none be born there any more, and kill all: at once where Linux can (5.14)."""
    with contextlib.suppress(OSError):
        write(folder / "pids.max", "0")
    try:
        write(folder / "cgroup.kill", "1")
    except OSError:
        for pid in _members(folder):
            _kill_member(folder, pid)


def _kill_member(folder: Path, pid: int) -> None:
    """Kill a process that is in the group for sure: its number may have been taken by another."""
    with contextlib.suppress(OSError):
        if not hasattr(os, "pidfd_open"):
            if pid in _members(folder):
                os.kill(pid, signal.SIGKILL)
            return
        held = os.pidfd_open(pid)
        try:
            if pid in _members(folder):
                signal.pidfd_send_signal(held, signal.SIGKILL)
        finally:
            os.close(held)
