"""Kernels put together at random: bytes are those known by construction, and nothing hangs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from labs_lib import cuda
from labs_lib.cuda.errors import CudaError
from labs_lib.cuda.rewrite import rewrite
from labs_lib.cuda.source import find_kernels

# Without shrinking: each try goes through the compiler.
BOUNDED = {"deadline": None, "derandomize": True, "database": None, "phases": [Phase.generate]}
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
WIDTH = 64  # elements of a tensor that a block may own

# What a statement does: its text, with `e` an index below 64, and the bytes of one execution.
STATEMENTS = [
    ("sum += x[{e}];", {"x": (4, 0)}),
    ("sum += x[{e}] + x[{e}] * 2;", {"x": (8, 0)}),
    ("y[own] = sum;", {"y": (0, 4)}),
    ("y[own] += 1;", {"y": (4, 4)}),
    ("y[own]++;", {"y": (4, 4)}),
    ("sum += (float)h[{e}];", {"h": (2, 0)}),
    ("sum += __half2float(h[{e}] + h[{e}]);", {"h": (4, 0)}),
    ("{{ float4 four = v[{e}]; sum += four.x; }}", {"v": (16, 0)}),
    ("sum += first(v[{e}]);", {"v": (16, 0)}),
    ("sum += v[{e}].z;", {"v": (4, 0)}),
    ("sum += x[{e}] > 2 ? 1 : 0;", {"x": (4, 0)}),
    ("s[t] = sum;", {"shared": (0, 4)}),
    ("s[t] += 2;", {"shared": (4, 4)}),
    ("sum += s[t];", {"shared": (4, 0)}),
    ("sum += __shfl_sync(1u << (t % 32), sum, t % 32);", {}),
    ("// for (;;) x[0] = 1; /* s[t] */", {}),
    ("sum += x[twice({e}) % 64];", {"x": (4, 0)}),
    ("int unused{u} = 3; (void)unused{u};", {}),
]
INDICES = ["t % 64", "(7 * t + 3) % 64", "5", "(t ^ 1) % 64", "(63 - t % 64)", "blockIdx.x"]


@dataclass
class Node:
    """A statement, or a loop or condition around others; `times(t)` is how often it is entered."""

    kind: str
    number: int
    index: str
    body: list

    def text(self, depth: int = 1, path: str = "") -> str:
        pad, name = "    " * depth, f"i{depth}{path}"
        if self.kind == "do":
            template, _ = STATEMENTS[self.number]
            return pad + template.format(e=self.index, u=name)
        inside = "\n".join(n.text(depth + 1, f"{path}_{j}") for j, n in enumerate(self.body))
        n = self.number
        head, tail = {
            "if": (f"if (t < {7 * n}) {{", "}"),
            "unless": (f"if (t % 3 != {n % 3}) {{", "} else { (void)0; }"),
            "for": (f"for (int {name} = 0; {name} < {n}; ++{name}) {{", "}"),
            "while": (f"int {name} = 0; while ({name} < t % {n + 1}) {{ ++{name};", "}"),
            "dowhile": (f"int {name} = 0; do {{", f"}} while (++{name} < {n});"),
            "continue": (
                f"for (int {name} = 0; {name} < 4; ++{name}) {{ if ({name} == {n % 4}) continue;",
                "}",
            ),
            "switch": (f"switch (t % {n + 1}) {{ case 0: {{", "break; } default: break; }"),
        }[self.kind]
        return f"{pad}{head}\n{inside}\n{pad}{tail}"

    def count(self, t: int, times: int, total: dict) -> None:
        n = self.number
        if self.kind == "do":
            for name, (read, written) in STATEMENTS[n][1].items():
                total[name][0] += times * read
                total[name][1] += times * written
            return
        times *= {
            "if": int(t < 7 * n), "unless": int(t % 3 != n % 3), "for": n, "while": t % (n + 1),
            "dowhile": max(1, n), "continue": 3, "switch": int(t % (n + 1) == 0),
        }[self.kind]  # fmt: skip
        for node in self.body:
            node.count(t, times, total)


KINDS = ["if", "unless", "for", "while", "dowhile", "continue", "switch"]


def nodes(depth):
    leaf = st.builds(
        Node, st.just("do"), st.integers(0, len(STATEMENTS) - 1), st.sampled_from(INDICES),
        st.just([]),
    )  # fmt: skip
    if depth == 0:
        return leaf
    inner = st.lists(nodes(depth - 1), min_size=1, max_size=3)
    loop = st.builds(Node, st.sampled_from(KINDS), st.integers(0, 4), st.just(""), inner)
    return leaf | loop


PROGRAMS = st.lists(st.lists(nodes(3), min_size=1, max_size=6), min_size=10, max_size=10)
HEAD = """#include <cuda_fp16.h>
__device__ float first(float4 v) { return v.x; }
__device__ int twice(int i) { return 2 * i; }
"""
KERNEL = """__global__ void k%d(const float* x, const half* h, const float4* v, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x, own = blockIdx.x * 64 + t;
    float sum = 0;
    s[t] = 0;
%s
}
"""


def arguments(grid):
    numbers = np.random.Generator(np.random.PCG64(grid)).integers(0, 4, (3, 256))
    x, h, v = (torch.from_numpy(n).float() for n in numbers)
    return [
        x[:WIDTH].clone(),
        h[:WIDTH].half(),
        v.view(WIDTH, 4).clone(),
        torch.zeros(grid * WIDTH),
    ]


def expected(program, grid, block):
    total = {name: [0, 0] for name in ("x", "h", "v", "y", "shared")}
    for t in range(block):
        for node in program:
            node.count(t, grid, total)
        total["shared"][1] += 4 * grid
    return {name: tuple(pair) for name, pair in total.items()}


@pytest.mark.slow
@given(PROGRAMS, st.integers(1, 3), st.sampled_from([1, 5, 32, 33, 64]))
@settings(max_examples=5, suppress_health_check=SLOW, **BOUNDED)
def test_bytes_of_any_kernel_are_those_known_by_construction(programs, grid, block):
    """Ten kernels go through the compiler together; each runs fast and traced."""
    texts = [
        KERNEL % (i, "\n".join(n.text(1, f"_{j}") for j, n in enumerate(p)))
        for i, p in enumerate(programs)
    ]
    module = cuda.compile(HEAD + "".join(texts))
    for i, program in enumerate(programs):
        fast, traced = arguments(grid), arguments(grid)
        module[f"k{i}"][grid, block](*fast)
        trace = module[f"k{i}"].trace.steps(most=65_536)[grid, block](*traced)
        assert trace.clean, f"{trace}\n{texts[i]}"
        counted = {n: (t.read, t.written) for n, t in trace.tensors.items()}
        counted["shared"] = (trace.shared.read, trace.shared.written)
        assert counted == expected(program, grid, block), texts[i]
        assert torch.equal(fast[3], traced[3]), texts[i]
        agree(trace, grid)


def agree(trace, grid):
    """The picture's elements and the log's steps sum up to the counts."""
    for name, tiles in trace.tiles.items():
        moved = (np.sum(tiles.reads) * tiles.item, np.sum(tiles.writes) * tiles.item)
        traffic = trace.tensors[name]
        if name != "v":  # a quarter of a float4 is an element of its tensor
            assert moved == (traffic.read, traffic.written), name
    if grid > 1 or not trace.log.whole[0]:
        return
    seen = {}
    for warp in trace.log.warps((0, 0, 0)):
        for r in trace.log.requests((0, 0, 0), warp):
            where = "shared" if r.site.shared else r.site.name
            row = seen.setdefault((r.site.line, r.site.what, where), [0, 0, 0])
            row[0] += 1
            row[1] += 0 if r.site.shared else len(r.sectors)
            row[2] += r.passes if r.site.shared else 0
    lines = {(li.line, li.what, li.where): [li.requests, li.sectors, li.wavefronts]
             for li in trace.lines}  # fmt: skip
    assert seen == lines


SOUP = [
    "__shared__", "__global__", "__device__", "extern", "float", "int", "s", "k", "x", "[", "]",
    "(", ")", "{", "}", ";", ",", "=", "*", "for", "while", "do", "if", "else", "struct", "union",
    "template", "<", ">", "typename", "::", ":", "3", '"a"', "'b'", "// c\n", "/* d */", "\n",
    "#define A", "\\\n", "const", "static", "operator", "alignas(16)", "constexpr", ".", "->",
    "void", "__launch_bounds__", "namespace", "return", "...", "<<<", "cuda",
]  # fmt: skip


@given(st.lists(st.sampled_from(SOUP), max_size=60), st.booleans())
@settings(max_examples=400, suppress_health_check=SLOW, **BOUNDED)
def test_whatever_stands_in_a_cell_is_rewritten_line_by_line_or_refused(words, trace):
    text = " ".join(words)
    for read in (lambda: rewrite(text, trace=trace), lambda: find_kernels(text)):
        try:
            made = read()
        except CudaError:
            continue
        if isinstance(made, str):
            assert made.count("\n") == text.count("\n")
            words_left = [
                w for w in words if w.isidentifier() and w not in ("__shared__", "extern")
            ]
            assert all(word in made for word in words_left)


SIZE = st.integers(0, 5) | st.sampled_from([16, 31, 33, 64, 65, 1024, 1025, 65_536, -1])
COUNT = """
extern __shared__ int room[];
__global__ void k(int* seen, int* threads) {
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    if (threadIdx.x + threadIdx.y + threadIdx.z == 0) atomicAdd(&seen[block % 64], 1);
    atomicAdd(threads, 1);
}"""


@given(
    st.tuples(SIZE, SIZE, SIZE) | st.tuples(SIZE) | SIZE,
    st.tuples(SIZE, SIZE, SIZE) | st.tuples(SIZE, SIZE) | SIZE,
    st.integers(0, 4096) | st.sampled_from([49_152, 163 * 1024, 163 * 1024 + 1, -1]),
)
@settings(max_examples=60, suppress_health_check=SLOW, **BOUNDED)
def test_any_geometry_is_launched_whole_or_refused(grid, block, shared):
    k = cuda.compile(COUNT)
    seen, threads = torch.zeros(64, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    blocks, size = (int(np.prod(g if isinstance(g, tuple) else (g,))) for g in (grid, block))
    if blocks * size > 20_000 and size <= 1024:
        return  # legal, and only long
    try:
        k[grid, block, shared](seen, threads)
        trace = k.trace[grid, block, shared](seen, threads)
    except cuda.LaunchError:
        assert seen.sum() == threads.sum() == 0
        return
    assert seen.sum() == 2 * blocks and threads.item() == 2 * blocks * size
    assert trace.clean and trace.tensors["threads"].atomic == 4 * blocks * size
