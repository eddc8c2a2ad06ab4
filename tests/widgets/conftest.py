"""Tests of panels begin without a figure of pyplot's that another test left open."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def _no_figure_is_left():
    yield
    plt.close("all")
