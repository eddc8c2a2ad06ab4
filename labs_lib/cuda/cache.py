"""Built libraries, kept per user by content; safe against kills, races and unwritable homes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path

from labs_lib.cuda.errors import BuildError

WAIT_SECONDS = 60
KEEP_DAYS, KEEP_ENTRIES = 30, 400


def key_of(*parts: str) -> str:
    """A name for what these texts make, and for nothing else."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def get(key: str, name: str, build: Callable[[Path], None]) -> Path:
    """The file `name` that `build(folder)` makes, made once for each key.

    It is built in a folder of its own that is renamed when it is whole. Who comes second waits;
    the lock is the system's and goes when its holder dies. What lies below LABS_CUDA_SHARED is
    taken from there.
    """
    shared = os.environ.get("LABS_CUDA_SHARED")
    if shared and (Path(shared) / key / name).exists():
        return Path(shared) / key / name
    root = folder()
    entry = root / key
    if (entry / name).exists():
        return entry / name
    with _locked(root / f"{key}.lock"):
        if not (entry / name).exists():
            _sweep(root)
            made = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
            try:
                build(made)
                if entry.exists():
                    shutil.rmtree(entry)
                os.replace(made, entry)
            finally:
                shutil.rmtree(made, ignore_errors=True)
    return entry / name


def folder() -> Path:
    """Where this user's libraries lie; a private temporary folder where that can't be written."""
    return _folder(
        os.environ.get("LABS_CUDA_CACHE"), os.environ.get("XDG_CACHE_HOME"), os.environ.get("HOME")
    )


@cache
def _folder(own: str | None, caches: str | None, home: str | None) -> Path:
    if own:
        wanted = Path(own)
    elif caches:
        wanted = Path(caches) / "attention-labs" / "cuda"
    else:
        with contextlib.suppress(RuntimeError):
            home = home or str(Path.home())
        wanted = Path(home or "/nonexistent") / ".cache" / "attention-labs" / "cuda"
    try:
        wanted.mkdir(parents=True, exist_ok=True, mode=0o700)
        if hasattr(os, "getuid") and wanted.stat().st_uid != os.getuid():
            raise PermissionError(f"{wanted} belongs to somebody else")
        handle, probe = tempfile.mkstemp(dir=wanted)
        os.close(handle)
        os.unlink(probe)
        return wanted
    except OSError as problem:
        private = Path(tempfile.mkdtemp(prefix="attention-labs-cuda-"))
        print(
            f"Compiled kernels can't be kept in {wanted} ({problem.strerror or problem}); "
            f"{private} is used for this session. Set LABS_CUDA_CACHE to a folder of your own.",
            file=sys.stderr,
        )
        return private


def _sweep(root: Path) -> None:
    """Removes what killed builds left, and the oldest entries when there are many."""
    now = time.time()
    entries = []
    for path in root.iterdir():
        with contextlib.suppress(OSError):
            age = now - path.stat().st_mtime
            if path.name.startswith(".new-") and age > 3600:
                shutil.rmtree(path, ignore_errors=True)
            elif path.is_dir() and not path.name.startswith("."):
                entries.append((age, path))
    if len(entries) > KEEP_ENTRIES:
        for age, path in entries:
            if age > KEEP_DAYS * 86400:
                shutil.rmtree(path, ignore_errors=True)
                path.with_name(path.name + ".lock").unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    with open(path, "a+b") as file:
        start, told = time.monotonic(), False
        while not _try_lock(file):
            waited = time.monotonic() - start
            if waited > 2 and not told:
                print(f"Another process builds this kernel; waiting for {path}", file=sys.stderr)
                told = True
            if waited > WAIT_SECONDS:
                raise BuildError(
                    f"Another process has held {path} for {WAIT_SECONDS} s. End that process (a "
                    "notebook kernel that still compiles) and run the cell again."
                )
            time.sleep(0.02)
        yield  # closing the file gives the lock back


def _try_lock(file) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
