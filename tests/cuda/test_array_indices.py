"""An index outside of an array that the kernel itself declares is told: array, line and length."""

from __future__ import annotations

import pytest
import torch

from labs_lib.cuda import Module
from labs_lib.cuda.indices import array_at
from labs_lib.cuda.rewrite import rewrite

STRUCT = "struct Held { float rows[3]; float after; };"
OUTSIDE = {
    # name: (body, what is said); its second line is the guilty one
    "written past its end": (
        "float out[4];\nfor (int i = 0; i < n; i++) out[i] = i;\nx[0] = out[0];",
        "out[4], 1 past its last element (out has 4 elements)",
    ),
    "read before its start": (
        "float out[4] = {};\nx[0] = out[3 - n];",
        "out[-5], 5 before its start",
    ),
    "too many rows": (
        "float two[4][8] = {};\nx[0] = two[n][0];",
        "two[8], 5 past its last element (two has 4 elements)",
    ),
    "too long a row": (
        "float two[4][8] = {};\nx[0] = two[1][n];",
        "two[1][8], 1 past its last element (two[1] has 8 elements)",
    ),
    "an array in a struct": (
        "Held s = {}; Held* p = &s;\nx[0] = p->rows[n];",
        "p->rows[8], 6 past its last element (p->rows has 3 elements)",
    ),
    "vectors": (
        "float4 v[2] = {};\nx[0] = v[n / 4].x;",
        "v[2], 1 past its last element (v has 2 elements)",
    ),
    "an index from another array": (
        "int which[3] = {0, 1, 4}; float out[4] = {};\nx[0] = out[which[2]];",
        "out[4], 1 past its last element",
    ),
    "shared memory": (
        "__shared__ float held[8];\nheld[threadIdx.x + n] = 1;",
        "held[8], 1 past its last element (held has 8 elements)",
    ),
    "rows of shared memory": (
        "__shared__ float tile[4][8];\ntile[n][0] = 1;",
        "tile[8], 5 past its last element (tile has 4 elements)",
    ),
}
INSIDE = {
    "float4 by a pointer": "float4 v = make_float4(1, 2, 3, 4); float* p = &v.x; x[0] = p[3];",
    "a pointer to the end": (
        "float a[4] = {1, 2, 3, 4}; float sum = 0;\n"
        "for (float* p = a; p != &a[4]; p++) sum += *p;\nx[0] = sum - 6;"
    ),
    "shared rows in one go": (
        "__shared__ float t[2][4][8];\nfor (int i = 0; i < 64; i++) t[0][0][i] = i;\n"
        "x[0] = t[0][7][7] - t[1][3][-8] + sizeof(t[0][0]) / 8 - 15 + 0 * n;"
    ),
    "what is not evaluated": "float a[4] = {}; x[0] = n < 4 ? a[n] : 4;",
}


BODIES = [*(body for body, _ in OUTSIDE.values()), *INSIDE.values()]


@pytest.fixture(scope="module")
def kernels():
    """All of them in one cell, which is built once: `k0`, `k1`, ..."""
    cell = "\n".join([STRUCT, *map(_kernel, range(len(BODIES)))])
    return Module(cell, "sm_80", "cell.cu", traced=True)


def _kernel(number):
    return f"__global__ void k{number}(float* x, int n) {{\n{BODIES[number]}\n}}"


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_outside_of_an_array_is_told_by_array_line_and_length(kernels, name):
    number, (body, said) = list(OUTSIDE).index(name), OUTSIDE[name]
    found = kernels[f"k{number}"].trace[1, 1](torch.zeros(4), 8).findings
    assert [f.kind for f in found] == ["out-of-bounds"]
    line = kernels.source.split("\n")[found[0].line - 1]
    assert said in found[0].message and line == body.split("\n")[1]


@pytest.mark.parametrize("name", INSIDE)
def test_an_index_that_stays_in_memory_of_the_array_is_no_finding(kernels, name):
    x, number = torch.zeros(4), len(OUTSIDE) + list(INSIDE).index(name)
    assert kernels[f"k{number}"].trace[1, 1](x, 8).clean
    assert x[0] == 4


def test_a_name_is_found_where_either_compiler_says_that_the_index_stands():
    text = "void k() {\n    s.two[i][j] = 1;\n}\n"
    line = text.split("\n")[1]
    brackets = [i + 1 for i, letter in enumerate(line) if letter in "[]"]
    assert [array_at(text, 2, column, 1) for column in brackets] == [
        "s.two", "s.two", "s.two[i]", "s.two[i]",
    ]  # fmt: skip
    assert [array_at(text, 2, 5, dimensions) for dimensions in (2, 1)] == ["s.two", "s.two[i]"]
    assert array_at(text, 2, 1, 1) == array_at(text, 9, 1, 1) == ""


def test_rows_of_shared_memory_are_freed_in_their_uses_alone():
    text = "void k() { __shared__ float t[4][8]; float u[4][8]; u[0][1] = t[0][9]; }"
    rewritten = rewrite(text, trace=True)
    assert "u[0][1] = (&t[0][0])[9];" in rewritten and "float t [ 4 ] [ 8 ]" in rewritten
    assert "(&" not in rewrite(text)
