"""Makes libraries from kernels, and the runner that they run in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from labs_lib.cuda import cache, compilers, links, objects
from labs_lib.cuda.diagnose import explain
from labs_lib.cuda.errors import BuildError, CompileError
from labs_lib.cuda.rewrite import rewrite
from labs_lib.cuda.source import Signature

LIBRARY, REMARKS = "kernel.so", "remarks.txt"


def runner() -> Path:
    """The program that a launch runs in; built once for each user and machine."""
    compiler = compilers.need_host_compiler()
    key = _key_here("runner")

    def build(folder: Path) -> None:
        source = compilers.HOST / "runner" / "runner.cpp"
        command = [compiler, *compilers.RUNNER, str(source), "-o", str(folder / "runner"), "-ldl"]
        done = _call(command)
        if done.returncode:
            raise BuildError(f"The runner of kernels could not be built:\n{done.stderr}")

    return cache.get(key, "runner", build)


def header(flags: list[str]) -> Path:
    """Our header as the compiler takes it soonest: precompiled where it is g++."""
    compiler = compilers.need_host_compiler()
    plain = compilers.HOST / "cuda_host.h"
    if compilers.is_clang(compiler):
        return plain
    key = _key_here("header", *flags)

    def build(folder: Path) -> None:
        # No path in it: a copy of the course on the same machine may take what another one built.
        (folder / "labs.h").write_text(f'#include "{plain.name}"\n', encoding="utf-8")
        command = [compiler, *flags, f"-I{compilers.HOST}", "-x", "c++-header", "labs.h"]
        command += ["-o", "labs.h.gch"]
        done = _call(command, folder)
        if done.returncode:
            raise BuildError(f"The header of kernels could not be built:\n{done.stderr}")

    return cache.get(key, "labs.h.gch", build).with_suffix("")


def shared(folder: Path) -> Path:
    """Copies of the runner and the precompiled headers, for processes whose cache is empty.

    They are found where LABS_CUDA_SHARED names the folder; nothing is ever written there.
    """
    flags = [compilers.host_flags(trace) for trace in (False, True)]
    for made in (runner(), *(header(one) for one in flags)):
        if made != compilers.HOST / "cuda_host.h":
            shutil.copytree(made.parent, folder / made.parent.name, dirs_exist_ok=True)
    return folder


def host_library(
    source: str, kernels: list[Signature], *, trace: bool = False, filename: str = "cell.cu"
) -> Path:
    """A library with the kernels for the CPU.

    Raises: CompileError with the cell's own line; BuildError without a compiler.
    """
    flags, filename = compilers.host_flags(trace), links.file_name(filename)
    try:
        return _host_library(source, kernels, trace, filename, flags)
    except CompileError:
        if not trace:
            raise
        # Copies that are watched cost a struct its braces within braces (see host/touch.h).
        flags = [*flags, "-DLABS_PLAIN"]
        return _host_library(source, kernels, trace, filename, flags)


def _host_library(source: str, kernels: list[Signature], trace: bool, filename: str, flags) -> Path:
    text = rewrite(source, trace=trace) + host_entries(kernels)
    compiler = compilers.need_host_compiler()
    key = _key_here(text, filename, *flags, *links.OPEN_ENDS, REMARKS if trace else "")

    def build(folder: Path) -> None:
        cell = folder / filename
        cell.write_text(text, encoding="utf-8")
        include = [f"-I{compilers.HOST / 'include'}", f"-I{compilers.HOST}"]
        include += [*compilers.device_include(), "-include", str(header(flags))]
        command = [compiler, *flags, *include, "-x", "c++", "-c", cell.name]
        done = _call([*command, "-o", "kernel.o"], folder)
        if done.returncode == 0:
            # Linked apart: -fsanitize would bring the sanitizer's own runtime.
            link = [compiler, "-shared", "kernel.o", "-o", LIBRARY]
            done = _call([*link, *links.OPEN_ENDS], folder)
        if done.returncode:
            raise _failed(done.stdout + done.stderr, source, text, cell.name)
        problem = links.missing(done.stderr, source)
        if trace and not problem:
            problem = objects.foreign(folder / "kernel.o", source)
        if problem:
            raise problem
        if trace:
            _remark(folder, "-DLABS_PLAIN" in flags)
        (folder / "kernel.o").unlink()

    return cache.get(key, LIBRARY, build)


def _remark(folder: Path, plain: bool) -> None:
    """Writes down what a trace of the library does not count."""
    told = [f"it keeps numbers in {name}" for name in objects.kept(folder / "kernel.o")]
    told += ["its structs are built in a way that leaves copies uncounted"] if plain else []
    (folder / REMARKS).write_text("".join(f"{line}\n" for line in told), encoding="utf-8")


def remarks(library: Path) -> list[str]:
    """What a trace of this library does not count, a sentence each."""
    path = library.with_name(REMARKS)
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def device_library(source: str, kernels: list[Signature], arch: str, filename: str) -> Path:
    """A library that launches the kernels on a GPU of the given architecture (`sm_90`).

    Raises: CompileError with the cell's own line; BuildError without nvcc.
    """
    nvcc = compilers.nvcc()
    if nvcc is None:
        raise BuildError(
            "Tensors on a GPU need nvcc, which was not found. Install the CUDA toolkit of torch's "
            "version, or move the tensors to the CPU: the same kernel runs there."
        )
    text = source + device_entries(kernels)
    flags = ["-std=c++17", "-O3", "-shared", "-Xcompiler", "-fPIC", "-lineinfo"]
    flags += ["-gencode", f"arch=compute_{arch[3:]},code={arch}"]
    filename = links.file_name(filename)
    key = cache.key_of(text, filename, *flags, compilers.version(nvcc), compilers.header_hash())

    def build(folder: Path) -> None:
        cell = folder / filename
        cell.write_text(text, encoding="utf-8")
        command = [nvcc, *flags, *compilers.device_include(), cell.name, "-o", LIBRARY]
        done = _call(command, folder)
        for older in links.older_compilers(done.stdout + done.stderr):
            done = _call([*command, "-ccbin", older], folder)
            if done.returncode == 0:
                break
        problem = links.too_new(done.stdout + done.stderr, compilers.host_compiler())
        if done.returncode and problem:
            raise problem
        if done.returncode:
            raise explain(done.stdout + done.stderr, source, text, cell.name)

    return cache.get(key, LIBRARY, build)


def entry_name(kernel: Signature) -> str:
    """The C name under which a kernel of a library is called."""
    return "labs_entry_" + "".join(c if c.isalnum() else f"_{ord(c):x}_" for c in kernel.spelled)


def host_entries(kernels: list[Signature]) -> str:
    """One C function for each kernel: takes the addresses of the arguments."""
    return "\n" + "".join(
        f'extern "C" LABS_MEMBER void {entry_name(k)}(void** a) {{ lab::call({k.spelled}, a); }}\n'
        for k in kernels
    )


def device_entries(kernels: list[Signature]) -> str:
    """One C function for each kernel: launches on a device and stream, and says what failed."""
    return "\n#include <cuda_runtime.h>\n" + "".join(
        f"""extern "C" const char* {entry_name(k)}(
    void** a, const unsigned* g, const unsigned* b, size_t bytes, void* stream, int device) {{
    int before = 0;
    cudaGetDevice(&before);
    cudaError_t e = cudaSetDevice(device);
    if (e == cudaSuccess && bytes > 48 * 1024)
        e = cudaFuncSetAttribute(
            (const void*){k.spelled}, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (e == cudaSuccess)
        e = cudaLaunchKernel((const void*){k.spelled}, dim3(g[0], g[1], g[2]),
                             dim3(b[0], b[1], b[2]), a, bytes, (cudaStream_t)stream);
    cudaError_t late = cudaGetLastError();
    cudaSetDevice(before);
    if (e == cudaSuccess) e = late;
    return e == cudaSuccess ? nullptr : cudaGetErrorString(e);
}}
"""
        for k in kernels
    )


def _call(command: list[str], folder: Path | None = None) -> subprocess.CompletedProcess:
    """Runs a compiler, held to so much processor time, memory and size of what it writes."""
    return subprocess.run(
        ["/bin/sh", "-c", _LIMITED, *command] if os.path.exists("/bin/sh") else command,
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


COMPILER_SECONDS, COMPILER_GIB = 30, 4
_LIMITED = (
    f"ulimit -t {COMPILER_SECONDS} 2>/dev/null; ulimit -v {COMPILER_GIB << 20} 2>/dev/null; "
    'ulimit -f 400000 2>/dev/null; ulimit -c 0 2>/dev/null; exec "$0" "$@"'
)


def _failed(log: str, source: str, text: str, filename: str) -> CompileError:
    """The error for a log; a compiler that was stopped tells no line."""
    if re.search(r"terminated program|memory exhausted|out of memory|File size limit", log):
        return CompileError(
            f"The compiler was stopped: it needs more than {COMPILER_SECONDS} s, more than "
            f"{COMPILER_GIB} GiB of memory, or its library is too large. Look for a macro or "
            "template that grows without an end, or for a large array with initial values.",
            log=log,
        )
    return explain(log, source, text, filename)


def _key_here(*parts: str) -> str:
    """A key for what this machine's compiler makes of these parts and our headers."""
    compiler = compilers.version(compilers.need_host_compiler())
    return cache.key_of(*parts, compiler, compilers.header_hash(), compilers.machine())
