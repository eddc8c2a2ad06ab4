"""The warm parent of test runs: pytest and nbval imported once, a fork for each notebook.

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

PROVISIONER = "labs_lib.grading.sandbox.provisioner"
PR_SET_PDEATHSIG = 1
REAP_S = 1.0


def main(listener: int) -> None:
    """Fork a run for each request until the owner, at the other end of standard input, is gone."""
    _import()
    server = socket.socket(fileno=listener)
    while True:
        ready, _, _ = select.select([server, 0], [], [], REAP_S)
        reap()
        if 0 in ready:
            return
        if server not in ready:
            continue
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            _keep(connection)
        connection.close()


def reap() -> None:
    """Take leave of children that have ended; what they used is then counted as this one's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _import() -> None:
    """Load all that a run loads, so that a fork has nothing left to import."""
    # Seconds for a format that no notebook uses; see start.py.
    sys.modules["rfc3987_syntax"] = None  # ty: ignore[invalid-assignment]  # None: can't be imported
    import nbformat
    from _pytest.config import default_plugins
    from jupyter_client.provisioning import KernelProvisionerFactory

    for name in default_plugins:
        importlib.import_module(f"_pytest.{name}")
    for name in ("nbval.plugin", "IPython", "labs_lib.grading.run.plugin", PROVISIONER):
        importlib.import_module(name)
    nbformat.validate(nbformat.v4.new_notebook())  # makes the validator, once
    KernelProvisionerFactory.instance()  # reads every entry point, once
    if sys.platform == "linux" and len(os.listdir("/proc/self/task")) != 1:
        sys.exit("a thread runs after the imports, so that no fork is safe")
    gc.collect()
    gc.freeze()


def _keep(connection: socket.socket) -> None:
    """Run one request, end it when who asked is gone, and answer with pytest's exit code."""
    try:
        _die_with_parent()
        with connection.makefile("rb") as file:
            request = json.loads(file.readline())
        run = os.fork()
        if run == 0:
            _become(request, connection)
        watched = os.pidfd_open(run)
        ready, _, _ = select.select([watched, connection], [], [])
        if watched not in ready:
            with contextlib.suppress(OSError):
                os.killpg(run, signal.SIGKILL)
            os.kill(run, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(run, 0)[1])
        with contextlib.suppress(OSError):
            connection.sendall(b"%d\n" % code)
    finally:
        os._exit(0)


def _become(request: dict, connection: socket.socket) -> None:
    """Be the run of one notebook: its folder, environment and log, then pytest."""
    code = 3
    try:
        _die_with_parent()
        os.setsid()
        connection.close()
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for number in (1, 2):
            os.dup2(log, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.closerange(3, 256)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        tempfile.tempdir = None
        sys.stdin = io.TextIOWrapper(io.BytesIO(request.pop("plan").encode()), encoding="utf-8")

        import pytest

        code = int(pytest.main(request["arguments"]))
        sys.stdout.flush()
    except BaseException as trouble:
        os.write(2, repr(trouble).encode())
    finally:
        os._exit(code)


def _die_with_parent() -> None:
    before = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != before:
        os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
