"""The shapes that exercises are made of: Lab, Exercise, Case, Rule, Tolerance.

An exercise is data. Its check, hints, marks and the proof that wrong programs fail come from it.
"""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Kind = Literal["function", "kernel", "number", "choice"]


@dataclass(frozen=True)
class Tolerance:
    """How far an element may lie from the expected one: |got - want| <= atol + rtol * |want|."""

    rtol: float
    atol: float


TOLERANCES: Mapping[str, Tolerance] = {
    "float64": Tolerance(1e-9, 1e-10),
    "float32": Tolerance(1e-5, 1e-5),
    "float16": Tolerance(2e-3, 2e-3),
    "bfloat16": Tolerance(2e-2, 2e-2),
    "number": Tolerance(1e-6, 1e-9),
}


@dataclass(frozen=True)
class Case:
    """One call of the student's program.

    `args` and `kwargs` are copied before each call. With `grad=True` the gradient of a fixed
    weighted sum of the output with respect to every floating-point tensor argument is compared too.
    """

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    grad: bool = False


@dataclass(frozen=True)
class Measured:
    """What a rule measured; it is true where the rule is kept.

    `words` are put into the rule's sentence: `{k}` becomes what they say of `k`. `returned` holds
    what the program's calls returned meanwhile, as plain values by path.
    """

    kept: bool
    words: Mapping[str, str] = field(default_factory=dict)
    returned: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.kept


@dataclass(frozen=True)
class Rule:
    """A measured structural rule.

    `kept` receives the student's program and says whether it keeps the rule, as a bool or with
    what was counted as `Measured`; `broken` is the sentence for a student whose program gives
    right values but breaks it. `by_torch` says that torch's operators are counted, so that nothing
    done in numpy or in lists is.
    """

    name: str
    text: str
    kept: Callable[[Callable[..., Any]], bool | Measured]
    broken: str
    by_torch: bool = False

    def told(self, words: Mapping[str, str]) -> list[str]:
        """The lines for a student who breaks it, with what was counted put in."""
        text = self.broken
        for name, value in words.items():
            text = text.replace(f"{{{name}}}", value)
        return text.split("\n")


def call_plainly(program: Callable[..., Any], case: Case) -> Any:
    """Call the program with the case's arguments and return what it returns."""
    return program(*case.args, **case.kwargs)


@dataclass(frozen=True)
class Exercise:
    """One thing that a student is asked for.

    Args:
        name: `labNN.function_name`; for a quiz question `labNN.quiz_topic`.
        title: what is asked, in half a line (for tables).
        stub: the text of the answer cell in the student's notebook.
        kind: `function`, `kernel` (a CUDA kernel, see `kernels.kernel_exercise`), `number` (a value
            checked to `decimals`) or `choice` (one of `choices`).
        cases: makes the cases from a seeded generator; unused for numbers and choices.
        call: how a case meets the program; returns plain data (tensors, numbers, text, tuples), or
            `{"not as asked": words}` of something that can't be held against what is wanted.
        axes: names of the output's axes, for messages about shapes.
        forbidden: dotted names that the answer's text must not use (read from its syntax tree).
        decimals: for numbers, how many decimals count; None asks for an exact whole number.
        launch: for kernels, from a case's arguments to what is launched.
        symbol: what the student's function, class or variable is called; by default the name
            without its lab.
    """

    name: str
    title: str
    stub: str
    kind: Kind = "function"
    cases: Callable[[np.random.Generator], Sequence[Case]] | None = None
    call: Callable[[Callable[..., Any], Case], Any] = call_plainly
    points: int = 1
    tolerances: Mapping[str, Tolerance] = field(default_factory=lambda: TOLERANCES)
    rules: tuple[Rule, ...] = ()
    hints: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)
    decimals: int | None = None
    unit: str = ""
    minutes: int = 5
    symbol: str = ""
    launch: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        lab, dot, short = self.name.partition(".")
        if not (dot and short.isidentifier() and lab.startswith("lab") and lab[3:].isdigit()):
            raise ValueError(f"exercise name {self.name!r}: write it as labNN.function_name")
        if self.is_program and self.cases is None:
            raise ValueError(f"{self.name}: an exercise of kind {self.kind} needs cases")
        if self.kind == "kernel" and self.launch is None:
            raise ValueError(f"{self.name}: an exercise of kind kernel needs a launch")
        if self.kind == "choice" and len(self.choices) < 2:
            raise ValueError(f"{self.name}: a choice needs at least two choices")

    @property
    def lab(self) -> str:
        """The lab's name, such as `lab02`."""
        return self.name.partition(".")[0]

    @property
    def short(self) -> str:
        """The name without the lab."""
        return self.name.partition(".")[2]

    @property
    def called(self) -> str:
        """What the student's function, class or variable is called."""
        return self.symbol or self.short

    @property
    def is_program(self) -> bool:
        """Whether a function or a kernel is asked for, which runs on cases."""
        return self.kind in ("function", "kernel")

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the program's parameters, read from the stub; empty where it has none."""
        if self.kind == "kernel":
            found = re.search(rf"\b{re.escape(self.called)}\s*\(([^()]*)\)", self.stub)
            return tuple(re.findall(r"(\w+)\s*(?:,|$)", found[1])) if found else ()
        try:
            tree = ast.parse(self.stub)
        except SyntaxError:
            return ()
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == self.called:
                return tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args))
        return ()

    def make_cases(self, seed: int) -> list[Case]:
        """The cases for a seed; one case without arguments for numbers and choices."""
        if self.cases is None:
            return [Case("the value")]
        return list(self.cases(generator(seed, self.name)))


def quiz(name: str, title: str, choices: Mapping[str, str], minutes: int = 1) -> Exercise:
    """A quiz question without points, `labNN.quiz_topic`; its stub names the letters to choose."""
    *letters, last = (f'"{letter}"' for letter in choices)
    return Exercise(
        name=name,
        title=f"quiz: {title}",
        kind="choice",
        points=0,
        stub=f"{name.partition('.')[2]} = None  # {', '.join(letters)} or {last}\n",
        choices=choices,
        minutes=minutes,
    )


@dataclass(frozen=True)
class Lab:
    """A lab: its number, the stem of its files, and what the table of labs says about it."""

    number: int
    slug: str
    title: str
    minutes: int
    question: str

    @property
    def name(self) -> str:
        """Such as `lab02`."""
        return f"lab{self.number:02d}"

    @property
    def stem(self) -> str:
        """The stem of the lab's notebook files, such as `02_splitting_the_width`."""
        return f"{self.number:02d}_{self.slug}"


def generator(seed: int, name: str) -> np.random.Generator:
    """A PCG64 generator for (seed, exercise name); equal on every machine."""
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode("utf-8"))]))
