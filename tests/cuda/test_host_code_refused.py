"""What is no device code is refused by name and line, however it is written."""

from __future__ import annotations

import pytest

from labs_lib import cuda
from labs_lib.cuda import ladder
from labs_lib.cuda.reading import problems, refuse

TRICKS = {
    "any file": "#include </etc/passwd>",
    "a file in quotes": '#include "answers.h"',
    "a system header": "#include <unistd.h>",
    "a comment in between": "# /**/ include <unistd.h>",
    "a computed include": "#define H <unistd.h>\n#include H",
    "a digraph": "%:include <unistd.h>",
    "include_next": "#include_next <math.h>",
    "another line number": '#line 7 "x"',
    "a declaration": "extern int x;",
    "a function of the system": 'extern "C" int system(const char*);',
    "a block of them": 'extern "C" { int f(); }',
    "dressed as a device function": 'extern "C" __device__ int f(const char*);',
    "called without a declaration": 'void f() { system("ls"); }',
    "behind a macro": "#define CALL system",
    "joined letters": "ext\\\nern int x;",
    "joined end of a comment": "/* a *\\\n/ extern int x; /* */",
    "joined in a macro": "#define A ext\\\nern",
    "white space behind the backslash": "#define A 1 \\ \n 2",
    "a quote that hides a comment": "#if 0\nit's /*\n#endif\nextern int x;\n// */",
    "a raw string": 'const char* s = R"(/*)"; /* )";*/',
    "a constructor": "__attribute__((constructor)) void f() {}",
    "a constructor in brackets": "[[gnu::constructor]] void f() {}",
    "the runner's state": "void f() { labs_now = 0; }",
    "the runner's namespace": "void f() { host::g_report = 0; }",
    "opened again": "namespace host { }",
    "the counters": 'void __tsan_read4(void*) {}',
    "the compiler's pragmas": '#pragma GCC optimize("O3")',
    "pragmas in code": '_Pragma("GCC poison x")',
    "the compiler's functions": "void* f() { return __builtin_return_address(0); }",
    "a copy that nobody counts": "void f(float* x, float* y) { memmove(x, y, 4); }",
    "the host's algorithms": "void f(float* x, float* y) { std::copy(y, y + 1, x); }",
    "the host's whole library": "using namespace std;",
    "a deleted file": 'void f() { remove("x"); }',
    "a comment that goes on below its #define": "#define A /*\n// */ labs_now\n",
    "an apostrophe in a number": "#define D(x)\nD(1'_) extern int x; D(1'_)",
    "extern in a macro": '#define E extern "C"\n__global__ void k() {}\nE int fork();',
    "another name for a namespace": "namespace L = lab;",
    "a macro for a namespace": "#define A lab\n",
    "digraphs": "struct R <% float v; %>;",
    "digraphs for brackets": "int a<:2:>;",
    "a word of CUDA undone": "#undef memcpy\nvoid f(float* x, float* y) { memcpy(x, y, 4); }",
    "a jump to a number": "void f() { void* p = &&x; goto *p; x:; }",
    "attributes by a macro": '#define G gnu\n[[G::no_sanitize("thread")]] void f();',
    "attributes in halves": "#define O [\nO[gnu::weak]] void f();",
    "a raw string in a macro": '#define S R"(/*)"',
    "assembly": 'void f() { __asm("nop"); }',
}  # fmt: skip
HONEST = [
    "extern __shared__ float s[];",
    "extern __shared__ __align__(16) unsigned char s[];",
    'extern "C" __global__ void k(int n) { if (n) {} }',
    "#pragma unroll 4",
    "#define TWICE(x) \\\n  ((x) + (x))",
    "#include <mma.h>\n#include <cmath>",
    "// it's \"fine\nint x;",
    "int a = 1'000; char c = '\\'';",
    '#if __CUDA_ARCH__ >= 800\n#error "don\'t"\n#endif',
    "int host, labels, index, random; p.remove; q->exit;",
    "float f(float x) { return std::max(std::sqrt(x), std::numeric_limits<float>::lowest()); }",
    "[[nodiscard]] int f();\n[[maybe_unused]] int x = a < ::b;",
    "void f() { goto end; end: ; }",
    "#define A 1 /* one */ // two /*",
    "void f(float* x, const float* y) { memcpy(x, y, 16); memset(x, 0, 4); }",
]


@pytest.mark.parametrize("trick", TRICKS)
def test_no_way_of_writing_hides_host_code(trick):
    found = list(problems(TRICKS[trick]))
    assert found and all(line >= 1 and why for line, why in found)


@pytest.mark.parametrize(
    "line",
    [
        '#if __has_include("/labs/run.json")\n#endif',
        "#ifdef __has_include\n#if __has_include(<labs.h>)\n#endif\n#endif",
        "#define ASK __has_include_next\n#if ASK(<labs.h>)\n#endif",
        '#if __has_embed("/labs/run.json")\n#endif',
    ],
)
def test_no_kernel_asks_which_files_there_are(line):
    """Where it is graded there are others: it would be another kernel there."""
    with pytest.raises(cuda.CompileError, match="which files"):
        refuse(f"{line}\n__global__ void k(float* x) {{ x[0] = 1; }}\n")


@pytest.mark.parametrize("text", HONEST)
def test_device_code_is_let_by(text):
    assert not list(problems(text))


@pytest.mark.parametrize("rung", ladder.RUNGS, ids=lambda rung: rung.name)
def test_every_bundled_kernel_is_device_code(rung):
    assert not list(problems(rung.source))


def test_a_cell_with_host_code_is_refused_at_its_line_and_never_compiled(monkeypatch):
    monkeypatch.setattr(cuda.kernel.build, "host_library", lambda *_, **__: pytest.fail("built"))
    text = "__global__ void k(float* x) {\n    x[0] = 1;\n}\n#include <unistd.h>\n"
    with pytest.raises(cuda.CompileError, match="unistd") as caught:
        cuda.compile(text)
    assert caught.value.line == 4


def test_reading_comes_to_its_end_however_long_the_text_is():
    """Where the time grew with the square of the length, this would take hours."""
    list(problems("a'" * 50_000))
    list(problems("/*" * 50_000 + "\\\n" * 1000))
    list(problems("#define A \\\n" * 20_000))
