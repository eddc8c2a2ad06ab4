"""Answer regions: what stands between `# BEGIN SOLUTION` and `# END SOLUTION` in a source cell.

In CUDA cells the markers are `// BEGIN SOLUTION` and `// END SOLUTION`.
"""

from __future__ import annotations

import re

_BEGIN = re.compile(r"^\s*(#|//)\s*BEGIN SOLUTION\s*$")
_END = re.compile(r"^\s*(#|//)\s*END SOLUTION\s*$")


class RegionError(ValueError):
    """Markers that don't pair up; the message names the line."""


def has_region(source: str) -> bool:
    """Whether a cell's text has an answer region (or a stray marker of one)."""
    return any(_BEGIN.match(line) or _END.match(line) for line in source.split("\n"))


def split_region(source: str) -> tuple[str, str, str]:
    """The text before the region, the region without its markers, and the text after it.

    Raises:
        RegionError: if there isn't exactly one `BEGIN SOLUTION` followed by one `END SOLUTION`.
    """
    lines = source.split("\n")
    begins = [i for i, line in enumerate(lines) if _BEGIN.match(line)]
    ends = [i for i, line in enumerate(lines) if _END.match(line)]
    if len(begins) != 1 or len(ends) != 1 or begins[0] > ends[0]:
        raise RegionError(
            f"found {len(begins)} BEGIN SOLUTION (lines {[i + 1 for i in begins]}) and {len(ends)} "
            f"END SOLUTION (lines {[i + 1 for i in ends]}); an answer cell has one of each"
        )
    begin, end = begins[0], ends[0]
    return (
        "\n".join(lines[:begin]),
        "\n".join(lines[begin + 1 : end]),
        "\n".join(lines[end + 1 :]),
    )


def replace_region(source: str, stub: str) -> str:
    """The cell's text with the stub in place of the region and its markers.

    A stub that begins with a cell magic (`%%cuda`) brings its own first line.
    """
    before, _, after = split_region(source)
    if stub.startswith("%%") and before.lstrip().startswith("%%"):
        before = before.lstrip().partition("\n")[2]
    return "\n".join(part for part in (before, stub.strip("\n"), after) if part.strip())


def strip_markers(source: str) -> str:
    """The cell's text without the marker lines."""
    lines = [x for x in source.split("\n") if not (_BEGIN.match(x) or _END.match(x))]
    return "\n".join(lines)
