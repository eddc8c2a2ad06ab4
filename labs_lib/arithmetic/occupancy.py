"""How many blocks of a kernel fit on one multiprocessor (SM) of a GPU at a time.

Limits: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
How registers and shared memory are handed out (pieces, quarters, the reserved kibibyte) is that of
the toolkit's own header, cuda_occupancy.h (CUDA 13.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WARP = 32
QUARTERS = 4


@dataclass(frozen=True)
class Multiprocessor:
    """What one SM holds, and in which pieces it hands it out.

    `warps`, `blocks`: how many may be resident. `registers`: 32-bit ones; a warp gets them in
    pieces of `register_piece`, all from one of four equal quarters. `shared`: bytes; a block gets
    what it asks for plus `reserved`, in pieces of `shared_piece`.
    """

    arch: str
    warps: int
    blocks: int
    shared: int
    registers: int = 65536
    register_piece: int = 256
    shared_piece: int = 128
    reserved: int = 1024

    @property
    def shared_per_block(self) -> int:
        """Bytes of shared memory that a single block may have."""
        return self.shared - self.reserved


def _older(arch: str, warps: int, blocks: int, shared: int) -> Multiprocessor:
    return Multiprocessor(arch, warps, blocks, shared * 1024, shared_piece=256, reserved=0)


def _sm(arch: str, warps: int, blocks: int, shared: int) -> Multiprocessor:
    return Multiprocessor(arch, warps, blocks, shared * 1024)


MULTIPROCESSORS: Mapping[str, Multiprocessor] = {
    sm.arch: sm
    for sm in (
        _older("sm_70", 64, 32, 96),
        _older("sm_75", 32, 16, 64),
        _sm("sm_80", 64, 32, 164),
        _sm("sm_86", 48, 16, 100),
        _sm("sm_87", 48, 16, 164),
        _sm("sm_89", 48, 24, 100),
        _sm("sm_90", 64, 32, 228),
        _sm("sm_100", 64, 32, 228),
        _sm("sm_103", 64, 32, 228),
        _sm("sm_120", 48, 24, 100),
    )
}


def occupancy(
    threads: int, registers: int, shared_bytes: int, sm: Multiprocessor
) -> tuple[int, int, str]:
    """Return (blocks, warps, limit): how many fit on one SM at a time, and what allows no more.

    `threads` of a block, `registers` of a thread, `shared_bytes` of a block. `limit` is "warps",
    "blocks", "registers" or "shared memory", the first of these that allows so few; a block that
    doesn't fit gives 0 blocks. Raises ValueError for a block without a thread.
    """
    if threads < 1:
        raise ValueError(f"threads={threads}: a block has at least one thread; give 1 to 1024")
    warps = _pieces(threads, WARP)
    per_warp = _pieces(registers * WARP, sm.register_piece) * sm.register_piece
    per_block = _pieces(shared_bytes + sm.reserved, sm.shared_piece) * sm.shared_piece
    fits = {"warps": sm.warps // warps, "blocks": sm.blocks}
    if per_warp:
        fits["registers"] = sm.registers // QUARTERS // per_warp * QUARTERS // warps
    if per_block:
        fits["shared memory"] = sm.shared // per_block
    limit = min(fits, key=fits.__getitem__)
    return fits[limit], fits[limit] * warps, limit


def _pieces(amount: int, piece: int) -> int:
    return -(-amount // piece)
