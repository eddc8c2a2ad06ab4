"""Each rung on a GPU: as right as on the CPU, the same counts, nothing written beside its own."""

from __future__ import annotations

import pytest
import torch

from labs_lib import cuda
from labs_lib.cuda import trials
from labs_lib.cuda.ladder import RUNGS

CASES = [
    pytest.param(rung, sizes, id=f"{rung.name}-{'-'.join(map(str, sizes.values()))}")
    for rung, sizes in trials.every_trial()
]


def close(got, wanted, within):
    torch.testing.assert_close(got.double().cpu(), wanted.double(), atol=within, rtol=within)


def fenced(made, margin=256):
    """The trial with each output inside a larger buffer, and those buffers."""
    arguments, outputs, buffers = [], {}, []
    for given in made.arguments:
        names = [name for name, ours in made.outputs.items() if ours is given]
        if names:
            buffer = torch.full(
                (given.numel() + 2 * margin,), 7.0, device="cuda", dtype=given.dtype
            )
            given = buffer[margin : margin + given.numel()].view(given.shape)
            given.fill_(float("nan"))
            outputs[names[0]] = given
            buffers.append(buffer)
        arguments.append(given)
    return trials.Trial(tuple(arguments), outputs, made.wanted, made.within), buffers


@pytest.mark.parametrize(("rung", "sizes"), CASES)
def test_cpu_and_gpu_agree_and_both_are_right(rung, sizes):
    """Outputs NaN before, inputs unchanged after, a second call gives the same bits."""
    here = trials.trial(rung, sizes)
    there, buffers = fenced(trials.to_device(here, "cuda"))
    before = [a.clone() if isinstance(a, torch.Tensor) else a for a in there.arguments]
    launch = rung.compile()[rung.geometry(sizes)]
    launch(*here.arguments)
    launch(*there.arguments)
    first = {name: out.clone() for name, out in there.outputs.items()}
    launch(*there.arguments)
    torch.cuda.synchronize()
    for name, wanted in here.wanted.items():
        close(here.outputs[name], wanted, here.within)
        close(there.outputs[name], wanted, here.within)
        close(there.outputs[name], here.outputs[name], here.within)
        assert torch.equal(there.outputs[name], first[name])
    for given, was in zip(there.arguments, before, strict=True):
        written = any(given is out for out in there.outputs.values())
        assert written or not isinstance(given, torch.Tensor) or torch.equal(given, was)
    for buffer in buffers:
        assert (buffer[:256] == 7).all() and (buffer[-256:] == 7).all()


@pytest.mark.parametrize("rung", RUNGS, ids=lambda r: r.name)
def test_a_trace_of_tensors_on_the_gpu_counts_what_the_formulas_say(rung):
    sizes = trials.SIZES[rung.family][2]
    made = trials.trial(rung, sizes, device="cuda")
    trace = rung.compile().trace[rung.geometry(sizes)](*made.arguments)
    assert trace.clean, trace
    assert {n: (t.read, t.written) for n, t in trace.tensors.items()} == rung.traffic(sizes)
    for name, wanted in made.wanted.items():
        assert made.outputs[name].is_cuda
        close(made.outputs[name], wanted, made.within)


def test_a_launch_goes_to_torchs_current_stream():
    """The side stream first waits for a long product; a launch elsewhere would read zeros."""
    k = cuda.compile("__global__ void twice(float* x) { x[threadIdx.x] *= 2; }")
    x, big = torch.zeros(32, device="cuda"), torch.rand(4096, 4096, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(8):
            big @ big
        x.fill_(21.0)
        k[1, 32](x)
    side.synchronize()
    assert x.tolist() == [42.0] * 32


def test_a_launch_that_the_gpu_refuses_says_so_and_the_next_one_runs():
    k = cuda.compile("__global__ void one(float* x) { x[threadIdx.x] = 1; }")
    x = torch.zeros(32, device="cuda")
    with pytest.raises(cuda.LaunchError, match="block"):
        k[1, 2048](x)
    k[1, 32](x)
    assert (x == 1).all()
