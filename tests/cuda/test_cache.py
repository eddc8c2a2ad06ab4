"""Builds survive kills, races, unwritable homes, odd paths, and the lack of a compiler."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from labs_lib import cuda
from labs_lib.cuda import build, cache, compilers

# The room without its torch: the processes of these tests start in no time.
LIGHT = """
import sys, types
import labs_lib
room = sys.modules["labs_lib.cuda"] = types.ModuleType("labs_lib.cuda")
room.__path__ = [labs_lib.__path__[0] + "/cuda"]
"""
SOURCE = "__global__ void k(float* x) { x[threadIdx.x] = %d; }"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "a cache wíth spaces"
    monkeypatch.setenv("LABS_CUDA_CACHE", str(path))
    return path


def test_a_path_with_spaces_and_accents_is_no_obstacle(folder):
    x = torch.zeros(2)
    cuda.compile(SOURCE % 3)[1, 2](x)
    assert (x == 3).all() and any(folder.iterdir())


def test_two_processes_that_build_at_once_both_get_whole_entries(folder):
    """Twenty entries, cold, in the same order: each is built once and never half there."""
    script = """
import sys, time
from pathlib import Path
from labs_lib.cuda import cache

def build(folder):
    (folder / "a").write_text("one", encoding="utf-8")
    time.sleep(0.005)
    (folder / "out").write_text("whole", encoding="utf-8")
    with open(sys.argv[1], "a", encoding="utf-8") as log:
        log.write("x")

for i in range(20):
    assert cache.get(f"key{i}", "out", build).read_text(encoding="utf-8") == "whole"
"""
    log = folder.parent / "log"
    command = [sys.executable, "-c", LIGHT + script, str(log)]
    running = [subprocess.Popen(command) for _ in range(2)]
    assert [p.wait(timeout=60) for p in running] == [0, 0]
    assert log.read_text(encoding="utf-8") == "x" * 20
    assert not [p for p in folder.iterdir() if p.name.startswith(".new-")]


def test_a_build_that_was_killed_half_way_is_done_again(folder):
    script = """
import sys, time
from labs_lib.cuda import cache

def build(folder):
    (folder / "half").write_text("", encoding="utf-8")
    print("building", flush=True)
    time.sleep(60)

cache.get("key", "out", build)
"""
    command = [sys.executable, "-c", LIGHT + script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "building\n"
        os.kill(process.pid, signal.SIGKILL)
    assert (folder / "key.lock").exists() and not (folder / "key").exists()
    start = time.monotonic()
    made = cache.get("key", "out", lambda f: (f / "out").write_text("new", encoding="utf-8"))
    assert made.read_text(encoding="utf-8") == "new" and time.monotonic() - start < 30


def test_a_build_that_fails_leaves_nothing_and_holds_nothing(folder):
    def fails(path: Path) -> None:
        (path / "out").write_text("", encoding="utf-8")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        cache.get("key", "out", fails)
    assert [p.name for p in folder.iterdir()] == ["key.lock"]
    cache.get("key", "out", lambda f: (f / "out").write_text("x", encoding="utf-8"))


def test_who_waits_too_long_is_told_for_what(folder, monkeypatch, capsys):
    import fcntl

    monkeypatch.setattr(cache, "WAIT_SECONDS", 2.2)
    folder.mkdir()
    with open(folder / "key.lock", "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(cuda.BuildError, match=r"key\.lock"):
            cache.get("key", "out", lambda f: None)
    assert "waiting for" in capsys.readouterr().err


def test_a_home_that_cant_be_written_costs_one_line(tmp_path, monkeypatch, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    monkeypatch.setenv("LABS_CUDA_CACHE", str(blocked / "cache"))
    cache._folder.cache_clear()
    first, second = cache.folder(), cache.folder()
    err = capsys.readouterr().err
    assert first == second and err.count("\n") == 1 and "LABS_CUDA_CACHE" in err
    assert first.stat().st_mode & 0o077 == 0


def test_what_killed_builds_left_is_swept_away(folder):
    folder.mkdir()
    old, fresh = folder / ".new-old", folder / ".new-fresh"
    old.mkdir()
    fresh.mkdir()
    os.utime(old, (1, 1))
    cache.get("key", "out", lambda f: (f / "out").write_text("x", encoding="utf-8"))
    assert not old.exists() and fresh.exists()


@pytest.mark.parametrize(
    ("system", "way"), [("Linux", "apt install g"), ("Darwin", "xcode"), ("Windows", "WSL")]
)
def test_without_a_compiler_one_sentence_names_the_package(monkeypatch, system, way):
    monkeypatch.setattr(compilers, "host_compiler", lambda: None)
    monkeypatch.setattr("platform.system", lambda: system)
    with pytest.raises(cuda.BuildError, match=way):
        cuda.compile(SOURCE % 4)


def test_available_says_where_kernels_run(monkeypatch):
    here = cuda.available()
    assert here and here.host and "on the CPU" in str(here)
    none = cuda.Available(None, None, None)
    assert not none and "no C++ compiler" in str(none)
    assert str(cuda.Available("g++", "H200", "nvcc")) == "Kernels run on H200 and on the CPU."


def test_an_empty_cache_takes_runner_and_headers_from_a_shared_folder(tmp_path, monkeypatch):
    shared = build.shared(tmp_path / "shared")
    before = sorted(shared.rglob("*"))
    assert sum(path.name in ("runner", "labs.h.gch") for path in before) == 3
    monkeypatch.setenv("LABS_CUDA_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("LABS_CUDA_SHARED", str(shared))
    x = torch.zeros(4)
    kernel = cuda.compile("__global__ void k(float* x) { x[threadIdx.x] = sqrtf(threadIdx.x); }")
    assert kernel.trace[1, 4](x).clean and x[3] == 3**0.5
    own = [path.name for path in (tmp_path / "own").rglob("*") if path.is_file()]
    assert own.count("kernel.so") == 2 and "runner" not in own and "labs.h.gch" not in own
    assert sorted(shared.rglob("*")) == before
