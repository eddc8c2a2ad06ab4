"""A control panel: ipywidgets controls, one matplotlib figure that stays, and a sentence about it.

The figure is drawn into an image, so a panel needs no matplotlib backend and leaves no pyplot
figure behind. Where no front end runs, the panel shows its picture and its sentence.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import ipywidgets as widgets

from ..config import AttentionConfig, nearest_d_model, nearest_n_head
from ..plots.rows import split_bar
from ..plots.style import bare_figure, look, png

Draw = Callable[..., str]


def head_controls(
    n_head: int = 12, d_model: int = 768, *, most_heads: int = 32, most_width: int = 1536
) -> dict[str, widgets.Widget]:
    """The two controls that every lab has: n_head and d_model, as sliders with a number to type in.

    They may stand on an illegal pair; the panel explains it and offers the nearest legal ones.
    """
    return {
        "n_head": slider("n_head", n_head, 1, most_heads, "how many heads"),
        "d_model": slider("d_model", d_model, 8, most_width, "numbers per token"),
    }


def slider(
    name: str, value: float, low: float, high: float, meaning: str, *, step: float = 1
) -> widgets.Widget:
    """A named slider with its number beside it; whole numbers where all that it takes are whole."""
    whole = all(float(part).is_integer() for part in (value, low, high, step))
    kind = widgets.IntSlider if whole else widgets.FloatSlider
    return kind(
        value=value,
        min=low,
        max=high,
        step=step,
        description=name,
        tooltip=f"{name}: {meaning}",
        description_allow_html=False,
        style={"description_width": "80px"},
        layout=widgets.Layout(width="320px"),
    )


def choice(name: str, options: Iterable[Any], meaning: str, *, value: Any = None) -> widgets.Widget:
    """A named list to choose from, words or (words, value) pairs; the first unless `value` says."""
    chosen = {} if value is None else {"value": value}
    return widgets.Dropdown(
        options=list(options),
        description=name,
        tooltip=f"{name}: {meaning}",
        style={"description_width": "80px"},
        layout=widgets.Layout(width="420px"),
        **chosen,
    )


def _side_by_side(controls: Iterable[widgets.Widget]) -> widgets.Box:
    layout = widgets.Layout(flex_flow="row wrap", width="100%", align_items="center")
    return widgets.Box(list(controls), layout=layout)


class Panel:
    """Controls and one picture of what they say.

    Args:
        name: what the panel shows, in a few words; also the picture's alternative text.
        controls: name -> control, in the order in which they stand; every one has a `.value`.
        draw: `draw(figure, **values) -> str` fills the cleared figure from the controls' values and
            returns one sentence that says in words what is seen.
        size: width and height of the figure in inches.
        explicit_head_dim: True where n_head need not divide d_model.

    A control's value reads and writes as an attribute: `panel.n_head`, `panel.n_head = 8`.
    `panel.values` holds them all, `panel.message` the sentence, `panel.picture` the bytes of the
    PNG, `panel.legal` whether the pair of n_head and d_model may be used. With an illegal pair
    `draw` is not called.
    """

    def __init__(
        self,
        name: str,
        controls: Mapping[str, widgets.Widget],
        draw: Draw,
        *,
        size: tuple[float, float] = (7.0, 3.2),
        explicit_head_dim: bool = False,
    ) -> None:
        self.controls = dict(controls)
        self.name, self.draw, self.explicit_head_dim = name, draw, explicit_head_dim
        self.message, self.legal, self.failed, self._held = "", True, False, False
        self.figure = bare_figure(*size)
        self.picture = b""
        self.image = widgets.HTML(layout={"max_width": "100%"})
        self.status = widgets.HTML()
        self.offers = widgets.HBox()
        self.view = widgets.VBox(
            [_side_by_side(self.controls.values()), self.offers, self.image, self.status],
            layout=widgets.Layout(align_items="flex-start"),
        )
        for control in self.controls.values():
            control.observe(self._changed, names="value")
        self.redraw()

    @property
    def values(self) -> dict[str, Any]:
        """What the controls say now, by name."""
        return {name: control.value for name, control in self.controls.items()}

    def set(self, **values: Any) -> None:
        """Move several controls and draw once.

        Raises:
            AttributeError: for a name that is no control.
        """
        for name in values:
            self._control(name)
        with self._hold():
            for name, value in values.items():
                self.controls[name].value = value

    def redraw(self) -> None:
        """Draw what the controls say; an error is shown in the panel, never raised."""
        try:
            with look():
                self.figure.clear()
                self.message = self._picture()
            self.failed = False
        except Exception as error:  # an error in a callback would otherwise be seen nowhere
            self.failed = True
            self.message = f"This setting raised {type(error).__name__}: {error}"
            self.figure.clear()
            self.figure.text(0.02, 0.5, "no picture: see the sentence below", fontsize=11)
        self._show()

    def _picture(self) -> str:
        pair = self._illegal_pair()
        self.legal = pair is None
        if pair is None:
            self.offers.children = ()
            return str(self.draw(self.figure, **self.values))
        d_model, n_head, why = pair
        split_bar(d_model, n_head, ax=self.figure.add_subplot(), title="These heads don't fit")
        self._offer("d_model", nearest_d_model(d_model, n_head), "n_head", n_head)
        self._offer("n_head", nearest_n_head(d_model, n_head), "d_model", d_model)
        return f"Not allowed: {why}."

    def _illegal_pair(self) -> tuple[int, int, str] | None:
        if self.explicit_head_dim or not {"n_head", "d_model"} <= set(self.controls):
            return None
        d_model, n_head = self.controls["d_model"].value, self.controls["n_head"].value
        try:
            AttentionConfig(d_model, n_head)
        except ValueError as error:
            return d_model, n_head, str(error)
        return None

    def _offer(self, name: str, legal: tuple[int, ...], other: str, kept: int) -> None:
        control = self.controls[name]
        low, high = getattr(control, "min", 1), getattr(control, "max", max(legal))
        buttons = [] if name == "d_model" else list(self.offers.children)
        for value in (v for v in legal if low <= v <= high):
            words = f"set {name} to {value}; {other} stays {kept}"
            button = widgets.Button(description=f"{name} = {value}", tooltip=words)
            button.on_click(lambda _, value=value: self.set(**{name: value}))
            buttons.append(button)
        self.offers.children = tuple(buttons)

    def _show(self) -> None:
        self.picture = png(self.figure)
        self.image.value = self._image_tag()
        colour = "var(--jp-error-color1, #a11d2c)" if self.failed or not self.legal else "inherit"
        said = html.escape(self.message).replace("\n", "<br>")
        self.status.value = (
            f'<div role="status" style="color:{colour};line-height:1.5">{said}</div>'
        )

    def _image_tag(self) -> str:
        """An image element with an alternative text, which ipywidgets' own Image doesn't carry."""
        width, height = self.figure.canvas.get_width_height()
        data = base64.b64encode(self.picture).decode("ascii")
        alt = html.escape(f"{self.name}. {self.message}")
        return (
            f'<img alt="{alt}" width="{width}" height="{height}" decoding="sync" '
            f'style="max-width:100%;height:auto" src="data:image/png;base64,{data}">'
        )

    def _changed(self, _change: object) -> None:
        if not self._held:
            self.redraw()

    @contextmanager
    def _hold(self) -> Iterator[None]:
        object.__setattr__(self, "_held", True)
        try:
            yield
        finally:
            object.__setattr__(self, "_held", False)
            self.redraw()

    def _control(self, name: str) -> widgets.Widget:
        controls = self.__dict__.get("controls", {})
        if name in controls:
            return controls[name]
        known = ", ".join(controls) or "none yet"
        raise AttributeError(f"this panel has no control {name!r}; it has {known}")

    def __getattr__(self, name: str) -> Any:
        return self._control(name).value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("controls", {}):
            self.controls[name].value = value
        else:
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        return f"{self.name} ({settings})\n{self.message}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        view = self.view._repr_mimebundle_() or {}
        bundle = view[0] if isinstance(view, tuple) else view
        return {**bundle, "text/plain": repr(self), "image/png": self.picture}
