"""A lab ready to be graded, packed for another machine of the instructor's.

It holds what the fenced kernel gets: the seed and the places, the library without answers. What is
expected travels with each notebook, and only to the process that compares.
"""

from __future__ import annotations

import atexit
import hashlib
import io
import json
import shutil
import tempfile
import threading
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nbformat import NotebookNode

from ..run import CellRun, run_notebook
from ..run.policies import policy_for
from ..run.warm import shared
from ..sandbox import Limits, Policy, level
from ..sandbox.levels import BUBBLEWRAP
from ..versions import library_hash

if TYPE_CHECKING:
    from ..expected.key import Key

_POLICIES: dict[str, Policy] = {}
_LOCK = threading.Lock()


class OtherVersion(RuntimeError):
    """A worker has another version of the course than who sends it work."""


class Unfenced(RuntimeError):
    """A worker without a fence was sent work that doesn't insist on going without."""


@dataclass(frozen=True)
class Parcel:
    """See this module; `library` is the hash of the sender's course."""

    archive: bytes
    run: str
    kernels: bool
    limits: Limits
    level: str | None
    library: str

    @classmethod
    def of(cls, key: Key) -> Parcel:
        """Pack a key's handout and its run."""
        packed, handout, run = io.BytesIO(), key.policy.handout, key.policy.run_json
        if handout is None or run is None:
            raise ValueError("a key's policy names its handout and its run; this one lacks one")
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(handout.rglob("*")):
                if path.is_file() and path.suffix != ".pyc":
                    archive.write(path, path.relative_to(handout).as_posix())
        return cls(
            archive=packed.getvalue(),
            run=run.read_text(encoding="utf-8"),
            kernels=bool(key.course.kernels),
            limits=key.policy.limits,
            level=key.policy.level,
            library=library_hash(),
        )


def run_parcel(parcel: Parcel, notebook: NotebookNode) -> tuple[list[CellRun], str]:
    """Run one prepared notebook here; its cells, and the sentence on this machine's fence.

    Raises:
        OtherVersion: if this machine's course differs from the sender's.
        Unfenced: if student code could reach the network from here, and with it the scheduler,
            which takes orders from everybody; unless the sender insists on it.
    """
    if parcel.library != library_hash():
        raise OtherVersion("a worker has another version of the course; install the same on each")
    policy = _unpacked(parcel)
    fence = level(policy)
    if fence.name != BUBBLEWRAP and parcel.level is None:
        raise Unfenced(
            "student code on this machine could give the scheduler orders, and so read what is "
            f"expected and write marks; mend its fence, or insist on --fence {fence.name}. "
            f"{fence.sentence}"
        )
    with tempfile.TemporaryDirectory(prefix="labs-work-") as folder:
        runs = run_notebook(notebook, policy=policy, out=Path(folder), warm=shared())
    return runs, fence.sentence


def _unpacked(parcel: Parcel) -> Policy:
    """The policy of a parcel, laid out once in each process."""
    digest = hashlib.sha256(parcel.archive + parcel.run.encode()).hexdigest()
    with _LOCK:
        if digest not in _POLICIES:
            folder = Path(tempfile.mkdtemp(prefix="labs-parcel-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            folder.chmod(0o755)
            handout = folder / "handout"
            with zipfile.ZipFile(io.BytesIO(parcel.archive)) as archive:
                archive.extractall(handout)
            _POLICIES[digest] = policy_for(
                handout,
                json.loads(parcel.run),
                folder,
                kernels=parcel.kernels,
                limits=parcel.limits,
                level=parcel.level,
            )
        return _POLICIES[digest]
