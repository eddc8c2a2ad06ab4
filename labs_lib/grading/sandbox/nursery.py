"""Where warm kernels come from: one parent with everything imported, and the way to ask it."""

from __future__ import annotations

import array
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from labs_lib.grading.sandbox import holding, levels, refused, tree
from labs_lib.grading.sandbox.bubblewrap import HANDOUT
from labs_lib.grading.sandbox.environment import clean_environment
from labs_lib.grading.sandbox.policy import Policy

PARENT = Path(__file__).with_name("warm.py")
ANSWER_BYTES = 4096
LONGEST_SOCKET_PATH = 100
OLDEST_KERNEL = (5, 8)  # Linux: since then a process enters all namespaces of another one at once


class NoWarmKernel(RuntimeError):
    """No kernel could be forked: a cold one does the same, later."""


class _Lab(NamedTuple):
    """The parent of one lab's kernels: where it listens, and what it ends with."""

    socket: Path
    owner: int


class Nursery:
    """A warm parent for every kernel of one interpreter; it ends with this object or its owner.

    Kernels find it by `socket`, which the provisioner of a kernelspec is told. The parent stands
    outside of every fence and runs no student's code; each kernel is forked into the namespaces
    of a fence of its own and gives up every right there.
    """

    def __init__(self, python: Path | None = None) -> None:
        self.python = python = Path(python or sys.executable).absolute()
        self.folder = Path(tempfile.mkdtemp(prefix="labs-warm-")).resolve()
        if len(str(self.folder)) > LONGEST_SOCKET_PATH - 10:
            self.folder.rmdir()
            self.folder = Path(tempfile.mkdtemp(prefix="labs-warm-", dir="/tmp"))
        self.socket = self.folder / "warm"
        self._labs: dict[Path, _Lab] = {}
        self._lock, self._grew = threading.Lock(), 0
        self._errors = (self.folder / "errors").open("wb")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            server.bind(str(self.socket))
            server.listen(128)
            self.process = self._start(python, server.fileno())

    def alive(self) -> bool:
        """Whether the parent still runs."""
        return self.process.poll() is None

    def of_library(self, handout: Path, modules: Sequence[str]) -> Path:
        """The socket of a parent that has imported `modules` of a handout's library, too.

        It is made when it is first asked for, and ends when its handout is gone.
        """
        with self._lock:
            for gone in [one for one in self._labs if not one.is_dir()]:
                os.close(self._labs.pop(gone).owner)
            if handout not in self._labs:
                self._labs[handout] = self._grown(handout, modules)
            found = self._labs[handout].socket
        return found if answers(found) else self.socket

    def _grown(self, handout: Path, modules: Sequence[str]) -> _Lab:
        self._grew += 1
        path = self.folder / f"lab-{self._grew}"
        request = {"outside": str(handout), "inside": HANDOUT, "modules": list(modules)}
        owner, ours = os.pipe()
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server,
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection,
        ):
            server.bind(str(path))
            server.listen(128)
            descriptors = array.array("i", [server.fileno(), owner])
            with contextlib.suppress(OSError):  # it is gone: nobody answers at the new socket
                connection.connect(str(self.socket))
                connection.sendmsg([json.dumps(request).encode()], [_passed(descriptors)])
        os.close(owner)
        return _Lab(path, ours)

    def close(self) -> None:
        """End the parent, and every kernel that it forked."""
        with self._lock:
            while self._labs:
                os.close(self._labs.popitem()[1].owner)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self._errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, python: Path, listener: int) -> subprocess.Popen[bytes]:
        """Start the parent with a kernel's own environment: each kernel shows it as its own."""
        home = self.folder / "home"
        home.mkdir()
        outside = clean_environment(
            Policy(python=python), home=str(home), scratch=str(home), handout=None, run_json=None
        )
        return subprocess.Popen(
            [str(python), "-P", str(PARENT), str(listener), *map(str, holding.here().folders)],
            executable=str(self._program(python)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            cwd=home,
            env=outside,
            pass_fds=(listener,),
            start_new_session=True,
        )

    def _program(self, python: Path) -> Path:
        """The file that the parent runs. A kernel of the same user can reach it (/proc/self/exe)
        and could take its permissions away: it gets a copy."""
        if os.getuid() == 0:
            return python
        return Path(shutil.copy(python.resolve(), self.folder / "python"))


def possible(policy: Policy | None = None) -> bool:
    """Whether kernels can be forked into fences here: Linux with bubblewrap, and a shell in it."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open") or not Path("/bin/sh").exists():
        return False
    release = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
    return release >= OLDEST_KERNEL and levels.level(policy).name == levels.BUBBLEWRAP


def answers(parent: Path) -> bool:
    """Whether a warm parent still listens at the socket `parent`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        return connection.connect_ex(str(parent)) == 0


def fork_into(
    parent: Path,
    fence: subprocess.Popen[bytes],
    *,
    argv: Sequence[str],
    environment: Mapping[str, str],
    limits: Mapping[str, int],
    uid: int | None,
    errors: int,
    gate: int,
    seconds: float,
) -> int:
    """Ask the parent at the socket `parent` for a kernel in an empty `fence`; returns its number.

    `argv` are the options of ipykernel; `errors` becomes the kernel's standard error. Before it
    runs what it is sent it waits for a line at the descriptor `gate`. The fence ends with the
    kernel, and with its exit code. Raises NoWarmKernel.
    """
    request = {
        "argv": list(argv),
        "environment": dict(environment),
        "limits": dict(limits),
        "uid": uid,
        "refused": refused.here().hex(),
    }
    if fence.stdin is None or fence.stdout is None or fence.stdout.read(1) != b"\n":
        raise NoWarmKernel("the fence did not stand")
    inside = os.pidfd_open(tree.descendants(fence.pid)[-1])
    try:
        descriptors = array.array("i", [inside, fence.stdin.fileno(), errors, gate])
        return _ask(parent, json.dumps(request).encode(), descriptors, seconds)
    finally:
        os.close(inside)


def _passed(descriptors: array.array[int]) -> tuple[int, int, array.array[int]]:
    return socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors


def _ask(parent: Path, request: bytes, descriptors: array.array[int], seconds: float) -> int:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(seconds)
            connection.connect(str(parent))
            connection.sendmsg([request], [_passed(descriptors)])
            answer = json.loads(connection.recv(ANSWER_BYTES) or b'{"trouble": "it ended"}')
    except (OSError, ValueError) as error:
        raise NoWarmKernel(f"the warm parent does not answer: {error!r}") from error
    if "pid" not in answer:
        raise NoWarmKernel(f"the warm parent could not fork: {answer.get('trouble')}")
    return answer["pid"]
