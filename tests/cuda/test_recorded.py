"""Recorded traces stand in where no compiler is: the same numbers, the same picture, no source."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys

import pytest

from labs_lib.cuda import ladder, recorded, rung
from labs_lib.cuda.accesses import COLUMNS
from labs_lib.cuda.trace import Trace


def comparable(trace):
    """All of a trace but the order in which one thread's expression reads its operands."""
    data = trace.to_dict()
    columns = data["log"].pop("columns")
    sites = data["log"].pop("sites")
    names = [c for c in COLUMNS if c not in ("site", "turn")]
    where = [tuple(sites[i]) for i in columns["site"]]
    data["accesses"] = sorted(zip(*(columns[n] for n in names), map(repr, where), strict=True))
    return data


@pytest.mark.slow
@pytest.mark.parametrize("name", recorded.RECORDED)
def test_a_recorded_trace_equals_a_fresh_one(name):
    kept, made = recorded.trace(name), recorded.fresh(name)
    assert comparable(kept) == comparable(made), f"run {recorded.MAKE} {name}"
    assert str(kept) == str(made)


@pytest.mark.parametrize("name", recorded.RECORDED)
def test_recorded_bytes_are_those_of_the_formulas(name):
    trace, one = recorded.trace(name), ladder.rung(name)
    assert trace.clean and trace.complete
    moved = {t: (traffic.read, traffic.written) for t, traffic in trace.tensors.items()}
    assert moved == one.traffic(recorded.sizes(name))


def test_every_rung_is_recorded_and_all_files_are_small():
    folder = recorded.file_of("scores_naive").parent
    files = sorted(folder.glob("*.json.gz"))
    assert [f.name.split(".")[0] for f in files] == sorted(recorded.RECORDED)
    assert {r.name for r in ladder.RUNGS if not r.family.startswith("flash")} <= set(
        recorded.RECORDED
    )
    assert sum(f.stat().st_size for f in files) < 200_000


def test_a_trace_survives_json(make):
    import torch

    k = make("""
        __shared__ float s[33];
        s[threadIdx.x] = x[threadIdx.x]; x[n] = s[32 - threadIdx.x];
        if (threadIdx.x == 5) return; __syncthreads();""")
    trace = k.trace[2, 32](torch.arange(40.0), 3)
    assert trace.findings and not trace.complete
    again = Trace.from_dict(json.loads(json.dumps(trace.to_dict())))
    assert again == trace and str(again) == str(trace)
    assert again.to_dict() == trace.to_dict()


def test_no_recorded_file_holds_a_kernels_source():
    """A handout ships data/, and some of these kernels are what its lab asks for."""
    for name in recorded.RECORDED:
        text = gzip.decompress(recorded.file_of(name).read_bytes()).decode("utf-8")
        assert "__global__" not in text and "float" not in text


def test_where_the_kernel_is_kept_back_the_trace_has_blank_lines(monkeypatch, tmp_path):
    whole = recorded.trace("scores_tiled")
    monkeypatch.setattr(rung, "FOLDER", tmp_path)
    trace = recorded.trace("scores_tiled")
    assert trace.source.strip() == "" and trace.source.count("\n") == whole.source.count("\n")
    assert trace.tensors == whole.tensors and trace.lines == whole.lines and "q" in str(trace)


def test_a_kernel_that_changed_since_is_never_shown_with_old_numbers(monkeypatch, tmp_path):
    text = ladder.source("scores_tiled") + "// changed\n"
    (tmp_path / "scores_tiled.cu").write_text(text, encoding="utf-8")
    monkeypatch.setattr(rung, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"changed since.*python -m labs_lib\.cuda\.recorded"):
        recorded.trace("scores_tiled")


@pytest.mark.parametrize("damage", [b"", b"\x1f\x8b\x08junk", gzip.compress(b"[]", mtime=0)])
def test_a_damaged_file_names_the_command_that_mends_it(monkeypatch, tmp_path, damage):
    monkeypatch.setattr(recorded.paths, "data", lambda: tmp_path)
    with pytest.raises(FileNotFoundError, match="makes it anew"):
        recorded.trace("scores_naive")
    recorded.file_of("scores_naive").parent.mkdir()
    recorded.file_of("scores_naive").write_bytes(damage)
    with pytest.raises(ValueError, match="makes it anew"):
        recorded.trace("scores_naive")


def test_an_unknown_name_is_answered_with_those_that_exist():
    with pytest.raises(KeyError, match="scores_naive, "):
        recorded.trace("scores_nave")


def test_writing_twice_makes_the_same_bytes(monkeypatch, tmp_path):
    kept = recorded.file_of("transpose_naive").read_bytes()
    trace = recorded.trace("transpose_naive")
    monkeypatch.setattr(recorded.paths, "data", lambda: tmp_path)
    assert recorded.write("transpose_naive", trace).read_bytes() == kept


def test_without_a_compiler_one_sentence_names_the_package_and_recorded_traces_go_on(tmp_path):
    """PATH is empty: no g++, no clang++, no c++, and no program that reads line numbers."""
    script = """
from labs_lib import cuda
from labs_lib.cuda import recorded
try:
    cuda.compile("__global__ void k(float* x) { x[0] = 1; }")
except cuda.BuildError as problem:
    print(problem)
assert not cuda.available().host
print(recorded.trace("scores_tiled").tensors["k"].read)
print(len(recorded.trace("softmax_rows_warp").draw()))
"""
    environment = {k: v for k, v in os.environ.items() if k not in ("CXX", "CUDA_HOME")}
    environment |= {"PATH": str(tmp_path), "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.strip().split("\n")
    way = "xcode-select --install" if sys.platform == "darwin" else "apt install g++"
    assert way in first and "recorded traces" in first and first.endswith(".")
    assert rest == [str(4 * 256 * 256 * 64 // 16), "2"]
