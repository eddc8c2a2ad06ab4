"""The warm parent of fenced kernels: what every kernel imports is imported here, once.

Run as a script by path, outside of every fence, with the clean environment of a kernel. It listens
on the socket at descriptor `argv[1]`, and removes the control groups in the folders that follow
when its owner is gone without a farewell. For each request it forks a process that enters the
namespaces of one fence, forks the kernel there, and waits for it. The kernel gives up every right
before it opens its sockets; no line of a student runs before that, and none ever runs here.

A request for a kernel is one message: {"argv", "environment", "limits", "uid", "refused"} with
four descriptors: a pidfd of a process inside the fence, the writing end of a pipe on which that
process waits for the kernel's exit code, the kernel's standard error, and the reading end of a pipe
on which the kernel waits until it is in its control group. The answer is {"pid"} or {"trouble"}.

A request for a parent of one lab's kernels is {"outside", "inside", "modules"} with two
descriptors: a listening socket, and a pipe that ends with who asked. It is a fork that has imported
the lab's library, as students get it, too. There is no answer.
"""

import array
import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import pathlib
import runpy
import select
import signal
import socket
import struct
import sys

IMPORTED = (
    "numpy.random",
    "torch",
    "torch.utils.flop_counter",
    "matplotlib.pyplot",
    "matplotlib.backends.backend_agg",
    "PIL.features",
    "IPython.core.interactiveshell",
    "IPython.core.completerlib",  # these and the next four are imported when a shell is made
    "IPython.core.debugger",
    "IPython.core.logger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "faulthandler",
    "ipykernel.debugger",
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "tornado.platform.asyncio",
    "tornado.queues",
    "ipywidgets",
    "anywidget",
    "safetensors.torch",
    "tokenizers",
)
MESSAGE_BYTES = 1 << 20
MOST_DESCRIPTORS = 4
GATE = 3  # the kernel's descriptor until it runs what it is sent
REAP_S = 1.0
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, BPF_STEP_BYTES = 22, 2, 8
CAPABILITY_VERSION_3 = 0x20080522
NAMESPACES = {
    "user": 0x10000000,
    "mnt": 0x00020000,
    "pid": 0x20000000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
    "net": 0x40000000,
    "cgroup": 0x02000000,
}
libc = ctypes.CDLL(None, use_errno=True)


def main(listener, groups):
    """Import everything, then fork a kernel for each request until the owner is gone."""
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    _import()
    _serve(socket.socket(fileno=listener), 0)  # standard input ends with the owner
    if groups:
        remove = _beside("groups.py")["remove"]
        for folder in groups:
            remove(pathlib.Path(folder))


def _serve(server, owner):
    threads = os.listdir("/proc/self/task")
    if len(threads) != 1:
        sys.exit(f"{len(threads)} threads run after the imports, so that no fork is safe")
    gc.collect()
    gc.freeze()
    while True:
        ready, _, _ = select.select([server, owner], [], [], REAP_S)
        reap()
        if owner in ready:
            return
        if server not in ready:
            continue
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            _answer(connection)
        connection.close()


def reap():
    """Take leave of children that have ended; what they used is then counted as this one's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _import():
    # None: it can't be imported. It starts a thread, and no graded kernel is debugged.
    sys.modules["debugpy"] = None  # ty: ignore[invalid-assignment]
    for name in IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _answer(connection):
    """One request: the kernel's keeper outside, the kernel inside."""
    code = 1
    try:
        parent_gone(signal.SIGKILL)
        request, descriptors = _receive(connection)
        if "modules" in request:
            connection.close()
            _import_library(request)
            _serve(socket.socket(fileno=descriptors[0]), descriptors[1])
            os._exit(0)
        inside, ending, errors, gate = descriptors
        home = _environment_of(request)
        enter(inside)
        kernel = os.fork()
        if kernel == 0:
            connection.close()
            _become(request, home, errors, gate)
        os.close(errors)
        os.close(gate)
        connection.send(json.dumps({"pid": kernel}).encode())
        connection.close()
        code = os.waitstatus_to_exitcode(os.waitpid(kernel, 0)[1])
        code = 128 - code if code < 0 else code
        os.write(ending, b"%d\n" % code)
    except BaseException as trouble:
        with contextlib.suppress(OSError):
            connection.send(json.dumps({"trouble": repr(trouble)[:500]}).encode())
    finally:
        os._exit(code)


def _import_library(request):
    import_library = _beside("elsewhere.py")["import_library"]
    import_library(request["outside"], request["inside"], request["modules"])


def _beside(name):
    """What a module in this file's folder defines: the course itself is not imported here."""
    return runpy.run_path(os.path.join(os.path.dirname(__file__), name))


def _receive(connection):
    room = socket.CMSG_SPACE(MOST_DESCRIPTORS * array.array("i").itemsize)
    text, extra, _, _ = connection.recvmsg(MESSAGE_BYTES, room)
    descriptors = array.array("i")
    for level, kind, data in extra:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data)
    return json.loads(text), list(descriptors)


def _environment_of(request):
    return request["environment"]["HOME"]


def enter(inside):
    """Make the namespaces of the process at a pidfd one's own, also its folders and its root."""
    with open(f"/proc/self/fdinfo/{inside}", encoding="ascii") as file:
        pid = next(line.split()[1] for line in file if line.startswith("Pid:"))
    wanted = 0
    for name, flag in NAMESPACES.items():
        theirs, ours = os.stat(f"/proc/{pid}/ns/{name}"), os.stat(f"/proc/self/ns/{name}")
        if theirs.st_ino != ours.st_ino:
            wanted |= flag
    if libc.setns(inside, wanted) != 0:
        raise OSError(ctypes.get_errno(), "the fence can't be entered")


def parent_gone(signum):
    """Be sent a signal when the parent ends, also when it just has."""
    before = os.getppid()
    libc.prctl(PR_SET_PDEATHSIG, signum, 0, 0, 0)
    if os.getppid() != before:
        os._exit(1)


def _become(request, home, errors, gate):
    """Become the kernel: without rights, descriptors, or anything that tells of the parent."""
    code = 1
    try:
        os.setsid()
        _redirect(errors, gate)
        _limit(request["limits"])
        _drop(request["uid"])
        _refuse(bytes.fromhex(request["refused"]))
        os.chdir(home)
        os.environ.clear()
        os.environ.update(request["environment"])
        _refresh(request["environment"])
        argv, sys.argv[1:] = request["argv"], request["argv"]
        request.clear()
        _run(argv)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException as trouble:
        print(repr(trouble), file=sys.__stderr__, flush=True)
    finally:
        os._exit(code)


def _redirect(errors, gate):
    nothing = os.open("/dev/null", os.O_RDWR)
    kept, waited = (fcntl.fcntl(one, fcntl.F_DUPFD, GATE + 1) for one in (errors, gate))
    for number, source in ((0, nothing), (1, nothing), (2, kept), (GATE, waited)):
        os.dup2(source, number)
    os.closerange(GATE + 1, os.sysconf("SC_OPEN_MAX"))


def _limit(limits):
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    limits["RLIMIT_AS"] += mapped  # what the imports map is no use of the student's
    for name, value in limits.items():
        number = getattr(resource, name)
        hard = value + 1 if name == "RLIMIT_CPU" else value
        resource.setrlimit(number, (value, hard))


def _drop(uid):
    """Give up all capabilities for good, and root's user id where it is ours; prove it."""
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as file:
        last = int(file.read())
    for number in range(last + 1):
        libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    libc.capset(header, (ctypes.c_uint32 * 6)())
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # else its own /proc/self is closed to it
    with open("/proc/self/status", encoding="ascii") as file:
        status = {name: value.strip() for name, _, value in (line.partition(":") for line in file)}
    held = [int(value, 16) for name, value in status.items() if name.startswith("Cap")]
    if any(held) or status["NoNewPrivs"] != "1" or 0 in os.getresuid():
        os._exit(126)


def _refuse(program):
    """Put a filter before every system call from here on; an empty one is none."""
    if not program:
        return
    held = ctypes.create_string_buffer(program, len(program))
    steps = len(program) // BPF_STEP_BYTES
    described = struct.pack("HP", steps, ctypes.addressof(held))  # struct sock_fprog
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, described, 0, 0) != 0:
        os._exit(126)


def _refresh(environment):
    """Forget what was looked up elsewhere, and draw new random numbers."""
    import random
    import tempfile

    tempfile.tempdir = None  # the parent's own folder is out of reach here
    path = environment.get("PYTHONPATH")
    if path:
        sys.path[:0] = path.split(os.pathsep)
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()
    random.seed()
    numpy, torch, matplotlib = map(sys.modules.get, ("numpy", "torch", "matplotlib"))
    if numpy is not None:
        numpy.random.seed()
    if torch is not None:
        torch.default_generator.seed()
    if matplotlib is not None:
        for name in ("get_configdir", "get_cachedir"):  # each remembers a folder out there
            found = getattr(matplotlib, name)
            setattr(matplotlib, name, getattr(found, "__wrapped__", found))


def _run(argv):
    from ipykernel.kernelapp import IPKernelApp

    kernel = IPKernelApp.instance()
    kernel.initialize(argv)
    if os.read(GATE, 1) != b"\n":  # who asked for the kernel is gone
        sys.exit(1)
    os.close(GATE)
    kernel.start()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
