"""How many blocks fit on a multiprocessor."""

from __future__ import annotations

import itertools

import pytest

from labs_lib.arithmetic.occupancy import MULTIPROCESSORS, occupancy
from labs_lib.cuda import limits

# What cudaOccMaxActiveBlocksPerMultiprocessor of CUDA 13.0 says of these blocks.
FROM_THE_TOOLKIT = [
    ("sm_70", 256, 64, 0, 4),
    ("sm_75", 256, 32, 8192, 4),
    ("sm_75", 64, 24, 8192, 8),
    ("sm_80", 256, 32, 0, 8),
    ("sm_80", 32, 16, 0, 32),
    ("sm_80", 128, 65, 0, 7),
    ("sm_80", 256, 64, 16384, 4),
    ("sm_86", 1024, 32, 0, 1),
    ("sm_89", 128, 64, 99 * 1024, 1),
    ("sm_89", 128, 64, 100 * 1024, 0),
    ("sm_89", 256, 32, 0, 6),
    ("sm_90", 96, 168, 0, 4),
    ("sm_90", 250, 32, 0, 8),
    ("sm_90", 64, 24, 9 * 1024, 22),
    ("sm_100", 512, 255, 0, 0),
    ("sm_120", 96, 40, 0, 16),
]


@pytest.mark.parametrize(("arch", "threads", "registers", "shared", "blocks"), FROM_THE_TOOLKIT)
def test_as_many_blocks_fit_as_the_toolkit_says(arch, threads, registers, shared, blocks):
    got = occupancy(threads, registers, shared, MULTIPROCESSORS[arch])
    assert got[:2] == (blocks, blocks * -(-threads // 32))


def test_what_allows_no_more_is_named_and_the_first_of_equals_counts():
    sm = MULTIPROCESSORS["sm_80"]
    assert occupancy(1024, 16, 0, sm) == (2, 64, "warps")
    assert occupancy(32, 16, 0, sm) == (32, 32, "blocks")
    assert occupancy(256, 128, 0, sm) == (2, 16, "registers")
    assert occupancy(256, 16, 65536, sm) == (2, 16, "shared memory")
    assert occupancy(1024, 16, 65536, sm) == (2, 64, "warps")  # so does shared memory


@pytest.mark.parametrize("arch", MULTIPROCESSORS)
def test_a_larger_block_never_fits_more_often(arch):
    sm = MULTIPROCESSORS[arch]
    sizes = [(32, 256, 1000), (16, 64, 255), (0, 5000, 60000)]
    for step in itertools.product(*sizes):
        for axis in range(3):
            more = list(step)
            more[axis] = max(sizes[axis])
            assert occupancy(*more, sm)[0] <= occupancy(*step, sm)[0]


def test_a_launch_is_held_to_the_shared_memory_of_the_same_table():
    for arch, sm in MULTIPROCESSORS.items():
        assert limits.shared_limit(arch) == sm.shared_per_block
        assert occupancy(32, 16, sm.shared_per_block, sm)[0] == 1
        assert occupancy(32, 16, sm.shared_per_block + 1, sm)[0] == 0


@pytest.mark.parametrize("threads", [0, -32])
def test_a_block_without_a_thread_is_refused(threads):
    with pytest.raises(ValueError, match=f"threads={threads}"):
        occupancy(threads, 32, 0, MULTIPROCESSORS["sm_80"])
