"""Which settings of an explorer don't go together, why, and the nearest that do.

front/rules.mjs says the same in the browser; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.figure import Figure

from ..config import AttentionConfig, nearest_d_model, nearest_n_head
from ..plots.rows import split_bar


@dataclass(frozen=True)
class Misfit:
    """What doesn't fit: a sentence, ways out as (control, value), and a width cut into parts."""

    why: str
    offers: tuple[tuple[str, int], ...]
    width: int
    parts: int
    title: str
    label: str = ""

    @property
    def told(self) -> str:
        """Why it doesn't fit, and the ways out: "…; d_model=768 or 780 would do, or n_head=11"."""
        ways: dict[str, list[str]] = {}
        for name, value in self.offers:
            ways.setdefault(name, []).append(str(value))
        first, *others = [f"{name}={' or '.join(values)}" for name, values in ways.items()] or [""]
        return ", or ".join([f"{self.why}; {first} would do", *others]) if first else self.why

    def within(self, edges: Mapping[str, tuple[Any, Any]]) -> Misfit:
        """The same with only those ways out that the controls, from lowest to highest, can take."""
        lowest = {name: low for name, (low, _) in edges.items() if low is not None}
        taken = [(n, v) for n, v in self.offers if n in lowest and lowest[n] <= v <= edges[n][1]]
        return replace(self, offers=tuple(taken))

    def draw(self, figure: Figure) -> None:
        """Draw the width, its parts, and what is left over."""
        ax = figure.add_subplot()
        split_bar(self.width, self.parts, ax=ax, title=self.title)
        if self.label:
            ax.set_xlabel(self.label)


def pair_rule(values: Mapping[str, Any]) -> Misfit | None:
    """n_head must divide d_model, where there are both."""
    if not {"n_head", "d_model"} <= set(values):
        return None
    n_head, d_model = values["n_head"], values["d_model"]
    why = _refused(d_model, n_head)
    if why is None:
        return None
    offers = [("d_model", width) for width in nearest_d_model(d_model, n_head)]
    offers += [("n_head", count) for count in nearest_n_head(d_model, n_head)]
    return Misfit(why, tuple(offers), d_model, n_head, "These heads don't fit")


def group_rule(values: Mapping[str, Any]) -> Misfit | None:
    """n_kv_head must divide n_head; stands behind the pair's rule."""
    n_head, n_kv_head = values["n_head"], values["n_kv_head"]
    why = _refused(values["d_model"], n_head, n_kv_head)
    if why is None:
        return None
    offers = tuple(("n_kv_head", count) for count in nearest_n_head(n_head, n_kv_head))
    label = f"the {n_head} heads, to be shared out among {n_kv_head} keys"
    parts = min(n_head, n_kv_head)
    return Misfit(why, offers, n_head, parts, "These groups don't fit", label)


def _refused(d_model: int, n_head: int, n_kv_head: int | None = None) -> str | None:
    try:
        AttentionConfig(d_model, n_head, n_head if n_kv_head is None else n_kv_head)
    except ValueError as error:
        return str(error).partition(";")[0]  # its own ways out may lie beyond a control
    return None
