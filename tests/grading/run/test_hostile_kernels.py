"""Kernels that want a rule kept without keeping it: each was once marked as right."""

from __future__ import annotations

import shutil

import pytest
import torch
from kernel_course import RIGHT, graded, handed_in, install

from labs_lib import cuda
from labs_lib.answers import answer, edited
from labs_lib.checking.oracle import oracle_for
from labs_lib.checking.verdict import judge
from labs_lib.cuda import build
from labs_lib.cuda.reading import HEADERS
from labs_lib.exercises import exercise, lab09_rules
from labs_lib.exercises.inputs import rules_drawn_from
from labs_lib.grading.reading.kernel_text import doubts

TILED, TRANSPOSE = "lab09.scores_tiled", "lab09.transpose_without_conflicts"
NAIVE = answer("lab09.scores_naive").reference.replace("scores_naive", "scores_tiled")


def outcome(name, text):
    item = exercise(name)
    return judge(item, text, oracle_for(item)).outcome


@pytest.mark.parametrize(
    ("name", "planned"),
    [
        ("scores_tiled", lab09_rules.SCORES),
        ("transpose_without_conflicts", lab09_rules.MATRIX),
        ("softmax_rows", lab09_rules.ROWS),
        ("softmax_rows_by_shuffles", lab09_rules.ROWS_BY_WARPS),
    ],
)
def test_rules_are_measured_where_outputs_are_compared(name, planned):
    """Whoever does nothing in the launch of a rule, and so keeps it, is wrong in a case."""
    item = exercise(f"lab09.{name}")
    for seed in (0, 5):
        with rules_drawn_from(seed):
            of_rule = planned()
        launches = [item.launch(*case.args) for case in item.make_cases(seed)]
        same = [one for one in launches if one.arguments[0].shape == of_rule.arguments[0].shape]
        assert any(one.arguments[0].equal(of_rule.arguments[0]) for one in same)
        assert all(one.grid == of_rule.grid for one in same)


def test_a_kernel_that_knows_the_launch_of_a_rule_is_wrong_there():
    known = lab09_rules.SCORES().arguments[0].flatten()[0].item()
    lazy = edited(NAIVE, "float sum = 0.0f;", f"if (q[0] == {known!r}f) return; float sum = 0.0f;")
    assert outcome(TILED, NAIVE) == outcome(TILED, lazy) == "FAIL"


# What a compiled kernel needs and keeps ---------------------------------------------------------

KERNEL = "\n__global__ void k(float* x) { x[0] = f(x); }"
PAIR = "struct P { float a, b; };\nstruct Q { P p; float c; };\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("float f(float* x) { float b[2]; std::move(x, x + 2, b); return b[0]; }", "memmove"),
        ("namespace S = std; float f(float* x) { return S::feof(0); }", "feof"),
        ('#define M int getpid(void); void g()\nextern "C" M { }\n#define nice getpid\n'
         "float f(float* x) { return nice(); }", "getpid"),
    ],
)  # fmt: skip
def test_what_a_compiled_kernel_calls_is_seen_however_it_is_written(text, word):
    with pytest.raises(cuda.CompileError, match=word):
        cuda.compile("#include <algorithm>\n" + text + KERNEL).library(True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("__device__ float tile[4];\nfloat f(float* x) { return tile[0]; }", "numbers in tile"),
        ("float f(float* x) { static float tile[4]; return tile[1]; }", "numbers in tile"),
        ("struct S { static inline float s; }; float f(float*) { return S::s; }", "numbers in s"),
        (PAIR + "float f(float* x) { Q q = {1, 2, 3}; return q.c; }", "copies uncounted"),
        ("constexpr float A = 2;\n__device__ const float B[2] = {A, 1};\n"
         "float f(float* x) { __shared__ float s[4]; s[0] = B[0]; return std::max(s[0], A); }", ""),
    ],
)  # fmt: skip
def test_what_a_trace_does_not_count_is_told(text, told):
    found = build.remarks(cuda.compile(text + KERNEL).library(True))
    assert told in " ".join(found) if told else not found


@pytest.mark.parametrize("header", sorted(HEADERS - {"labs/mma.h"}))
def test_every_header_that_may_be_included_leaves_our_words_alone(header):
    cuda.compile(
        f"#include <{header}>\n__global__ void k(float* x, const float* y) {{\n"
        '    assert(x != y); memcpy(x, y, 4); memset(x, 0, 4); printf("%d", 3);\n}\n'
    ).library(True)


@pytest.mark.parametrize("form", ["%n", "%d%5$hhn", "%*d%lln", "%%%d%-5.3n"])
def test_printf_stores_nowhere(form):
    text = f'__global__ void k(int* x) {{ x[0] = printf("{form}", 1, x + 1, 2, x + 1, x + 1); }}'
    with pytest.raises(cuda.KernelFault, match="%n"):
        cuda.compile(text)[1, 1](torch.zeros(2, dtype=torch.int32))


def test_printf_tells_how_many_values_it_took_and_not_what_they_are(capfd):
    x = torch.tensor([0, 0x41414141, 0], dtype=torch.int32)
    text = '__global__ void k(int* x) { x[0] = printf("%%n %d %s|", 7, (const char*)(x + 1)); }'
    cuda.compile(text)[1, 1](x)
    assert x[0] == 2


def test_a_library_that_never_comes_up_is_stopped(monkeypatch):
    monkeypatch.setenv("LABS_CUDA_SECONDS", "0.5")
    text = "int f() { volatile int on = 1; while (on) {} return 0; }\nint y = f();\n"
    with pytest.raises(cuda.KernelFault):
        cuda.compile(text + "__global__ void k(float* x) { x[0] = 1; }")[1, 1](torch.zeros(1))


# Pointers and functions made of something else --------------------------------------------------

STRUCT = "struct R { float v[1]; };\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (STRUCT + "float f(R r); float g(const float* k) { return f(*(const R*)k); }", "const R *"),
        (STRUCT + "float g(const float* k) { return f((const R&)k[0]); }", "const R &"),
        (STRUCT + "float g(float* k) { return f(reinterpret_cast<R&>(k[0])); }", "R &"),
        ("template <class T> struct W { T v; };\nvoid f(float* k) { (W<float>*)k; }", "W < float"),
        ("void f(const float* k, long n) { float x = *(decltype(k))n; }", "decltype"),
        ("typedef float* P;\nvoid f(long n) { P p = (P)n; }", "a name for a pointer type"),
        ("using P = const float*;\nvoid f(long n) { P p = (P)n; }", "a name for a pointer type"),
        ("#define P float*\nvoid f(long n) { P p = (P)n; }", "a macro for a pointer"),
        ("union U { long n; float* p; };", "a union with more than numbers"),
        ("using F = void(int);\nunion U { long n; F f; };", "a name for a type of functions"),
        ("void f(const float* k) { const void* p = k; }", "a pointer to void"),
        ("void f(long n) { float* p; memcpy(&p, &n, 8); }", "copied into the pointer p"),
        ("float g(float x) { return x; }\nvoid f() { auto h = g; }", "the function g as a value"),
        ("float g(float x) { return x; }\nvoid f() { auto h = &g; }", "g"),
        ("void f(void (*)(int)) {}", "a pointer to a function"),
        ("struct A { virtual float f(); };", "virtual"),
        ("struct A { float x; };\nfloat A::* p;", "a pointer to a member"),
    ],
)
def test_pointers_made_of_something_else_are_doubts(text, word):
    assert any(word in doubt for doubt in doubts(text)), doubts(text)


@pytest.mark.parametrize(
    "text",
    [
        "__device__ float dot(float4 a, const float4& b) { return a.x * b.x; }",
        "struct M { float m, l; M() = default; M(const M&) = default; };",
        STRUCT + "__device__ R add(R a, const R& b) { a.v[0] += b.v[0]; return a; }",
        "template <int n> __device__ float g(float x) { return x * n; }\n"
        "__device__ float f(float x) { return g<4>(x); }",
        "union Bits { float4 v; float f[4]; };\nunion { unsigned u; float x; } both;",
        "using Tile = float[16][17];\ntypedef unsigned int word;",
        "void f(float* x, int a, int b) { x[0] = (a * b) + (x[a] * x[b]); x[1] = (a & b) == 0; }",
        "void f(float (*rows)[33]) { float (*t)[33] = rows; t[0][1] = 2; }",
        "template <class F> __device__ float twice(F f, float x) { return f(f(x)); }\n"
        "__device__ float h(float x) { return twice([](float y) { return y + 1; }, x); }",
        "void f(float* x) { float4 v; memcpy(&v, x, 16); }",
        "#define AT(m, r, c) ((m)[(r) * 16 + (c)])\nfloat f(float* m) { return AT(m, 1, 2); }",
    ],
)
def test_types_of_ones_own_are_no_doubt(text):
    assert doubts(text) == []


def test_reads_for_show_make_up_for_no_waste():
    """Ten reads of one number for each that is fetched across the rows."""
    text = """
__global__ void transpose_without_conflicts(const float* a, float* b, int rows, int cols) {
    int x = blockIdx.x * 32 + threadIdx.y, y = blockIdx.y * 32 + threadIdx.x;
    for (int j = 0; j < 32; j += 8) {
        float nothing = 0.0f;
        if (x + j < cols && y < rows)
            for (int i = 0; i < 11; i++) nothing += a[i < 10 ? 0 : y * cols + x + j] * (i > 9);
        if (x + j < cols && y < rows) b[(x + j) * rows + y] = nothing;
    }
}
"""
    item = exercise(TRANSPOSE)
    found = judge(item, text, oracle_for(item))
    assert found.outcome == "FAIL" and "byte that your kernel reads" in str(found), str(found)


# From a notebook to a status --------------------------------------------------------------------

ODD = {
    "other_line_ends": RIGHT.replace("\n", "\r\n"),
    "tabs": RIGHT.replace("    ", "\t"),
    "words_in_a_comment": RIGHT + "// extern asm goto lab:: it's __attribute__ /*\n",
    "all_kinds_of_honest_things": "#include <cmath>\n#include <cstdio>\n#include <cuda_runtime.h>\n"
    "#define MOST(a, b) ((a) > (b) ? (a) : (b))\nconstexpr float TINY = 1e-6f;\n"
    "struct State { float m, l; };\n"
    "__device__ State join(State a, State b) { return {fmaxf(a.m, b.m), a.l + b.l}; }\n"
    "__global__ void not_used(float* x) { x[threadIdx.x] = MOST(1, 2) * TINY; }\n" + RIGHT,
}
DOUBTFUL = {
    "keeps_numbers": "__device__ float kept[4];\n" + RIGHT,
    "hides_copies": PAIR + "__device__ Q q() { Q z = {1, 2, 3}; return z; }\n" + RIGHT,
    "goes_to": RIGHT.replace("float sum = 0.0f;", "float sum = 0.0f; goto end; end: ;"),
}


@pytest.mark.slow
@pytest.mark.parametrize("level", ["bubblewrap", "process-limits"])
def test_odd_kernels_pass_and_doubtful_ones_are_looked_at(tmp_path, monkeypatch, level):
    if level == "bubblewrap" and shutil.which("bwrap") is None:
        level = None
    course = install(tmp_path / "home", monkeypatch)
    texts = ODD | DOUBTFUL
    notebooks = {
        name: handed_in(course, row_products=f"%%cuda\n{text}") for name, text in texts.items()
    }
    found = graded(course, tmp_path, notebooks, level=level)
    status = {name: rows["lab90.row_products"].status for name, rows in found.items()}
    wanted = dict.fromkeys(ODD, "pass") | dict.fromkeys(DOUBTFUL, "needs-review")
    assert status == wanted, {n: r["lab90.row_products"].lines for n, r in found.items()}
