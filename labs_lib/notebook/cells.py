"""Our metadata on a notebook's cells: which exercise a cell belongs to, and in which role.

    {"labs": {"exercise": "lab02.split_heads", "role": "answer"}}

Roles: `setup` (imports, what every exercise may use), `answer`, `check`, `demo` (all else).
Cell ids are derived from it, so that they stay the same from release to release.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Mapping
from typing import Any

KEY = "labs"
ROLES = ("setup", "answer", "check", "demo")


def info(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    """Our metadata of a cell; an empty mapping where it has none of ours."""
    metadata = cell.get("metadata")
    found = metadata.get(KEY) if isinstance(metadata, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def role(cell: Mapping[str, Any]) -> str:
    """The cell's role; empty for prose and for cells that aren't ours."""
    value = info(cell).get("role")
    return value if isinstance(value, str) and value in ROLES else ""


def exercise_name(cell: Mapping[str, Any]) -> str:
    """The exercise that an answer or check cell belongs to; empty for others."""
    value = info(cell).get("exercise")
    return value if isinstance(value, str) else ""


def cell_id(exercise: str, role: str, number: int) -> str:
    """A stable cell id, such as `lab02-split_heads-answer-1` (at most 64 characters)."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "-", f"{exercise}-{role}-{number}")
    if len(plain) > 64:
        plain = f"{plain[:50]}-{hashlib.sha256(plain.encode()).hexdigest()[:13]}"
    return plain


def checked_exercise(source: str) -> str:
    """The exercise's name if a cell's text is one call `check("labNN.name", ...)`, else empty."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        return ""
    call = body[0].value
    if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "check" and call.args):
        return ""
    first = call.args[0]
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def text_hash(source: str) -> str:
    """A short hash of a cell's text, white space at the ends of lines aside."""
    plain = "\n".join(line.rstrip() for line in source.strip().split("\n"))
    return hashlib.sha256(plain.encode("utf-8")).hexdigest()[:16]
