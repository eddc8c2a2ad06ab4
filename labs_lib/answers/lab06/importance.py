"""Answers to head_importance."""

from __future__ import annotations

import torch

from labs_lib.attention.silencing import head_importance

from ..kit import Answer, Right, Wrong


def _slopes(loss_of, examples, n_head, at=1.0):
    """One row of slopes for each example: [examples, n_head]."""
    rows = []
    for example in examples:
        gate = torch.full((n_head,), at, requires_grad=True)
        rows.append(torch.autograd.grad(loss_of(gate, example), gate)[0])
    return torch.stack(rows)


def _from_slopes(change, **how):
    return lambda loss_of, examples, n_head: change(_slopes(loss_of, examples, n_head, **how))


def _never_zeroed(loss_of, examples, n_head):
    gate = torch.ones(n_head, requires_grad=True)
    total = torch.zeros(n_head)
    for example in examples:
        loss_of(gate, example).backward()
        total += gate.grad.abs()
    return total / len(examples)


def _by_ablation(loss_of, examples, n_head):
    rises = torch.zeros(n_head)
    for example in examples:
        whole = loss_of(torch.ones(n_head), example)
        for head in range(n_head):
            gate = torch.ones(n_head)
            gate[head] = 0.0
            rises[head] += (loss_of(gate, example) - whole).abs()
    return rises / len(examples)


def _backward(loss_of, examples, n_head):
    found = []
    for example in examples:
        gate = torch.ones(n_head).requires_grad_()
        loss_of(gate, example).backward()
        found.append(gate.grad.abs())
    return torch.stack(found).mean(dim=0)


def _zeroed(loss_of, examples, n_head):
    gate, total = torch.ones(n_head, requires_grad=True), 0
    for example in examples:
        gate.grad = None
        loss_of(gate, example).backward()
        total = total + gate.grad.abs()
    return total / len(examples)


def _by_func(loss_of, examples, n_head):
    slope = torch.func.grad(loss_of)
    ones = torch.ones(n_head)
    return sum(slope(ones, example).abs() for example in examples) / len(examples)


def _by_jacobian(loss_of, examples, n_head, ones=None):
    def losses(gate):
        return torch.stack([loss_of(gate, example) for example in examples])

    return torch.autograd.functional.jacobian(losses, torch.ones(n_head)).abs().mean(0)


def _by_small_moves(step):
    def program(loss_of, examples, n_head, dtype=torch.float32):
        total = torch.zeros(n_head, dtype=dtype)
        for example in examples:
            for head in range(n_head):
                up, down = torch.ones(2, n_head, dtype=dtype)
                up[head], down[head] = 1 + step, 1 - step
                total[head] += ((loss_of(up, example) - loss_of(down, example)) / (2 * step)).abs()
        return total / len(examples)

    return program


def _double_differences(loss_of, examples, n_head):
    return _by_small_moves(1e-5)(
        loss_of, examples, n_head, torch.float64).to(torch.float32)  # fmt: skip


def _vmapped(loss_of, examples, n_head):
    gates = torch.ones(len(examples), n_head)
    parts = tuple(torch.stack(part) for part in zip(*examples, strict=True))
    return torch.func.vmap(torch.func.grad(loss_of))(gates, parts).abs().mean(0)


def _no_gradient_asked_for(loss_of, examples, n_head):
    gate = torch.ones(n_head)
    loss_of(gate, examples[0]).backward()


HEAD_IMPORTANCE = Answer(
    reference=head_importance,
    wrong=(
        Wrong(
            "mean_before_size",
            _from_slopes(lambda slopes: slopes.mean(0).abs()),
            "The slopes are averaged first and their sizes taken afterwards, so examples that\n"
            "pull a head up and down cancel. One example alone would be right.",
        ),
        Wrong(
            "no_size",
            _from_slopes(lambda slopes: slopes.mean(0)),
            "The signs are still there. A head that the loss would miss and one that disturbs\n"
            "it both matter; wanted is the size.",
        ),
        Wrong(
            "summed",
            _from_slopes(lambda slopes: slopes.abs().sum(0)),
            "The sizes are added up and not averaged over the examples.",
        ),
        Wrong(
            "squared",
            _from_slopes(lambda slopes: slopes.square().mean(0)),
            "The slopes are squared. Wanted is their size.",
        ),
        Wrong(
            "root_of_the_mean_square",
            _from_slopes(lambda slopes: slopes.square().mean(0).sqrt()),
            "This is the root of the mean square. Wanted is the mean of the sizes.",
        ),
        Wrong(
            "largest",
            _from_slopes(lambda slopes: slopes.abs().amax(0)),
            "This is the largest slope over the examples. Wanted is the mean.",
        ),
        Wrong(
            "first_example_only",
            _from_slopes(lambda slopes: slopes[0].abs()),
            "Only the first example counts. Does your return stand inside the loop?",
        ),
        Wrong(
            "last_example_only",
            _from_slopes(lambda slopes: slopes[-1].abs()),
            "Only the last example counts: what came before is overwritten.",
        ),
        Wrong(
            "at_zero",
            _from_slopes(lambda slopes: slopes.abs().mean(0), at=0.0),
            "These are the slopes at gates of 0, with all heads silent. They are to be taken\n"
            "where the model is: at gates of 1.",
        ),
        Wrong(
            "grad_adds_up",
            _never_zeroed,
            "The first example is right, then .grad holds the sum of all examples so far:\n"
            ".backward() adds to it. Each example needs a fresh one.",
        ),
        Wrong(
            "by_ablation",
            _by_ablation,
            "This is the change of the loss when a head is silent. Wanted is the slope where it\n"
            "speaks: no head is silenced, and all slopes come from one forward and one backward\n"
            "pass.",
        ),
        Wrong(
            "made_a_unit",
            _from_slopes(lambda slopes: slopes.abs().mean(0) / slopes.abs().mean(0).norm()),
            "The scores are divided by their length. (Michel et al. do that layer by layer;\n"
            "here the plain mean is wanted.)",
        ),
        Wrong(
            "made_shares",
            _from_slopes(lambda slopes: slopes.abs().mean(0).softmax(0)),
            "The scores went through a softmax. Wanted are the slopes' sizes.",
        ),
        Wrong(
            "for_each_example",
            _from_slopes(lambda slopes: slopes.abs()),
            "There is a row for each example. Wanted is their mean, one number for each head.",
        ),
        *(
            Wrong(
                f"small_moves_of_{step:g}",
                _by_small_moves(step),
                "A slope by small moves of a gate is off in the fourth digit or before, and each\n"
                "head takes passes of its own. Autograd gives the slopes themselves, of all heads\n"
                "by one forward and one backward pass.",
            )
            for step in (0.1, 1e-3)
        ),
        Wrong(
            "no_gradient_asked_for",
            _no_gradient_asked_for,
            "The loss has no gradient, since none of its inputs asked for one. Make the gate with\n"
            "requires_grad=True.",
        ),
        Wrong(
            "adding_up_to_one",
            _from_slopes(lambda slopes: slopes.abs().mean(0) / slopes.abs().mean(0).sum()),
            "The numbers are divided by their sum. Wanted are the mean sizes themselves.",
        ),
        Wrong(
            "mean_over_heads",
            _from_slopes(lambda slopes: slopes.abs().mean(1)),
            "The heads are averaged, and there is one number for each example. It is the other\n"
            "way round: one for each head.",
        ),
        Wrong(
            "one_number_for_all_heads",
            _from_slopes(lambda slopes: slopes.abs().mean()),
            "All heads are averaged into one number. Each has its own.",
        ),
    ),
    right=(
        Right("backward", _backward),
        Right("backward_zeroed", _zeroed),
        Right("func_grad", _by_func),
        Right("jacobian", _by_jacobian),
        Right("vmap_of_grad", _vmapped),
        Right("differences_in_float64", _double_differences),
    ),
)  # fmt: skip
