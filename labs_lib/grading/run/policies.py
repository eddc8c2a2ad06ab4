"""The fence of one lab's runs, laid out on the machine where they run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..sandbox import Limits, Policy
from .bytecode import precompile


def policy_for(
    handout: Path,
    run: Mapping[str, Any],
    folder: Path,
    *,
    kernels: bool,
    limits: Limits,
    level: str | None,
) -> Policy:
    """The fence of one lab's runs on this machine; what it needs besides is made in `folder`."""
    environment: dict[str, str] = {}
    readable: tuple[Path, ...] = ()
    if kernels:
        readable = (_shared_builds(folder / "cuda"),)
        environment = {"LABS_CUDA_SHARED": str(readable[0])}
    precompile(handout)
    run_json = folder / "run.json"
    run_json.write_text(json.dumps(run), encoding="utf-8")
    return Policy(
        limits=limits,
        handout=handout,
        run_json=run_json,
        readable=readable,
        environment=environment,
        level=level,
    )


def _shared_builds(folder: Path) -> Path:
    """The runner and headers of kernels, read-only for all: each fenced kernel begins without."""
    from ...cuda import build  # imports torch, which only labs with kernels need here

    build.shared(folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    return folder
