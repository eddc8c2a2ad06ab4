"""The warm parent of test runs: pytest stands ready with nbval, a fork for each notebook.

Run as a script with the descriptor of a listening socket; `warm.py` starts it. What a notebook's
run is told (its plan, with what is expected) reaches only the process forked for it.
"""

import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from labs_lib.grading.run.pytest_arguments import arguments

PROVISIONER = "labs_lib.grading.sandbox.provisioner"
PR_SET_PDEATHSIG = 1
REAP_S = 1.0


def main(listener: int) -> None:
    """Fork a run for each request until the owner, at the other end of standard input, is gone."""
    _import()
    code = pytest.main(arguments(Path.cwd()), plugins=[Ready(listener)])
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(int(code))


class Ready:
    """Keeps pytest where its options are read and nothing has begun; each fork goes on from there.

    Options and plugins take longer to read than a notebook's cells to compare.
    """

    def __init__(self, listener: int) -> None:
        self.listener = listener

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int | None:
        """Serve until the owner is gone; in a fork, be the run that was asked for."""
        _freeze()
        request = serve(self.listener)
        if request is None:
            return 0
        config.args[:] = [request["notebook"]]
        config.option.xmlpath = request["report"]
        return None


def serve(listener: int) -> dict | None:
    """Fork for each request until the owner, at the other end of standard input, is gone: None
    then, and in a fork its request."""
    server = socket.socket(fileno=listener)
    while True:
        ready, _, _ = select.select([server, 0], [], [], REAP_S)
        reap()
        if 0 in ready:
            return None
        if server not in ready:
            continue
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            return _keep(connection)
        connection.close()


def reap() -> None:
    """Take leave of children that have ended; what they used is then counted as this one's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _import() -> None:
    """Load all that a run loads, so that a fork has nothing left to import."""
    import nbformat
    from jupyter_client.provisioning import KernelProvisionerFactory

    for name in ("nbval.plugin", "IPython", "labs_lib.grading.run.plugin", PROVISIONER):
        importlib.import_module(name)
    nbformat.validate(nbformat.v4.new_notebook())  # makes the validator, once
    KernelProvisionerFactory.instance()  # reads every entry point, once


def _freeze() -> None:
    """Leave no thread to the forks, and nothing to look through for rubbish."""
    if sys.platform == "linux" and len(os.listdir("/proc/self/task")) != 1:
        sys.exit("a thread runs after the imports, so that no fork is safe")
    gc.collect()
    gc.freeze()


def _keep(connection: socket.socket) -> dict:
    """Fork the run of one request, which alone returns from here with it."""
    try:
        _die_with_parent()
        with connection.makefile("rb") as file:
            request = json.loads(file.readline())
        run = os.fork()
        if run:
            _await(run, connection)
    except BaseException:
        os._exit(0)
    return _become(request, connection)


def _await(run: int, connection: socket.socket) -> None:
    """End a run when who asked for it is gone, and answer with pytest's exit code."""
    watched = os.pidfd_open(run)
    ready, _, _ = select.select([watched, connection], [], [])
    if watched not in ready:
        with contextlib.suppress(OSError):
            os.killpg(run, signal.SIGKILL)
        os.kill(run, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(run, 0)[1])
    with contextlib.suppress(OSError):
        connection.sendall(b"%d\n" % code)
    os._exit(0)


def _become(request: dict, connection: socket.socket) -> dict:
    """Be the run of one notebook: its folder, environment and log."""
    try:
        _die_with_parent()
        os.setsid()
        connection.close()
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for number in (1, 2):
            os.dup2(log, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.closerange(3, 256)
        os.chdir(os.path.dirname(request["notebook"]))
        os.environ.clear()
        os.environ.update(request["environment"])
        tempfile.tempdir = None
        sys.stdin = io.TextIOWrapper(io.BytesIO(request.pop("plan").encode()), encoding="utf-8")
    except BaseException as trouble:
        os.write(2, repr(trouble).encode())
        os._exit(3)
    return request


def _die_with_parent() -> None:
    before = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != before:
        os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
