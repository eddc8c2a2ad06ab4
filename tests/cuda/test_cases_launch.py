"""What a launch is given is honoured or refused by name; what it reads by value is counted."""

from __future__ import annotations

import pytest
import torch

from labs_lib import cuda

STRUCTS = """
#include <cuda_fp16.h>
struct State { float m, l; };
struct Deep { State state; float4 four; int* where; };
template <typename T> struct Pair { T a, b; };
struct Many { float values[3]; int n; };
constexpr State kEmpty = {-1.0f, 0.0f};
__constant__ State table[2] = {{1, 2}, {3, 4}};

__device__ State merge(State a, State b) { return {fmaxf(a.m, b.m), a.l + b.l}; }
__device__ float sum(float4 v) { return v.x + v.y + v.z + v.w; }
template <typename T> __device__ T both(Pair<T> p) { return p.a + p.b; }

struct Rows { float o[2], m, l; };
struct Filled { float o[2]; };
__device__ Rows larger(Rows a, Rows b) { return a.m > b.m ? a : b; }
__device__ float of(Filled f) { return f.o[0]; }

__global__ void rows(const float* x, float* y) {
    Rows empty = {}, mine = larger(((const Rows*)x)[threadIdx.x], empty);
    Filled filled = {{1, 2}};
    y[threadIdx.x] = mine.o[1] + of(filled);
}
__global__ void by_value(const float4* x, float* y) { y[threadIdx.x] = sum(x[threadIdx.x]); }
__global__ void pairs(const float* x, float* y) {
    y[threadIdx.x] = both(((const Pair<float>*)x)[threadIdx.x]) + both(Pair<float>{1, 2});
}
__global__ void merged(float* x, float* y, int guarded) {
    __shared__ State s[64];
    int t = threadIdx.x;
    s[t] = ((State*)x)[t];
    if (guarded) __syncthreads();
    State other = merge(s[63 - t], kEmpty);
    y[t] = other.l;
}
__global__ void made(float* x, float* y) {
    State none = {}, one{1, 2}, low = kEmpty, list[2] = {{1, 2}, {3, 4}};
    Deep deep = {{1, 2}, {1, 2, 3, 4}, nullptr}, first = {one};
    Many many = {{1, 2, 3}, 4};
    uint3 me = threadIdx, block = blockIdx;
    dim3 size = blockDim;
    union { float4 whole; float parts[4]; } u;
    u.whole = ((float4*)x)[me.x];
    float4 zero = {}, chosen = me.x > 3 ? ((float4*)x)[me.x] : zero;
    y[me.x] = none.m + one.l + low.m + list[1].m + deep.four.w + first.state.m + many.values[2] +
              table[1].l + u.parts[3] + chosen.x + block.x + size.x;
}
"""


@pytest.fixture(scope="module")
def structs():
    return cuda.compile(STRUCTS)


def test_what_a_function_takes_by_value_is_counted_to_the_byte(structs):
    x, y = torch.arange(128.0), torch.zeros(32)
    trace = structs.by_value.trace[1, 32](x, y)
    assert trace.tensors["x"].read == 16 * 32 and torch.equal(y, x.view(32, 4).sum(1))
    (read,) = [li for li in trace.lines if li.where == "x"]
    assert (read.requests, read.sectors) == (1, 16)
    trace = structs.pairs.trace[1, 32](x, y)
    assert trace.tensors["x"].read == 8 * 32 and torch.equal(y, x[:64].view(32, 2).sum(1) + 3)


def test_a_struct_with_arrays_is_counted_too_unless_braces_fill_it(structs):
    x, y = torch.rand(128) + 1, torch.zeros(32)
    trace = structs.rows.trace[1, 32](x, y)
    assert trace.tensors["x"].read == 16 * 32 and torch.equal(y, x.view(32, 4)[:, 1] + 1)


def test_a_race_on_what_is_taken_by_value_is_found(structs):
    for guarded in (0, 1):
        trace = structs.merged.trace[1, 64](torch.rand(128), torch.zeros(64), guarded)
        assert trace.shared.read == 8 * 64 and trace.shared.written == 8 * 64
        assert trace.clean == bool(guarded)
    kinds = {
        f.kind for f in structs.merged.trace[1, 64](torch.rand(128), torch.zeros(64), 0).findings
    }
    assert kinds == {"race", "uninitialised"}


def test_structs_are_made_the_same_way_fast_and_traced(structs):
    x, fast, traced = torch.arange(64.0), torch.zeros(16), torch.zeros(16)
    structs.made[1, 16](x, fast)
    trace = structs.made.trace[1, 16](x, traced)
    torch.testing.assert_close(fast, traced)
    assert trace.tensors["x"].read == 16 * 16 + 16 * 12 and trace.clean


def test_fields_given_by_name_stay_possible():
    k = cuda.compile("""
    struct State { float m, l; };
    __global__ void k(float* x) { State s = {.m = 1, .l = 2}; x[threadIdx.x] = s.m + s.l; }""")
    x = torch.zeros(4)
    assert k.trace[1, 4](x).clean and (x == 3).all()


BRACES = """
struct State { float m, l; };
struct Two { State a, b; };
typedef float real;
struct Named { real m, l; };
struct Twice { Named a, b; };
__device__ float last(Two t) { return t.b.l; }
__global__ void k(float* y) {
    Two full = {1, 2, 3, 4}, half = {1, 2}, nested = {{1, 2}};
    float4 list[2] = {1, 2, 3, 4, 5, 6, 7, 8};
    Twice named = {5, 6};
    State zero = {0};
    y[threadIdx.x] = full.b.m + 10 * half.a.l + 100 * list[1].x + 1000 * named.a.l + last(full) +
                     zero.l + nested.b.m;
}"""


def test_braces_that_leave_out_inner_braces_mean_the_same_fast_and_traced():
    """Such a cell is compiled without watched copies, rather than refused or misread."""
    fast, traced = torch.zeros(4), torch.zeros(4)
    k = cuda.compile(BRACES)
    k[1, 4](fast)
    assert k.trace[1, 4](traced).clean and torch.equal(fast, traced)
    assert fast[0] == 3 + 10 * 2 + 100 * 5 + 1000 * 6 + 4


EMPTY = """
__global__ void k(const float* q, const float* v, float* o, float* lse, int n_q, int n_k) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n_q) return;
    float l = 0, sum = 0;
    for (int j = 0; j < n_k; ++j) { l += expf(q[row]); sum += expf(q[row]) * v[j]; }
    o[row] = l > 0 ? sum / l : 0;
    lse[row] = l > 0 ? logf(l) : -INFINITY;
}"""


@pytest.mark.parametrize("traced", [False, True])
def test_no_key_gives_zeros_and_minus_infinity_and_no_query_gives_nothing(traced):
    k = cuda.compile(EMPTY)
    launch = (k.trace if traced else k)[2, 16]
    o, lse = torch.full((20,), float("nan")), torch.full((20,), float("nan"))
    launch(torch.ones(20), torch.zeros(0), o, lse, 20, 0)
    assert (o == 0).all() and (lse == -torch.inf).all()
    none = torch.zeros(0)
    launch(none, torch.ones(5), none.clone(), none.clone(), 0, 5)
    (k.trace if traced else k)[0, 16](none, none, none.clone(), none.clone(), 0, 0)


def test_reading_an_empty_tensor_asks_whether_it_is_empty():
    k = cuda.compile(EMPTY)
    with pytest.raises(cuda.KernelFault, match=r"null pointer: is a tensor empty\?"):
        k[1, 16](torch.zeros(0), torch.zeros(4), torch.zeros(16), torch.zeros(16), 16, 4)


def test_dividing_by_a_size_of_zero_is_told_and_harms_nothing(make):
    k = make("x[0] = threadIdx.x / n;")
    with pytest.raises(cuda.KernelFault, match="divides an integer by zero"):
        k[1, 4](torch.zeros(4), 0)


@pytest.mark.parametrize("place", range(4))
def test_a_view_in_each_argument_in_turn_is_refused_by_name_never_read_silently(place):
    k = cuda.compile(EMPTY)
    good = [torch.ones(8) for _ in range(4)]
    good[place] = torch.ones(8, 2)[:, 0]
    name = ["q", "v", "o", "lse"][place]
    with pytest.raises(cuda.LaunchError, match=rf"^{name} is not contiguous"):
        k[1, 8](*good, 8, 8)
    good[place] = torch.ones(16)[8:]  # a view that is contiguous is as good as any tensor
    k[1, 8](*good, 8, 8)
    assert (good[2] == 1).all()


def test_a_launch_that_is_refused_changed_nothing_and_one_that_ran_did(make):
    """A launch without a GPU either ran or raised: it never looks like a success that wasn't."""
    k, x = make("x[threadIdx.x] = 1;"), torch.zeros(2000)
    with pytest.raises(cuda.LaunchError, match="1500"):
        k[1, 1500](x, 1)
    assert (x == 0).all()
    k[1, 1000](x, 1)
    assert x.sum() == 1000


@pytest.mark.parametrize("n", [1, 2, 17, 31, 33, 65])
def test_an_unguarded_tail_is_found_at_every_size_that_is_no_multiple(make, n):
    k = make("int i = blockIdx.x * 32 + threadIdx.x;\nx[i] = i;")
    found = k.trace[-(-n // 32), 32](torch.zeros(n), n).findings
    assert [f.kind for f in found] == ["out-of-bounds"]
    assert f"x[{n}], 1 past its last element" in found[0].message
