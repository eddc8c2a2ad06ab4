"""Figures say what they show: numbers in cells, names on axes, one look, nothing left open."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from labs_lib import plots
from labs_lib.plots.style import png


def texts(ax):
    return [text.get_text() for text in ax.texts]


@pytest.fixture
def ax():
    return plots.bare_figure().add_subplot()


def test_heatmap_writes_every_number_and_names_both_axes(ax):
    grid = torch.tensor([[0.25, 0.75], [1.0, -0.001]], requires_grad=True)
    plots.heatmap(grid, rows="query", columns="key", title="a title", ax=ax)
    assert texts(ax) == ["0.25", "0.75", "1.00", "0.00"]
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("query", "key")
    assert ax.get_title(loc="left") == "a title"


def test_heatmap_hatches_what_the_mask_hides_and_gives_it_no_number(ax):
    mask = torch.tensor([[True, False], [True, True]])
    plots.heatmap([[1, 2], [3, 4]], mask=mask, decimals=0, ax=ax)
    assert texts(ax) == ["1", "3", "4"]
    assert [patch.get_hatch() for patch in ax.patches] == ["////"]


def test_heatmap_numbers_are_readable_on_their_own_colour(ax):
    grid = np.linspace(0, 1, 30).reshape(3, 10)
    plots.heatmap(grid, ax=ax)
    picture = ax.images[0]
    for text, value in zip(ax.texts, grid.ravel(), strict=True):
        paper = picture.cmap(picture.norm(value))[:3]
        assert contrast(to_rgb(text.get_color()), paper) >= 3.5, value


def test_heatmap_survives_one_value_minus_infinity_and_a_large_grid(ax):
    plots.heatmap([[3.0]], ax=ax)
    plots.heatmap(torch.full((2, 2), -torch.inf), ax=plots.bare_figure().add_subplot())
    big = plots.heatmap(np.zeros((100, 100)), ax=plots.bare_figure().add_subplot())
    assert not texts(big)
    assert png(ax.figure).startswith(b"\x89PNG")


def test_heatmap_refuses_what_is_no_matrix_and_says_the_shape(ax):
    with pytest.raises(ValueError, match=r"\[2, 2, 2\]"):
        plots.heatmap(np.zeros((2, 2, 2)), ax=ax)
    with pytest.raises(ValueError, match="mask has shape"):
        plots.heatmap(np.zeros((2, 2)), mask=[True, False], ax=ax)


def test_weights_row_shows_percent_on_each_bar_and_hatches_closed_keys(ax):
    plots.weights_row([0.25, 0.75, 0.0], mask=[True, True, False], labels="abc", ax=ax)
    assert texts(ax) == ["25.0", "75.0"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]
    assert ax.get_ylabel() == "weight (%)"
    with pytest.raises(ValueError, match="one row"):
        plots.weights_row(np.zeros((2, 2)), ax=ax)
    with pytest.raises(ValueError, match=r"mask has shape \[2\], the weights \[3\]"):
        plots.weights_row([0.25, 0.75, 0.0], mask=[True, False], ax=ax)


@pytest.mark.parametrize(("d_model", "n_head"), [(768, 12), (770, 12), (3, 7), (1, 1), (512, 512)])
def test_split_bar_draws_legal_and_illegal_pairs(d_model, n_head, ax):
    plots.split_bar(d_model, n_head, ax=ax)
    widths = sum(patch.get_width() for patch in ax.patches)
    assert widths == d_model
    left = d_model % n_head
    assert (f"{left} left over" in " ".join(texts(ax))) == bool(left)


def test_curves_draws_a_band_for_a_spread_and_a_legend_for_several_lines(ax):
    series = {"one head": ([1, 2], [0.5, 1.5], [1.5, 2.5]), "two heads": [2, 3]}
    plots.curves([1, 2], series, x_label="tokens", y_label="loss (nats)", baseline=(1, "a"), ax=ax)
    assert len(ax.collections) == 1
    assert len(ax.get_legend().get_texts()) == 3
    with pytest.raises(ValueError, match="one value for each x"):
        plots.curves([1, 2, 3], {"short": [1]}, x_label="x", y_label="y", ax=ax)


def test_curves_takes_a_tuple_of_three_numbers_for_a_line_and_not_for_a_spread(ax):
    plots.curves((1, 2, 3), {"line": (4, 5, 6)}, x_label="x", y_label="y", ax=ax)
    assert list(ax.lines[0].get_ydata()) == [4, 5, 6]


def test_curves_draws_a_line_dashed_where_another_lies_below_it(ax):
    plots.curves([1, 2], {"a": [1, 2], "b": [1, 2]}, dashed=("b",), x_label="x", y_label="y", ax=ax)
    assert [line.get_linestyle() for line in ax.lines] == ["-", "--"]


def test_curves_labels_every_measured_place_of_a_log_axis(ax):
    plots.curves([1, 16, 96], {"a": [1, 2, 3]}, x_label="x", y_label="y", log_x=True, ax=ax)
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "16", "96"]


def test_line_colours_are_readable_on_white():
    for colour in plots.COLOURS:
        assert contrast(to_rgb(colour), (1, 1, 1)) >= 4.5, colour


def test_drawing_leaves_no_figure_open_and_the_settings_as_they_were():
    plt.close("all")  # other tests of the same process may have left one
    before = dict(plt.rcParams)
    plots.heatmap(np.eye(3), ax=plots.bare_figure().add_subplot())
    assert plt.get_fignums() == []
    assert dict(plt.rcParams) == before
    fig, axes = plots.figure(columns=2)
    assert len(axes) == 2
    plt.close(fig)


def contrast(one, other):
    """The contrast ratio of two colours as WCAG 2 defines it."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour):
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
