"""What the browser tests do with an explorer on the page: find it, read it, wait, put it back."""

from __future__ import annotations

import time

from explorer_table import EXPLORERS


def shown(notebook, row):
    return notebook.explorer(EXPLORERS.index(row))


def knob(explorer, name):
    return explorer.get_by_label(name, exact=True)


def sentence(explorer):
    return explorer.get_by_role("status").text_content().strip()


def soon(found, wanted, seconds=5.0):
    """What `found()` gives, once it is `wanted` or the time is up."""
    end = time.monotonic() + seconds
    while (got := found()) != wanted and time.monotonic() < end:
        time.sleep(0.05)
    return got


def back_to_the_first_setting(notebook, row):
    code = f"w_{row.name}.set(**{{s['name']: v for s, v in zip(w.knobs, first)}})"
    notebook.python(f"w = w_{row.name}\nfirst = [s['first'] for s in w.knobs]\n{code}")
