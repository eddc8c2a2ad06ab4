"""What a check sees of a known wrong program, launched or run once for all tests of a process."""

from __future__ import annotations

from labs_lib.checking import verdict
from labs_lib.checking.kernels import KernelRuns
from labs_lib.checking.oracle import LiveOracle


def observe_once(monkeypatch, item, wrong):
    """Inside of a test `judge` sees the wrong program as the answers' own oracle saw it."""
    known = LiveOracle().mistakes(item, [])
    seen = next(mistake.observations for mistake in known if mistake.name == wrong.name)
    got = seen.everything() if isinstance(seen, KernelRuns) else seen
    monkeypatch.setattr(verdict, "observe_all", lambda *_: got)
