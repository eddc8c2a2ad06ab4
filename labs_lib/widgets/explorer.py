"""An explorer: controls and one picture that the browser computes and draws by itself.

Python holds the settings (`w.n_head` reads and sets them), runs a student's own function where one
is shown, and makes the picture and the sentence that stand where no browser runs the explorer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import anywidget
from traitlets import Any as AnyTrait
from traitlets import List, Unicode

from . import front
from .knobs import Knob
from .rules import Misfit, pair_rule
from .still import Draw, Rule, Still, raised

Ask = Callable[..., Mapping[str, Any] | None]


class Explorer(anywidget.AnyWidget):
    """Controls, one picture of what they say, and a sentence about it.

    Args:
        title: what the explorer shows, in a few words; also the picture's alternative text.
        knobs: the controls in the order in which they stand; each is a synced trait of its name.
        draw: `draw(figure, **values) -> str` draws the still picture with matplotlib and returns
            the sentence that says in words what is seen.
        script: the module in front/ that draws the same in the browser.
        ask: `ask(**values)` runs a student's function where the settings ask for it, and returns
            what the browser draws of it: `message`, and what its module reads. None: not asked.
        plays: controls that only choose what is shown of a student's answer, such as the step of
            a trace: `ask` isn't called again when they move.
        follow: name -> leader; moves along as long as both are equal.
        data: what the browser is given once, such as a trace; read there as model.get("data").
        rules: what may not go together, further than n_head and d_model.
        size: width and height of the still picture in inches.

    `values` holds all settings, `message` the sentence, `legal` whether they go together, `offers`
    the nearest that do, `picture` the PNG of the still, `failed` whether drawing raised, `script`
    the name of its module.
    """

    _esm = Unicode().tag(sync=True)
    _css = Unicode().tag(sync=True)
    title = Unicode().tag(sync=True)
    knobs = List().tag(sync=True)
    own = AnyTrait(None, allow_none=True).tag(sync=True)
    data = AnyTrait(None, allow_none=True).tag(sync=True)

    def __init__(
        self,
        title: str,
        knobs: Sequence[Knob],
        draw: Draw,
        *,
        script: str,
        ask: Ask | None = None,
        plays: Iterable[str] = (),
        follow: Mapping[str, str] | None = None,
        data: Any = None,
        rules: Iterable[Rule] = (),
        size: tuple[float, float] = (8.0, 3.4),
    ) -> None:
        self.names = tuple(knob.name for knob in knobs)
        self.script, self.draw, self._ask, self._follow = script, draw, ask, dict(follow or {})
        edges = {knob.name: (knob.spec.get("low"), knob.spec.get("high")) for knob in knobs}
        self._rules = tuple(_offering_within(rule, edges) for rule in (pair_rule, *rules))
        self._size, self._still, self._plays = size, None, frozenset(plays)
        self.add_traits(**{knob.name: knob.trait() for knob in knobs})
        own = self._answer({knob.name: knob.value for knob in knobs})
        specs = [knob.spec for knob in knobs]
        source, style = front.source(script), front.style()
        super().__init__(title=title, knobs=specs, own=own, data=data, _esm=source, _css=style)
        self.observe(self._moved, names=list(self.names))

    @property
    def values(self) -> dict[str, Any]:
        """What the controls say now, by name."""
        return {name: getattr(self, name) for name in self.names}

    def set(self, **values: Any) -> None:
        """Move several controls at once.

        Raises:
            AttributeError: for a name that is no control.
            TraitError: for a value that the control doesn't take.
        """
        for name in values:
            if name not in self.names:
                raise AttributeError(self._unknown(name))
        with self.hold_sync(), self.hold_trait_notifications():
            for name, value in values.items():
                setattr(self, name, value)

    @property
    def still(self) -> Still:
        """The picture and the sentence of the settings, made when they are asked for."""
        now = self.values
        if self._still is None or self._still[0] != now:
            self._still = now, Still(self.draw, now, self._rules, self._size)
        return self._still[1]

    @property
    def message(self) -> str:
        """One sentence on what is seen."""
        return self.still.message

    @property
    def legal(self) -> bool:
        """Whether the settings go together."""
        return all(rule(self.values) is None for rule in self._rules)

    @property
    def offers(self) -> tuple[tuple[str, int], ...]:
        """The nearest legal settings, as (control, value), of an illegal one."""
        misfit = self.still.misfit
        return misfit.offers if misfit else ()

    @property
    def failed(self) -> bool:
        """Whether drawing raised; `message` then says what."""
        return self.still.failed

    @property
    def figure(self) -> Any:
        """The matplotlib figure of the still picture."""
        return self.still.figure

    @property
    def picture(self) -> bytes:
        """The bytes of the still picture, a PNG."""
        return self.still.picture

    def _answer(self, values: dict[str, Any]) -> dict[str, Any] | None:
        """What a student's function does with these settings, for the browser; None: not asked."""
        if self._ask is None or any(rule(values) for rule in self._rules):
            return None
        try:
            found = self._ask(**values)
        except Exception as error:  # would otherwise be seen nowhere
            found = {"failed": True, "message": raised(error), "empty": "no picture: see below"}
        return None if found is None else {**found, "of": self._asked(values)}

    def _asked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name not in self._plays}

    def _moved(self, change: Any) -> None:
        from_browser = bool(self._property_lock)
        for name, leader in () if from_browser else self._follow.items():
            if change["name"] == leader and getattr(self, name) == change["old"]:
                setattr(self, name, change["new"])
        if self._ask is not None and (self.own or {}).get("of") != self._asked(self.values):
            self.own = self._answer(self.values)

    def _unknown(self, name: str) -> str:
        return f"this explorer has no control {name!r}; it has {', '.join(self.names)}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "names" not in self.__dict__:
            raise AttributeError(name)
        raise AttributeError(self._unknown(name))

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        return f"{self.title} ({settings})\n{self.message}"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        shown = super()._repr_mimebundle_(**options) or {}
        data, metadata = shown if isinstance(shown, tuple) else (shown, {})
        return {**data, "text/plain": repr(self), "image/png": self.picture}, metadata


def _offering_within(rule: Rule, edges: Mapping[str, tuple[Any, Any]]) -> Rule:
    """The rule, with no way out that lies beyond a control."""

    def kept(values: Mapping[str, Any]) -> Misfit | None:
        misfit = rule(values)
        return None if misfit is None else misfit.within(edges)

    return kept
