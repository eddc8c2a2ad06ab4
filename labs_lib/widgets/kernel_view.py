"""Lab 09: a kernel's accesses, one instruction of a warp after the other.

Which lane touches which bytes, which sectors of 32 bytes come along, which banks of shared memory
clash, and the line of the source that does it. The steps are those of a trace, of your own kernel;
it is sent to the browser once, and front/kernel_view.mjs plays it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from traitlets import Any as AnyTrait
from traitlets import TraitType, Unicode

from ..cuda import Trace
from ..cuda.accesses import WARP, Request
from .explorer import Explorer
from .kernel_picture import draw_request
from .kernel_words import what_words, where_words
from .knobs import Knob, head_knobs, steps
from .rules import pair_rule
from .still import students_own

TraceOf = Callable[..., Trace]
NONE = "none"
MOST_STEPS = 1_000_000
_CUT = "The record ends here; the kernel goes on. k.trace.steps(most=...) keeps more."


def kernel_view(
    trace: Trace | TraceOf, *, warp: int = 0, step: int = 1, n_head: int = 12, d_model: int = 768
) -> Explorer:
    """An explorer that steps through what the warps of a traced block do.

    `trace` is a Trace (`k.trace[grid, block](...)`; `k.trace.steps(block=...)` watches other
    blocks), or a function of n_head and d_model that makes one: then both can be moved, too.
    """
    fixed = isinstance(trace, Trace)
    played = _Played(trace)
    knobs = [
        *([] if fixed else head_knobs(n_head, d_model)),
        _List("block", NONE, _spec("block", NONE, "a block whose accesses were kept")),
        _List("warp", warp, _spec("warp", warp, "32 threads that go together")),
        steps("step", step, MOST_STEPS, "one instruction of the warp", first=1),
    ]
    return _KernelView(
        "A kernel's accesses, step by step",
        knobs,
        played.draw,
        script="kernel_view",
        ask=None if fixed else played.asked,
        plays=("block", "warp", "step"),
        data=packed(trace) if fixed else None,
        size=(8.4, 5.4),
        played=played,
    )


def packed(trace: Trace) -> dict[str, Any]:
    """A trace as the browser plays it: `steps` is int32 [steps, 3 + 32]: site, bytes, barriers
    before it, and the byte offset of each lane, -1 for one that rests; `warps` says whose they are.
    """
    log, warps, rows = trace.log, [], []
    for block in log.blocks:
        for warp in log.warps(block):
            requests = log.requests(block, warp)
            warps.append([str(block), warp, len(rows), len(requests)])
            rows += [_row(request, log.sites.index(request.site)) for request in requests]
    return {
        "source": trace.source,
        "grid": list(trace.grid),
        "threads": list(trace.block),
        "sites": [[s.line, s.what, s.name, s.shared, s.item, s.phase] for s in log.sites],
        "whole": {str(b): bool(w) for b, w in zip(log.blocks, log.whole, strict=True)},
        "warps": warps,
        "steps": np.array(rows, np.int32).reshape(-1, 3 + WARP).tobytes(),
    }


def _row(request: Request, site: int) -> list[int]:
    lanes = [request.lanes.get(lane, -1) for lane in range(WARP)]
    return [site, request.size, request.step, *lanes]


def _spec(name: str, value: Any, meaning: str) -> dict[str, Any]:
    return {"name": name, "kind": "choice", "meaning": meaning, "options": [], "first": value}


@dataclass(frozen=True)
class _List(Knob):
    """A list whose entries the trace decides."""

    def trait(self) -> TraitType:
        kind = _Block(self.value) if self.name == "block" else AnyTrait(self.value)
        return kind.tag(sync=True)


class _Block(Unicode):
    """A block's place in words; a tuple is taken too."""

    def validate(self, obj: Any, value: Any) -> str:
        return super().validate(obj, str(tuple(value)) if not isinstance(value, str) else value)


class _Played:
    """The trace that is played; where a function makes it, what it made is kept."""

    def __init__(self, trace: Trace | TraceOf) -> None:
        self.maker = None if isinstance(trace, Trace) else trace
        self.made: dict[tuple[int, ...], Trace] = {}
        if isinstance(trace, Trace):
            self.made[()] = trace

    def trace(self, values: Mapping[str, Any]) -> Trace:
        pair = (values["n_head"], values["d_model"]) if self.maker else ()
        if self.maker and pair not in self.made:
            with students_own():
                self.made[pair] = self.maker(*pair)
        return self.made[pair]

    def warps(self, values: Mapping[str, Any]) -> dict[str, list[int]]:
        """The watched blocks that touched something, and their warps."""
        log = self.trace(values).log
        found = {str(block): log.warps(block) for block in log.blocks}
        return {block: warps for block, warps in found.items() if warps}

    def requests(self, values: Mapping[str, Any]) -> list[Request]:
        log = self.trace(values).log
        block = next((b for b in log.blocks if str(b) == values["block"]), None)
        return log.requests(block, values["warp"]) if block is not None else []

    def nearest(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Block, warp and step as the trace has them: what it lacks becomes its first, or last."""
        there = self.warps(values)
        block = values["block"] if values["block"] in there else next(iter(there), NONE)
        warps = there.get(block, [NONE])
        warp = values["warp"] if values["warp"] in warps else warps[0]
        last = len(self.requests({**values, "block": block, "warp": warp}))
        return {"block": block, "warp": warp, "step": min(values["step"], max(1, last))}

    def asked(self, **values: Any) -> dict[str, Any]:
        """The trace of a pair, for the browser."""
        return packed(self.trace(values))

    def draw(self, figure: Figure, **values: Any) -> str:
        """The still picture and the sentence of a step."""
        values |= self.nearest(values)
        requests, trace = self.requests(values), self.trace(values)
        if not requests:
            figure.text(0.02, 0.5, "nothing was touched", fontsize=11)
            return "No thread of this launch touched a tensor or shared memory."
        request = requests[values["step"] - 1]
        draw_request(figure, request, trace.source)
        told = [where_words(request, values["step"], len(requests), trace.block)]
        told.append(what_words(request))
        if values["step"] == len(requests) and not self._whole(trace, values["block"]):
            told.append(_CUT)
        return "\n".join(told)

    def _whole(self, trace: Trace, block: str) -> bool:
        return trace.log.whole[[str(b) for b in trace.log.blocks].index(block)]


class _KernelView(Explorer):
    """Its block, warp and step are always some that the trace has."""

    def __init__(self, *given: Any, played: _Played, **options: Any) -> None:
        self._played = played
        super().__init__(*given, **options)
        self._fit()

    @property
    def choices(self) -> dict[str, list[Any]]:
        """The watched blocks that touched something, and the warps of the one that is chosen."""
        there = self._played.warps(self.values)
        return {"block": list(there), "warp": there.get(self.block, [])}

    @property
    def last_step(self) -> int:
        """How many steps the warp has."""
        return len(self._played.requests(self.values))

    def _moved(self, change: Any) -> None:
        super()._moved(change)
        self._fit()

    def _fit(self) -> None:
        if "n_head" in self.names and pair_rule(self.values) is not None:
            return
        try:
            fitting = self._played.nearest(self.values)
        except Exception:  # the function that makes traces failed; the sentence says how
            return
        for name, value in fitting.items():
            if getattr(self, name) != value:
                setattr(self, name, value)
