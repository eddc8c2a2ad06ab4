"""The fence on Linux: bubblewrap with namespaces of its own and a white list of files."""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from labs_lib.grading.sandbox.environment import clean_environment
from labs_lib.grading.sandbox.policy import MIB, Policy
from labs_lib.grading.sandbox.processes import LAUNCHER, launcher_settings, resource_limits
from labs_lib.grading.sandbox.room import Room

SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
ETC = ("ld.so.cache", "alternatives", "fonts", "nsswitch.conf")
HOME = "/home/student"
HANDOUT = "/labs/course"
PROBE_S = 20.0
_USERS = 64  # user ids for each process of ours, two for a kernel
_STARTED = itertools.count()
WAITING = ("/bin/sh", "-c", 'echo; read -r code || code=1; exit "$code"')


class UnreadableTree(PermissionError):
    """A folder that the fenced kernel needs can't be read by the user that it runs as."""


def sandbox_uid() -> int | None:
    """A user id that nothing else on this machine has, or None where we may not change users.

    The next one is free too. Each kernel has its own: Linux counts processes by user, so that one
    with many would keep another from starting.
    """
    if os.getuid() != 0:
        return None
    own = os.getpid() * _USERS + 2 * next(_STARTED) % _USERS
    wanted = 700_000_000 + own
    with open("/proc/self/uid_map", encoding="ascii") as file:
        rows = [tuple(map(int, line.split())) for line in file]
    if any(first <= wanted < first + count - 1 for first, _, count in rows):
        return wanted
    return 20_000 + own % 40_000


def command(policy: Policy, room: Room, kernel: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The argv and environment of a fenced kernel whose own command line is `kernel`."""
    fence, environment = _furnished(policy, room)
    settings = launcher_settings(resource_limits(policy.limits), supervise=False)
    python = str(Path(policy.python).absolute())
    return [*fence, python, "-I", "-S", "/labs/launch.py", settings, *kernel], environment


def empty(policy: Policy, room: Room) -> tuple[list[str], dict[str, str]]:
    """The argv of the same fence with nobody in it yet, and the environment of its kernel.

    It writes a line when it stands, and ends with the exit code that it reads. Where users can be
    changed it is another one than the kernel's, which can neither stop nor steer it.
    """
    fence, environment = _furnished(policy, room, waiting=True)
    return [*fence, *WAITING], environment


def with_filter(argv: Sequence[str], descriptor: int | None) -> list[str]:
    """A fence's argv, with the filter of system calls that a descriptor holds (see `refused`)."""
    program, *rest = argv
    return [program, *([] if descriptor is None else ["--seccomp", str(descriptor)]), *rest]


def _furnished(
    policy: Policy, room: Room, *, waiting: bool = False
) -> tuple[list[str], dict[str, str]]:
    shared = [
        ["--perms", "0755", "--dir", "/labs"],
        ["--bind", str(room.sockets), "/labs/sockets"],
        ["--ro-bind", str(room.inside_connection), "/labs/connection.json"],
        ["--ro-bind", str(room.path / "passwd"), "/etc/passwd"],
        ["--ro-bind", str(room.path / "group"), "/etc/group"],
    ]
    if policy.handout is not None:
        _require_readable(policy.handout, room.uid)
        shared.append(["--ro-bind", str(policy.handout), HANDOUT])
    if room.run_json is not None:
        shared.append(["--ro-bind", str(room.run_json), "/labs/run.json"])
    environment = clean_environment(
        policy,
        home=HOME,
        scratch="/tmp",
        handout=None if policy.handout is None else HANDOUT,
        run_json=None if room.run_json is None else "/labs/run.json",
    )
    uid = room.uid + 1 if waiting and room.uid is not None else room.uid
    return _fence(policy, shared, uid), environment


def probe(policy: Policy) -> str | None:
    """Why the fence can't be built here, in words; None when it works."""
    if sys.platform != "linux":
        return "bubblewrap exists on Linux only"
    if shutil.which("bwrap") is None:
        return "bubblewrap (the program bwrap) is not installed"
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        return "setpriv, which takes root's rights away, is not installed"
    python = str(Path(policy.python).absolute())
    argv = [*_fence(policy, [], sandbox_uid()), python, "-I", "-S", "-c", "print('fenced')"]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=PROBE_S, env={}, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap could not be started ({error})"
    if done.stdout.strip() == "fenced":
        return None
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return f"bubblewrap does not work on this machine ({lines[-1]})"


def _fence(policy: Policy, shared: list[list[str]], uid: int | None) -> list[str]:
    """bubblewrap's argv up to the command; mounts go from outer folders to inner ones."""
    scratch = str(policy.limits.scratch_bytes)
    mounts = [
        ["--proc", "/proc"],
        ["--dev", "/dev"],
        ["--size", scratch, "--perms", "1777", "--tmpfs", "/dev/shm"],
        ["--size", scratch, "--perms", "1777", "--tmpfs", "/tmp"],
        ["--size", scratch, "--perms", "1777", "--tmpfs", HOME],
        ["--ro-bind", str(LAUNCHER), "/labs/launch.py"],
        *_system_mounts(),
        *(["--ro-bind", str(path), str(path)] for path in _trees(policy)),
        *shared,
        *_covers(policy),
    ]
    mounts.sort(key=lambda words: words[-1].count("/"))  # stable: a cover follows what it covers
    argv = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--new-session"]
    argv += ["--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts"]
    argv += ["--unshare-cgroup-try", "--hostname", "labs"]
    if uid is None:
        argv += ["--unshare-user", "--disable-userns", "--cap-drop", "ALL"]
    for words in _with_parents(mounts):
        argv += words
    argv += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME, "--"]
    return argv if uid is None else argv + _drop_root(uid)


def _drop_root(uid: int) -> list[str]:
    """Root inside namespaces is still root to files and limits: become somebody else."""
    words = [shutil.which("setpriv") or "setpriv", f"--reuid={uid}", f"--regid={uid}"]
    words += ["--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    return [*words, "--"]


def _system_mounts() -> list[list[str]]:
    mounts = [["--ro-bind", "/usr", "/usr"]]
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():
            mounts.append(["--symlink", os.readlink(path), name])
        elif path.is_dir():
            mounts.append(["--ro-bind", name, name])
    existing = [f"/etc/{name}" for name in ETC if Path("/etc", name).exists()]
    return mounts + [["--ro-bind", name, name] for name in existing]


def _trees(policy: Policy) -> list[Path]:
    """What is readable besides the system: the interpreter's trees and what the policy names."""
    return [*_python_trees(Path(policy.python)), *policy.readable]


def _covers(policy: Policy) -> list[list[str]]:
    """Empty folders over every copy of the whole package that lies in a readable tree."""
    trees = _trees(policy)
    covers = []
    for path in _secrets(policy, trees):
        if any(path.is_relative_to(tree) for tree in [Path("/usr"), *trees]):
            covers.append(["--size", str(MIB), "--perms", "0555", "--tmpfs", str(path)])
    return covers


def _python_trees(python: Path) -> list[Path]:
    """The environment of `python` and the installation it was made from, outside /usr."""
    environment = python.absolute().parent.parent
    trees = {environment, environment.resolve(), python.resolve().parent.parent}
    config = environment / "pyvenv.cfg"
    if config.is_file():
        for line in config.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home":
                trees.add(Path(value.strip()).resolve().parent)
    return sorted(path for path in trees - {Path("/")} if not path.is_relative_to("/usr"))


def _secrets(policy: Policy, trees: list[Path]) -> list[Path]:
    """Folders that hold the whole package: this copy, its checkout, installed copies."""
    package = Path(__file__).resolve().parents[2]
    found = {package, *(Path(path).resolve() for path in policy.hidden)}
    if (package.parent / "pyproject.toml").is_file():
        found.add(package.parent)
    for tree in [*trees, Path("/usr")]:
        for pattern in ("lib*/python3*/*-packages", "local/lib/python3*/*-packages"):
            found.update(path / "labs_lib" for path in tree.glob(pattern))
    return sorted(path for path in found if path.is_dir())


def _with_parents(mounts: list[list[str]]) -> list[list[str]]:
    """Make missing parent folders readable: bubblewrap alone makes them for root only."""
    made: set[Path] = set()
    words = []
    for mount in mounts:
        for parent in reversed(Path(mount[-1]).parents):
            if parent not in made and parent != Path("/"):
                words.append(["--perms", "0755", "--dir", str(parent)])
                made.add(parent)
        made.add(Path(mount[-1]))
        words.append(mount)
    return words


def _require_readable(folder: Path, uid: int | None) -> None:
    mode = Path(folder).stat().st_mode
    if uid is not None and not (mode & stat.S_IROTH and mode & stat.S_IXOTH):
        raise UnreadableTree(
            f"{folder} has mode {stat.S_IMODE(mode):04o}, so the fenced kernel, which is not root, "
            f"can't read it; `chmod -R a+rX {folder}` opens it"
        )
