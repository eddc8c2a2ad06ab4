"""One JupyterLab, one Chromium and one notebook with every explorer, for all browser tests."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from explorer_table import EXPLORERS

from labs_lib.bench import browser

KEPT = Path(__file__).parents[2] / "build" / "explorers"


def pytest_collection_modifyitems(items):
    """What is asked of each explorer is asked of one after the other, as long as a kernel is there.

    A page of thirty explorers is scrolled once then, not once for each test.
    """
    mine = [i for i, item in enumerate(items) if _asks_one_with_a_kernel(item)]
    order = sorted(mine, key=lambda i: EXPLORERS.index(items[i].callspec.params["row"]))
    for place, item in zip(mine, [items[i] for i in order], strict=True):
        items[place] = item


def _asks_one_with_a_kernel(item):
    here = item.path.name == "test_explorers_in_jupyterlab.py" and "row" in item.fixturenames
    return here and "without_a_kernel" not in item.fixturenames


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
