"""Traces of the ladder's kernels, recorded for machines without a compiler.

recorded.trace("scores_tiled")   # the same Trace that k.trace[grid, block](...) returns
recorded.sizes("scores_tiled")   # {"n_q": 256, "n_k": 256, "head_dim": 64}

`python -m labs_lib.cuda.recorded [NAME...]` makes them anew. A file holds no source: that comes
from the kernel's own file, and where this copy of the course keeps the kernel back, it is blank.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from labs_lib import paths
from labs_lib.cuda.ladder import Rung, rung
from labs_lib.cuda.trace import Trace
from labs_lib.cuda.trials import trial
from labs_lib.notebook.atomic import write_bytes
from labs_lib.withheld import Withheld

MAKE = "python -m labs_lib.cuda.recorded"
_SCORES = {"n_q": 256, "n_k": 256, "head_dim": 64}
_ROWS, _MATRIX = {"rows": 64, "cols": 256}, {"rows": 64, "cols": 96}
_HEADS = {"batch": 1, "n_head": 12, "n_q": 64, "n_k": 64, "head_dim": 64, "causal": 0}
RECORDED: dict[str, Mapping[str, int]] = {
    "scores_naive": _SCORES,
    "scores_coalesced": _SCORES,
    "scores_tiled": _SCORES,
    "scores_register_tiles": _SCORES,
    "scores_tensor_cores": _SCORES,
    "softmax_rows": _ROWS,
    "softmax_rows_warp": _ROWS,
    "transpose_naive": _MATRIX,
    "transpose_tiled": _MATRIX,
    "transpose_without_conflicts": _MATRIX,
    "attention_per_head_blocks": _HEADS,
}
STEPS = 6_000  # accesses of the first block that a file keeps


def trace(name: str) -> Trace:
    """The recorded trace of a rung of the ladder.

    Raises: KeyError for an unknown name; FileNotFoundError or ValueError for a file that is
    missing, damaged, or made from another version of the kernel, with the command that makes it.
    """
    path = file_of(name)
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; `{MAKE} {name}` makes it anew")
    try:
        data = json.loads(gzip.decompress(path.read_bytes()).decode("utf-8"))
        source = _source(name, data.pop("source_sha256"), data.pop("source_lines"))
        return Trace.from_dict({**data, "source": source})
    except (OSError, EOFError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} can't be used ({error}); `{MAKE} {name}` makes it anew") from None


def sizes(name: str) -> dict[str, int]:
    """The sizes at which a rung was recorded."""
    if name not in RECORDED:
        raise KeyError(f"no recorded trace {name!r}; there are: {', '.join(RECORDED)}")
    return dict(RECORDED[name])


def fresh(name: str) -> Trace:
    """The trace that is recorded, made now. Raises: BuildError without a compiler."""
    one: Rung = rung(name)
    launch = one.compile().trace.steps(most=STEPS)[one.geometry(sizes(name))]
    return launch(*trial(one, sizes(name)).arguments)


def file_of(name: str) -> Path:
    """Where a recorded trace lies."""
    sizes(name)
    return paths.data() / "traces" / f"{name}.json.gz"


def write(name: str, made: Trace) -> Path:
    """Writes a trace to its file: the same bytes for the same trace."""
    data = made.to_dict()
    source = data.pop("source")
    data |= {"source_sha256": _hash(source), "source_lines": source.count("\n") + 1}
    text = json.dumps(data, separators=(",", ":"))
    path = file_of(name)
    packed = gzip.compress(text.encode("utf-8"), 9, mtime=0)
    # Byte 9 names a system: Python's versions and systems differ in it, and no reader asks.
    write_bytes(path, packed[:9] + b"\x03" + packed[10:])
    return path


def main(names: list[str]) -> int:
    """Makes all traces anew, or those that are named."""
    for name in names or list(RECORDED):
        path = write(name, fresh(name))
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    return 0


def _source(name: str, known: str, lines: int) -> str:
    try:
        source = rung(name).source
    except Withheld:
        return "\n" * (lines - 1)
    if _hash(source) != known:
        raise ValueError("the kernel's file has changed since")
    return source


def _hash(source: str) -> str:
    return hashlib.sha256(source.encode("utf-8")).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
