"""The ladder: right at every size, clean under the trace, and its formulas hold to the byte."""

from __future__ import annotations

import pytest
import torch

from labs_lib.cuda import trials
from labs_lib.cuda.ladder import RUNGS

CASES = [
    pytest.param(rung, sizes, id=f"{rung.name}-{'-'.join(map(str, sizes.values()))}")
    for rung, sizes in trials.every_trial()
]


@pytest.mark.parametrize(("rung", "sizes"), CASES)
def test_every_rung_is_right_clean_and_moves_the_bytes_of_its_formulas(rung, sizes):
    """Traced in three orders of blocks, outputs NaN before, inputs as they were after."""
    made = trials.trial(rung, sizes)
    before = [a.clone() if isinstance(a, torch.Tensor) else a for a in made.arguments]
    trace = rung.compile().trace[rung.geometry(sizes)](*made.arguments)
    assert trace.clean and not trace.findings, trace
    for name, wanted in made.wanted.items():
        got = made.outputs[name].double()
        torch.testing.assert_close(got, wanted, atol=made.within, rtol=made.within)
    for given, was in zip(made.arguments, before, strict=True):
        written = any(given is out for out in made.outputs.values())
        assert written or not isinstance(given, torch.Tensor) or torch.equal(given, was)
    counted = {name: (t.read, t.written) for name, t in trace.tensors.items()}
    assert counted == rung.traffic(sizes)
    assert all(t.atomic == 0 for t in trace.tensors.values())


@pytest.mark.parametrize("rung", RUNGS, ids=lambda r: r.name)
def test_the_fast_run_agrees_and_a_second_call_gives_the_same_bits(rung):
    sizes = trials.SIZES[rung.family][2]
    first, second = trials.trial(rung, sizes), trials.trial(rung, sizes)
    launch = rung.compile()[rung.geometry(sizes)]
    launch(*first.arguments)
    launch(*second.arguments)
    launch(*second.arguments)  # over its own result, not over NaN
    for name, wanted in first.wanted.items():
        assert torch.equal(first.outputs[name], second.outputs[name])
        got, within = first.outputs[name].double(), first.within
        torch.testing.assert_close(got, wanted, atol=within, rtol=within)
