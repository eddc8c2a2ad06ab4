"""In a graded run a check prints values, not a verdict; this is how they are printed.

Two programs that compute the same thing print the same text: numbers are rounded, at places that
the grader chose far from a rounding boundary, and zero has no sign.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..exercises.kit import Exercise, Measured
from .observe import Leaf, Observation

DECIMALS = 4
Places = Mapping[str, Mapping[str, Any]]  # case index -> path -> {"at": [...], "decimals": d}


def render(
    exercise: Exercise,
    observations: Sequence[Observation],
    rules: Mapping[str, Measured],
    places: Places,
) -> str:
    """The text that a graded check prints: a block per case and a line per rule."""
    lines = [exercise.name]
    asked = {"": {"decimals": exercise.decimals}} if exercise.decimals is not None else {}
    for index, observation in enumerate(observations):
        lines.append(f"case {index + 1}")
        lines += case_lines(observation, places.get(str(index), asked))
    for name, kept in rules.items():
        lines += _rule(name, kept, places.get(of_rule(name), {}))
    return "\n".join(lines)


def of_rule(name: str) -> str:
    """The key of a rule's places, beside those of the cases."""
    return f"rule {name}"


def _rule(name: str, kept: Measured, places: Mapping[str, Any]) -> list[str]:
    """Whether a rule is kept, and what was returned meanwhile at the places that are asked for;
    what was counted is only told where it is not."""
    if not kept:
        words = json.dumps(kept.words, sort_keys=True) if kept.words else ""
        return [f"rule {name}: broken {words}".rstrip()]
    shown = {path: kept.returned.get(path) for path in sorted(places)}
    values = [
        f"  {path}: {_leaf(leaf, places[path]) if leaf else 'none'}" for path, leaf in shown.items()
    ]
    return [f"rule {name}: kept", *values]


def case_lines(observation: Observation, places: Mapping[str, Any]) -> list[str]:
    """What is printed of one case, below its number."""
    told = [f"  | {line}" for detail in observation.details for line in detail.split("\n")]
    if observation.raised:
        message = " ".join(observation.message.split())[:300]
        return [f"  raised {observation.raised}: {message}", *told]
    lines = [
        f"  {path or 'value'}: {_leaf(leaf, places.get(path, {}))}"
        for path, leaf in sorted(observation.leaves.items())
    ]
    if observation.changed:
        lines.append(f"  changed its input: {', '.join(observation.changed)}")
    return [*lines, *told]


def _leaf(leaf: Leaf, place: Mapping[str, Any]) -> str:
    decimals = int(place.get("decimals", DECIMALS))
    if leaf.kind in ("tensor", "array"):
        head = f"{leaf.kind} {leaf.dtype} {list(leaf.shape)}"
        if leaf.value.dtype.kind not in "biufcU":
            return head  # objects, bytes, dates: no exercise asks for them
        if leaf.value.dtype.kind not in "fc":
            kind = "U" if leaf.value.dtype.kind == "U" else "<i8"
            raw = np.ascontiguousarray(leaf.value).astype(kind)
            return f"{head} {hashlib.sha256(raw.tobytes()).hexdigest()[:16]}"
        flat = leaf.value.reshape(-1)
        shown = [i for i in place.get("at", range(min(flat.size, 64))) if i < flat.size]
        return f"{head} {' '.join(rounded(flat[i], decimals) for i in shown)}"
    if leaf.kind == "number":
        return f"number {rounded(leaf.value, decimals)}"
    if leaf.kind == "text":
        return f"text {leaf.value[:500]!r}"
    return f"{leaf.kind} {leaf.value}"


def rounded(value: Any, decimals: int) -> str:
    """A number as text: whole numbers exactly, others to `decimals`, never a signed zero."""
    if isinstance(value, int):
        return str(value)
    number = complex(value) if isinstance(value, complex) else float(value)
    if isinstance(number, complex):
        return f"{rounded(number.real, decimals)}+{rounded(number.imag, decimals)}j"
    if not math.isfinite(number):
        return str(number)
    if number == int(number) and abs(number) < 2**53:
        return str(int(number))
    text = f"{number:.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text
