"""What a warp does in one instruction, in words."""

from __future__ import annotations

from ..cuda.accesses import SECTOR, WARP, Request, place_of
from ..cuda.words import many, place_words


def where_words(request: Request, step: int, steps: int, block: tuple[int, int, int]) -> str:
    """Which step of which warp it is; `block` is how many threads a block has, x, y and z."""
    first = min(request.lanes)
    thread = place_words(place_of(request.warp * WARP + first, block), block)
    barriers = {0: "before any barrier", 1: "after 1 barrier"}
    when = barriers.get(request.step, f"after {request.step} barriers")
    return (
        f"Step {step:,} of {steps:,} of warp {request.warp} in block "
        f"{request.block}, {when}; lane {first} is thread {thread}."
    )


def what_words(request: Request) -> str:
    """Which line touches what, and what that moves or how often the banks are visited."""
    site, size = request.site, request.size
    line = f"Line {site.line}" if site.line else "A line that isn't known"
    verb = {"read": "reads", "write": "writes"}.get(site.what, "changes in one piece")
    start = f"{line} {verb} {site.name}: {many(len(request.lanes), 'lane')} of {size} bytes"
    if not site.shared:
        wanted, fetched = _bytes(request), SECTOR * len(request.sectors)
        return (
            f"{start}; {many(len(request.sectors), 'sector')} of {SECTOR} bytes, "
            f"{fetched} bytes moved for {wanted} wanted."
        )
    banks = request.clashes
    worst = max(banks, key=banks.__getitem__)
    if request.passes == 1:
        return f"{start}; one pass through the banks, no two words of one bank."
    if banks[worst] == 1:
        return f"{start}; {request.passes} passes, as lanes of {size} bytes go by parts of a warp."
    return f"{start}; {request.passes} passes: {banks[worst]} different words lie in bank {worst}."


def _bytes(request: Request) -> int:
    """How many different bytes the lanes want."""
    return len({at + i for at in request.lanes.values() for i in range(request.size)})
