"""Where things lie: the course's folder, the student's own state inside it, the models beside it.

`LABS_HOME` moves the course's folder, `LABS_STATE` the state (`off` keeps nothing), `LABS_MODELS`
the pretrained models, `LABS_GRADING_CACHE` what a grader makes ahead.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def home() -> Path:
    """The folder that holds `notebooks/`, `solutions/` and `data/`."""
    override = os.environ.get("LABS_HOME")
    return (
        Path(override).expanduser().resolve() if override else Path(__file__).resolve().parents[1]
    )


def data() -> Path:
    """The folder of the course's data files."""
    return home() / "data"


def state() -> Path | None:
    """The folder that keeps a student's progress, or None where nothing is to be kept.

    Nothing is kept in a graded run, nor by notebooks that run in `solutions/`: those are the
    instructor's.
    """
    override = os.environ.get("LABS_STATE", "")
    if override.lower() == "off" or os.environ.get("LABS_RUN"):
        return None
    try:
        if Path.cwd().resolve().is_relative_to(home() / "solutions"):
            return None
    except OSError:
        return None
    return Path(override).expanduser() if override else home() / ".labs"


def models() -> Path:
    """The folder of the pretrained models, below the user's cache: one copy for all checkouts."""
    override = os.environ.get("LABS_MODELS")
    if override:
        return Path(override).expanduser().absolute()
    return _user_cache() / "attention-labs" / "models"


def grading_cache() -> Path:
    """The folder of what a grader makes ahead for itself: an instructor's, never a student's."""
    override = os.environ.get("LABS_GRADING_CACHE")
    if override:
        return Path(override).expanduser().absolute()
    return _user_cache() / "attention-labs" / "grading"


def _user_cache() -> Path:
    if sys.platform == "darwin":
        return Path("~/Library/Caches").expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or "~/AppData/Local").expanduser()
    caches = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    # The standard asks to ignore a relative path here.
    return caches if caches.is_absolute() else Path("~/.cache").expanduser()
