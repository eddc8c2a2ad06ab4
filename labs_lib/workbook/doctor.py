"""`labs doctor`: what this machine can do, and how to get what is missing, on one screen."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..models.catalog import MODELS
from ..models.on_disk import status
from ..paths import home

OK, MISSING, OPTIONAL = "ok", "missing", "optional"
SECCOMP = Path("/proc/sys/kernel/seccomp/actions_avail")  # there where Linux can refuse calls
STYLES = {OK: "green", MISSING: "bold red", OPTIONAL: "yellow"}


@dataclass(frozen=True)
class Row:
    """One thing looked for: its name, ok / missing / optional, what was found, how to get it.

    `missing` stands in the way of the labs; `optional` is absent and everything works without.
    """

    name: str
    state: str
    found: str
    how: str = ""


def report() -> list[Row]:
    """Look at the machine; each row stands for itself, and none of them ever raises."""
    looks: list[tuple[str, Callable[[], Row]]] = [
        ("Python", _python),
        ("PyTorch", _torch),
        ("Jupyter kernel", _kernel),
        ("widgets", _widgets),
        ("C++ compiler", _compiler),
        ("GPU", _gpu),
        ("CUDA compiler", _nvcc),
        ("sandbox", _sandbox),
        ("models", _models),
        ("memory", _memory),
        ("disk", _disk),
    ]
    return [_safely(name, look) for name, look in looks]


def show(console: Console | None = None) -> bool:
    """Print the report; return whether nothing that the labs need is missing."""
    console = console or Console(highlight=False)
    found = report()
    table = Table(box=None, pad_edge=False)
    for title in ("what", "state", "found"):
        table.add_column(title, no_wrap=title != "found")
    for row in found:
        table.add_row(row.name, f"[{STYLES[row.state]}]{row.state}[/]", _text(row))
    console.print(table)
    missing = [row.name for row in found if row.state == MISSING]
    console.print(
        f"missing: {', '.join(missing)}" if missing else "Everything that the labs need is here."
    )
    return not missing


def _text(row: Row) -> str:
    return escape(f"{row.found}; {row.how}" if row.how else row.found)


def _safely(name: str, look: Callable[[], Row]) -> Row:
    try:
        return look()
    except Exception as error:  # a report that dies on one row helps nobody
        return Row(name, MISSING, f"could not be looked at: {type(error).__name__}: {error}")


def _python() -> Row:
    version = platform.python_version()
    found = f"{version} on {platform.system()} {platform.machine()}"
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return Row("Python", OK, found)
    return Row("Python", MISSING, found, "the course runs on 3.11, 3.12 and 3.13")


def _torch() -> Row:
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        return Row("PyTorch", MISSING, str(error).splitlines()[0], "run `make lab` once")
    except OSError as error:
        how = "on Windows install the Microsoft Visual C++ Redistributable (x64)"
        return Row("PyTorch", MISSING, str(error).splitlines()[0], how)
    size = _size(Path(torch.__file__).parent)
    found = f"{torch.__version__}, {size / 1e9:.1f} GB on disk"
    if torch.version.cuda and not torch.cuda.is_available():
        how = "a CUDA build without a GPU: it works; the CPU build is far smaller (README)"
        return Row("PyTorch", OK, found, how)
    return Row("PyTorch", OK, found)


def _kernel() -> Row:
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    how = f"{sys.executable} -m ipykernel install --sys-prefix"
    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        return Row("Jupyter kernel", MISSING, "no kernel is called python3", how)
    program = spec.argv[0]
    if os.path.isabs(program) and not _same(program, sys.executable):
        found = f"python3 starts {program}, which is another environment"
        return Row("Jupyter kernel", MISSING, found, how)
    return Row("Jupyter kernel", OK, "python3 of this environment")


def _widgets() -> Row:
    found = []
    for name in ("@jupyter-widgets/jupyterlab-manager", "anywidget"):
        parts = ("share", "jupyter", "labextensions", *name.split("/"), "package.json")
        package = Path(sys.prefix, *parts)
        if not package.is_file():
            how = "pip install -r requirements.lock"
            return Row("widgets", MISSING, f"JupyterLab's extension {name} is not installed", how)
        found.append(json.loads(package.read_text(encoding="utf-8"))["version"])
    python = importlib.metadata.version("ipywidgets")
    said = f"ipywidgets {python}, JupyterLab extensions {found[0]} and anywidget {found[1]}"
    return Row("widgets", OK, said)


def _compiler() -> Row:
    for name in ("g++", "clang++"):
        program = shutil.which(name)
        if program:
            line = _output([program, "--version"]).splitlines()
            return Row("C++ compiler", OK, line[0] if line else program)
    how = {
        "Darwin": "xcode-select --install",
        "Windows": "use WSL, then: sudo apt install g++",
    }.get(platform.system(), "sudo apt install g++ (or your system's package of g++ or clang)")
    return Row("C++ compiler", OPTIONAL, "none; the CUDA labs need one", how)


def _gpu() -> Row:
    torch = importlib.import_module("torch")
    if torch.cuda.is_available():
        names = {torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())}
        return Row("GPU", OK, ", ".join(sorted(names)))
    smi = shutil.which("nvidia-smi")
    if smi and _output([smi, "-L"]):
        return Row("GPU", OPTIONAL, "there is one, but this PyTorch is a CPU build")
    return Row("GPU", OPTIONAL, "none; every lab works without")


def _nvcc() -> Row:
    program = shutil.which("nvcc")
    if not program:
        return Row("CUDA compiler", OPTIONAL, "no nvcc; only a GPU needs it")
    lines = [x for x in _output([program, "--version"]).splitlines() if "release" in x]
    return Row("CUDA compiler", OK, lines[0].strip() if lines else program)


def _sandbox() -> Row:
    if platform.system() != "Linux":
        return Row("sandbox", OPTIONAL, "Linux only; only graders need it")
    program = shutil.which("bwrap")
    if not program:
        how = "sudo apt install bubblewrap"
        return Row("sandbox", OPTIONAL, "no bubblewrap; only graders need it", how)
    probe = [program, "--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "true"]
    if _fails(probe):
        how = "ask your administrator for unprivileged user namespaces"
        return Row("sandbox", OPTIONAL, "bubblewrap is here but may not run; for graders", how)
    works = f"{_output([program, '--version']).strip()} works (for graders){_held()}"
    if not SECCOMP.exists():
        how = "docs/trust.md says what a Linux with it adds"
        return Row("sandbox", OPTIONAL, f"{works}; no seccomp, so no system call is refused", how)
    return Row("sandbox", OK, works)


def _held() -> str:
    """What holds a graded kernel's memory here, as the grader found it; empty where none is."""
    told = _output([sys.executable, "-m", "labs_lib.grading.sandbox", "--held"]).strip()
    return f"; {told}" if told else ""


def _models() -> Row:
    found = [status(name) for name in MODELS]
    broken = [one for one in found if one.state == "broken"]
    if broken:
        how = f"`labs models get {broken[0].entry.name}` mends it"
        return Row("models", OPTIONAL, broken[0].problem, how)
    missing = [one.entry for one in found if one.state == "missing"]
    if missing:
        names = " and ".join(what.title for what in missing)
        size = sum(what.size for what in missing) / 1e6
        how = f"`labs models get` fetches {size:.0f} MB; every lab goes on without"
        return Row("models", OPTIONAL, f"{names} not here", how)
    size = sum(one.bytes for one in found) / 1e6
    names = " and ".join(one.entry.title for one in found)
    return Row("models", OK, f"{names}, {size:.0f} MB on disk")


def _memory() -> Row:
    memory = psutil.virtual_memory()
    found = f"{memory.available / 2**30:.1f} GiB free of {memory.total / 2**30:.1f} GiB"
    if memory.available < 2**30:
        return Row("memory", MISSING, found, "close other programs; a lab needs about 1 GiB")
    return Row("memory", OK, found)


def _disk() -> Row:
    usage = shutil.disk_usage(home())
    found = f"{usage.free / 1e9:.1f} GB free"
    if usage.free < 1e9:
        return Row("disk", MISSING, found, "free at least 1 GB")
    return Row("disk", OK, found)


def _size(folder: Path) -> int:
    """Bytes of all files under a folder; links aren't followed."""
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            total += os.stat(os.path.join(base, name), follow_symlinks=False).st_size
    return total


def _same(one: str, other: str) -> bool:
    return Path(one).parent.resolve() == Path(other).parent.resolve()


def _fails(command: list[str]) -> bool:
    """Whether a program can't be run, takes over ten seconds, or says that it failed."""
    try:
        return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode != 0
    except (OSError, subprocess.TimeoutExpired):
        return True


def _output(command: list[str]) -> str:
    """What a program prints; empty if it can't be run or takes over ten seconds."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=10,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
