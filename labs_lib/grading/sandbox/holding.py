"""What holds the kernels of this run: control groups where they may be made, else a watcher."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from labs_lib.grading.sandbox import groups, places
from labs_lib.grading.sandbox.groups import Group
from labs_lib.grading.sandbox.policy import Limits

SWITCH = "LABS_SANDBOX_GROUPS"  # "off": watch, though groups may be made
HELD = "memory and processes {verb} held by a control group"
WATCHED = "memory and processes {verb} watched ten times a second, not held by a control group"


class Holding(NamedTuple):
    """The folders below which each kernel has a group, or none and the reason."""

    folders: tuple[Path, ...]
    reason: str = ""

    def sentence(self, verb: str = "were") -> str:
        """What holds, in words, as the rest of a sentence."""
        if self.folders:
            return HELD.format(verb=verb)
        return WATCHED.format(verb=verb) + (f" ({self.reason})" if self.reason else "")

    def group(self, limits: Limits) -> Group | None:
        """A group for one kernel; None where none is allowed, or not any more."""
        if not self.folders:
            return None
        name = f"kernel-{os.getpid()}-{next(_STARTED)}"
        with contextlib.suppress(OSError):
            return Group.make(self.folders, name, limits.memory_bytes, limits.processes)
        return None


class _Found(NamedTuple):
    holding: Holding
    moved: bool


_STARTED = itertools.count()
_FOUND: dict[int, _Found] = {}
_LOCK = threading.RLock()


def here(*, move: bool = True) -> Holding:
    """What may hold the kernels of this process; tried once, and taken away when it ends.

    With `move` the process may step into another group (see `places`), as a grader does; a program
    that only starts a kernel is left where it is.
    """
    with _LOCK:
        found = _FOUND.get(os.getpid())
        if found is None or (move and not found.moved and not found.holding.folders):
            found = _Found(_tried(move), move)
            _FOUND.clear()
            _FOUND[os.getpid()] = found
        return found.holding


def known() -> Holding | None:
    """What `here` has found for this process, if it was asked and found something."""
    with _LOCK:
        found = _FOUND.get(os.getpid())
        return found.holding if found is not None and found.holding.folders else None


def given(folders: Sequence[str]) -> Holding:
    """What a kernelspec names, where its grader still lives; else what may be done from here."""
    paths = tuple(map(Path, folders))
    if paths and all(path.is_dir() for path in paths):
        return Holding(paths)
    return here(move=False)


def _tried(move: bool) -> Holding:
    if sys.platform != "linux":
        return Holding((), "control groups exist on Linux only")
    if os.environ.get(SWITCH) == "off":
        return Holding((), "as asked for")
    name = groups.name_for(os.getpid())
    ways: list[Callable[[], tuple[Path, ...]]] = [lambda: places.try_out(places.legacy(), name)]
    if move:
        ways.append(lambda: _below(name))
    ways.append(lambda: _above(name))
    if move:
        ways.append(lambda: _in_scope(name))
    reasons: list[Exception] = []
    for way in ways:
        try:
            folders = way()
        except (OSError, places.NoPlace) as reason:
            reasons.append(reason)
            continue
        atexit.register(_remove, os.getpid(), folders)  # before the grader steps back
        return Holding(folders)
    told = next((one for one in reasons if not isinstance(one, places.NoWay)), reasons[1])
    return Holding((), getattr(told, "strerror", None) or str(told))


def _below(name: str) -> tuple[Path, ...]:
    leaf = places.Leaf()
    try:
        made = places.try_out((leaf.above,), name)
    except BaseException:
        leaf.leave()
        raise
    atexit.register(_leave, os.getpid(), leaf)
    return made


def _above(name: str) -> tuple[Path, ...]:
    reason: Exception = places.NoWay("no group above gives memory and processes to others")
    for folder in places.above():
        try:
            return places.try_out((folder,), name)
        except (OSError, places.NoPlace) as trouble:
            reason = trouble
    raise reason


def _in_scope(name: str) -> tuple[Path, ...]:
    places.scope()
    return _below(name)


def _remove(pid: int, folders: tuple[Path, ...]) -> None:
    if os.getpid() == pid:
        for folder in folders:
            groups.remove(folder)


def _leave(pid: int, leaf: places.Leaf) -> None:
    if os.getpid() == pid:
        leaf.leave()
