"""What a program allocates is measured below whatever Python it is written in."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from labs_lib.exercises.measure import flops, largest_allocation, operators, peak_memory

X = torch.ones(100)


def test_the_largest_new_tensor_is_found_and_views_are_not_new():
    assert largest_allocation(lambda x: x.view(10, 10).expand(50, 10, 10), X) == 0
    assert largest_allocation(lambda x: (x[:, None] * x).sum(), X) == 10_000
    assert largest_allocation(lambda x: torch.empty(7, 3)[:1], X) == 21
    assert largest_allocation(lambda x: torch.ones(5).add_(1).mul_(2), X) == 5


def test_tensors_that_a_list_keeps_add_up_and_freed_ones_do_not():
    def keeps(x):
        return [x + i for i in range(10)]

    def forgets(x):
        for i in range(10):
            y = x + i
        return y

    assert peak_memory(keeps, X) == 10 * 400
    assert peak_memory(forgets, X) == 2 * 400
    assert peak_memory(keeps, X) == 10 * 400  # nothing is left of the call before


def test_tensors_can_be_left_out_of_the_count():
    def copying(x):
        return x.double() + x[:7].clone().sum()

    assert peak_memory(copying, X) == 800 + 4 + 800
    assert peak_memory(copying, X, counted=lambda made: made.numel() != 100) == 28 + 4


def test_gradients_on_the_way_back_are_seen():
    x = torch.ones(50, requires_grad=True)
    assert largest_allocation(lambda: (x[:, None] * x).sum().backward()) == 2500


@pytest.mark.parametrize(
    "program",
    [
        lambda x, y: torch.einsum("bij,bjk->bik", x, y),
        lambda x, y: torch.nn.functional.scaled_dot_product_attention(x, x, x) @ y,
        lambda x, y: sum(a @ b for a, b in zip(x, y, strict=True)).exp(),
        lambda x, y: torch.addmm(y[0], x[0] * 2, y[0]),
        lambda x, y: x.sum(),
    ],
    ids=["einsum", "attention", "loop", "addmm", "none"],
)
def test_operations_are_counted_as_torch_counts_them(program):
    x = torch.ones(3, 5, 5)
    with FlopCounterMode(display=False) as counter:
        program(x, x)
    assert flops(program, x, x) == counter.get_total_flops()


def test_compiled_programs_are_measured_like_any_other():
    def program(x):
        return (x @ x.T).softmax(-1) @ x

    x, compiled = torch.ones(4, 4), torch.compile(program, backend="eager")
    for _ in range(2):  # compiled in the first call, under watch
        assert operators(compiled, x) == operators(program, x)
        assert peak_memory(compiled, x) == peak_memory(program, x)


def test_a_measured_rule_imports_no_compiler():
    """It would take a second in each process where a check runs."""
    text = (
        "import sys, torch\n"
        "from labs_lib.exercises.measure import operators, peak_memory\n"
        "from labs_lib.exercises.lab05_rules import computes_nothing, multiplies_once\n"
        "operators(torch.exp, torch.ones(2)), peak_memory(torch.exp, torch.ones(2))\n"
        "computes_nothing(torch.exp), multiplies_once(lambda heads, W_O: heads)\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
