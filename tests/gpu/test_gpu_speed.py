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

FLASH = {
    "batch": 1, "n_head": 8, "n_kv_head": 8, "n_q": 2048, "n_k": 2048, "head_dim": 64,
    "causal": 0,
}  # fmt: skip
SIZES = {
    "scores": {"n_q": 4096, "n_k": 4096, "head_dim": 128},
    "softmax": {"rows": 8192, "cols": 4096},
    "transpose": {"rows": 8192, "cols": 8192},
    "attention": FLASH,
}


def sizes_of(rung):
    """Sizes that keep a large GPU busy."""
    return SIZES.get(rung.family, FLASH)


def sdpa(arguments):
    return torch.nn.functional.scaled_dot_product_attention(*arguments[:3])


TORCH = {
    "scores": lambda a: a[0] @ (a[1] if a[1].shape[0] == a[0].shape[1] else a[1].T),
    "softmax": lambda a: a[0].softmax(-1),
    "transpose": lambda a: a[0].T.contiguous(),
    "attention": sdpa,
    "flash": sdpa,
}


def timed(milliseconds, rung):
    """Milliseconds of a rung and of torch on the same tensors; right after the timing too."""
    sizes = sizes_of(rung)
    made = trials.trial(rung, sizes, device="cuda")
    launch = rung.compile()[rung.geometry(sizes)]
    ours = milliseconds(lambda: launch(*made.arguments))
    torchs = TORCH.get(rung.family)
    theirs = milliseconds(lambda: torchs(made.arguments)) if torchs else float("nan")
    within = max(1e-4, made.within)
    for out, wanted in made.wanted.items():
        got = made.outputs[out].double().cpu()
        torch.testing.assert_close(got, wanted, atol=within, rtol=within)
    return ours, theirs


def test_the_ladder_timed_against_torch(milliseconds, capsys):
    """A table of every rung; tiles beat naive kernels, and nothing beats the memory itself."""
    times = {rung.name: timed(milliseconds, rung) for rung in ladder.RUNGS}
    lines = [f"{'kernel':30} {'ms':>9} {'torch ms':>9} {'GB/s asked for':>15}"]
    for rung in ladder.RUNGS:
        ours, theirs = times[rung.name]
        moved = sum(map(sum, rung.traffic(sizes_of(rung)).values())) / ours / 1e6
        lines.append(f"{rung.name:30} {ours:9.3f} {theirs:9.3f} {moved:15.0f}")
    with capsys.disabled():
        print("", torch.cuda.get_device_name(), *lines, sep="\n")
    assert times["scores_register_tiles"][0] < times["scores_tiled"][0] < times["scores_naive"][0]
    assert times["transpose_without_conflicts"][0] < times["transpose_naive"][0]
    assert times["flash_forward"][0] < times["attention_per_head_blocks"][0]
    assert times["flash_forward_mma"][0] < times["flash_forward"][0]
    for name in ("transpose_naive", "transpose_tiled", "transpose_without_conflicts"):
        bytes_a_second = 2 * 4 * 8192 * 8192 / times[name][0] * 1e3
        assert bytes_a_second < 20e12, "faster than any GPU's memory: the launch did not run"
    floating = 4 * 8 * 2048 * 2048 * 64  # the two products of attention
    for name in ("flash_forward", "flash_forward_mma"):
        assert floating / times[name][0] * 1e3 < 3e15, "faster than any GPU's tensor cores"


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
