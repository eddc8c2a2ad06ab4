"""Wrong arguments are refused by name, before anything runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from labs_lib import cuda

SOURCE = """
__global__ void k(const float* q, __half* h, float* o, int n, float scale) {
    o[threadIdx.x] = q[threadIdx.x] * scale + (float)h[threadIdx.x];
}"""


@pytest.fixture
def good():
    return [torch.ones(8), torch.ones(8, dtype=torch.float16), torch.zeros(8), 8, 2.0]


def refused(good, place, value, words):
    args = list(good)
    args[place] = value
    kernel = cuda.compile(SOURCE)
    for launcher in (kernel[1, 8], kernel.trace[1, 8]):
        with pytest.raises(cuda.LaunchError, match=words):
            launcher(*args)
    assert (good[2] == 0).all()


def test_the_right_arguments_are_accepted(good):
    cuda.compile(SOURCE)[1, 8](*good)
    assert (good[2] == 3).all()


@pytest.mark.parametrize(("place", "name"), [(0, "q"), (1, "h"), (2, "o")])
def test_each_tensor_of_another_dtype_is_refused(good, place, name):
    refused(good, place, torch.zeros(8, dtype=torch.float64), f"^{name} must be .*float64")


@pytest.mark.parametrize(("place", "name"), [(0, "q"), (1, "h"), (2, "o")])
def test_each_view_that_is_not_contiguous_is_refused(good, place, name):
    view = torch.zeros(4, 2, dtype=good[place].dtype).t()
    refused(good, place, view, rf"^{name} is not contiguous.*{name}\.contiguous\(\)")


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (0, 3.0, "q is a pointer .* needs a tensor, float"),
        (0, None, "q is a pointer .* NoneType"),
        (3, 2.5, "n is an integer .* 2.5"),
        (3, 2**31, "n = 2147483648 does not fit into int"),
        (3, torch.tensor(3), r"n is a number .* \.item\(\)"),
        (4, "two", "scale is a float, str was given"),
        (2, torch.zeros(8, requires_grad=True), r"o requires grad.*o\.detach\(\)"),
        (0, torch.zeros(8, device="meta"), "q must be a plain tensor"),
    ],
)
def test_a_wrong_value_is_refused_by_name(good, place, value, words):
    refused(good, place, value, words)


def test_a_wrong_number_of_arguments_names_those_that_are_wanted(good):
    with pytest.raises(cuda.LaunchError, match=r"5 arguments \(q, h, o, n, scale\), 4 were"):
        cuda.compile(SOURCE)[1, 8](*good[:4])


@pytest.mark.parametrize(
    ("grid", "block", "shared", "words"),
    [
        (1, 1025, 0, r"block\.x = 1025"),
        (1, (32, 33), 0, r"1056 threads, a block holds at most 1024"),
        (1, (1, 1, 65), 0, r"block\.z = 65"),
        (1, 0, 0, "no threads"),
        ((1, 65536), 1, 0, r"grid\.y = 65536"),
        (1, 1, 10**10, "bytes of shared memory"),
        (1, 1, -4, "bytes of shared memory"),
        (-1, 1, 0, "none below 0"),
        ((1, 2, 3, 4), 1, 0, "one to three"),
        (1.5, 1, 0, "whole numbers"),
    ],
)
def test_a_geometry_that_no_gpu_launches_is_refused(good, grid, block, shared, words):
    with pytest.raises(cuda.LaunchError, match=words):
        cuda.compile(SOURCE)[grid, block, shared](*good)


def test_the_limits_are_those_of_the_chosen_architecture(good):
    for arch, most in [("sm_75", 64), ("8.0", 163), ("sm_86", 99), (90, 227)]:
        k = cuda.compile(SOURCE, arch=arch)
        k[1, 8, most * 1024](*good)
        with pytest.raises(cuda.LaunchError, match=f"{most * 1024}"):
            k[1, 8, most * 1024 + 1](*good)
    with pytest.raises(cuda.LaunchError, match=r"sm_42.*known are sm_70"):
        cuda.compile(SOURCE, arch="sm_42")


def test_calling_without_a_geometry_says_how(good):
    k = cuda.compile(SOURCE)
    with pytest.raises(TypeError, match=r"k\[grid, block\]\(\.\.\.\)"):
        k(*good)
    with pytest.raises(TypeError, match="grid, block"):
        k[1](*good)


def test_sizes_may_be_whole_numbers_of_any_kind(make):
    k = make("extern __shared__ float s[]; s[0] = n; x[blockIdx.x] = s[0];")
    x, two = torch.zeros(2), np.int64(2)
    k[two, torch.tensor(1), np.int32(8)](x, two)
    assert x.tolist() == [2, 2]
    assert k.trace.steps(block=np.int64(1), most=np.int64(3))[two, 1, 4](x, 1).log.blocks
    with pytest.raises(cuda.LaunchError, match="whole numbers are needed"):
        k[torch.tensor(1.5), 1]
    with pytest.raises(TypeError, match=r"whole number, not 8\.0"):
        k[1, 1, 8.0]


def test_types_of_std_are_known_by_their_plain_names(make):
    params = "std::int32_t* x, std::size_t n, std::int16_t m"
    k = make("x[0] = n + (int)m;", params, "#include <cstdint>")
    x = torch.zeros(1, dtype=torch.int32)
    k[1, 1](x, 40, 2)
    assert x.item() == 42
