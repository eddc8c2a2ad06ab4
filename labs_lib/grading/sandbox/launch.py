"""The first program inside the fence: sets the limits on itself, then becomes the kernel.

Run as a script by path, with the standard library alone:
`launch.py '{"limits": {"RLIMIT_CPU": 60}, "supervise": false}' python -m ipykernel_launcher ...`.
With "supervise" it stays as the parent of everything that the kernel starts, also of processes
that left its session, and ends them all with it.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def main(arguments):
    """Start the command that follows the JSON settings, under the limits that they name."""
    settings, command = json.loads(arguments[0]), arguments[1:]
    if os.name == "nt":
        sys.exit(subprocess.call(command))
    if settings["supervise"]:
        sys.exit(_supervise(settings["limits"], command))
    _become(settings["limits"], command)


def _become(limits, command):
    import resource

    for name, value in limits.items():
        number = getattr(resource, name, None)
        if number is None:
            continue
        highest = resource.getrlimit(number)[1]
        free = highest == resource.RLIM_INFINITY
        soft = value if free else min(value, highest)
        # A second between the soft and the hard limit lets a signal tell why the kernel ended.
        hard = soft + 1 if name == "RLIMIT_CPU" and (free or soft < highest) else soft
        with contextlib.suppress(ValueError, OSError):  # macOS refuses some of them
            resource.setrlimit(number, (soft, hard))
    os.execv(command[0], command)


def _supervise(limits, command):
    parent = os.getppid()
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGTERM, _leave)
    if os.getppid() != parent:
        return 0
    child = os.fork()
    if child == 0:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # it doesn't stay when its supervisor is killed
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        _become(limits, command)
    status = None
    try:
        while status is None:
            pid, ended = os.wait()
            status = ended if pid == child else None
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_all(child)
    return _exit_code(status)


def _leave(signum, frame):
    sys.exit(128 + signum)


def _end_all(child):
    """Kill until nothing is left: what a dead process leaves behind becomes a child of ours."""
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    while True:
        for pid in _children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children():
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def _exit_code(status):
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _prctl(option, value):
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
