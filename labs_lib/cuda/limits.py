"""What a launch may ask of a GPU, by architecture (CUDA C++ programming guide, table of limits)."""

from __future__ import annotations

import re
from operator import index

from labs_lib.arithmetic.occupancy import MULTIPROCESSORS
from labs_lib.cuda.errors import LaunchError

DEFAULT_ARCH = "sm_80"
THREADS, BLOCK, GRID = 1024, (1024, 1024, 64), (2**31 - 1, 65535, 65535)
STATIC_SHARED = 48 * 1024
# Bytes of shared memory that one block may have when it asks for them.
SHARED = {arch: sm.shared_per_block for arch, sm in MULTIPROCESSORS.items()}


def check_arch(arch: str | None) -> str:
    """The architecture's name as nvcc has it; `80`, `8.0` and `sm_80` are one."""
    if arch is None:
        return DEFAULT_ARCH
    digits = re.sub(r"^(sm_|compute_)", "", str(arch)).rstrip("af").replace(".", "")
    name = f"sm_{digits}"
    if name not in SHARED:
        raise LaunchError(f"arch={arch!r} is not known; known are {', '.join(SHARED)}")
    return name


def shared_limit(arch: str) -> int:
    """Bytes of shared memory that one block may have in all."""
    return SHARED.get(arch, min(SHARED.values()))


def triple(value, name: str) -> tuple[int, int, int]:
    """A grid or block as three numbers; an int or a shorter tuple is filled with ones."""
    parts = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    try:
        numbers = tuple(map(index, parts))
    except TypeError:
        raise LaunchError(f"{name}={value!r}: whole numbers are needed") from None
    if not 1 <= len(numbers) <= 3 or any(n < 0 for n in numbers):
        raise LaunchError(f"{name}={value!r}: give one to three numbers, none below 0")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def check_launch(grid, block, shared: int, arch: str) -> None:
    """Raises LaunchError when no GPU of this architecture would launch it."""
    for axis, size, most in zip("xyz", block, BLOCK, strict=True):
        if size > most:
            raise LaunchError(f"block.{axis} = {size}, a GPU takes at most {most}")
    threads = block[0] * block[1] * block[2]
    if threads > THREADS:
        raise LaunchError(
            f"block = {block} has {threads} threads, a block holds at most {THREADS}; "
            "use more blocks, or let each thread do more"
        )
    if threads == 0:
        raise LaunchError(f"block = {block} has no threads")
    for axis, size, most in zip("xyz", grid, GRID, strict=True):
        if size > most:
            raise LaunchError(f"grid.{axis} = {size}, a GPU takes at most {most}")
    if not 0 <= shared <= shared_limit(arch):
        raise LaunchError(
            f"{shared} bytes of shared memory a block, {arch} has {shared_limit(arch)}; use "
            "smaller tiles"
        )
