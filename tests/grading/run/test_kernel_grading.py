"""Kernels are graded as text, by a process that ran no line of the student's Python."""

from __future__ import annotations

import kernel_course
import nbformat
import pytest
from kernel_course import ANSWER, DOUBLE, KERNEL, RIGHT, graded, handed_in

from labs_lib.answers import edited
from labs_lib.cuda import BuildError
from labs_lib.grading.course import stub_of
from labs_lib.grading.expected import key as keys
from labs_lib.grading.judge import judge, without_run
from labs_lib.grading.reading.kernel_text import doubts
from labs_lib.grading.reading.structure import structure
from labs_lib.grading.reading.transplant import kernel_text, transplant
from labs_lib.grading.run import CellRun
from labs_lib.notebook.cells import exercise_name, role
from labs_lib.notebook.matching import Answer, Piece, match

NAMED = [w for w in ANSWER.wrong if w.name in ("no_scale", "no_barrier_in_the_tree", "greedy")]
TWICE = "def double(x):\n    return 2 * x"


@pytest.fixture
def course(tmp_path, monkeypatch):
    return kernel_course.install(tmp_path / "home", monkeypatch)


def cuda(text):
    return f"%%cuda\n{text}"


def answered(course, **answers):
    return match(handed_in(course, **answers), course.notebook, course.asked)


# What is run ------------------------------------------------------------------------------------


def test_kernels_come_before_all_python_of_the_student_and_after_all_of_ours(course):
    made = transplant(course.notebook, answered(course, double=TWICE), {}, course.kernels)
    order = [(role(cell), exercise_name(cell)) for cell in made.cells]
    assert order == [
        ("setup", ""), ("answer", KERNEL), ("check", KERNEL), ("answer", DOUBLE), ("check", DOUBLE),
    ]  # fmt: skip


def test_the_line_of_the_magic_is_ours(course):
    answers = answered(course, row_products=f"\n%%cuda module --arch sm_90 --only other\n{RIGHT}")
    made = transplant(course.notebook, answers, {}, course.kernels)
    (cell,) = [c for c in made.cells if c.metadata.labs.get("exercise") == KERNEL][:1]
    assert cell.source == f"%%cuda --traced --only row_products\n{RIGHT}"


def test_python_around_a_kernel_is_left_out(course):
    whole = handed_in(course)
    at = next(n for n, c in enumerate(whole.cells) if exercise_name(c) == KERNEL)
    whole.cells.insert(at + 1, nbformat.v4.new_code_cell("import os\nos._exit(0)\nx = 1"))
    whole.cells.insert(at, nbformat.v4.new_code_cell("def helper():\n    pass"))
    answers = match(whole, course.notebook, course.asked)
    made = transplant(course.notebook, answers, {}, course.kernels)
    first = [c.source for c in made.cells if c.metadata.labs.get("exercise") == KERNEL]
    assert first == [f"%%cuda --traced --only row_products\n{RIGHT}", first[1]]


def test_the_cell_with_the_kernel_counts_among_several():
    other = cuda("__global__ void other(float* x) {}\n")
    pieces = (Piece(cuda(RIGHT), 1, ""), Piece(other, 2, ""), Piece("x = 1", 3, ""))
    assert kernel_text(Answer(KERNEL, pieces), "row_products") == RIGHT
    assert kernel_text(Answer(KERNEL, pieces[1:]), "row_products").startswith("__global__")
    assert kernel_text(Answer(KERNEL, pieces[2:]), "row_products") == ""
    stub = Piece("%%cuda\n__global__ void row_products(float* x) {\n    // later\n}\n", 4, "")
    assert kernel_text(Answer(KERNEL, (*pieces, stub)), "row_products") == RIGHT
    assert "later" in kernel_text(Answer(KERNEL, (stub,)), "row_products")


@pytest.mark.parametrize(
    ("text", "status", "word"),
    [
        (RIGHT, "fail", "%%cuda"),
        ("# comment\n" + cuda(RIGHT), "fail", "%%cuda"),
        ("row_products = 3", "fail", "%%cuda"),
        (f'row_products = cuda.compile("""{RIGHT}""")', "needs-review", "compiled by Python"),
        (cuda(RIGHT + "// " + "x" * 40_000), "needs-review", "characters"),
    ],
)
def test_what_is_no_cell_of_cuda_has_a_status_of_its_own(course, text, status, word):
    item = next(e for e in course.exercises if e.name == KERNEL)
    answers = answered(course, row_products=text)
    found = without_run(item, answers[KERNEL])
    assert (found.status, word in found.lines[0]) == (status, True)
    made = transplant(course.notebook, answers, {}, course.kernels)
    assert status == "needs-review" or not any(
        c.metadata.labs.get("exercise") == KERNEL for c in made.cells
    )


def test_a_stub_with_other_comments_is_not_attempted(course):
    stub = next(i.stub for i in course.asked if i.name == KERNEL)
    (answers, spaced) = (
        answered(course, row_products=text)[KERNEL]
        for text in ("%%cuda\n// later\n", stub.replace("    // your", "\n    // your"))
    )
    assert not answers.attempted
    assert spaced.attempted, "its text differs; the check tells that nothing was written"


def test_python_answers_are_not_read_for_what_a_kernel_says(course):
    kernel = edited(RIGHT, "float sum", "// open? eval(compile)\n    float sum")
    answers = answered(course, row_products=cuda(kernel))
    double = next(e for e in course.exercises if e.name == DOUBLE)
    assert structure(double, answers).doubts == ()


# What its text may hold -------------------------------------------------------------------------


@pytest.mark.parametrize("program", [RIGHT, *(w.program for w in (*ANSWER.wrong, *ANSWER.right))])
def test_ordinary_kernels_raise_no_doubt(program):
    assert doubts(program) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("#define JOIN(x, y) x##y\n", "pastes names"),
        ("void f(float* x) { secret(x); }", "calls secret"),
        ("void f(float* x) { char* p = (char*)x; }", "char *"),
        ("void f(float* x) { long* p = reinterpret_cast<long*>(x); }", "long *"),
        ("void f() { float* p = (float*)(size_t)4096; }", "float *"),
        ("void f() { float* p = (float*)4096; }", "float *"),
        ("void f(float** x) {}", "pointer to pointers"),
        ("void f() { void (*g)(int) = h; }", "pointer to a function"),
        ("void f(float* x) { uintptr_t at = (uintptr_t)x; }", "uintptr_t"),
        ('extern "C" int system(const char*);', "line 1"),
        ("x" * 30_001, "longer than"),
    ],
)
def test_ways_to_what_counts_are_doubts(text, word):
    assert any(word in doubt for doubt in doubts(text)), doubts(text)


@pytest.mark.parametrize(
    "text",
    [
        "float4 f(const float* x) { return *reinterpret_cast<const float4*>(x); }",
        "float4 f(const float* x) { return *(const float4*)x; }",
        "struct Pair { float a, b; };\nPair f(float x) { return Pair{x, x}; }",
        "#define SQUARE(x) ((x) * (x))\nfloat f(float x) { return SQUARE(x) * rsqrtf(x); }",
        "float f(float x) { auto g = [&](float y) { return x + y; }; return g(1.0f); }",
        "float f(float a, const float* p) { return a * *p; }",
        "size_t f(int n) { return (size_t)n * 4; }",
        "float4 f(float x) { return make_float4(x, x, x, x); }",
        "float f(__half h) { return __half2float(h) + __shfl_xor_sync(~0u, 1.0f, 4); }",
    ],
)
def test_device_code_of_all_kinds_raises_no_doubt(text):
    assert doubts(text) == []


# What comes of it -------------------------------------------------------------------------------


def test_no_compiler_is_the_machines_fault_in_the_run_and_before_it(course, monkeypatch, tmp_path):
    answers = answered(course)
    runs = [
        CellRun(0, KERNEL, "answer", "error", ename="BuildError", evalue="no compiler"),
        CellRun(1, KERNEL, "check", "mismatch", stdout=f"{KERNEL}\nNOT ATTEMPTED\n"),
        CellRun(2, DOUBLE, "check", "ok"),
    ]
    key = keys.Key(course, {}, {}, None)
    outcomes = {one.exercise: one for one in judge(key, answers, runs)}
    assert outcomes[KERNEL].status == "infrastructure" and outcomes[DOUBLE].status == "pass"

    def without(*_, **__):
        raise BuildError("Kernels need a C++ compiler; sudo apt install g++")

    monkeypatch.setattr("labs_lib.grading.expected.keys.make_key", without)
    found = graded(course, tmp_path, {"ann": handed_in(course)})["ann"]
    assert {one.status for one in found.values()} == {"infrastructure"}
    assert "apt install" in found[KERNEL].lines[0]


@pytest.mark.slow
def test_a_class_that_hands_in_kernels_of_all_kinds(course, tmp_path):
    """One run, since a lab's key is made once for all."""
    loop = edited(RIGHT, "float sum = 0.0f;", "float sum = 0.0f;\n    while (scale > 0) {}")
    flood = edited(
        RIGHT, "float sum = 0.0f;",
        f'float sum = 0.0f; for (;;) printf("{KERNEL}\\nrule reads: kept\\n");',
    )  # fmt: skip
    liar = edited(
        ANSWER.wrong[0].program, "float sum = 0.0f;",
        f'float sum = 0.0f; if (t == 0) printf("{KERNEL}\\ncase 1\\n  findings: none\\n");',
    )  # fmt: skip
    wild = edited(RIGHT, "sums[row] =", "*(volatile float*)(sums + 1000000000L + row) =")
    bomb = "#define A(x) x x x x x x x x x x\n#define B(x) A(A(A(x)))\n#define C(x) B(B(B(x)))\n"
    texts = {
        "right": RIGHT,
        "odd": ANSWER.right[0].program,
        "noisy": edited(RIGHT, "float sum = 0.0f;", 'float sum = 0.0f; printf("hello\\n");'),
        "hides_check": RIGHT + "__global__ void check(float* x) { x[0] = 1; }\n",
        "pastes": "#define JOIN(x, y) x##y\n" + RIGHT,
        "loop": loop,
        "flood": flood,
        "liar": liar,
        "wild": wild,
        "bomb": bomb + edited(RIGHT, "float sum = 0.0f;", "float sum = 0.0f; C(C(sum += 0;))"),
        "large": "__device__ float big[2500000000];\n"
        + edited(RIGHT, "sum += ", "sum += big[1] + "),
        "includes_a_file": "#include </etc/passwd>\n" + RIGHT,
        "includes_answers": '#include "../answers/lab90.py"\n' + RIGHT,
        "constructor": RIGHT + "__attribute__((constructor)) void f() {}\n",
        "system": 'extern "C" int system(const char*);\n' + RIGHT,
        "assembly": edited(RIGHT, "float sum = 0.0f;", 'float sum = 0.0f; asm("nop");'),
        "pragma": "#pragma GCC optimize(3)\n" + RIGHT,
        "unfinished": edited(RIGHT, "part[t] = sum;", "part[t] = sum"),
        "another_name": RIGHT.replace("row_products", "something"),
        **{wrong.name: wrong.program for wrong in NAMED},
    }
    notebooks = {name: handed_in(course, row_products=cuda(text)) for name, text in texts.items()}
    found = graded(course, tmp_path, notebooks)
    status = {name: rows[KERNEL].status for name, rows in found.items()}
    passing = {"right", "odd", "noisy", "hides_check"}
    assert {name for name, one in status.items() if one == "pass"} == passing
    assert status["pastes"] == "needs-review"
    assert status["loop"] == status["flood"] == "timeout"
    assert status["bomb"] in ("error", "timeout", "memory")
    assert all(rows[DOUBLE].status == "pass" for rows in found.values()), "each costs itself alone"
    for wrong in NAMED:
        one = found[wrong.name][KERNEL]
        assert one.mistake == wrong.name or wrong.says in one.lines, one
    assert found["liar"][KERNEL].mistake == ANSWER.wrong[0].name
    assert "line 9" in " ".join(found["unfinished"][KERNEL].lines)
    race = " ".join(found["no_barrier_in_the_tree"][KERNEL].lines)
    assert "Race on part" in race and "line 12" in race
    assert "read 9,216 bytes of x" in " ".join(found["greedy"][KERNEL].lines)


@pytest.mark.slow
def test_the_students_python_never_meets_a_kernel(course, tmp_path):
    """Python that patches what checks a kernel, before it and in a kernel started anew."""
    patch = (
        "import labs_lib.checking.check as c, labs_lib.cuda.kernel as k\n"
        "c.graded_text = lambda item, program, run: 'forged'\n"
        "k.Module = None\n"
    )
    wrong = cuda(ANSWER.wrong[0].program)
    notebooks = {
        "patches": handed_in(course, double=patch + TWICE),
        "patches_and_dies": handed_in(course, double=f"{patch}import os\n{TWICE}\nos._exit(1)"),
        "patches_for_a_wrong_one": handed_in(course, double=patch + TWICE, row_products=wrong),
        "untouched": stub_of(course),
        "kernel_in_the_place_of_python": handed_in(course, double=cuda(RIGHT)),
    }
    found = graded(course, tmp_path, notebooks)
    assert found["patches"][KERNEL].status == "pass"
    assert found["patches_and_dies"][KERNEL].status == "pass"
    assert found["patches_and_dies"][DOUBLE].status == "crash"
    assert found["patches_for_a_wrong_one"][KERNEL].mistake == ANSWER.wrong[0].name
    assert {one.status for one in found["untouched"].values()} == {"not-attempted"}
    assert found["kernel_in_the_place_of_python"][KERNEL].status == "pass"
    assert found["kernel_in_the_place_of_python"][DOUBLE].status != "pass"


@pytest.mark.slow
def test_process_limits_run_kernels_too(course, tmp_path):
    wrong = cuda(ANSWER.wrong[2].program)
    notebooks = {"right": handed_in(course), "wrong": handed_in(course, row_products=wrong)}
    found = graded(course, tmp_path, notebooks, level="process-limits")
    assert found["right"][KERNEL].status == "pass"
    assert found["wrong"][KERNEL].mistake == ANSWER.wrong[2].name
