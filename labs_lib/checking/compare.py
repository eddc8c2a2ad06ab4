"""Compare what a program did with what was wanted, and say the first difference in words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import SupportsFloat

import numpy as np

from ..exercises.kit import Exercise, Tolerance
from .observe import Leaf, Observation

MOST_PATHS = 6
_NO_RETURN = " (a function that ends without return gives None)"
_GRADIENT_LOST = (
    "The gradient is lost on the way.",
    "For autograd the output no longer depends on the inputs: leave out .detach(), .numpy()",
    "and no_grad().",
)
_NO_GRADIENT = (
    "Use the input itself: a copy in a new nn.Parameter or nn.Linear, .data, .detach() and",
    "no_grad() hide from autograd what the output was made of.",
)
_NAME = re.compile(r"""\[['"](.*?)['"]\]""")
_NAMED = re.compile(r"""\[['"]([^\[\]]*)['"]\]""")
_REFUSED = "['refused with']"
_PLACES = re.compile(r"(\[\d+\])+")
_NAN = "NaN comes from 0/0, inf/inf or (-inf) - (-inf), as in a softmax without any key."
_NAN_OF_KERNELS = (
    "NaN: no thread wrote it (outputs and shared memory start as NaN), or it comes from 0/0 or "
    "(-inf) - (-inf)."
)
_KIND_WORDS = {
    "tensor": "a tensor",
    "array": "a numpy array",
    "number": "a number",
    "bool": "True or False",
    "text": "text",
    "none": "None",
    "other": "something else",
}


def same(exercise: Exercise, want: Sequence[Observation], got: Sequence[Observation]) -> bool:
    """Whether every observation equals the wanted one within the exercise's tolerances."""
    pairs = zip(want, got, strict=True)
    return all(not difference(exercise, w, g) for w, g in pairs)


def difference(exercise: Exercise, want: Observation, got: Observation) -> list[str]:
    """The first difference as lines for a student; empty where the two agree."""
    if exercise.kind == "kernel" and (lines := _difference_kernel(want, got)):
        return lines
    if want.raised or got.raised:
        return _difference_raised(want, got)
    if "gradient" in set(got.leaves) - set(want.leaves):
        return [*_GRADIENT_LOST]
    if set(want.leaves) != set(got.leaves):
        return [_difference_structure(want.leaves, got.leaves)]
    instead = got.leaves.get("['made instead']")
    made = str(instead.value) if instead else ""
    for path, leaf in want.leaves.items():
        lines = _difference_leaf(exercise, path, leaf, got.leaves[path], made)
        if lines:
            return lines
    if got.changed and not want.changed:
        names = ", ".join(got.changed)
        program = "kernel" if exercise.kind == "kernel" else "function"
        return [
            f"The values are right, but your {program} changed its input {names} in place;",
            "whoever called it still needs that tensor. Work on a copy, or make a new tensor.",
        ]
    return []


def _difference_kernel(want: Observation, got: Observation) -> list[str]:
    """What stopped a kernel, or what its trace found, in the trace's own sentences."""
    if (want.raised, want.message) != (got.raised, got.message):
        return [*got.details] or [f"it was stopped ({got.raised}: {got.message})"]
    found = got.leaves.get("findings")
    if found is not None and found != want.leaves.get("findings"):
        return [*got.details] or [f"the trace found: {found.value}"]
    return []


def _difference_raised(want: Observation, got: Observation) -> list[str]:
    if want.raised == got.raised:
        return []
    if got.raised:
        return [f"it raised {got.raised}{f': {got.message}' if got.message else ''}"]
    return [f"it returned a value; here it should refuse with {want.raised}"]


def _difference_structure(want: Mapping[str, Leaf], got: Mapping[str, Leaf]) -> str:
    if unlike := got.get("['not as asked']"):
        return str(unlike.value)
    parts, theirs = _by_first(want), _by_first(got)
    if set(parts) == set(theirs) and "" not in parts:
        first = next(key for key, part in parts.items() if set(part) != set(theirs[key]))
        return f"{_name(first)}: {_difference_structure(parts[first], theirs[first])}"
    wanted, refused = (leaves.get(_REFUSED) for leaves in (want, got))
    if refused and not wanted:
        return f"this was refused with {refused.value}; it should be accepted"
    if refused and wanted and refused.value != wanted.value:
        return _difference_words(_REFUSED, wanted.value, refused.value, "")
    named = [name[1] for name in map(_NAMED.fullmatch, want) if name]
    if len(named) == len(want) and all(map(_PLACES.fullmatch, got)):
        given = f"{len(got)} values without names"
        return f"you returned {given}; wanted is a dictionary of {', '.join(named)}"
    way_out = _NO_RETURN if _structure(got) == "None" else ""
    return f"you returned {_structure(got)}; wanted is {_structure(want)}{way_out}"


def _by_first(leaves: Mapping[str, Leaf]) -> dict[str, dict[str, Leaf]]:
    """Leaves by the first part of their paths, each with what is left of its path."""
    found: dict[str, dict[str, Leaf]] = {}
    for path, leaf in leaves.items():
        key = path[: path.find("]") + 1] if path.startswith("[") else path
        found.setdefault(key, {})[path[len(key) :]] = leaf
    return found


def _structure(leaves: Mapping[str, Leaf]) -> str:
    plain = {p: leaf for p, leaf in leaves.items() if not p.startswith("gradient")}
    if list(plain) == [""]:
        return _describe(plain[""])
    if all(_PLACES.fullmatch(path) for path in plain):
        return f"{len(plain)} values{' in lists' if any('][' in path for path in plain) else ''}"
    more = ", ..." if len(plain) > MOST_PATHS else ""
    return f"{len(plain)} values ({', '.join(_name(p) for p in list(plain)[:MOST_PATHS])}{more})"


def _name(path: str) -> str:
    """A path as a student reads it: `a, b` for `['a']['b']`, `a[0]`, and `result[0]` for `[0]`."""
    if _PLACES.fullmatch(path):
        return f"result{path}"
    return _NAME.sub(r", \1", path).removeprefix(", ")


def _difference_words(path: str, want: str, got: str, made: str) -> str:
    """Two texts that differ: what a program gave, or what a case says became of it."""
    name = _name(path)
    place, _, last = name.rpartition(", ")
    if last == "refused with":
        what = place or "this"
        gave = f" and gave {made}" if made else ""
        did = f"was accepted{gave}" if got == "no error" else f"ended with {got}"
        should = "accepted" if want == "no error" else f"refused with {want}"
        return f"{what} {did}; it should be {should}"
    if name.endswith((" is", " was", " type")):
        return f"{name} {got}; it should be {want}"
    return f"{name}: {got}; wanted is {want}" if name else f"got {got!r}, wanted {want!r}"


def _describe(leaf: Leaf) -> str:
    if leaf.kind in ("tensor", "array"):
        return f"{_KIND_WORDS[leaf.kind]} of shape {list(leaf.shape)}, {leaf.dtype}"
    if leaf.kind == "other":
        return str(leaf.value)
    if leaf.kind == "none":
        return "None"
    return f"{_KIND_WORDS[leaf.kind]}: {leaf.value!r}" if leaf.kind != "bool" else repr(leaf.value)


def _difference_leaf(exercise: Exercise, path: str, want: Leaf, got: Leaf, made: str) -> list[str]:
    where = f"{_name(path)}: " if path else ""
    if want.kind != got.kind:
        if path.startswith("gradient of") and got.kind == "none":
            return [f"The values are right, but no {path} arrives.", *_NO_GRADIENT]
        way_out = _NO_RETURN if got.kind == "none" and not path else ""
        if want.kind == "tensor" and got.kind == "array":
            way_out = "; use torch's own operations, for torch can't follow numpy's"
        return [f"{where}you returned {_describe(got)}; wanted is {_wanted(want)}{way_out}"]
    if want.kind in ("tensor", "array"):
        return _difference_tensor(exercise, where, want, got)
    if want.kind == "number":
        return _difference_number(exercise, where, want, got)
    if want.value == got.value:
        return []
    if want.kind == "text":
        return [_difference_words(path, want.value, got.value, made)]
    return [f"{where}got {got.value!r}, wanted {want.value!r}"]


def _wanted(leaf: Leaf) -> str:
    return _describe(leaf) if leaf.kind in ("tensor", "array") else _KIND_WORDS[leaf.kind]


def _difference_tensor(exercise: Exercise, where: str, want: Leaf, got: Leaf) -> list[str]:
    if want.shape != got.shape:
        axes = f" ({', '.join(exercise.axes)})" if len(exercise.axes) == len(want.shape) else ""
        return [f"{where}the shape is {list(got.shape)}; wanted is {list(want.shape)}{axes}"]
    if want.dtype != got.dtype:
        # What is widened on purpose comes out narrow where it wasn't: the inputs may be narrow.
        told = "float" in want.dtype and "16" not in got.dtype
        inputs = ", that of the inputs" if told else ""
        return [f"{where}the values have dtype {got.dtype}; wanted is {want.dtype}{inputs}"]
    close = _close(exercise, want, got)
    if close.all():
        return []
    index = tuple(int(i) for i in np.argwhere(~close)[0])
    count, total = int((~close).sum()), close.size
    g, w = _show_apart(got.value[index], want.value[index])
    lines = [
        f"{where}element {list(index)} is {g}; wanted is {w} ({count} of {total} elements differ)"
    ]
    if got.value.dtype.kind == "f" and np.isnan(got.value[index]):
        lines.append(_NAN_OF_KERNELS if exercise.kind == "kernel" else _NAN)
    return lines


def _close(exercise: Exercise, want: Leaf, got: Leaf) -> np.ndarray:
    if want.value.dtype.kind not in "fc":
        return want.value == got.value
    limit: Tolerance = exercise.tolerances.get(want.dtype) or exercise.tolerances["float32"]
    both_nan = np.isnan(want.value) & np.isnan(got.value)
    with np.errstate(invalid="ignore"):
        near = np.abs(got.value - want.value) <= limit.atol + limit.rtol * np.abs(want.value)
    near &= np.isfinite(want.value)  # every number lies within an infinite tolerance
    return near | (want.value == got.value) | both_nan


def _difference_number(exercise: Exercise, where: str, want: Leaf, got: Leaf) -> list[str]:
    w, g = float(want.value), float(got.value)
    if exercise.kind == "number":
        decimals = exercise.decimals
        if (w == g) if decimals is None else (round(w, decimals) == round(g, decimals)):
            return []
        return [f"{_show(g)}{' ' + exercise.unit if exercise.unit else ''} is not it"]
    limit = exercise.tolerances["number"]
    near = math.isfinite(w) and abs(g - w) <= limit.atol + limit.rtol * abs(w)
    if w == g or near or (w != w and g != g):
        return []
    shown = _show_apart(g, w)
    return [f"{where}got {shown[0]}, wanted {shown[1]}"]


def _show_apart(got: SupportsFloat, want: SupportsFloat) -> tuple[str, str]:
    """Both values with six digits, or with as many as it takes to tell them apart."""
    for digits in (6, 9, 12, 17):
        shown = _show(got, digits), _show(want, digits)
        if shown[0] != shown[1]:
            break
    return shown


def _show(value: SupportsFloat, digits: int = 6) -> str:
    if isinstance(value, (bool, np.bool_)):
        return repr(bool(value))
    number = float(value)
    return (
        f"{int(number)}" if number.is_integer() and abs(number) < 1e15 else f"{number:.{digits}g}"
    )
