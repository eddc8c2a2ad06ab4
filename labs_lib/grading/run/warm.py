"""What the runs of many notebooks share: a warm parent of test runs and one of kernels."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import labs_lib
from labs_lib.grading.sandbox.nursery import Nursery, possible
from labs_lib.grading.sandbox.policy import Policy

PARENT = Path(__file__).with_name("forking.py")
_SHARED: dict[int, Warm] = {}
_LOCK = threading.RLock()
NURSERIES = 3  # a parent of kernels that ended is started again, but not for ever


class NoAnswer(RuntimeError):
    """The warm parent of test runs is gone, or was silent for too long."""


class Warm:
    """Warm parents for `run_notebook`; any number of threads may use one at the same time.

    `kernels` is the socket where kernels are forked, or None where none can be: then they start
    cold. Everything ends with `close`, and with the process that made it.
    """

    def __init__(self) -> None:
        self.python = Policy().python
        self.nursery = Nursery(self.python) if possible() else None
        self._nurseries = 1
        self.folder = Path(tempfile.mkdtemp(prefix="labs-warm-", dir=_short()))
        self.socket = self.folder / "runs"
        self._log = (self.folder / "log").open("wb")
        root = self.folder / "root"
        root.mkdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            server.bind(str(self.socket))
            server.listen(128)
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(PARENT), str(server.fileno())],
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                cwd=root,
                env=steady_environment() | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
                pass_fds=(server.fileno(),),
                start_new_session=True,
            )

    def run(
        self,
        notebook: Path,
        report: Path,
        *,
        environment: Mapping[str, str],
        log: Path,
        plan: str,
        seconds: float,
    ) -> int:
        """Run pytest on a notebook in a process of its own, which writes its report in XML and
        works in the notebook's folder; returns its exit code.

        Raises NoAnswer; TimeoutError after `seconds`, when the run is ended.
        """
        request = {
            "notebook": str(notebook),
            "report": str(report),
            "log": str(log),
            "environment": dict(environment),
            "plan": plan,
        }
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds)
            try:
                connection.connect(str(self.socket))
                connection.sendall(json.dumps(request).encode() + b"\n")
                answer = connection.recv(64)
            except TimeoutError:
                raise
            except OSError as error:
                raise NoAnswer(f"the parent of test runs is gone: {error}") from error
        if not answer:
            raise NoAnswer("the parent of test runs ended the run without an answer")
        return int(answer)

    @property
    def kernels(self) -> Path | None:
        """The socket where kernels are forked; None where none can be: then they start cold."""
        with _LOCK:
            if self.nursery is not None and not self.nursery.alive():
                self.nursery.close()
                self.nursery = Nursery(self.python) if self._nurseries < NURSERIES else None
                self._nurseries += 1
            return None if self.nursery is None else self.nursery.socket

    def kernels_for(self, policy: Policy, modules: Sequence[str]) -> Path | None:
        """The socket for one fence's kernels, which have `modules` of its library imported."""
        found = self.kernels if self.python == policy.python else None
        nursery = self.nursery
        if found is None or nursery is None or policy.handout is None or not modules:
            return found
        return nursery.of_library(Path(policy.handout).absolute(), modules)

    def alive(self) -> bool:
        """Whether runs can be forked."""
        return self.process.poll() is None

    def close(self) -> None:
        """End both parents, with every run and every kernel."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.nursery is not None:
            self.nursery.close()

    def __enter__(self) -> Warm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def shared() -> Warm | None:
    """The one of this process, made when it is first asked for; None where none can be.

    It is made anew when a parent has ended, and ends with this process.
    """
    if not hasattr(os, "fork") or not hasattr(os, "pidfd_open"):
        return None
    with _LOCK:
        found = _SHARED.get(os.getpid())
        if found is not None and not found.alive():
            found.close()
            found = None
        if found is None:
            found = Warm()
            atexit.register(found.close)
            _SHARED.clear()
            _SHARED[os.getpid()] = found
        return found


def steady_environment() -> dict[str, str]:
    """This process's environment, without what steers pytest or Jupyter from outside."""
    dropped = ("PYTEST_", "JUPYTER", "IPYTHON", "COV_", "JPY_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    source = str(Path(labs_lib.__file__).resolve().parents[1])
    path = os.pathsep.join(part for part in (source, kept.get("PYTHONPATH")) if part)
    return kept | {"PYTHONPATH": path, "PYTHONUTF8": "1"}


def _short() -> str | None:
    """A folder whose paths fit a socket's name."""
    return "/tmp" if len(tempfile.gettempdir()) > 80 and os.path.isdir("/tmp") else None
