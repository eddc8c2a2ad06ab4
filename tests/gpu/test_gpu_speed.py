"""The ladder timed against torch on a GPU, and its counts against the GPU's own counters."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
import textwrap

import pytest
import torch

from labs_lib.cuda import ladder, trials

SIZES = {
    "scores": {"n_q": 4096, "n_k": 4096, "head_dim": 128},
    "softmax": {"rows": 8192, "cols": 4096},
    "transpose": {"rows": 8192, "cols": 8192},
    "attention": {
        "batch": 4, "n_head": 12, "n_q": 1024, "n_k": 1024, "head_dim": 64, "causal": 0,
    },
}  # fmt: skip
TORCH = {
    "scores": lambda a: a[0] @ (a[1] if a[1].shape[0] == a[0].shape[1] else a[1].T),
    "softmax": lambda a: a[0].softmax(-1),
    "transpose": lambda a: a[0].T.contiguous(),
    "attention": lambda a: torch.nn.functional.scaled_dot_product_attention(*a[:3]),
}


def timed(milliseconds, name):
    """Milliseconds of a rung and of torch on the same tensors; right after the timing too."""
    rung = ladder.rung(name)
    sizes = SIZES[rung.family]
    made = trials.trial(rung, sizes, device="cuda")
    launch = rung.compile()[rung.geometry(sizes)]
    ours = milliseconds(lambda: launch(*made.arguments))
    theirs = milliseconds(lambda: TORCH[rung.family](made.arguments))
    for out, wanted in made.wanted.items():
        torch.testing.assert_close(made.outputs[out].double().cpu(), wanted, atol=1e-4, rtol=1e-4)
    return ours, theirs


def test_the_ladder_timed_against_torch(milliseconds, capsys):
    """A table of every rung; tiles beat naive kernels, and nothing beats the memory itself."""
    times = {rung.name: timed(milliseconds, rung.name) for rung in ladder.RUNGS}
    with capsys.disabled():
        print(
            f"\n{torch.cuda.get_device_name()}\n{'kernel':30} {'ms':>9} {'torch ms':>9} {'GB/s':>9}"
        )
        for name, (ours, theirs) in times.items():
            rung = ladder.rung(name)
            moved = sum(map(sum, rung.traffic(SIZES[rung.family]).values())) / ours / 1e6
            print(f"{name:30} {ours:9.3f} {theirs:9.3f} {moved:9.0f}")
    assert times["scores_register_tiles"][0] < times["scores_tiled"][0] < times["scores_naive"][0]
    assert times["transpose_without_conflicts"][0] < times["transpose_naive"][0]
    for name in ("transpose_naive", "transpose_tiled", "transpose_without_conflicts"):
        bytes_a_second = 2 * 4 * 8192 * 8192 / times[name][0] * 1e3
        assert bytes_a_second < 20e12, "faster than any GPU's memory: the launch did not run"


PROFILED = """
import torch
from labs_lib.cuda import ladder, trials
rung = ladder.rung({name!r})
made = trials.trial(rung, {sizes!r}, device="cuda")
rung.compile()[rung.geometry({sizes!r})](*made.arguments)
torch.cuda.synchronize()
"""
COUNTERS = {
    "read": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "write": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
}


def profiled(name, sizes):
    """Sectors of global memory as the GPU's own counters have them; skips where they are closed."""
    ncu = shutil.which("ncu")
    if ncu is None:
        pytest.skip("ncu (Nsight Compute) is not installed; a GPU's own counters can't be read.")
    command = [ncu, "--csv", "--page", "raw", "--metrics", ",".join(COUNTERS.values())]
    command += ["-k", name, sys.executable, "-c", PROFILED.format(name=name, sizes=sizes)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if "ERR_NVGPUCTRPERM" in done.stdout + done.stderr:
        pytest.skip("this user may not read the GPU's counters (ERR_NVGPUCTRPERM).")
    table = "\n".join(line for line in done.stdout.splitlines() if line.startswith('"'))
    rows = list(csv.DictReader(io.StringIO(table)))
    assert rows, textwrap.shorten(done.stdout + done.stderr, 2000)
    return {
        what: int(float(rows[-1][counter].replace(",", ""))) for what, counter in COUNTERS.items()
    }


@pytest.mark.parametrize(
    "name",
    ["scores_naive", "scores_coalesced", "scores_tiled", "transpose_naive", "transpose_tiled"],
)
def test_the_gpus_own_counters_see_the_sectors_that_a_trace_counts(name):
    rung = ladder.rung(name)
    sizes = {"n_q": 64, "n_k": 64, "head_dim": 64, "rows": 64, "cols": 64}
    seen = profiled(name, sizes)
    made = trials.trial(rung, sizes)
    trace = rung.compile().trace[rung.geometry(sizes)](*made.arguments)
    for what in ("read", "write"):
        lines = [li for li in trace.lines if li.what == what and li.where != "shared"]
        assert sum(li.sectors for li in lines) == seen[what]
