"""The folder on disk that one fenced kernel shares with the front end that started it."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from pathlib import Path

from labs_lib.grading.sandbox.policy import Policy

SOCKETS = 5  # shell, iopub, stdin, control, heartbeat
LONGEST_SOCKET_PATH = 80  # the kernel's limit is 107 characters with the name of the socket


class Room:
    """One temporary folder: sockets, connection files, private copies, and a home where needed.

    sockets/          the only part that the kernel may write to, until its five sockets stand
    inside.json       the connection file as the fenced kernel reads it
    run.json          a copy of the graded run's file
    passwd, group     stubs with one harmless user
    home/             home, working and temporary folder where no private mount can be had
    """

    def __init__(self, policy: Policy, *, uid: int | None = None) -> None:
        self.policy = policy
        self.uid = uid
        self.path = _short_folder()
        self.sockets = self.path / "sockets"
        self.home = self.path / "home"
        self.outside_connection = self.path / "outside.json"
        self.inside_connection = self.path / "inside.json"
        self.run_json = self.path / "run.json" if policy.run_json else None
        self._fill()

    def open_sockets(self) -> None:
        """Make the socket folder empty and writable for a kernel that is about to start."""
        if self.sockets.is_dir():
            self.sockets.chmod(0o700)
            shutil.rmtree(self.sockets)
        self.sockets.mkdir(mode=0o700)
        self._give(self.sockets)

    def write_inside_connection(self, sockets_inside: str) -> None:
        """Copy the front end's connection file for the kernel, with the paths it will see."""
        info = json.loads(self.outside_connection.read_text(encoding="utf-8"))
        info["ip"] = f"{sockets_inside}/s"
        self.inside_connection.write_text(json.dumps(info), encoding="utf-8")
        self.inside_connection.chmod(0o600)
        self._give(self.inside_connection)

    def seal(self) -> bool:
        """Close the socket folder once all sockets stand; True when that is done.

        With a user of its own the kernel can't undo it. Elsewhere `intruder` has the last word.
        """
        if len(os.listdir(self.sockets)) < SOCKETS:
            return False
        if self.uid is not None:
            os.chown(self.sockets, 0, 0)
        self.sockets.chmod(0o555)
        return True

    def intruder(self) -> str | None:
        """The name of something in the socket folder that isn't one of the kernel's sockets."""
        expected = {f"s-{number}" for number in range(1, SOCKETS + 1)}
        with os.scandir(self.sockets) as entries:
            for entry in entries:
                mode = entry.stat(follow_symlinks=False).st_mode
                if entry.name not in expected or not stat.S_ISSOCK(mode):
                    return entry.name
        return None

    def remove(self) -> None:
        """Delete the folder, whatever the kernel left in it."""
        if self.sockets.is_dir():
            self.sockets.chmod(0o700)
        shutil.rmtree(self.path, ignore_errors=True)

    def _fill(self) -> None:
        self.home.mkdir(mode=0o700)
        self.open_sockets()
        number = os.getuid() if self.uid is None and hasattr(os, "getuid") else self.uid
        home = "/home/student"
        stubs = {
            "passwd": f"student:x:{number}:{number}:student:{home}:/bin/sh\n",
            "group": f"student:x:{number}:\n",
        }
        for name, text in stubs.items():
            (self.path / name).write_text(text, encoding="utf-8")
            (self.path / name).chmod(0o644)
        if self.run_json is not None and self.policy.run_json is not None:
            shutil.copyfile(self.policy.run_json, self.run_json)
            self.run_json.chmod(0o444)

    def _give(self, path: Path) -> None:
        if self.uid is not None:
            os.chown(path, self.uid, self.uid)


def _short_folder() -> Path:
    """A new private folder whose path is short enough for a Unix socket in it."""
    folder = Path(tempfile.mkdtemp(prefix="labs-kernel-")).resolve()
    if len(str(folder / "sockets")) > LONGEST_SOCKET_PATH and Path("/tmp").is_dir():
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="labs-kernel-", dir="/tmp")).resolve()
    return folder
