"""What a warp does in one instruction, in words."""

from __future__ import annotations

from ..cuda.accesses import SECTOR, Request


def where_words(request: Request, step: int, steps: int, block: tuple[int, int, int]) -> str:
    """Which step of which warp it is; `block` is how many threads a block has, x, y and z."""
    first = min(request.lanes)
    thread = _thread(request.warp * 32 + first, block)
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
    start = f"{line} {verb} {site.name}: {counted(len(request.lanes), 'lane')} of {size} bytes"
    if not site.shared:
        wanted, fetched = _bytes(request), SECTOR * len(request.sectors)
        return (
            f"{start}; {counted(len(request.sectors), 'sector')} of {SECTOR} bytes, "
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


def _thread(linear: int, block: tuple[int, int, int]) -> str:
    x, y = linear % block[0], linear // block[0] % block[1]
    parts = (x, y, linear // (block[0] * block[1]))
    used = max((i + 1 for i, size in enumerate(block) if size > 1), default=1)
    return str(x) if used == 1 else str(parts[:used])


def counted(n: int, word: str) -> str:
    """ "1 sector", "4 sectors", "2 passes"."""
    many = f"{word}es" if word.endswith("s") else f"{word}s"
    return f"{n} {word if n == 1 else many}"
