"""The log of accesses tells what each warp did, step by step, and adds up to the counts."""

from __future__ import annotations

import pytest
import torch

from labs_lib import cuda
from labs_lib.cuda import ladder
from labs_lib.cuda.trials import trial

BODIES = {
    "neighbours": "x[t] = x[t + 1];",
    "a stride": "for (int i = 0; i < 3; ++i) x[t] += x[32 * t % 512 + i];",
    "some lanes only": "if (t % 3) x[t] = x[t / 2]; else if (t > 9) x[100 + t] = 1;",
    "four at once": "((float4*)x)[t % 16] = ((float4*)(x + 64))[t]; y[t] = 1;",
    "two at once": "__shared__ float2 s[64]; s[t] = make_float2(t, t); x[t] = s[63 - t].x;",
    "quads in shared memory": "__shared__ float4 s[64]; s[t] = make_float4(t, t, t, t);\n"
    "__syncthreads(); float4 v = s[t ^ 1]; x[t] = v.x + v.y;",
    "a column of a square": "__shared__ float s[32][32]; s[t % 32][t / 32] = t; x[t] = 1;",
    "a broadcast": "__shared__ float s[64]; s[t] = t; __syncthreads(); x[t] = s[5] + s[t / 8];",
    "halves": "__shared__ half s[64]; s[t] = __float2half(1);\n"
    "__syncthreads(); x[t] = s[2 * t % 64];",
    "a helper called twice": "x[t] = twice(y, t) + twice(y, 2 * t);",
    "a loop that lanes leave": "int i = 0; while (i < t % 5) x[t] += x[64 + ++i];",
    "atomics": "atomicAdd(&x[t / 4], 1.0f); __shared__ int n[2]; if (t < 2) n[t] = 0;\n"
    "__syncthreads(); atomicAdd(&n[t % 2], 1);",
}  # fmt: skip


@pytest.fixture(scope="module")
def module():
    text = "#include <cuda_fp16.h>\n__device__ float twice(float* p, int i) { return 2 * p[i]; }\n"
    for i, body in enumerate(BODIES.values()):
        text += f"__global__ void k{i}(float* x, float* y) {{ int t = threadIdx.x;\n{body}\n}}\n"
    return cuda.compile(text)


def added_up(trace, block=(0, 0, 0)):
    """Requests, sectors and passes of the log, by line, kind and place, as `Line` has them."""
    found = {}
    for warp in trace.log.warps(block):
        for r in trace.log.requests(block, warp):
            where = "shared" if r.site.shared else r.site.name
            row = found.setdefault((r.site.line, r.site.what, where), [0, 0, 0, 0])
            row[0] += r.size * len(r.lanes)
            row[1] += 1
            row[2] += 0 if r.site.shared else len(r.sectors)
            row[3] += r.passes if r.site.shared else 0
    return found


def counted(trace):
    return {
        (li.line, li.what, li.where): [li.bytes, li.requests, li.sectors, li.wavefronts]
        for li in trace.lines
    }


@pytest.mark.parametrize("name", BODIES)
def test_the_steps_of_one_block_add_up_to_the_counts(module, name):
    k = module[f"k{list(BODIES).index(name)}"]
    trace = k.trace[1, 64](torch.zeros(600), torch.zeros(200))
    assert trace.log.whole == [True] and trace.complete, trace
    assert added_up(trace) == counted(trace)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("scores_tiled", {"n_q": 16, "n_k": 13, "head_dim": 24}),
        ("scores_tensor_cores", {"n_q": 20, "n_k": 32, "head_dim": 24}),
        ("softmax_rows_warp", {"rows": 3, "cols": 70}),
        ("transpose_tiled", {"rows": 31, "cols": 32}),
    ],
)
def test_the_steps_of_the_ladders_kernels_add_up_to_the_counts(name, sizes):
    one = ladder.rung(name)
    geometry = one.geometry(sizes)
    assert geometry.grid[0] == 1
    trace = one.compile().trace.steps(most=65_536)[geometry](*trial(one, sizes).arguments)
    assert trace.log.whole == [True]
    assert added_up(trace) == counted(trace)


@pytest.mark.parametrize("name", ["a stride", "quads in shared memory", "atomics"])
def test_totals_are_the_counts_of_a_trace_without_its_log_and_tiles(module, name):
    k = module[f"k{list(BODIES).index(name)}"]
    left = torch.zeros(2, 600), torch.zeros(2, 200)
    whole = k.trace[2, 64](left[0][0], left[1][0])
    totals = k.trace.totals[2, 64](left[0][1], left[1][1])
    assert torch.equal(left[0][0], left[0][1]) and torch.equal(left[1][0], left[1][1])
    assert counted(totals) == counted(whole) and totals.tensors == whole.tensors
    assert [f.kind for f in totals.findings] == [f.kind for f in whole.findings]
    assert totals.events == [] and totals.tiles == {}
    assert whole.events and whole.tiles


WALK = "int t = threadIdx.x, at = blockIdx.x * 40 + t;\nx[at] = x[at] + 1;"


def test_any_block_can_be_watched_and_several_at_once(make):
    k = make(WALK)
    for block in (2, (2,), (2, 0, 0), [2, 0]):
        trace = k.trace.steps(block=block)[4, 40](torch.zeros(160), 0)
        assert trace.log.blocks == [(2, 0, 0)]
        assert [e.index for e in trace.events if e.what == "write"] == list(range(80, 120))
    both = k.trace.steps(block=[(3, 0), 1])[4, 40](torch.zeros(160), 0)
    assert both.log.blocks == [(3, 0, 0), (1, 0, 0)]
    assert {e.block: e.index // 40 for e in both.events} == {(3, 0, 0): 3, (1, 0, 0): 1}
    assert added_up(both, (3, 0, 0)) == added_up(both, (1, 0, 0))


def test_a_block_in_three_dimensions_is_found():
    k = cuda.compile("""__global__ void k(int* x) {
        x[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = 1; }""")
    trace = k.trace.steps(block=(1, 2, 3))[(2, 3, 4), 1](torch.zeros(24, dtype=torch.int32))
    assert [(e.block, e.index) for e in trace.events] == [((1, 2, 3), 3 * 6 + 2 * 2 + 1)]


@pytest.mark.parametrize(
    ("block", "most", "words"),
    [
        ((4, 0), None, r"\(4, 0, 0\) is outside of the grid .* the last is \(3, 0, 0\)"),
        (-1, None, "none below 0"),
        ("ab", None, "whole numbers"),
        ([(i,) for i in range(9)], None, "9 blocks to watch; give 1 to 8"),
        (0, 0, "from 1 on"),
    ],
)
def test_a_block_that_is_not_there_is_refused(make, block, most, words):
    with pytest.raises(cuda.LaunchError, match=words):
        make(WALK).trace.steps(block=block, most=most)[4, 40](torch.zeros(160), 0)
    with pytest.raises(KeyError, match=r"was not watched; watched: \(0, 0, 0\)"):
        make(WALK).trace[4, 40](torch.zeros(160), 0).log.requests((1, 0, 0), 0)


def test_a_log_that_is_full_says_so_and_holds_no_half_of_a_warps_step(make):
    k = make("for (int i = 0; i < 5; ++i) x[threadIdx.x] += i;")
    trace = k.trace.steps(most=450)[1, 64](torch.zeros(64), 0)
    assert trace.log.whole == [False] and trace.read == 4 * 64 * 5
    assert trace.log.warps((0, 0, 0)) == [0], "warp 1 was cut, so nothing of it is told"
    requests = trace.log.requests((0, 0, 0), 0)
    assert len(requests) == 10 and {len(r.lanes) for r in requests} == {32}


def test_a_log_with_less_than_one_warp_is_better_than_none(make):
    trace = make("for (int i = 0; i < 5; ++i) x[threadIdx.x] += i;").trace.steps(most=7)[1, 32](
        torch.zeros(64), 0
    )
    assert len(trace.events) == 7 and trace.log.whole == [False]


def test_steps_stand_in_the_order_of_the_program_also_where_lanes_part(make):
    k = make("""
        int t = threadIdx.x;
        x[t] = 1;
        if (t % 2) { x[t] = 2; x[t] = 3; }
        else x[t] = 4;
        __syncthreads();
        x[t] = 5;""")
    trace = k.trace[1, 32](torch.zeros(32), 0)
    requests = trace.log.requests((0, 0, 0), 0)
    told = [(r.site.line, r.step, len(r.lanes)) for r in requests]
    assert told[0] == (4, 0, 32) and told[-1] == (8, 1, 32)
    assert sorted(told[1:-1]) == [(5, 0, 16), (5, 0, 16), (6, 0, 16)]


def test_what_a_warp_touches_is_told_by_lane(make):
    k = make("__shared__ float s[40];\ns[39 - threadIdx.x] = x[2 * threadIdx.x];")
    read, write = k.trace[1, 8](torch.zeros(16), 0).log.requests((0, 0, 0), 0)
    assert read.lanes == {lane: 8 * lane for lane in range(8)} and read.sectors == [0, 1]
    assert write.lanes == {lane: 4 * (39 - lane) for lane in range(8)}
    assert (write.site.name, write.passes) == ("s", 1) and write.words == list(range(32, 40))
