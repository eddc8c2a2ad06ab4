"""pytest plugin: under nbval, a check that doesn't pass fails its cell.

It sets an environment variable that the notebook's kernel inherits; `labs_lib.checking.check`
raises when it finds it. Imports nothing heavy, since every pytest run in the environment loads it.
"""

from __future__ import annotations

import os

VARIABLE = "LABS_NBVAL"


def pytest_configure(config) -> None:
    """Switch raising on where nbval runs notebooks in this session."""
    if getattr(config.option, "nbval", False) or getattr(config.option, "nbval_lax", False):
        os.environ[VARIABLE] = "1"


def pytest_unconfigure(config) -> None:
    """Switch raising off again."""
    os.environ.pop(VARIABLE, None)
