"""Where notebooks run: on the cores of this machine, or on those of a Dask cluster.

Both take the same work by `submit` and give a future, as the executors of `concurrent.futures` do.
"""

from __future__ import annotations

import os
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nbformat import NotebookNode

from ...errors import UsageError
from ..run import CellRun, run_notebook
from ..run.warm import shared
from .parcel import OtherVersion, Parcel, Unfenced, run_parcel

if TYPE_CHECKING:
    from ..expected.key import Key

CONNECT_S = 20


class Executor(Protocol):
    """Runs prepared notebooks; `workers` says how many at a time."""

    workers: int

    def submit(self, key: Key, notebook: NotebookNode) -> Future[list[CellRun]]:
        """The runs of one notebook's cells, when they are there."""

    def fences(self) -> list[str]:
        """A sentence for each other fence than this machine's that was used."""

    def waiting(self) -> str:
        """What all the work waits for, in words; empty while it goes on."""

    def stop(self, *, now: bool = False) -> None:
        """Begin nothing more; with `now`, end what runs too."""


class Cores:
    """The cores of this machine."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="run")
        self._stopped = threading.Event()

    def submit(self, key: Key, notebook: NotebookNode) -> Future[list[CellRun]]:
        """See `Executor`."""
        return self._pool.submit(self._run, key, notebook)

    def fences(self) -> list[str]:
        """None but this machine's."""
        return []

    def waiting(self) -> str:
        """Nothing: cores are always there."""
        return ""

    def stop(self, *, now: bool = False) -> None:
        """See `Executor`: with their parents, all runs and kernels end."""
        self._stopped.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        warm = shared() if now else None
        if warm is not None:
            warm.close()

    def _run(self, key: Key, notebook: NotebookNode) -> list[CellRun]:
        if self._stopped.is_set():
            raise RuntimeError("the run was stopped")
        with tempfile.TemporaryDirectory(prefix="run-", dir=key.folder) as folder:
            return run_notebook(notebook, policy=key.policy, out=Path(folder), warm=shared())


class Cluster:
    """A Dask cluster whose workers have this course installed.

    A worker that dies costs nothing: what it had is run by another one.
    """

    def __init__(self, address: str) -> None:
        """Raises UsageError for what is no address, without the package `distributed`, or if nobody
        answers there."""
        _require_address(address)
        try:
            import distributed
        except ImportError as error:
            raise UsageError(
                "--scheduler needs the package distributed: pip install 'attention-labs[dask]'"
            ) from error
        try:
            self._client = distributed.Client(address, timeout=CONNECT_S)
        except Exception as error:  # of any kind: of sockets, of the protocol, of TLS's settings
            raise UsageError(f"no Dask scheduler answers at {address} ({error})") from error
        self.address = address
        self.workers = sum(self._client.nthreads().values())
        if not self.workers:
            raise UsageError(f"the Dask scheduler at {address} has no workers; start some first")
        self._parcels: dict[str, Any] = {}
        self._fences: set[str] = set()
        self._lock = threading.Lock()

    def submit(self, key: Key, notebook: NotebookNode) -> Future[list[CellRun]]:
        """See `Executor`."""
        done: Future[list[CellRun]] = Future()

        def finish(future: Any) -> None:
            try:
                runs, fence = future.result()
                self._fences.add(fence)
                done.set_result(runs)
            except BaseException as error:
                done.set_exception(self._told(error))

        try:
            parcel = self._parcel(key)
            work = self._client.submit(run_parcel, parcel, notebook, pure=False)
        except Exception as error:
            raise self._told(error) from error
        work.add_done_callback(finish)
        return done

    def _told(self, error: BaseException) -> BaseException:
        """An error, or the sentence of one that stops the run: it is every notebook's."""
        if isinstance(error, (OtherVersion, Unfenced)):
            return UsageError(f"{error} (a worker of the cluster at {self.address})")
        if self._client.status != "running":
            return UsageError(
                f"the Dask scheduler at {self.address} went away; nothing that was graded is lost: "
                "the same command goes on from there"
            )
        return error

    def fences(self) -> list[str]:
        """What the workers said of their fences."""
        return sorted(self._fences)

    def waiting(self) -> str:
        """See `Executor`: a cluster may lose all its workers, and get others."""
        try:
            there = bool(self._client.nthreads())
        except Exception:  # it is being lost: the work that waits says so
            return ""
        return "" if there else f"the cluster at {self.address} has no workers left; start some"

    def stop(self, *, now: bool = False) -> None:
        """See `Executor`; the cluster forgets what its client asked for."""
        self._client.close()

    def _parcel(self, key: Key) -> Any:
        """The lab on the cluster: packed once, and made again where a worker died with it."""
        with self._lock:
            name = key.course.lab.name
            if name not in self._parcels:
                self._parcels[name] = self._client.submit(_same, Parcel.of(key), pure=False)
            return self._parcels[name]


def _require_address(address: str) -> None:
    """Refuse at once what has no port: a client would try for a while."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise UsageError(
            f"--scheduler {address!r} is no address; give it as Dask tells it, such as "
            "tcp://192.168.0.7:8786"
        )


def _same(parcel: Parcel) -> Parcel:
    return parcel


def executor(address: str | None, workers: int | None) -> Executor:
    """The executor that is asked for.

    Raises:
        UsageError: if a scheduler is named together with a number of workers, or doesn't answer.
    """
    if address is None:
        return Cores(workers or os.cpu_count() or 1)
    if workers is not None:
        raise UsageError("--workers counts on this machine; a cluster has its own (--scheduler)")
    return Cluster(address)
