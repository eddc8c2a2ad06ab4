"""One look for all figures: white paper, dark text, cividis, colours that all can tell apart."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

DPI = 100
COLOURS = ("#00449e", "#b85500", "#00795c", "#8a3f8f", "#5c5c5c", "#a11d2c")
"""Line and bar colours, in order; each has a contrast of at least 4.5 on white."""
MARKERS = ("o", "s", "^", "D", "v", "P")
INK, FAINT = "#1b1b1b", "#d9d9d9"
COLOUR_MAP = "cividis"

_LOOK: dict[RcKeyType, Any] = {
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "figure.constrained_layout.use": True,
    "axes.facecolor": "white",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.labelsize": 10,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=COLOURS),
    "lines.linewidth": 1.8,
    "hatch.linewidth": 0.6,
    "hatch.color": "#8c8c8c",
    "image.cmap": COLOUR_MAP,
}


def ink_on(colour: Sequence[float]) -> str:
    """White or INK, whichever stands out more on a colour [red, green, blue, ...] from 0 to 1."""
    luminance = np.power(colour[:3], 2.2) @ [0.2126, 0.7152, 0.0722]
    return "white" if luminance < 0.18 else INK


def look() -> AbstractContextManager[None]:
    """The course's look, for matplotlib artists made inside the `with` block."""
    return matplotlib.rc_context(_LOOK)


def figure(
    width: float = 7.0, height: float = 3.0, *, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, Any]:
    """A pyplot figure of that size in inches, with axes, for a cell that ends in `plt.show()`.

    `options` go to `plt.subplots`.
    """
    import matplotlib.pyplot as plt

    with look():
        return plt.subplots(rows, columns, figsize=(width, height), **options)


def bare_figure(width: float = 7.0, height: float = 3.0) -> Figure:
    """A figure that pyplot doesn't know, so that nothing has to be closed: for widgets."""
    with look():
        fig = Figure(figsize=(width, height), layout="tight")
        FigureCanvasAgg(fig)
        return fig


def png(fig: Figure) -> bytes:
    """The figure as the bytes of a PNG file, at its own dots per inch, drawn once."""
    with look():
        canvas = fig.canvas if isinstance(fig.canvas, FigureCanvasAgg) else FigureCanvasAgg(fig)
        canvas.draw()
    stream = io.BytesIO()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    picture.save(stream, format="png", compress_level=1)
    return stream.getvalue()


def numbers(values: Any) -> np.ndarray:
    """Plain floating-point numbers of a tensor (also one that needs a gradient), array or list."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    return np.asarray(values, dtype=np.float64)


def axes_for(ax: Axes | None, width: float, height: float) -> Axes:
    """The given axes, or the axes of a new notebook figure."""
    return figure(width, height)[1] if ax is None else ax
