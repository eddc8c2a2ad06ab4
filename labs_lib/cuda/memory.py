"""Puts a launch into one shared file: the request, room for the report, and the tensors.

Each tensor ends where a page ends, and the pages around it may not be touched: a kernel that runs
past the end is stopped at once. Tensors that share memory share it in the file too.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from dataclasses import dataclass

import numpy as np
import torch

from labs_lib.cuda import layout
from labs_lib.cuda.arguments import scalar_bits
from labs_lib.cuda.errors import LaunchError
from labs_lib.cuda.limits import STATIC_SHARED, shared_limit
from labs_lib.cuda.source import Signature

GAP = 4 << 20  # address space between two tensors; it costs nothing
SECTOR = 32
MOST_CELLS = 20  # as a power of two: what is kept about the elements of one tensor
KINDS = {torch.float32: 1, torch.float16: 2, torch.bfloat16: 3, torch.float64: 4}


@dataclass
class Region:
    """Memory that one or more arguments lie in: addresses here, and where it is in the file."""

    low: int
    high: int
    names: list[str]
    tensors: list[torch.Tensor]
    writable: bool
    file: int = 0
    start: int = 0
    span: int = 0
    unit: int = 0
    bin: int = 0
    first_cell: int = 0
    cells: int = 0
    seen: np.ndarray | None = None  # after a traced run: layout.SEEN for each cell


class Launch:
    """The shared file of one launch; use it as a context manager."""

    def __init__(self, signature: Signature, args, grid, block, shared, arch, **settings):
        self.signature, self.args = signature, args
        self.regions = _regions(signature, args)
        self._place(bool(settings.get("trace")))
        _check_room(self.size)
        self.fd = _open_file(self.size)
        self.map = mmap.mmap(self.fd, self.size)
        self._write_request(grid, block, shared, arch, settings)
        for region in self.regions:
            self._bytes(region)[:] = _as_bytes(region)

    def __enter__(self) -> Launch:
        return self

    def __exit__(self, *_) -> None:
        self.map.close()
        os.close(self.fd)

    def report(self) -> np.void:
        """A copy of what the runner wrote; what it has not touched is not read either."""
        whole = np.zeros(1, layout.REPORT)
        pieces = [(0, layout.OFFSET["sites"])]
        self._copy_report(whole, pieces)
        for name, count in layout.COUNTS.items():
            kind, at = layout.REPORT[name], layout.OFFSET[name]
            used = min(int(whole[0][count]), kind.shape[0])
            pieces.append((at, at + used * kind.base.itemsize))
        self._copy_report(whole, pieces[1:])
        return whole[0]

    def _copy_report(self, whole: np.ndarray, pieces: list[tuple[int, int]]) -> None:
        target = whole.view(np.uint8).data
        for start, end in pieces:
            target[start:end] = self.map[layout.REPORT_AT + start : layout.REPORT_AT + end]

    def copy_back(self) -> None:
        """Writes the results into the caller's tensors."""
        for region in self.regions:
            if region.writable:
                _as_bytes(region)[:] = self._bytes(region)
                for tensor in region.tensors:
                    torch._C._increment_version([tensor])

    def keep_seen(self) -> None:
        """Copies what became of the elements to the regions, as `seen`."""
        at, step = self.seen_file, layout.SEEN.itemsize
        for region in self.regions:
            start = at + region.first_cell * step
            region.seen = np.frombuffer(self.map[start : start + region.cells * step], layout.SEEN)

    def _bytes(self, region: Region) -> np.ndarray:
        at, size = region.file + region.start, region.high - region.low
        return np.frombuffer(self.map, np.uint8, size, at)

    def _place(self, trace: bool) -> None:
        page = mmap.ALLOCATIONGRANULARITY
        at = _up(layout.REPORT_AT + layout.REPORT.itemsize, page)
        for region in self.regions:
            size = region.high - region.low
            region.span = _up(size + 16, page)
            slack = region.span - size
            region.start = slack - (slack - region.low) % 16  # aligned as the tensor itself is
            region.file = at
            at += region.span
        self.seen_file, self.seen_size = at, self._cells() if trace else 0
        self.size = _up(at + self.seen_size, page)

    def _cells(self) -> int:
        """Gives each region its cells: one an element, or one for several of a large tensor."""
        count = 0
        for region in self.regions:
            item = region.tensors[0].element_size()
            region.unit = item.bit_length() - 1
            elements = (region.high - region.low - 1) // item + 1
            region.bin = max(0, (elements - 1).bit_length() - MOST_CELLS)
            region.first_cell, region.cells = count, ((elements - 1) >> region.bin) + 1
            count += region.cells
        return count * layout.SEEN.itemsize

    def _write_request(self, grid, block, shared, arch, settings) -> None:
        r = np.zeros((), layout.REQUEST)
        r["grid"], r["block"], r["dynamic_shared"] = grid, block, shared
        r["static_limit"], r["shared_limit"] = STATIC_SHARED, shared_limit(arch)
        for name, value in settings.items():
            r[name] = value
        address = GAP
        for i, region in enumerate(self.regions):
            kind = KINDS.get(region.tensors[0].dtype, 0)
            size = region.high - region.low
            fields = (region.file, address, region.start, size, region.span, region.writable, kind)
            r["regions"][i] = (
                *fields,
                region.first_cell,
                region.unit,
                region.bin,
                phase(region.tensors[0]),
            )
            address += region.span + GAP
        r["seen_file"], r["seen_size"] = self.seen_file, self.seen_size
        r["reserve"], r["n_regions"], r["n_args"] = address, len(self.regions), len(self.args)
        for i, (p, value) in enumerate(zip(self.signature.parameters, self.args, strict=True)):
            r["args"][i] = self._argument(p, value)
        self.map[: layout.REQUEST.itemsize] = r.tobytes()

    def _argument(self, p, value) -> tuple[int, int, int]:
        if not p.pointer:
            return 0, 0, scalar_bits(p, value)
        if value.numel() == 0:
            return 2, 0, 0
        at = value.data_ptr()
        index = next(i for i, r in enumerate(self.regions) if r.low <= at < r.high)
        return 1, index, at - self.regions[index].low


def phase(tensor: torch.Tensor) -> int:
    """Bytes from the start of a sector to a tensor's first element, on a GPU.

    There each allocation starts a sector, so only views begin elsewhere; where this machine's
    memory happens to lie says nothing.
    """
    return int(tensor.storage_offset()) * tensor.element_size() % SECTOR


def _regions(signature: Signature, args) -> list[Region]:
    """The memory behind the tensors; those that overlap become one region.

    Regions stand in the order of the parameters, not of the addresses, which no two runs share:
    what is found first in them is what a student reads.
    """
    pieces = []
    for p, value in zip(signature.parameters, args, strict=True):
        if p.pointer and value.numel():
            low = value.data_ptr()
            size = value.numel() * value.element_size()
            pieces.append(Region(low, low + size, [p.name], [value.detach()], not p.const))
    pieces.sort(key=lambda r: (r.low, r.high))
    merged: list[Region] = []
    for piece in pieces:
        last = merged[-1] if merged else None
        if last and piece.low < last.high:
            last.high = max(last.high, piece.high)
            last.names += piece.names
            last.tensors += piece.tensors
            last.writable |= piece.writable
        else:
            merged.append(piece)
    if len(merged) > layout.MAX_REGIONS or len(args) > layout.MAX_ARGS:
        raise LaunchError(
            f"at most {layout.MAX_REGIONS} tensors and {layout.MAX_ARGS} arguments can be passed"
        )
    place = {p.name: i for i, p in enumerate(signature.parameters)}
    return sorted(merged, key=lambda region: min(place[name] for name in region.names))


def _as_bytes(region: Region) -> np.ndarray:
    """The caller's memory itself, as bytes."""
    size = region.high - region.low
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(region.low))


def _check_room(size: int) -> None:
    import psutil

    free = psutil.virtual_memory().available
    if size > free * 0.8:
        raise LaunchError(
            f"the launch needs a copy of its tensors, {size / 1e9:.1f} GB, and this machine has "
            f"{free / 1e9:.1f} GB free; use smaller tensors"
        )


def _open_file(size: int) -> int:
    try:
        fd = os.memfd_create("labs-launch")
    except (AttributeError, OSError):  # another system than Linux, or a fence that refuses it
        fd, path = tempfile.mkstemp(prefix="labs-launch-")
        os.unlink(path)
    os.truncate(fd, size)
    return fd


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
