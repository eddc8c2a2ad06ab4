"""What a program allocates is measured below whatever Python it is written in."""

from __future__ import annotations

import torch

from labs_lib.exercises.measure import largest_allocation, peak_memory

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
