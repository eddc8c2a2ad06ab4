"""The structs of host/runner/report.h, field by field, as numpy reads them."""

from __future__ import annotations

import numpy as np

MAX_ARGS, MAX_REGIONS, MAX_FINDINGS, MAX_SITES, MAX_TEXT, MAX_NAMES = 64, 32, 64, 2048, 65536, 64
MAX_EVENTS, MAX_WATCHED = 65536, 8
SHARED = MAX_REGIONS
REPORT_AT = 16384


def _struct(*fields) -> np.dtype:
    return np.dtype(list(fields), align=True)


ARG = _struct(("pointer", "u4"), ("region", "u4"), ("value", "u8"))
REGION = _struct(
    *((n, "u8") for n in ("file", "address", "start", "size", "span")),
    ("writable", "u4"),
    ("kind", "u4"),
    ("seen", "u8"),
    ("unit", "u4"),
    ("bin", "u4"),
    ("phase", "u8"),
)
REQUEST = _struct(
    *((n, "u4") for n in ("trace", "workers", "n_args", "n_regions", "rounds")),
    ("grid", "u4", 3),
    ("block", "u4", 3),
    *((n, "u8") for n in ("milliseconds", "dynamic_shared", "static_limit", "shared_limit")),
    *((n, "u8") for n in ("reserve", "group_budget", "seen_file", "seen_size")),
    *((n, "u4") for n in ("n_watched", "most_events")),
    ("watched", "u8", MAX_WATCHED),
    ("args", ARG, MAX_ARGS),
    ("regions", REGION, MAX_REGIONS),
)
PLACE = _struct(("thread", "u4", 3), ("block", "u4", 3))
FAULT = _struct(
    ("kind", "u4"),
    ("region", "i4"),
    ("pc", "u8"),
    ("offset", "i8"),
    *((n, "u4") for n in ("size", "write", "line", "other_line")),
    ("at", PLACE),
    ("other", PLACE),
    ("text", "S160"),
)
FINDING = _struct(
    ("kind", "u4"),
    ("region", "i4"),
    ("pc_a", "u8"),
    ("pc_b", "u8"),
    ("offset", "i8"),
    *((n, "u4") for n in ("size", "count", "how", "same")),
    ("a", PLACE),
    ("b", PLACE),
)
SITE = _struct(
    ("pc", "u8"),
    ("region", "i4"),
    ("how", "u4"),
    *((n, "u8") for n in ("count", "bytes", "requests", "sectors", "wavefronts", "moved")),
)
TOTAL = _struct(("read", "u8"), ("written", "u8"), ("atomic", "u8"))
NAME = _struct(("name", "S48"), ("offset", "u8"), ("size", "u8"))
EVENT = _struct(
    *((n, "u4") for n in ("site", "offset", "size", "turn")),
    *((n, "u2") for n in ("thread", "step")),
    ("watched", "u4"),
)
SEEN = _struct(
    *((n, "u4") for n in ("reads", "writes", "block")),
    *((n, "u2") for n in ("thread", "many")),
    ("framed", "u4"),
)
REPORT = _struct(
    *((n, "u4") for n in ("done", "n_findings", "n_sites", "text_length", "n_names")),
    *((n, "u4") for n in ("grouped_blocks", "n_events", "cut")),
    *((n, "u8") for n in ("base", "barriers", "shared_used")),
    ("nanoseconds", "u8"),
    ("fault", FAULT),
    ("totals", TOTAL, MAX_REGIONS + 1),
    ("findings", FINDING, MAX_FINDINGS),
    ("sites", SITE, MAX_SITES),
    ("names", NAME, MAX_NAMES),
    ("events", EVENT, MAX_EVENTS),
    ("text", "u1", MAX_TEXT),
)
OFFSET = {name: at for name, (_, at, *_) in (REPORT.fields or {}).items()}
# Which field says how many entries of a table are in use.
COUNTS = {"sites": "n_sites", "names": "n_names", "events": "n_events", "text": "text_length"}
assert REQUEST.itemsize <= REPORT_AT
