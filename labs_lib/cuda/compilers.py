"""The compilers of this machine and how they are called."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from labs_lib.cuda.errors import BuildError

HOST = Path(__file__).parent / "host"
COMMON = [
    "-std=c++17",
    "-fPIC",
    "-Werror=vla",  # no CUDA; `-w` would allow it
    "-fno-exceptions",
    "-fno-gnu-unique",
    "-fdiagnostics-color=never",
]
COMMON += ["-fmax-errors=8", "-fno-strict-aliasing", "-fstack-clash-protection", "-g1"]
# No -ffast-math: masks of -INFINITY must stay what they are. Sums may be taken in another order,
# or no dot product would be vectorised; __fadd_rn and its kin keep theirs.
FAST = [
    "-O3",
    "-fno-finite-loops",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-signed-zeros",
    "-fassociative-math",
]
# As written: no load may be moved, merged or split before it is counted.
TRACE = ["-O0", "-fsanitize=thread", "-DLABS_TRACE", "-fno-builtin"]
GCC_TRACE = ["--param", "tsan-distinguish-volatile=1", "-fno-tree-sra", "-fsanitize=bounds"]
# Our atomics are told of by themselves; a read before a write counts too.
CLANG_TRACE = ["-fsanitize=array-bounds"] + [
    part
    for name in ("instrument-read-before-write=1", "instrument-atomics=0", "distinguish-volatile=1")
    for part in ("-mllvm", f"-tsan-{name}")
]
# A variable that was never set holds a huge number or NaN, not what the last call left there.
PATTERN = "-ftrivial-auto-var-init=pattern"
RUNNER = ["-std=c++17", "-O2", "-g1", "-w", "-rdynamic", "-pthread"]
# Fewer libraries to load: it starts in half the time.
RUNNER += ["-static-libstdc++", "-static-libgcc"] if platform.system() == "Linux" else []


@cache
def host_compiler() -> str | None:
    """The C++ compiler: `CXX` if it is set, else g++, clang++ or c++; None where there is none.

    None on Windows, too: the runner needs a Unix.
    """
    if platform.system() == "Windows":
        return None
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        found = shutil.which(name) if name else None
        if found:
            return found
    return None


def need_host_compiler() -> str:
    """The C++ compiler, or a BuildError that says which package brings one."""
    found = host_compiler()
    if found:
        return found
    way = {
        "Darwin": "Install one with `xcode-select --install`",
        "Windows": "Use WSL (Ubuntu) or Colab, and there `sudo apt install g++`",
    }.get(platform.system(), "Install one with `sudo apt install g++` (Fedora: `gcc-c++`)")
    raise BuildError(
        f"Kernels need a C++ compiler, and this machine has none. {way}, then run the cell again; "
        "the recorded traces of lab 09 can be read without one."
    )


@cache
def version(compiler: str) -> str:
    """What tells two compilers apart: path, size and time of the file, and its own words."""
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    stat = os.stat(os.path.realpath(compiler))
    return f"{compiler} {stat.st_size} {stat.st_mtime_ns} {done.stdout.strip()}"


@cache
def is_clang(compiler: str) -> bool:
    """Whether a compiler is clang, by whatever name it is called."""
    return "clang" in version(compiler).lower()


def host_flags(trace: bool) -> list[str]:
    """How a kernel is compiled for the CPU."""
    clang = is_clang(need_host_compiler())
    common = [f for f in COMMON if not (clang and f in ("-fno-gnu-unique", "-fmax-errors=8"))]
    common += ["-ferror-limit=8"] if clang else []
    if not trace:
        return [*common, *FAST, *_native()]
    extra = CLANG_TRACE if clang else GCC_TRACE
    fill = [PATTERN] if clang or _fills(need_host_compiler()) else []
    return [*common, *TRACE, *extra, *fill]


@cache
def _fills(compiler: str) -> bool:
    """Whether g++ knows PATTERN, as it does since version 12; older ones are asked."""
    said = re.search(r"\b(\d+)\.\d+\.\d+\b", version(compiler).partition(" ")[2])
    return (said is not None and int(said[1]) >= 12) or _takes(compiler, PATTERN)


@cache
def _takes(compiler: str, *flags: str) -> bool:
    """Whether a compiler knows some flags."""
    command = [compiler, *flags, "-Werror", "-x", "c++", "-fsyntax-only", os.devnull]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def device_include() -> list[str]:
    """Where the headers lie that come with the course and are the same on a GPU (`labs/mma.h`)."""
    return [f"-I{HOST / 'device'}"]


def _native() -> list[str]:
    return ["-march=native"] if platform.machine() in ("x86_64", "AMD64") else []


@cache
def machine() -> str:
    """What code for this very processor depends on; part of each key, as homes are shared."""
    flags = ""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            flags = next((li for li in file if li.startswith(("flags", "Features"))), "")
    return f"{platform.system()} {platform.machine()} {flags}"


@cache
def header_hash() -> str:
    """Changes when any file of the host does."""
    digest = hashlib.sha256()
    for path in sorted(p for p in HOST.rglob("*") if p.is_file()):  # <cassert> has no suffix
        name = path.relative_to(HOST).as_posix()
        digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def nvcc() -> str | None:
    """CUDA's own compiler, from PATH, CUDA_HOME or the usual place."""
    found = shutil.which("nvcc")
    if found:
        return found
    for root in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        candidate = Path(root or "/nonexistent") / "bin" / "nvcc"
        if candidate.exists():
            return str(candidate)
    return None
