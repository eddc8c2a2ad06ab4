"""What a student has done, one small file per exercise; deleting them harms nothing."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..notebook.atomic import write_text
from ..paths import state
from .verdict import NOT_ATTEMPTED, PASS, Verdict

WHEN = "%Y-%m-%dT%H:%M:%SZ"


def folder() -> Path | None:
    """The folder of the progress files, or None where nothing is kept."""
    base = state()
    return None if base is None else base / "progress"


def entry(name: str) -> dict[str, Any]:
    """What is known about one exercise: outcome, source of the passed answer, hints shown, ...

    A damaged file counts as none; it is set aside at the next write, never an error.
    """
    base = folder()
    if base is None:
        return {}
    try:
        found = json.loads((base / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def count(known: Mapping[str, Any], what: str) -> int:
    """The `tries` or `hints` of an entry; 0 where it has none, or holds no count."""
    value = known.get(what)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def update(name: str, **changes: Any) -> None:
    """Merge changes into an exercise's file; where it can't be written, nothing is kept."""
    base = folder()
    if base is None:
        return
    merged = entry(name) | changes
    with contextlib.suppress(OSError):
        file = base / f"{name}.json"
        if file.exists() and not entry(name):
            file.replace(file.with_suffix(".damaged"))
        write_text(file, json.dumps(merged, ensure_ascii=False, indent=1, sort_keys=True))


def record(verdict: Verdict, source: str = "") -> None:
    """Keep a verdict: the latest outcome, whether it ever passed, and the passed answer's text."""
    changes: dict[str, Any] = {
        "outcome": verdict.outcome,
        "tries": count(entry(verdict.exercise), "tries") + (verdict.outcome != NOT_ATTEMPTED),
        "when": time.strftime(WHEN, time.gmtime()),
    }
    if verdict.outcome == PASS:
        changes |= {"passed": True, "passed_when": changes["when"], "source": source}
    update(verdict.exercise, **changes)
