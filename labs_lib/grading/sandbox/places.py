"""Where control groups may be made on this machine: found out by making one and ending it.

- Version 1: below the grader's own group in the hierarchies of memory and of processes.
- Version 2, a group that the grader has to itself (a unit with Delegate=yes, a container): below
  it. A group with processes can't give controllers to others, so the grader steps into a group
  below it, and back at the end.
- Version 2, other groups: below the nearest one above that gives memory and processes to its
  children, past no limit that the grader itself is held by.
- Version 2, an ordinary user's login: the user's own systemd makes a scope for the grader, as
  `systemd-run --user --scope -p Delegate=yes` would.

The standard library is enough for it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from labs_lib.grading.sandbox import groups
from labs_lib.grading.sandbox.groups import CHILDREN, CONTROLLERS, PROCS, Group, write

PROC = Path("/proc")
SCOPE_S = 10.0
TRIAL_BYTES = 16 << 20
TRIAL = ("dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1")  # fills what it may not have
WAITING = ("/bin/sh", "-c", "read -r code")


class Own(NamedTuple):
    """The group that this process is in, in one hierarchy, and the highest folder to be seen."""

    folder: Path
    top: Path


class NoPlace(Exception):
    """No group can be made, and why."""


class NoWay(NoPlace):
    """One way to a place is not there, which says nothing of the others."""


def own(controller: str) -> Own | None:
    """This process's group in a controller's hierarchy of version 1; "" asks for version 2."""
    kind = "cgroup" if controller else "cgroup2"
    path = next((path for names, path in _memberships() if controller in names), None)
    for found, options, root, point in _mounts():
        if path is None or found != kind or (controller and controller not in options):
            continue
        below = os.path.relpath(path, root)
        outside = ".." in (*Path(below).parts, *Path(path).parts, *Path(root).parts)
        if not outside and (point / below).is_dir():
            return Own(point / below, point)
    return None


def legacy() -> tuple[Path, ...]:
    """The folders of version 1 that a group needs. Raises NoPlace."""
    found = [own(controller) for controller in CONTROLLERS]
    if None in found:
        raise NoWay("memory and processes are no controllers of version 1 here")
    memory, pids = (one for one in found if one is not None)
    flat = memory.folder / "memory.use_hierarchy"
    if memory.folder != memory.top and _read(flat) == "0":
        raise NoPlace("a group below this one would be out of its limit")
    return tuple(dict.fromkeys((memory.folder, pids.folder)))


def above() -> Iterator[Path]:
    """Folders of version 2, the nearest first, that give both controllers to their children."""
    found = own("")
    if found is None:
        return
    for folder in (found.folder, *found.folder.parents):
        if not folder.is_relative_to(found.top):
            return
        free = folder != found.folder or _is_root(folder)
        if free and set(CONTROLLERS) <= set(_read(folder / CHILDREN).split()):
            yield folder
        if not _is_unlimited(folder):
            return


class Leaf:
    """This process in a group of its own below the one it was in, which can then have others."""

    def __init__(self) -> None:
        """Step down, with all that this process has started. Raises NoPlace or OSError."""
        found = own("")
        if found is None or not set(CONTROLLERS) <= set(
            _read(found.folder / "cgroup.controllers").split()
        ):
            raise NoWay("the control groups that are given here hold no memory or no processes")
        self.above = found.folder
        self.folder = found.folder / f"{groups.name_for(os.getpid())}-grader"
        if _is_root(self.above):
            raise NoWay("the highest group is the machine's")
        strangers = [pid for pid in _pids(self.above) if not _is_mine(pid)]
        if strangers:
            raise NoWay("others are in the group that the grader is in")
        self.folder.mkdir()
        try:
            self._move(self.above, self.folder)
            write(self.above / CHILDREN, " ".join(f"+{name}" for name in CONTROLLERS))
        except OSError:
            self.leave()
            raise

    def leave(self) -> None:
        """Step back up, as it was before."""
        with contextlib.suppress(OSError):
            write(self.above / CHILDREN, " ".join(f"-{name}" for name in CONTROLLERS))
            self._move(self.folder, self.above)
            self.folder.rmdir()

    def _move(self, source: Path, target: Path) -> None:
        for _ in range(100):  # what is born meanwhile is born where its parent was
            pids = _pids(source)
            if not pids:
                return
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    write(target / PROCS, str(pid))
        raise OSError(f"{source} does not become empty")


def scope() -> None:
    """Move this process into a scope of its own, which the user's systemd gives away.

    Raises NoPlace.
    """
    found, user = own(""), os.getuid()
    busctl = shutil.which("busctl")
    if found is None or user == 0 or busctl is None:
        raise NoWay("no systemd of this user's own was found")
    login = next((one for one in found.folder.parents if one.name == f"user-{user}.slice"), None)
    if login is None:
        raise NoWay("the grader was not started from a login")
    if not all(map(_is_unlimited, _between(found.folder, login))):
        raise NoWay("the grader's own group has a limit, which stays")
    pids = [pid for pid in _pids(found.folder) if _is_mine(pid)]
    unit = f"{groups.name_for(os.getpid())}.scope"
    words = [busctl, "--user", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1"]
    words += ["org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))"]
    words += [unit, "fail", "3", "Description", "s", "Attention Labs, grading"]
    words += ["Delegate", "b", "true", "PIDs", "au", str(len(pids)), *map(str, pids), "0"]
    runtime = {"XDG_RUNTIME_DIR": f"/run/user/{user}"}
    try:
        done = subprocess.run(
            words,
            env=runtime | os.environ,
            capture_output=True,
            text=True,
            timeout=SCOPE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoPlace(f"systemd was not reached ({error})") from error
    if done.returncode != 0:
        told = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        raise NoPlace(f"systemd gave no scope ({told})")
    _await_scope(unit)


def try_out(above: tuple[Path, ...], name: str) -> tuple[Path, ...]:
    """The folders for the groups of one run below `above`, after one group was really made there,
    held a process, and ended one that took too much. Raises OSError or NoPlace, all removed."""
    made = tuple(folder / name for folder in above)
    try:
        for folder in made:
            groups.sweep(folder.parent)
            folder.mkdir(exist_ok=True)
            if (folder / CHILDREN).exists():
                write(folder / CHILDREN, " ".join(f"+{name}" for name in CONTROLLERS))
        _trial(Group.make(made, "trial", TRIAL_BYTES, 8))
    except BaseException:
        for folder in made:
            groups.remove(folder)
        raise
    return made


def _trial(group: Group) -> None:
    try:
        with subprocess.Popen(WAITING, stdin=subprocess.PIPE) as waiting:
            group.join(waiting.pid)
            if group.pids() != {waiting.pid}:
                raise NoPlace("a process does not go where it is put")
            waiting.kill()
        done = subprocess.run(
            group.entering(TRIAL), env={"PATH": os.defpath}, capture_output=True, check=False
        )
        if done.returncode == 0 or not group.out_of_memory():
            raise NoPlace("a group's limit on memory holds nothing")
    finally:
        gone = group.end()
    if not gone:
        raise NoPlace("a group can't be removed")


def _await_scope(unit: str) -> None:
    deadline = time.monotonic() + SCOPE_S
    while time.monotonic() < deadline:
        found = own("")
        if found is not None and found.folder.name == unit:
            return
        time.sleep(groups.STEP_S)
    raise NoPlace("systemd's scope did not come in time")


def _memberships() -> Iterator[tuple[list[str], str]]:
    """Controllers and path of each hierarchy's group (cgroups(7), /proc/pid/cgroup)."""
    for line in _read(PROC / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        yield controllers.split(","), path


def _mounts() -> Iterator[tuple[str, list[str], str, Path]]:
    """Kind, options, root and place of each mount (proc(5), /proc/pid/mountinfo)."""
    for line in _read(PROC / "self" / "mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        _, _, _, root, point, *_ = left.split(" ")
        kind, _, options = right.split(" ")
        yield kind, options.split(","), _plain(root), Path(_plain(point))


def _plain(text: str) -> str:
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def _is_root(folder: Path) -> bool:
    """Whether a group is the highest of the machine, where the rule about processes is off."""
    return not (folder / "cgroup.type").exists()


def _is_unlimited(folder: Path) -> bool:
    limits = (_read(folder / name) for name in ("memory.max", "memory.high", "cpu.max"))
    return all(value.split()[:1] in ([], ["max"]) for value in limits)


def _between(folder: Path, top: Path) -> Iterator[Path]:
    """A folder and those above it, up to but not including `top`."""
    while folder != top:
        yield folder
        folder = folder.parent


def _is_mine(pid: int) -> bool:
    """Whether a process is this one or was started by it."""
    while pid > 0:
        if pid == os.getpid():
            return True
        status = _read(PROC / str(pid) / "status").splitlines()
        pid = next((int(line.split()[1]) for line in status if line.startswith("PPid:")), 0)
    return False


def _pids(folder: Path) -> list[int]:
    return [int(line) for line in _read(folder / PROCS).split()]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
