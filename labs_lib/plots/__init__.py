"""What a student looks at: figures from plain tensors, all with one look.

    style.py      the look: `figure` for notebook cells, `bare_figure` for widgets
    grids.py      `heatmap`: a matrix with its numbers in the cells and its axes named
    rows.py       `weights_row` (one softmax row as bars) and `split_bar` (a width cut into heads)
    lines.py      `curves`: lines over one axis, with the spread of several runs
    byte_map.py   `byte_map`: memory, each place coloured by the head that reads it
    stride_walk.py   `stride_walk`: a strip of memory, and how far the next index of an axis lies
    memory_rows.py   `memory_rows`: rows of 128 bytes, and the lanes of a warp that touch them

Every function draws into `ax` where one is given, else into a new notebook figure, and returns
the axes.
"""

from .grids import heatmap
from .lines import curves
from .rows import split_bar, weights_row
from .style import COLOURS, bare_figure, figure, look, numbers

__all__ = [
    "COLOURS",
    "bare_figure",
    "curves",
    "figure",
    "heatmap",
    "look",
    "numbers",
    "split_bar",
    "weights_row",
]
