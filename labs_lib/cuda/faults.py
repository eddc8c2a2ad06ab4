"""Says what stopped a kernel, in words: what, which thread of which block, which line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from labs_lib.cuda.errors import KernelFault
from labs_lib.cuda.indices import array_at
from labs_lib.cuda.layout import SHARED
from labs_lib.cuda.lines import lines_of
from labs_lib.cuda.rewrite import rewrite

KINDS = [
    "none", "timeout", "wild-pointer", "stack-overflow", "division-by-zero", "illegal", "stopped",
    "barrier", "warp-barrier", "shared-memory", "out-of-bounds", "guard", "mask", "start",
    "misaligned", "index",
]  # fmt: skip
SHARED_MEMORY = "shared memory"


def explain(report, code: int, regions, library: Path, source: str, trace: bool) -> KernelFault:
    """The KernelFault for a run that did not come to its end."""
    fault = report["fault"]
    kind = KINDS[fault["kind"]] if fault["kind"] < len(KINDS) else "none"
    if kind == "none":
        return KernelFault(
            f"The kernel's process ended without a word (code {code}); most likely it was killed "
            "for its memory, or wrote over memory that is not its own.",
            kind="killed",
        )
    pc = int(fault["pc"])
    at = pc if fault["size"] <= 1 and kind not in ("out-of-bounds", "misaligned") else pc - 1
    lines = source.split("\n")
    line = int(fault["line"]) or (lines_of(library, [at], len(lines)).get(at) if pc else None)
    touched = _touched(regions, int(fault["region"]), int(fault["offset"]))
    if kind == "wild-pointer" and int(fault["region"]) >= 0:
        kind = "out-of-bounds"
    text = _index(fault, source) if kind == "index" else _WORDS[kind](fault, touched)
    kind = "out-of-bounds" if kind == "index" else kind
    unknown = kind in ("start", "guard")
    thread, block = (None, None) if unknown else (places(fault["at"]))
    where = [] if unknown else [f"thread {thread}", f"block {block}"]
    if line:
        where.insert(0, f"line {line}")
    message = f"{text}\n  at {', '.join(where)}" if where else text
    if line and line <= len(lines):
        message += f":\n    {lines[line - 1].strip()}"
    if not trace and kind in ("guard", "wild-pointer"):
        message += "\nk.trace[grid, block](...) finds the line."
    return KernelFault(message, kind=kind, thread=thread, block=block, line=line)


def places(place: np.ndarray) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Thread and block of a place, as tuples (x, y, z)."""
    return tuple(map(int, place["thread"])), tuple(map(int, place["block"]))


class Element(NamedTuple):
    """An argument, the element `at` of it, and how many elements it has."""

    name: str
    at: int
    count: int


def element(region, offset: int) -> Element:
    """The argument and the element of it that stand at an offset of a region."""
    address, best = region.low + offset, 0
    for i, tensor in enumerate(region.tensors):
        size = tensor.numel() * tensor.element_size()
        if tensor.data_ptr() <= address < tensor.data_ptr() + size:
            best = i
            break
    tensor = region.tensors[best]
    at = (address - tensor.data_ptr()) // tensor.element_size()
    return Element(region.names[best], at, tensor.numel())


def _touched(regions, index: int, offset: int) -> Element:
    """What an offset lies in or near; without a name where it is no memory of the launch."""
    if 0 <= index < len(regions):
        return element(regions[index], offset)
    return Element(SHARED_MEMORY if index == SHARED else "", offset, 0)


def _timeout(f, where) -> str:
    return (
        "The kernel used up its time and was stopped. Look for a loop that never ends, or for a "
        "write past the end of an array of the thread's own, which may hit the loop's counter "
        "(LABS_CUDA_SECONDS allows more)."
    )


def _bounds(f, where) -> str:
    verb = "writes" if f["write"] else "reads"
    if not where.name:
        return _wild(f, where)
    if where.name == SHARED_MEMORY:
        return f"A thread {verb} outside of its shared arrays."
    return f"A thread {verb} {_beyond(where)}"


def _beyond(element: Element) -> str:
    name, at, count = element
    how = f"{-at} before its start" if at < 0 else f"{at - count + 1} past its last element"
    return f"{name}[{at}], {how} ({name} has {count} elements)."


def _index(f, source: str) -> str:
    """The sentence for an index outside of an array that the kernel declares."""
    kind = f["text"].decode(errors="replace")  # 'float [4][8]'
    lengths = [int(n) for n in re.findall(r"\[(\d+)\]", kind)]
    count = lengths[0] if lengths else 0
    place = int(f["line"]), int(f["other_line"])
    name = array_at(rewrite(source, trace=True), *place, len(lengths))
    if not name:
        return f"A thread uses index {int(f['offset'])} of an array that has {count} elements."
    return f"A thread uses {_beyond(Element(name, int(f['offset']), count))}"


def _wild(f, where) -> str:
    verb = "writes to" if f["write"] else "reads from"
    at = int(f["offset"]) & (2**64 - 1)
    null = " (a null pointer: is a tensor empty?)" if at < 4096 else ""
    return (
        f"A thread {verb} address {at:#x}, which belongs to no tensor{null}. Has an index gone "
        "beyond the end of an array of the thread's own?"
    )


def _barrier(f, where) -> str:
    other, _ = places(f["other"])
    if f["text"] == b"sites":
        return (
            f"Threads of one block wait at different barriers: thread {other} came to the "
            f"__syncthreads() of line {int(f['other_line'])}. Every thread must reach the same one."
        )
    return (
        f"Threads wait at a __syncthreads() that thread {other} never reaches: it has ended. On a "
        "GPU this is undefined. Don't return, and don't branch, before a barrier."
    )


def _warp(f, where) -> str:
    other, _ = places(f["other"])
    mask = int(f["offset"]) & 0xFFFFFFFF
    what = {
        b"ended": "has ended",
        b"barrier": f"waits at the barrier of line {int(f['other_line'])}",
        b"sites": f"is at another warp operation, in line {int(f['other_line'])}",
    }.get(bytes(f["text"]), "uses another mask")
    return (
        f"A warp operation with mask {mask:#010x} waits for lanes that don't come: thread {other} "
        f"{what}. All lanes of the mask must call it together."
    )


def _shared_limit(f, where) -> str:
    what = "static shared memory" if f["write"] else "shared memory"
    return (
        f"A block needs {int(f['offset'])} bytes of {what}, at most {int(f['size'])} are there; "
        f"`{f['text'].decode()}` no longer fits. Use smaller tiles."
    )


def _mask(f, where) -> str:
    return (
        f"A lane calls a warp operation whose mask, {int(f['offset']) & 0xFFFFFFFF:#010x}, "
        "leaves that lane out."
    )


def _misaligned(f, where) -> str:
    return (
        f"A {int(f['size'])}-byte access to {where.name} at an address that is no multiple of "
        f"{int(f['size'])}; a GPU stops there. Vector types need aligned rows."
    )


_WORDS = {
    "timeout": _timeout,
    "wild-pointer": _wild,
    "stack-overflow": lambda f, w: (
        "A thread's stack is full: recursion without end, or a local array that is too large."
    ),
    "division-by-zero": lambda f, w: "A thread divides an integer by zero.",
    "illegal": lambda f, w: "A thread came to an illegal instruction.",
    "stopped": lambda f, w: f"The kernel stopped itself: {f['text'].decode(errors='replace')}.",
    "barrier": _barrier,
    "warp-barrier": _warp,
    "shared-memory": _shared_limit,
    "out-of-bounds": _bounds,
    "guard": _bounds,
    "mask": _mask,
    "start": lambda f, w: f"The kernel could not be started: {f['text'].decode(errors='replace')}.",
    "misaligned": _misaligned,
}
