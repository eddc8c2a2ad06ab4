"""Bytecode beside every module of a handout: fenced kernels can't write it, and each of them would
compile the library for itself."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from importlib._bootstrap_external import (
    _code_to_hash_pyc,  # ty: ignore[missing-module-member]  # there since Python 3.7, without a stub
)
from pathlib import Path


def precompile(library: Path) -> None:
    """Write the bytecode of every module below `library`; it is never compared with the source.

    A module that doesn't compile is left to the import that needs it. Which file the code says it
    is from is set right by Python when it is imported.
    """
    for path in library.rglob("*.py"):
        code = _code(path.read_bytes())
        if code is not None:
            target = Path(importlib.util.cache_from_source(str(path)))
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(code)


@lru_cache(maxsize=2048)
def _code(source: bytes) -> bytes | None:
    """Handouts of different labs share most of their modules: each text is compiled once."""
    try:
        code = compile(source, "<handout>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    hashed = importlib.util.source_hash(source)
    return bytes(_code_to_hash_pyc(code, hashed, checked=False))
