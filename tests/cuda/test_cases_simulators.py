"""Mistakes of other simulators and checkers that ours does not repeat; each launch ends."""

from __future__ import annotations

import math
import time

import pytest
import torch

from labs_lib import cuda
from labs_lib.cuda.errors import CompileError
from labs_lib.cuda.rewrite import rewrite

PARAMETERS = "float* x, float* y, int n"
BODIES = {
    # A barrier that some threads don't reach
    "one thread skips a turn": """
        for (int i = 0; i < 3; ++i) {
            if (t == 5 && i == 1) continue;
            if (__syncthreads_or(i > 5)) break;
        }""",
    "one warp alone waits": "if (t < 32) __syncthreads();\nx[t] = 1;",
    "rows beyond n are left early": "if (t >= n) return;\n__syncthreads();\nx[t] = 1;",
    "one of two warps waits twice": "__syncthreads();\nif (t >= 32) __syncthreads();\nx[t] = 1;",
    # An error while others wait
    "one thread runs out of bounds before a barrier": """
        if (t == 7) x[100000] = 1;
        __syncthreads();
        x[t] = 2;""",
    # Races that the values don't show
    "right by luck": """
        __shared__ float s[64];
        s[t] = x[t];
        y[t] = t ? s[t - 1] : 0;""",
    "a tile is overwritten while it is read": """
        __shared__ float tile[64];
        float sum = 0;
        for (int i = 0; i < 3; ++i) {
            tile[t] = x[64 * i + t];
            __syncthreads();
            for (int j = 0; j < 64; ++j) sum += tile[j];
        }
        y[t] = sum;""",
    "the same with its barrier": """
        __shared__ float tile[64];
        float sum = 0;
        for (int i = 0; i < 3; ++i) {
            tile[t] = x[64 * i + t];
            __syncthreads();
            for (int j = 0; j < 64; ++j) sum += tile[j];
            __syncthreads();
        }
        y[t] = sum;""",
    # No lock-step
    "lanes that loop differently": """
        float s = 0;
        for (int i = 0; i < t % 7; ++i) s += x[t];
        y[t] = s;""",
    "lanes that rely on going together": """
        __shared__ float s[64];
        s[t] = x[t];
        __syncthreads();
        if (t < 16) s[t] += s[t + 16];
        if (t < 8) y[t] = s[t] + s[t + 8];""",
    # Counting
    "an addition in shared memory": """
        __shared__ float s[64];
        s[t] = 0;
        s[t] += x[t];
        y[t] = s[t];""",
    # Shared memory starts as NaN
    "a neighbour that nobody wrote": """
        __shared__ float s[65];
        if (t < n) s[t] = x[t];
        __syncthreads();
        if (t < n) y[t] = s[t] + s[t + 1];""",
    # Blocks in any order
    "in place, though blocks read what others write": """
        float sum = 0;
        for (int j = 0; j < n; ++j) sum += x[j];
        y[blockIdx.x * 64 + t] = sum;""",
    # A running maximum that starts just above zero
    "a maximum that starts at 1e-30": """
        float m = 1e-30f, l = 0, o = 0;
        for (int j = 0; j < n; ++j) {
            float bigger = fmaxf(m, x[j]);
            l = l * expf(m - bigger) + expf(x[j] - bigger);
            m = bigger;
        }
        for (int j = 0; j < n; ++j) o += expf(x[j] - m) / l;
        y[t] = o;""",
}  # fmt: skip


@pytest.fixture(scope="module")
def kernels():
    text = ""
    for i, body in enumerate(BODIES.values()):
        text += f"__global__ void k{i}({PARAMETERS}) {{ int t = threadIdx.x;\n{body}\n}}\n"
    module = cuda.compile(text)
    return {name: module[f"k{i}"] for i, name in enumerate(BODIES)}


def tensors():
    return torch.arange(192.0), torch.zeros(192)


@pytest.mark.parametrize(
    "name",
    [
        "one thread skips a turn",
        "one warp alone waits",
        "rows beyond n are left early",
        "one of two warps waits twice",
    ],
)
def test_a_barrier_that_not_all_reach_is_an_error_fast_and_traced_and_never_hangs(kernels, name):
    start = time.monotonic()
    x, y = tensors()
    with pytest.raises(cuda.KernelFault) as caught:
        kernels[name][1, 64](x, y, 40)
    assert caught.value.kind == "barrier" and caught.value.line
    found = kernels[name].trace[1, 64](x, y, 40).findings[-1]
    assert found.kind == "barrier" and found.line == caught.value.line
    assert torch.equal(x, torch.arange(192.0)), "the caller's tensors are as they were"
    assert time.monotonic() - start < 30


def test_the_first_error_ends_the_block_while_others_wait_and_the_next_launch_runs(kernels):
    x, y = tensors()
    with pytest.raises(cuda.KernelFault) as caught:
        kernels["one thread runs out of bounds before a barrier"][3, 64](x, y, 1)
    assert (caught.value.kind, caught.value.thread) == ("out-of-bounds", (7, 0, 0))
    kernels["an addition in shared memory"][1, 64](x, y, 1)
    assert torch.equal(y[:64], x[:64])


@pytest.mark.parametrize("turn", range(3))
def test_a_race_is_found_by_the_accesses_also_where_the_values_are_right(kernels, turn):
    x, y = tensors()
    trace = kernels["right by luck"].trace[1, 64](x, y, 1)
    assert torch.equal(y[1:64], x[:63]), "threads took turns in the order that hides it"
    assert {f.kind for f in trace.findings} == {"race"} and not trace.clean


def test_a_race_between_two_turns_of_a_loop_names_both_lines(kernels):
    x, y = tensors()
    k = kernels["a tile is overwritten while it is read"]
    trace = k.trace[1, 64](x, y, 1)
    lines = k.source.split("\n")
    pairs = [(lines[f.line - 1].strip(), lines[f.other_line - 1].strip()) for f in trace.findings]
    load, use = "tile[t] = x[64 * i + t];", "for (int j = 0; j < 64; ++j) sum += tile[j];"
    assert (load, use) in pairs or (use, load) in pairs, trace
    assert all(f.kind == "race" for f in trace.findings)
    assert kernels["the same with its barrier"].trace[1, 64](*tensors(), 1).clean


def test_with_one_tile_or_one_warp_that_race_would_not_show(kernels):
    """Why checks always run three tiles and two warps."""
    source = BODIES["a tile is overwritten while it is read"].replace("i < 3", "i < n")
    k = cuda.compile(f"__global__ void k({PARAMETERS}) {{ int t = threadIdx.x;\n{source}\n}}")
    assert k.trace[1, 64](*tensors(), 1).clean
    assert not k.trace[1, 64](*tensors(), 3).clean


def test_lanes_of_a_warp_may_loop_differently_and_are_never_thought_to_go_together(kernels):
    assert kernels["lanes that loop differently"].trace[1, 64](*tensors(), 1).clean
    trace = kernels["lanes that rely on going together"].trace[1, 64](*tensors(), 1)
    assert [f.kind for f in trace.findings if not f.harmless], "a race within one warp"


def test_an_addition_in_shared_memory_is_a_read_and_a_write(kernels):
    trace = kernels["an addition in shared memory"].trace[1, 64](*tensors(), 1)
    assert (trace.shared.read, trace.shared.written) == (4 * 64 * 2, 4 * 64 * 2)
    assert sorted(len(r.lanes) for r in trace.log.requests((0, 0, 0), 1)) == [32] * 6


@pytest.mark.parametrize("n", [15, 40])
def test_shared_memory_starts_as_nan_so_no_size_hides_an_unguarded_neighbour(kernels, n):
    x, y = tensors()
    k = kernels["a neighbour that nobody wrote"]
    k[1, 64](x, y, n)
    assert torch.equal(y[: n - 1], x[: n - 1] + x[1:n]) and y[n - 1].isnan()
    found = k.trace[1, 64](x, y, n).findings
    assert [f.kind for f in found] == ["uninitialised"] and found[0].thread == (n - 1, 0, 0)


def test_a_result_in_place_of_its_input_is_told_by_the_accesses_of_blocks(kernels):
    x = torch.arange(192.0)
    k = kernels["in place, though blocks read what others write"]
    assert k.trace[3, 64](x, torch.zeros(192), 192).clean
    kinds = {f.kind for f in k.trace[3, 64](x, x, 192).findings}
    assert "cross-block" in kinds and "block-order" in kinds


def test_a_finite_start_of_the_maximum_shows_on_low_logits(kernels):
    y = torch.zeros(64)
    k = kernels["a maximum that starts at 1e-30"]
    k[1, 64](torch.full((64,), -140.0), y, 64)
    assert y.isnan().all() or y.isinf().all() or (y - 1).abs().max() > 0.1
    k[1, 64](torch.full((64,), 3.0), y, 64)
    assert math.isclose(y[0].item(), 1.0, rel_tol=1e-5), "other logits hide it"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("__pipeline_memcpy_async(s, x, 16);", "__pipeline_memcpy_async"),
        ("__pipeline_commit();", "__pipeline_commit"),
        ("cuda::memcpy_async(s, x, 16, bar);", "cuda"),
        ("cuda::barrier<cuda::thread_scope_block> bar;", "cuda"),
        ('asm volatile("cp.async.wait_all;");', "asm"),
        ("auto g = cooperative_groups::this_grid(); g.sync();", "cooperative_groups"),
        ("namespace cg = cooperative_groups;", "cooperative_groups"),
        ("cudaLaunchCooperativeKernel(f, 1, 1, 0);", "cudaLaunchCooperativeKernel"),
    ],
)
def test_asynchronous_copies_and_waiting_grids_are_refused_by_name(line, name):
    """What the race detector doesn't know is not run, rather than judged wrongly."""
    with pytest.raises(CompileError, match=f"line 2: `{name}`"):
        rewrite(f"__global__ void k(float* x) {{\n{line}\n}}")
