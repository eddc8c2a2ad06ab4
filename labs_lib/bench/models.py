"""The two pretrained models: what a notebook waits for when it loads one."""

from __future__ import annotations

from functools import partial

from labs_lib.bench.rows import Row, Unavailable
from labs_lib.bench.timing import median_seconds
from labs_lib.models import available, load

NAMES, WITHIN = ("minilm", "smollm2"), 3.0


def rows() -> list[Row | str]:
    """Seconds until each model that is here stands in memory, after the first time.

    Raises: Unavailable where none is here.
    """
    here = [name for name in NAMES if available(name)]
    if not here:
        raise Unavailable("it needs a model, and there is none here (`labs models get`).")
    return [
        Row(f"{name}, loaded", median_seconds(partial(load, name), repeats=5), within=WITHIN)
        for name in here
    ]
