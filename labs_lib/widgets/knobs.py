"""The controls of an explorer: what each is called, what it takes, and what it means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from traitlets import Bool, Enum, Float, Int, TraitType, Unicode


@dataclass(frozen=True)
class Knob:
    """One control: its name, its first value, and what the browser must know to show it."""

    name: str
    value: Any
    spec: dict[str, Any]

    def trait(self) -> TraitType:
        """The synced trait behind it, which refuses what the control can't show."""
        kind, low, high = self.spec["kind"], self.spec.get("low"), self.spec.get("high")
        if kind == "tick":
            made = Bool(self.value)
        elif kind == "text":
            made = Unicode(self.value)
        elif kind == "choice":
            made = Enum([value for _, value in self.spec["options"]], default_value=self.value)
        else:
            whole = all(float(self.spec[part]).is_integer() for part in ("low", "high", "step"))
            made = (Int if whole else Float)(self.value, min=low, max=high)
        return made.tag(sync=True)


def head_knobs(
    n_head: int = 12, d_model: int = 768, *, most_heads: int = 32, most_width: int = 1536
) -> list[Knob]:
    """The two controls that every lab has: n_head and d_model.

    They may stand on an illegal pair; the explorer explains it and offers the nearest legal ones.
    """
    return [
        slider("n_head", n_head, 1, most_heads, "how many heads"),
        slider("d_model", d_model, min(8, d_model), most_width, "numbers per token"),
    ]


def slider(
    name: str, value: float, low: float, high: float, meaning: str, *, step: float = 1
) -> Knob:
    """A slider with a number to type in; it reaches as far as its first value."""
    low, high = min(low, value), max(high, value)
    spec = {"kind": "slider", "low": low, "high": high, "step": step}
    return _knob(name, value, meaning, spec)


def steps(
    name: str,
    value: int,
    last: int,
    meaning: str,
    *,
    first: int = 0,
    stride: int = 1,
    pace: int = 700,
) -> Knob:
    """A slider to `last` with buttons to play it, `stride` further every `pace` milliseconds."""
    spec = {"kind": "steps", "low": first, "high": last, "step": stride, "pace": pace}
    return _knob(name, value, meaning, spec)


def choice(name: str, options: Iterable[Any], meaning: str, *, value: Any = None) -> Knob:
    """A list to choose from, words or (words, value) pairs; the first unless `value` says."""
    pairs = [list(o) if isinstance(o, (tuple, list)) else [o, o] for o in options]
    first = pairs[0][1] if value is None else value
    return _knob(name, first, meaning, {"kind": "choice", "options": pairs})


def tick(name: str, value: bool, words: str) -> Knob:
    """A box to tick, with its words beside it."""
    return _knob(name, value, words, {"kind": "tick"})


def text_line(name: str, value: str, meaning: str) -> Knob:
    """A line of text to type."""
    return _knob(name, value, meaning, {"kind": "text"})


def _knob(name: str, value: Any, meaning: str, spec: dict[str, Any]) -> Knob:
    return Knob(name, value, {"name": name, "meaning": meaning, "first": value, **spec})
