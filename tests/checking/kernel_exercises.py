"""A lab of one small kernel and one function, for tests of all that kernels pass through."""

from __future__ import annotations

import textwrap
from functools import cache

from labs_lib.exercises.inputs import uniform
from labs_lib.exercises.kernel_rules import bank_rule, sectors_rule, traffic_rule
from labs_lib.exercises.kernels import Launch, kernel_exercise, unwritten
from labs_lib.exercises.kit import Case, Exercise, Lab, generator

NAMES = ("x", "y", "sums", "rows", "cols", "scale")


def text(source):
    return textwrap.dedent(source).strip("\n") + "\n"


STUB = text("""
    %%cuda
    // sums[r] = scale * (x[r][0] * y[r][0] + ...); one block of 64 threads a row
    __global__ void row_products(const float* x, const float* y, float* sums, int rows, int cols,
                                 float scale) {
        // your kernel
    }
""")


def launch(x, y, scale):
    rows, cols = x.shape
    arguments = (x, y, unwritten(rows), rows, cols, scale)
    return Launch(rows, 64, arguments, {"sums": 2}, names=NAMES)


def cases(rng):
    return [
        Case(f"{rows} x {cols}", (uniform(rng, rows, cols), uniform(rng, rows, cols), 0.25))
        for rows, cols in ((3, 64), (2, 65), (1, 1), (5, 200))
    ]


@cache
def _measured():
    rng = generator(7, "lab90.row_products")
    return uniform(rng, 3, 256), uniform(rng, 3, 256)


def measured():
    return launch(*_measured(), 1.0)


RULES = (
    traffic_rule(
        "reads",
        "each number is read once",
        "Each number of x is needed once.\nYour kernel read {x} bytes of x; once each is {x_most}, "
        "and the naive kernel reads {x_naive}.",
        measured,
        {"x": 0.25, "y": 3 * 256 * 4},
        naive={"x": 4 * 3 * 256 * 4},
    ),
    traffic_rule("writes", "one sum a row", "It wrote {sums} bytes.", measured, {"sums": 12},
                 written=True),
    sectors_rule("sectors", "neighbours read neighbours",
                 "For each byte of x that it asks for, {x} are moved.", measured, {"x": 1.0}),
    bank_rule("banks", "no bank conflicts", "Line {worst} takes {passes} passes.", measured),
)  # fmt: skip

EXERCISE = kernel_exercise(
    "lab90.row_products",
    "products of rows",
    STUB,
    cases=cases,
    launch=launch,
    rules=RULES,
    hints=("Each thread sums every 64th product.",),
    forbidden=("atomicAdd",),
    axes=("row",),
)

DOUBLE = Exercise(
    name="lab90.double",
    title="twice as much",
    stub="def double(x):\n    raise NotImplementedError\n",
    cases=lambda rng: [Case("three", (uniform(rng, 3),)), Case("five", (uniform(rng, 5),))],
)
LAB = Lab(90, "kernels", "Kernels", 10, "What is a kernel?")
EXERCISES = (DOUBLE, EXERCISE)
