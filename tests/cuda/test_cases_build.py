"""Building goes right where public reports say that it went wrong: locks, users, ninja, names."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from labs_lib import cuda
from labs_lib.cuda import build, compilers, links
from labs_lib.cuda.source import find_kernels

KERNEL = "__global__ void k(float* x) { x[threadIdx.x] = %d; }"
BUILD = f"""
import sys
from labs_lib.cuda import build
from labs_lib.cuda.source import find_kernels
source = {KERNEL!r} % int(sys.argv[1])
made = build.host_library(source, list(find_kernels(source).values()))
print(made)
"""


def python(script, *arguments, **environment):
    """A process of its own; returns it when it has ended."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", **{k: str(v) for k, v in environment.items()}}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def program(path: Path, text: str) -> Path:
    """A shell script that can be run."""
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


@pytest.fixture
def own_cache(tmp_path):
    """A cache of this test alone that has the runner and headers already."""
    shared = build.shared(tmp_path / "shared")
    return {"LABS_CUDA_CACHE": tmp_path / "cache", "LABS_CUDA_SHARED": shared}


@pytest.mark.slow
def test_a_compiler_that_was_killed_half_way_holds_nobody_up(tmp_path, own_cache):
    """kill -9 of the process, and its compiler still at work: the next build is done at once."""
    slow = program(tmp_path / "slow-g++", f'echo begun >> "{tmp_path}/begun"\nsleep 30')
    real = compilers.host_compiler()
    version = f'case "$*" in *--version*) exec "{real}" --version;; esac'
    program(slow, f'{version}\necho begun >> "{tmp_path}/begun"\nsleep 30')
    environment = {**os.environ, **{k: str(v) for k, v in own_cache.items()}, "CXX": str(slow)}
    with subprocess.Popen([sys.executable, "-c", BUILD, "1"], env=environment) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (tmp_path / "begun").exists()
        os.kill(process.pid, signal.SIGKILL)
    program(slow, f'exec "{real}" "$@"')
    start = time.monotonic()
    done = python(BUILD, 1, **own_cache, CXX=slow)
    assert done.returncode == 0, done.stderr
    assert "waiting" not in done.stderr and time.monotonic() - start < 25


def test_a_second_user_of_one_folder_gets_a_private_one(tmp_path):
    """What user 1 made with umask 077 can't be read by user 2, who is told once."""
    script = """
import os, sys, tempfile
from labs_lib.cuda import cache
tempfile.tempdir = sys.argv[1]
if os.getuid() == 0:
    os.setuid(65534)
made = cache.get("key", "out", lambda f: (f / "out").write_text("x", encoding="utf-8"))
print(made)
"""
    theirs, room = tmp_path / "theirs", tmp_path / "room"
    theirs.mkdir(mode=0o500)
    room.mkdir()
    for folder in (room, *tmp_path.parents[:3], tmp_path):
        folder.chmod(folder.stat().st_mode | 0o011)
    room.chmod(0o777)
    done = python(script, room, LABS_CUDA_CACHE=theirs)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(room)) and done.stderr.count("\n") == 1
    assert "LABS_CUDA_CACHE" in done.stderr


def test_without_ninja_without_torchs_builder_and_without_a_word(tmp_path, own_cache):
    """No ninja on PATH, no arch list that makes sense, no GPU: nothing of torch's is reached."""
    script = (
        BUILD
        + "assert 'torch.utils.cpp_extension' not in sys.modules\n"
        + "assert not __import__('shutil').which('ninja')"
    )
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("g++", "clang++", "as", "ld", "sh", "addr2line"):
        if shutil.which(name):
            (tools / name).symlink_to(shutil.which(name))
    done = python(script, 2, **own_cache, PATH=tools, TORCH_CUDA_ARCH_LIST="nonsense")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    rooms = Path(build.__file__).parent.rglob("*.py")
    assert not [p for p in rooms if "cpp_extension" in p.read_text(encoding="utf-8")]


@pytest.mark.slow
def test_a_new_process_finds_what_another_one_built_and_calls_no_compiler(tmp_path, own_cache):
    log, real = tmp_path / "log", compilers.host_compiler()
    counting = program(tmp_path / "g++", f'echo "$@" >> "{log}"\nexec "{real}" "$@"')
    for expected in (True, False):
        log.write_text("", encoding="utf-8")
        done = python(BUILD, 3, **own_cache, CXX=counting)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        calls = [c for c in log.read_text(encoding="utf-8").splitlines() if c != "--version"]
        assert bool(calls) == expected


def test_a_library_made_for_another_processor_is_not_taken(monkeypatch):
    source = KERNEL % 4
    kernels = list(find_kernels(source).values())
    own = build.host_library(source, kernels)
    monkeypatch.setattr(compilers, "machine", lambda: "another processor")
    assert build.host_library(source, kernels) != own


def test_our_part_of_the_compile_time_is_small(make):
    """No header of torch is read: the compiler's input is our header and the cell."""
    make(f"x[0] = {time.time_ns() % 10**6};")
    command = [compilers.host_compiler(), "-E", "-x", "c++", "-std=c++17"]
    done = subprocess.run(
        [*command, str(compilers.HOST / "cuda_host.h")], capture_output=True, text=True, check=True
    )
    assert "torch/" not in done.stdout and "ATen/" not in done.stdout


@pytest.mark.parametrize(
    "name", ["a \"b\" 'c'.cu", "-o.cu", "../up.cu", "naïve.cu", "a;b $(c).cu", "x", "", "a-b.cu"]
)
def test_a_cell_may_be_named_anything(name):
    x = torch.zeros(1)
    k = cuda.compile("__global__ void k(float* x) {\n    x[0] = 1;\n}", name=name)
    assert [li.line for li in k.trace[1, 1](x).lines] == [2] and x.item() == 1
    with pytest.raises(cuda.CompileError, match=r"^line 2: ") as caught:
        cuda.compile("__global__ void k(float* x) {\n    x[0] = y;\n}", name=name)
    assert caught.value.line == 2 and Path(links.file_name(name)).name == links.file_name(name)


QUOTES = """
// a "quote", a 'tick' and a \\ in a comment
__device__ const char* text = "a \\"quote\\" and a % sign";
__global__ void k(float* x) { if (text[2] == '"') x[0] = 1; }
"""


def test_quotes_in_a_cell_break_nothing():
    x = torch.zeros(1)
    cuda.compile(QUOTES)[1, 1](x)
    assert x.item() == 1


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        (
            "__device__ float g(double);\n__global__ void k(float* x) { x[0] = g(1.0); }\n"
            "__device__ float g(float v) { return v; }",
            1, r"`g\(double\)` is declared and called, and nowhere defined",
        ),
        (
            "__global__ void k(float* x) {\n  int h(int);\n  x[0] = h(3); }",
            2, r"`h\(int\)` is declared and called",
        ),
        (
            "__global__ void k(float* x, double a);\n"
            "__global__ void k(float* x, float a) { x[0] = a; }",
            1, "declared with other parameters than it is defined with",
        ),
    ],
)  # fmt: skip
def test_declared_with_one_type_and_defined_with_another_is_told(source, line, words):
    with pytest.raises(cuda.CompileError, match=words) as caught:
        cuda.compile(source)
    assert caught.value.line == line and "_Z" not in str(caught.value)
    assert "/" not in str(caught.value).split("\n")[0]


REFUSAL = """In file included from crt/host_config.h:
host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 11 are not \
supported! The nvcc flag '-allow-unsupported-compiler' can be used to override this version check.
"""


def fake_nvcc(tmp_path, monkeypatch, works_with):
    """An nvcc that takes one host compiler only."""
    text = f'echo "$*" >> "{tmp_path}/calls"\n'
    text += 'case "$*" in *--version*) echo release 11.0; exit 0;; esac\n'
    text += f'case "$*" in *"{works_with}"*) touch {build.LIBRARY}; exit 0;; esac\n'
    text += f"cat >&2 <<'END'\n{REFUSAL}END\nexit 1"
    nvcc = program(tmp_path / "nvcc", text)
    monkeypatch.setattr(compilers, "nvcc", lambda: str(nvcc))
    monkeypatch.setenv("LABS_CUDA_CACHE", str(tmp_path / "cache"))


def device_library():
    source = KERNEL % 5
    return build.device_library(source, list(find_kernels(source).values()), "sm_80", "c.cu")


def test_a_host_compiler_that_is_too_new_is_replaced_by_an_older_one(tmp_path, monkeypatch):
    older = program(tmp_path / "g++-10", "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    fake_nvcc(tmp_path, monkeypatch, f"-ccbin {older}")
    assert device_library().exists()
    calls = (tmp_path / "calls").read_text(encoding="utf-8")
    assert "code=sm_80" in calls and "g++-12" not in calls, "only what the toolkit allows is tried"


def test_without_an_older_one_both_versions_and_the_package_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(links.shutil, "which", lambda name: None)
    fake_nvcc(tmp_path, monkeypatch, "-ccbin nothing")
    own = subprocess.run(
        [compilers.host_compiler(), "-dumpversion"], capture_output=True, text=True, check=True
    ).stdout.strip()
    with pytest.raises(cuda.BuildError, match=rf"up to 11, and version {own} .*g\+\+-11"):
        device_library()


def test_the_room_can_be_imported_where_linux_is_not():
    """macOS and Windows: no fcntl, no resource, no memfd; the Python-only labs go on."""
    script = """
import os, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name in ("fcntl", "resource", "pwd", "grp", "termios"):
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
for name in ("memfd_create", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
import platform
platform.system = lambda: "Windows"
from labs_lib import cuda
from labs_lib.cuda import recorded
try:
    cuda.compile("__global__ void k(float* x) { x[0] = 1; }")
except cuda.BuildError as problem:
    print(problem)
print(recorded.trace("softmax_rows").clean)
"""
    done = python(script)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.strip().split("\n")
    assert "WSL" in first and "Colab" in first and second == "True"


def test_a_whole_log_is_kept_beside_the_short_message(make):
    with pytest.raises(cuda.CompileError) as caught:
        make("x[0] = one;\nx[1] = two;")
    assert "two" not in str(caught.value).split("(1 more")[0] and "two" in caught.value.log
    assert shutil.which("g++") is None or "cell.cu" in caught.value.log
