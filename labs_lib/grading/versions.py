"""Whether two machines, or two days, have the same course as far as marks go."""

from __future__ import annotations

import hashlib
import platform
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..cuda import compilers
from ..paths import data

PACKAGES = ("torch", "numpy", "ipykernel", "ipython", "nbval", "pytest", "jupyter_client")
# What decides no outcome: rooms of the library, and rooms and modules of our own.
BESIDE = ("bench", "plots", "widgets", "workbook")
OWN_BESIDE = {
    *("batch", "reports", "attempts", "extras", "grade", "keys"),
    *("lateness", "options", "ready", "received", "versions"),
}


@cache
def library_hash(lab: str = "") -> str:
    """All that checks and marks are made of; without what is asked after `lab`, if one is named."""
    total = hashlib.sha256()
    for name, digest in _digests():
        parts = name.split("/")
        later = re.match(r"lab\d\d", parts[1]) if parts[0] in ("exercises", "answers") else None
        if not (later and lab and later[0] > lab):
            total.update(name.encode() + digest)
    return total.hexdigest()


@cache
def _digests() -> tuple[tuple[str, bytes], ...]:
    """The files that decide marks, by name, each with the hash of what it holds; read once."""
    root = Path(__file__).resolve().parents[1]
    files = {p.relative_to(root).as_posix(): p for p in root.rglob("*") if p.is_file()}
    if (data() / "models.json").is_file():
        files["data/models.json"] = data() / "models.json"
    kept = filter(_decides, sorted(files))
    return tuple((name, hashlib.sha256(files[name].read_bytes()).digest()) for name in kept)


def _decides(name: str) -> bool:
    """Whether a file, named from the library on, has to do with what comes of an answer."""
    room, *below = name.split("/")
    if room in (*BESIDE, "__pycache__") or "__pycache__" in below:
        return False
    return room != "grading" or OWN_BESIDE.isdisjoint([*below[:-1], Path(name).stem])


@cache
def machine(kernels: bool) -> str:
    """What of this machine decides marks, in words; with the compiler where there are kernels."""
    told = [platform.python_version(), platform.machine(), platform.system()]
    for name in PACKAGES:
        try:
            told.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            told.append(f"no {name}")
    if kernels:
        compiler = compilers.host_compiler()
        told.append(compilers.version(compiler) if compiler else "no compiler")
    return " · ".join(map(str, told))
