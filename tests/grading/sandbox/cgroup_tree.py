"""A tree of control groups of version 2 that behaves as Linux's: its files, rules and rights."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

from labs_lib.grading.sandbox import groups, places

MKDIR, RMDIR, WRITE = Path.mkdir, Path.rmdir, groups.write
PLAIN = ("cgroup.procs", "cgroup.subtree_control", "cgroup.kill", "cgroup.controllers")
LIMITS = {"memory.max": "max", "memory.high": "max", "memory.swap.max": "max"}
LIMITS |= {"memory.oom.group": "0", "memory.events": "oom 0\noom_kill 0"}
COUNTS = {"pids.max": "max", "pids.events": "max 0"}


class Tree:
    """`root` is the highest folder; only what lies in `given` can be written to."""

    def __init__(self, folder: Path, monkeypatch, controllers: str = "cpu memory pids") -> None:
        self.root, self.proc = folder / "cgroup", folder / "proc"
        MKDIR(self.root)
        MKDIR(self.proc / "self", parents=True)
        for name in PLAIN:
            (self.root / name).write_text("", encoding="utf-8")
        (self.root / "cgroup.controllers").write_text(controllers, encoding="utf-8")
        self.given, self.tried, self.read_only, self.top = [self.root], [], False, "/"
        monkeypatch.setattr(Path, "mkdir", lambda path, *a, **k: self.mkdir(path, *a, **k))
        monkeypatch.setattr(Path, "rmdir", lambda path: self.rmdir(path))
        monkeypatch.setattr(groups, "write", self.write)
        monkeypatch.setattr(places, "write", self.write)
        monkeypatch.setattr(places, "PROC", self.proc)
        monkeypatch.setattr(places, "_trial", self.trial)
        mount = f"30 23 0:26 {self.top} {self.root} rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
        (self.proc / "self" / "mountinfo").write_text(mount, encoding="utf-8")

    def group(self, path: str, *pids: int, gives: bool = False, given: bool = False) -> Path:
        """A group below the root with processes in it; `given` to this user, and `gives` on."""
        folder = self.root
        for part in Path(path).parts:
            if not (folder / part).is_dir():
                self._fill(folder / part)
            folder /= part
        if gives:
            self._give(folder)
        if given:
            self.given.append(folder)
        for pid in pids:
            self._put(folder, pid)
        return folder

    def only_given(self, *folders: Path) -> None:
        """Take the rest of the tree away from this user."""
        self.given = list(folders)

    def process(self, pid: int, parent: int) -> None:
        """A process that /proc tells of."""
        MKDIR(self.proc / str(pid), exist_ok=True)
        (self.proc / str(pid) / "status").write_text(f"PPid:\t{parent}\n", encoding="utf-8")

    def where(self, pid: int) -> Path | None:
        """The group that a process is in."""
        for path in [self.root, *self.root.rglob("*")]:
            if path.is_dir() and str(pid) in self._procs(path):
                return path
        return None

    def folders(self) -> list[str]:
        """The folders of all groups below the root."""
        found = (path for path in self.root.rglob("*") if path.is_dir())
        return sorted(str(path.relative_to(self.root)) for path in found)

    def trial(self, group) -> None:
        """What a real machine tries: remember the limits, and end it."""
        files = {p.name: p.read_text(encoding="utf-8") for p in group.folders[0].iterdir()}
        self.tried.append(files)
        assert group.end()

    def mkdir(self, path, mode=0o777, parents=False, exist_ok=False) -> None:
        if not path.is_relative_to(self.root):
            return MKDIR(path, mode, parents=parents, exist_ok=exist_ok)
        if self.read_only:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        self._may(path.parent)
        self._fill(path)
        self.given.append(path)
        return None

    def rmdir(self, path) -> None:
        if not path.is_relative_to(self.root):
            return RMDIR(path)
        self._may(path.parent)
        if self._procs(path) or any(one.is_dir() for one in path.iterdir()):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))
        for one in path.iterdir():
            one.unlink()
        return RMDIR(path)

    def write(self, path, text) -> None:
        if not path.is_relative_to(self.root):
            return WRITE(path, text)
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        self._may(path.parent)
        if path.name == "cgroup.procs":
            self._move(path.parent, int(text))
        elif path.name == "cgroup.subtree_control":
            self._switch(path.parent, text.split())
        elif path.name == "cgroup.kill":
            for one in [path.parent, *path.parent.rglob("*")]:
                if one.is_dir():
                    (one / "cgroup.procs").write_text("", encoding="utf-8")
        else:
            path.write_text(text, encoding="utf-8")
        return None

    def _may(self, folder) -> None:
        if not any(folder.is_relative_to(one) for one in self.given):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))

    def _move(self, folder, pid) -> None:
        before = self.where(pid)
        if before is not None:
            self._may(Path(os.path.commonpath([before, folder])))
        if folder != self.root and (folder / "cgroup.subtree_control").read_text(encoding="utf-8"):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(folder))
        self._put(folder, pid)

    def _put(self, folder, pid) -> None:
        before = self.where(pid)
        if before is not None:
            left = [one for one in self._procs(before) if one != str(pid)]
            (before / "cgroup.procs").write_text("\n".join(left), encoding="utf-8")
        now = [*self._procs(folder), str(pid)]
        (folder / "cgroup.procs").write_text("\n".join(now), encoding="utf-8")
        if pid == os.getpid():
            below = folder.relative_to(self.root)
            told = "0::/" + ("" if below == Path() else str(below))
            (self.proc / "self" / "cgroup").write_text(told + "\n", encoding="utf-8")

    def _switch(self, folder, words) -> None:
        have = (folder / "cgroup.controllers").read_text(encoding="utf-8").split()
        on = set((folder / "cgroup.subtree_control").read_text(encoding="utf-8").split())
        for word in words:
            if word[0] == "+" and word[1:] not in have:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
            on = on | {word[1:]} if word[0] == "+" else on - {word[1:]}
        if on and self._procs(folder) and folder != self.root:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(folder))
        self._give(folder, " ".join(sorted(on)))

    def _give(self, folder, names="memory pids") -> None:
        (folder / "cgroup.subtree_control").write_text(names, encoding="utf-8")
        for child in folder.iterdir():
            if child.is_dir():
                self._controllers(child, names)

    def _fill(self, folder) -> None:
        MKDIR(folder)
        for name in (*PLAIN, "cgroup.type"):
            (folder / name).write_text("", encoding="utf-8")
        given = (folder.parent / "cgroup.subtree_control").read_text(encoding="utf-8")
        self._controllers(folder, given)

    def _controllers(self, folder, names) -> None:
        (folder / "cgroup.controllers").write_text(names, encoding="utf-8")
        for controller, files in (("memory", LIMITS), ("pids", COUNTS)):
            for name, value in files.items():
                if controller not in names.split():
                    (folder / name).unlink(missing_ok=True)
                elif not (folder / name).exists():
                    (folder / name).write_text(value, encoding="utf-8")

    def _procs(self, folder) -> list[str]:
        return (folder / "cgroup.procs").read_text(encoding="utf-8").split()


class Systemd:
    """A user's systemd that answers busctl: it moves the processes it is named into a scope."""

    def __init__(self, tree: Tree, slice_: str, code: int = 0) -> None:
        self.tree, self.slice, self.code, self.asked = tree, slice_, code, []

    def __call__(self, words, **_):
        self.asked.append(words)
        if self.code == 0:
            unit, at = words[8], words.index("PIDs")
            self.tree.group(self.slice, gives=True)
            pids = map(int, words[at + 3 : at + 3 + int(words[at + 2])])
            self.tree.group(f"{self.slice}/{unit}", *pids, given=True)
        return subprocess.CompletedProcess(words, self.code, "", "Failed to connect to bus: no\n")
