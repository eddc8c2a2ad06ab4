"""Exercises whose answers are CUDA kernels: what is launched, and on which inputs.

A kernel is observed by traced launches on the CPU: its outputs, what the trace found wrong, and by
the rules of `kernel_rules` what it read, wrote and waited for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .inputs import rule_seed
from .kit import TOLERANCES, Case, Exercise, Rule, Tolerance, generator

# Sums of a few hundred float32 products, taken in any order.
KERNEL_TOLERANCES: Mapping[str, Tolerance] = {**TOLERANCES, "float32": Tolerance(1e-4, 2e-5)}


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel.

    grid, block   an int or up to three
    arguments     tensors and numbers in the order of the kernel's parameters; outputs NaN-filled
    outputs       name -> index in `arguments` of each tensor that is compared
    shared_bytes  dynamic shared memory of a block
    names         the parameters' names, for rules that speak of inputs; a student may rename them
    """

    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    arguments: tuple[Any, ...]
    outputs: Mapping[str, int]
    shared_bytes: int = 0
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, index in self.outputs.items():
            if not isinstance(self.arguments[index], torch.Tensor):
                raise ValueError(f"the output {name} is argument {index}, which is no tensor")

    def index(self, name: str) -> int | None:
        """Which argument is called `name`; None where nothing here says so."""
        return self.names.index(name) if name in self.names else self.outputs.get(name)


def unwritten(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """An output before the launch: NaN everywhere, so that what is left out shows."""
    return torch.full(shape, math.nan, dtype=dtype)


def case_launch(
    name: str,
    cases: Callable[[np.random.Generator], Sequence[Case]],
    launch: Callable[..., Launch],
    case: str,
) -> Callable[[], Launch]:
    """What makes the launch of one case of an exercise, number for number, for its rules.

    A kernel that could tell a rule's launch from one whose output is compared might do nothing
    there, and read nothing. Raises ValueError, when it is called, where there is no such case.
    """

    def planned() -> Launch:
        for one in cases(generator(rule_seed(), name)):
            if one.name == case:
                return launch(*one.args, **one.kwargs)
        raise ValueError(f"{name} has no case {case!r}")

    return planned


def kernel_exercise(
    name: str,
    title: str,
    stub: str,
    *,
    cases: Callable[[np.random.Generator], Sequence[Case]],
    launch: Callable[..., Launch],
    rules: tuple[Rule, ...] = (),
    hints: tuple[str, ...] = (),
    forbidden: tuple[str, ...] = (),
    minutes: int = 20,
    axes: tuple[str, ...] = (),
    tolerances: Mapping[str, Tolerance] = KERNEL_TOLERANCES,
) -> Exercise:
    """An exercise whose answer is a `%%cuda` cell with a kernel called as the exercise is.

    `launch(*case.args)` makes the launch of a case. The stub begins with the line `%%cuda`. Answers
    hold CUDA source text. Raises ValueError for a stub without that line, or without the kernel.
    """
    exercise = Exercise(
        name=name,
        title=title,
        stub=stub,
        kind="kernel",
        cases=cases,
        launch=launch,
        rules=rules,
        hints=hints,
        forbidden=forbidden,
        minutes=minutes,
        axes=axes,
        tolerances=tolerances,
    )
    if not stub.startswith("%%cuda\n") or not exercise.parameters:
        raise ValueError(f"{name}: the stub begins with %%cuda and holds {exercise.called}(...)")
    return exercise
