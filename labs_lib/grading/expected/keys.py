"""The keys of the labs of one run, each made when the first notebook of it comes up."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from ...errors import UsageError
from ..course import Course
from ..run.warm import Warm
from ..sandbox import Limits, Policy, SandboxUnavailable
from ..sandbox import level as fence_level
from .key import Key, KeyFailure, key_basis, key_of, make_key
from .ready import ReadySet, take
from .rounding import PlacesError

SEEDS_TRIED = 5
AT_A_TIME = 2  # places are chosen for one lab alone, while the solution of another one runs
_NO_KEY = (KeyError, ValueError, TypeError, AttributeError, IndexError)  # of a damaged set


class Keys:
    """All on one seed; `start` makes a key beside whatever else is going on, `of` waits for it.

    Unless a seed is given, it is that of a set of keys which was made ahead, where there is one.
    """

    def __init__(
        self,
        folder: Path,
        seed: int | None,
        limits: Limits | None = None,
        level: str | None = None,
        *,
        warm: Callable[[], Warm | None] = lambda: None,
    ) -> None:
        """Raises UsageError where the fence that is insisted on can't be had."""
        self.folder, self.limits, self.level, self._warm = folder, limits, level, warm
        self._pool = ThreadPoolExecutor(max_workers=AT_A_TIME, thread_name_prefix="key")
        self._made: dict[str, Future[Key]] = {}
        self._lock = threading.Lock()
        try:
            self.level_name, self.fence = fence_level(Policy(level=level))
        except (SandboxUnavailable, ValueError) as error:
            raise UsageError(str(error)) from error
        self._ready = None if seed is None else ReadySet(seed)

    @property
    def seed(self) -> int:
        """The run's seed; a set that was made ahead is left alone where no key is needed."""
        with self._lock:
            self._ready = self._ready or _fresh()
            return self._ready.seed

    def start(self, course: Course) -> Future[Key]:
        """The key of a lab, now or later."""
        with self._lock:
            self._ready = self._ready or take(self.level_name) or _fresh()
            if course.lab.name not in self._made:
                self._made[course.lab.name] = self._pool.submit(self._make, course)
            return self._made[course.lab.name]

    def of(self, course: Course) -> Key:
        """The key of a lab.

        Raises:
            UsageError: if the lab can't be graded; BuildError where it needs a compiler.
        """
        return self.start(course).result()

    def close(self) -> None:
        """Make no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _make(self, course: Course) -> Key:
        entry = None
        if self._ready is not None:
            entry = self._ready.find(course.lab.name, key_basis(course))
        if entry is not None and entry.expected.keys() == {item.name for item in course.exercises}:
            folder = self.folder / course.lab.name
            folder.mkdir()
            with contextlib.suppress(*_NO_KEY):  # then it is made anew
                return key_of(course, entry, folder, limits=self.limits, level=self.level)
        for tried in range(SEEDS_TRIED):
            folder = self.folder / f"{course.lab.name}-{tried}"
            folder.mkdir()
            seed, limits = self._seed(tried), self.limits
            try:
                return make_key(
                    course, seed, folder, limits=limits, level=self.level, warm=self._warm()
                )
            except KeyFailure as error:
                raise UsageError(str(error)) from error
            except PlacesError as error:
                trouble = error
        raise UsageError(f"{course.lab.name} can't be graded: {trouble}") from trouble

    def _seed(self, tried: int) -> int:
        """The run's seed; where a lab can't be graded on it, one derived from it."""
        return self.seed if not tried else (self.seed + tried * 0x9E3779B97F4A7C15) % 2**62


def _fresh() -> ReadySet:
    return ReadySet(secrets.randbits(62))
