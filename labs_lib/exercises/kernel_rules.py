"""Rules on what a kernel's traced launch counts: bytes, sectors, bank passes.

The counts are exact, so a rule can name a formula, and its sentence what was counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch

from .kernels import Launch
from .kit import Measured, Rule


def trace_rule(
    name: str,
    text: str,
    broken: str,
    launch: Callable[[], Launch],
    measure: Callable[[Any, Launch], Mapping[str, float]],
    at_most: Mapping[str, float],
    words: Mapping[str, str] | None = None,
) -> Rule:
    """A rule on what a traced launch counts: each number that `measure(trace, launch)` gives for a
    name in `at_most` is at most that.

    In `broken`, `{name}` becomes what was counted and `{name_most}` what is allowed. A kernel whose
    launch is stopped keeps no rule.
    """

    def kept(kernel: Any) -> Measured:
        planned = launch()
        trace = traced(kernel, planned)
        if trace is None or not trace.complete:
            return Measured(False)
        counted = measure(trace, planned)
        told = {key: _shown(value) for key, value in counted.items()}
        told |= {f"{key}_most": _shown(value) for key, value in at_most.items()}
        fine = all(counted[key] <= most * (1 + 1e-9) for key, most in at_most.items())
        return Measured(fine, {**told, **(words or {})})

    return Rule(name, text, kept, broken)


def traffic_rule(
    name: str,
    text: str,
    broken: str,
    launch: Callable[[], Launch],
    at_most: Mapping[str, float],
    *,
    naive: Mapping[str, int] | None = None,
    written: bool = False,
) -> Rule:
    """A rule on the bytes that a kernel reads (or, with `written`, writes) of each tensor; an
    atomic does both.

    `at_most` holds bytes by the parameter's name; a float below one is a share of `naive`'s bytes.
    In `broken`, `{k}` is what was read of k, `{k_most}` what is allowed, `{k_naive}` the naive
    kernel's.
    """
    naive = naive or {}
    limits = {
        key: most * naive[key] if isinstance(most, float) and most < 1 else most
        for key, most in at_most.items()
    }

    def measure(trace: Any, planned: Launch) -> dict[str, float]:
        found = {key: tensor_of(trace, planned, key) for key in limits}
        return {key: t.atomic + (t.written if written else t.read) for key, t in found.items()}

    words = {f"{key}_naive": _shown(value) for key, value in naive.items()}
    return trace_rule(name, text, broken, launch, measure, limits, words)


def sectors_rule(
    name: str,
    text: str,
    broken: str,
    launch: Callable[[], Launch],
    at_most: Mapping[str, float],
) -> Rule:
    """A rule on coalescing: bytes moved in sectors of 32 for each byte asked for, by tensor.

    1 is free of waste, 8 is one float of each sector. Reads of one address by many lanes count as
    1, or some of them would make up for what others waste. In `broken`, `{k}` is the kernel's
    figure, `{k_most}` what is allowed.
    """

    def measure(trace: Any, planned: Launch) -> dict[str, float]:
        return {key: _waste(trace, _name(trace, planned, key)) for key in at_most}

    return trace_rule(name, text, broken, launch, measure, at_most)


def bank_rule(
    name: str,
    text: str,
    broken: str,
    launch: Callable[[], Launch],
) -> Rule:
    """A rule on bank conflicts: shared memory takes no pass more than are needed.

    The line that is worst counts. In `broken`, `{passes}` is what it takes for each that is needed,
    and `{worst}` its number in the cell.
    """

    def measure(trace: Any, planned: Launch) -> dict[str, float]:
        share = _measured_share(trace)
        lines = [line for line in trace.lines if line.where == "shared" and line.requests]
        found = [(_conflict(line, share), line.line or 0) for line in lines]
        passes, worst = max(found, default=(0.0, 0))
        return {"passes": passes, "worst": worst}

    return trace_rule(name, text, broken, launch, measure, {"passes": 1.0})


def traced(kernel: Any, planned: Launch) -> Any:
    """The trace of a launch; None where the launch is refused. Rules on one launch share it."""
    shape = (repr(planned.grid), repr(planned.block), planned.shared_bytes)
    key = (kernel.source, kernel.name, *shape, _fingerprint(planned.arguments))
    return _traced(key, _Held(kernel, planned))


def tensor_of(trace: Any, planned: Launch, name: str) -> Any:
    """A tensor's traffic in a trace, by the parameter's name as the exercise has it."""
    return trace.tensors[_name(trace, planned, name)]


def _name(trace: Any, planned: Launch, name: str) -> str:
    """The key of a trace for a parameter: pointers stand in the order of the arguments."""
    index = planned.index(name)
    if index is None:
        return name
    pointers = [isinstance(a, torch.Tensor) for a in planned.arguments]
    return list(trace.tensors)[sum(pointers[:index])]


def _waste(trace: Any, name: str) -> float:
    share = _measured_share(trace)
    lines = [line for line in trace.lines if line.where == name]
    asked = share * sum(line.bytes for line in lines)
    return sum(line.moved for line in lines) / asked if asked else 0.0


def _conflict(line: Any, share: float) -> float:
    """Passes for each that is needed: at least one a request, and one for 128 bytes."""
    needed = max(line.requests, share * line.bytes / 128)
    return line.wavefronts / needed


def _measured_share(trace: Any) -> float:
    """Which share of the blocks was grouped by warps; bytes are counted in all of them."""
    blocks = math.prod(trace.grid)
    return trace.grouped_blocks / blocks if blocks else 1.0


def _shown(value: float) -> str:
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:.3g}"


class _Held:
    """Arguments that take no part in a cache's key."""

    def __init__(self, kernel: Any, planned: Launch) -> None:
        self.kernel, self.planned = kernel, planned

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=4)
def _traced(key: tuple, held: _Held) -> Any:
    planned = held.planned
    launcher = held.kernel.trace.totals[planned.grid, planned.block, planned.shared_bytes]
    try:
        return launcher(*planned.arguments)
    except Exception:  # a refused launch: the cases have told why
        return None


def _fingerprint(arguments: Sequence[Any]) -> int:
    plain = [_bytes(a) if isinstance(a, torch.Tensor) else a for a in arguments]
    return hash(tuple(plain))


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
