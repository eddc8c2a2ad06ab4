"""Reading and rewriting CUDA C++: lines stay, comments are no code, what can't run is named."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_lib.cuda.errors import CompileError
from labs_lib.cuda.rewrite import rewrite
from labs_lib.cuda.source import find_kernels, instantiate
from labs_lib.cuda.tokens import tokenize

AWKWARD = """// __shared__ float no[3]; __global__ void no() {}
/* for (;;) { __shared__
   float no; } */
#define TILE 16  // while (1)
#define LONG(a) \\
    for (a;;)
template <int N, typename T = float>
__global__ void __launch_bounds__(256, 2)
k(const T* __restrict__ q, T *o, const int n,
  float scale) {
    __shared__ float a[TILE][TILE + 1],
                     b;  // two
    static __shared__ alignas(16) float4 c[N];
    extern __shared__ __align__(16) unsigned char s[];
    for (int i = 0; i < n; ++i) o[i] = "for (;;) __shared__"[0] + 'w' + 1'000;
    while (n) break;
    do { o[0] = R"(while (1) __shared__)"[0]; } while (o[0] < 3);
    for (;;) break;
}
__global__ void only_declared(float* x);
"""


@pytest.mark.parametrize("trace", [False, True])
def test_rewriting_never_moves_a_line(trace):
    lines = rewrite(AWKWARD, trace=trace).split("\n")
    assert len(lines) == len(AWKWARD.split("\n"))
    for number, start in [(4, "#define TILE"), (7, "template"), (9, "k(const"), (19, "}")]:
        assert lines[number - 1].startswith(start)


@given(st.text(alphabet="/*\"'\\\n {}()<>#ab_1;=", max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_cut_without_loss(text):
    tokens = tokenize(text)
    assert all(text[t.start : t.end] == t.text for t in tokens)
    assert all(t.line == text.count("\n", 0, t.start) + 1 for t in tokens)
    assert all(a.end <= b.start for a, b in itertools.pairwise(tokens))


def test_comments_and_strings_are_never_taken_for_code():
    text = rewrite(AWKWARD, trace=True)
    assert "// __shared__ float no[3]; __global__ void no() {}" in text
    assert '"for (;;) __shared__"[0]' in text
    assert 'R"(while (1) __shared__)"' in text


def test_a_signature_is_read_through_attributes_templates_and_line_breaks():
    kernels = find_kernels(AWKWARD)
    assert list(kernels) == ["k"]
    k = kernels["k"]
    assert [p.name for p in k.parameters] == ["q", "o", "n", "scale"]
    assert [(p.pointer, p.const) for p in k.parameters[:2]] == [(True, True), (True, False)]
    assert not k.ready
    made = instantiate(k, ["64"])
    assert made.spelled == "k<64, float>" and made.parameters[0].type == "float"


def test_a_type_by_another_name_is_still_known():
    text = "using real = float; typedef const real* in_t;\n#define OUT half\n"
    text += "__global__ void k(in_t a, OUT* b, unsigned long long c) {}"
    a, b, c = find_kernels(text)["k"].parameters
    assert (a.type, a.pointer) == ("float", True)
    assert b.type == "half" and c.type == "unsigned long long"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('asm("nop;");', "asm"),
        ("float* p = new float[3];", "new"),
        ("void* p = malloc(3);", "malloc"),
        ("child<<<1, 2>>>(x);", "<<<"),
        ("cudaMalloc(&x, 3);", "cudaMalloc"),
        ("auto g = cooperative_groups::this_grid();", "cooperative_groups"),
        ("x[0] = tex2D<float>(t, 0, 0);", "tex2D"),
        ("x[0] = __shfl_down(x[0], 1);", "__shfl_down"),
    ],
)
def test_what_is_not_emulated_is_refused_by_name_and_line(line, name):
    with pytest.raises(CompileError, match=f"line 2: `{name}`") as caught:
        rewrite(f"__global__ void k(float* x) {{\n{line}\n}}")
    assert caught.value.line == 2


def test_shared_memory_with_an_initial_value_is_refused():
    with pytest.raises(CompileError, match=r"line 1: .*initial value"):
        rewrite("__global__ void k() { __shared__ float a = 0; }")


def test_a_source_without_a_kernel_says_what_a_kernel_is():
    with pytest.raises(CompileError, match="__global__"):
        find_kernels("void f(float* x) {}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n__global__ void k(\n    float** x) {}", "line 3: x is a pointer to pointers"),
        ("\n__global__ void k", "line 2: a __global__ function has no parameter list"),
    ],
)
def test_what_is_no_kernels_signature_is_told_with_its_line(text, words):
    with pytest.raises(CompileError, match=words):
        find_kernels(text)
