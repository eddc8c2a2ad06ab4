"""A kernel that grows without an end costs a sentence, not the machine."""

from __future__ import annotations

import pytest
import torch

from labs_lib import cuda

MACRO = """#define A(x) x x x x x x x x x x
#define B(x) A(A(A(x)))
#define C(x) B(B(B(x)))
__global__ void k(float* x) { C(C(x[0] += 1;)) }
"""
DATA = """__device__ float big[2500000000] = {1};
__global__ void k(float* x) { x[0] = big[7]; }
"""


@pytest.mark.slow
@pytest.mark.parametrize("bomb", [MACRO, DATA], ids=["macro", "data"])
def test_a_compiler_without_an_end_is_stopped(bomb):
    with pytest.raises(cuda.CompileError, match=r"compiler was stopped.*without an end"):
        cuda.compile(bomb)


def test_variables_too_large_to_copy_are_told_before_they_fill_the_memory():
    k = cuda.compile(DATA.replace(" = {1}", ""))
    trace = k.trace[1, 1](torch.zeros(1))
    assert not trace.complete and "256 MiB" in trace.findings[-1].message
