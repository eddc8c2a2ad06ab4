"""One JupyterLab, one Chromium and one notebook with every explorer, for all browser tests."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from explorer_table import EXPLORERS

from labs_lib.bench import browser

KEPT = Path(__file__).parents[2] / "build" / "explorers"


@pytest.fixture(scope="session")
def kept():
    """A folder for pictures and figures that a person looks at after the tests."""
    KEPT.mkdir(parents=True, exist_ok=True)
    return KEPT


@pytest.fixture(scope="session")
def chromium():
    if browser.missing():
        pytest.skip(f"no browser can be driven here: {browser.missing()}")
    with browser.browsing() as running:
        yield running


@pytest.fixture(scope="session")
def lab(tmp_path_factory, chromium):
    """A folder and the address of the JupyterLab that serves it."""
    folder = tmp_path_factory.mktemp("lab")
    with browser.served(folder) as address:
        yield folder, address


@pytest.fixture(scope="session")
def notebook(chromium, lab):
    """A notebook in which every explorer stands below a cell of its own, already run."""
    folder, address = lab
    cells = [row.cell for row in EXPLORERS]
    opened = browser.Notebook(chromium, address, folder, "explorers.ipynb", cells)
    opened.run()
    yield opened
    opened.page.close()


@pytest.fixture(scope="session")
def latencies(kept):
    """name -> milliseconds from a key to the painted frame; written down at the end."""
    found: dict[str, list[float]] = {}
    yield found
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    data = {"load": load, "milliseconds": found}
    (kept / "latencies.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
