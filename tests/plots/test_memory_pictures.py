"""Pictures of memory show the true distances and refuse what nobody could read."""

from __future__ import annotations

import pytest
import torch

from labs_lib.plots.stride_walk import stride_walk
from labs_lib.plots.style import bare_figure


def test_the_walks_are_the_strides_of_a_split_tensor():
    _, head, token, number = torch.empty(1, 2, 3, 4).transpose(1, 2).stride()
    ax = stride_walk(2, 3, 4, ax=bare_figure().add_subplot())
    words = [text.get_text() for text in ax.texts]
    assert f"number +{number}" in words
    assert f"head +{head}" in words
    assert f"token +{token}" in words


@pytest.mark.parametrize("sizes", [(2, 12, 64), (1, 2, 4), (2, 1, 4), (2, 2, 1)])
def test_sizes_that_can_not_be_drawn_are_refused_by_name(sizes):
    with pytest.raises(ValueError, match="n_head="):
        stride_walk(*sizes)
