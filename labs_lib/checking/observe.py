"""Call a program on a case and keep what came out as plain data.

What a student's program returns is reduced at once to leaves of plain numbers and text, so that
no object of theirs takes part in a comparison, and a view of an input can't change afterwards.
"""

from __future__ import annotations

import contextlib
import copy
import io
import random
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ..exercises.kit import Case, Exercise
from .limit import TooSlow, time_limit
from .unwritten import calls_unwritten, is_stub

CALL_SECONDS = 20.0
_ENDED = ("TooSlow", "KeyboardInterrupt")
_LARGEST, _HUGE = 10**300, "a whole number of more than 300 digits"  # which fits no float


@dataclass(frozen=True)
class Leaf:
    """One plain value: `kind` is tensor, array, number, bool, text, none or other."""

    kind: str
    value: Any
    dtype: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """The value's shape; () for all that is neither tensor nor array."""
        return self.value.shape if self.kind in ("tensor", "array") else ()


@dataclass(frozen=True)
class Observation:
    """What one call did: its leaves by path, or what it raised, and which arguments it changed.

    `details` are lines to show beside a difference; they are never compared. `unwritten` names the
    function whose stub ended the call: the program's own, or another that it calls.
    """

    leaves: Mapping[str, Leaf] = field(default_factory=dict)
    raised: str = ""
    message: str = ""
    changed: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    unwritten: str = ""


def observe_all(exercise: Exercise, program: Any, seed: int) -> list[Observation]:
    """Observe the program on every case of a seed, then once more on the first.

    The last observation repeats the first case: it differs where a program keeps state. After a
    call that ran out of time, or that somebody stopped, no other is made: the rest is as that one.
    """
    if exercise.kind == "kernel":
        from .kernels import KernelRuns

        return KernelRuns(exercise, program, seed).everything()
    if exercise.kind != "function":
        return [Observation(leaves=flatten(program))]
    cases = exercise.make_cases(seed)
    found: list[Observation] = []
    with untouched_random_state():
        for case in [*cases, cases[0]]:
            ended = found and found[-1].raised in _ENDED  # no need to wait for it in every case
            found.append(found[-1] if ended else observe(exercise, program, case))
    return found


def observe(exercise: Exercise, program: Any, case: Case) -> Observation:
    """Observe one call on copies of the case's arguments; nothing that it does gets out."""
    names = exercise.parameters
    args = [copy.deepcopy(a) for a in case.args]
    kwargs = {key: copy.deepcopy(a) for key, a in case.kwargs.items()}
    labelled = {
        (names[i] if i < len(names) else f"argument {i + 1}"): a for i, a in enumerate(args)
    }
    labelled |= kwargs
    before = copy.deepcopy(labelled)
    sources = _require_grad(labelled) if case.grad else {}
    copied = Case(case.name, tuple(args), kwargs, case.grad)
    try:
        with quiet(), time_limit(CALL_SECONDS):
            returned = exercise.call(program, copied)
            leaves = flatten(returned)
            leaves |= _gradients(returned, sources) if case.grad else {}
    except BaseException as error:  # a student's sys.exit() must not end the notebook
        return _stopped(exercise, error)
    return Observation(leaves=leaves, changed=_changed(before, labelled))


def flatten(value: Any, path: str = "") -> dict[str, Leaf]:
    """Reduce a returned value to leaves by path: tuples and lists by index, dicts by key."""
    if isinstance(value, Mapping):
        return _flatten_items(((f"{path}[{key!r}]", item) for key, item in value.items()), path)
    if isinstance(value, (tuple, list)):
        return _flatten_items(((f"{path}[{i}]", item) for i, item in enumerate(value)), path)
    return {path: _leaf(value)}


def _flatten_items(items: Iterator[tuple[str, Any]], path: str) -> dict[str, Leaf]:
    leaves: dict[str, Leaf] = {}
    for item_path, item in items:
        leaves |= flatten(item, item_path)
    return leaves or {path: Leaf("other", "an empty collection")}


def _leaf(value: Any) -> Leaf:
    if isinstance(value, torch.Tensor):
        return _tensor_leaf(value)
    if value is None:
        return Leaf("none", None)
    if type(value) in (bool, np.bool_):
        return Leaf("bool", bool(value))
    if isinstance(value, str):
        return Leaf("text", str.__str__(value))
    if isinstance(value, (int, np.integer)):
        fits = abs(int(value)) < _LARGEST
        return Leaf("number", int(value)) if fits else Leaf("other", _HUGE)
    if isinstance(value, (float, np.floating)):
        return Leaf("number", float(value))
    if isinstance(value, np.ndarray):
        plain = np.array(value, copy=True)
        return _leaf(plain.item()) if plain.ndim == 0 else Leaf("array", plain, str(plain.dtype))
    return Leaf("other", f"an object of type {type(value).__name__}")


def _tensor_leaf(value: torch.Tensor) -> Leaf:
    plain = torch.Tensor.detach(value).as_subclass(torch.Tensor).cpu()
    dtype = str(plain.dtype).removeprefix("torch.")
    if plain.ndim == 0 and not plain.is_complex():
        return _leaf(plain.item())
    if plain.is_floating_point():
        plain = plain.to(torch.float64)
    return Leaf("tensor", np.array(plain.resolve_conj().numpy(), copy=True), dtype)


def _require_grad(labelled: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    found = {}
    for label, value in labelled.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            found[label] = value.requires_grad_(True)
    return found


def _gradients(returned: Any, sources: Mapping[str, torch.Tensor]) -> dict[str, Leaf]:
    outputs = [t for t in _tensors(returned) if t.is_floating_point()]
    if not outputs:
        return {}  # what was returned instead is the thing to tell
    if not any(t.requires_grad for t in outputs):
        return {"gradient": Leaf("text", "lost")}
    totals = [
        (t * torch.arange(t.numel(), dtype=t.dtype).cos().reshape(t.shape)).sum()
        for t in outputs
        if t.requires_grad
    ]
    slopes = torch.autograd.grad(totals, list(sources.values()), allow_unused=True)
    return {
        f"gradient of {label}": _leaf(slope) for label, slope in zip(sources, slopes, strict=True)
    }


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from (t for item in value.values() for t in _tensors(item))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from (t for item in value for t in _tensors(item))


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    def same(old: Any, new: Any) -> bool:
        if not isinstance(old, torch.Tensor):
            return True
        return old.shape == new.shape and bool(
            torch.equal(torch.nan_to_num(old.detach()), torch.nan_to_num(new.detach()))
        )

    return tuple(label for label, old in before.items() if not same(old, after[label]))


def _stopped(exercise: Exercise, error: BaseException) -> Observation:
    raised = type(error).__name__
    if calls := calls_unwritten(error, exercise.called):
        message = f"it calls {calls}, which is not written yet"
        return Observation(raised=raised, message=message, unwritten=calls)
    own = exercise.called if is_stub(error) else ""
    return Observation(raised=raised, message=_message(error), unwritten=own)


def _message(error: BaseException) -> str:
    if isinstance(error, TooSlow):
        return str(error)
    if isinstance(error, RecursionError):
        return "the function calls itself without an end"
    try:
        return str(error)[:500]
    except Exception:
        return "(its message can't be shown)"


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Swallow what is printed or warned of, and restore torch's settings afterwards."""
    dtype, grad_enabled = torch.get_default_dtype(), torch.is_grad_enabled()
    sink = io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(sink),
            contextlib.redirect_stderr(sink),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad_enabled)


@contextlib.contextmanager
def untouched_random_state() -> Generator[None]:
    """Seed Python's, numpy's and torch's global generators inside; restore them afterwards."""
    states = random.getstate(), np.random.get_state(), torch.random.get_rng_state()
    random.seed(0)
    np.random.seed(0)
    torch.default_generator.manual_seed(0)  # torch.manual_seed would reach CUDA's as well
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.random.set_rng_state(states[2])
