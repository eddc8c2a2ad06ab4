"""What goes wrong after a kernel was compiled: functions that nobody defined, compilers that don't
go together. And the name of the file that a cell is compiled as."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from labs_lib.cuda.errors import BuildError, CompileError

# The runner's own functions come later: the linker goes on, and tells what is missing where it can.
OPEN_ENDS = ["-Wl,-z,defs", "-Wl,--warn-unresolved-symbols"]
if sys.platform == "darwin":
    OPEN_ENDS = ["-undefined", "dynamic_lookup"]
_OURS = ("labs_", "__tsan_", "__ubsan_")
_MISSING = re.compile(r"(?:(\d+): )?[^\n]*undefined reference to [`'‘]([^\n]*?)['’]\s*$", re.M)
_GNU = re.compile(r"gcc versions later than (\d+)")


def file_name(given: str) -> str:
    """A name for a cell's file that no compiler takes for an option or a path; ends with .cu."""
    name = re.sub(r"[^\w. -]", "_", Path(given).name).lstrip("-. ")
    return name if name.endswith((".cu", ".cpp")) else f"{name or 'cell'}.cu"


def missing(log: str, source: str) -> CompileError | None:
    """The error for the first function that is called and nowhere defined, if there is one."""
    for line, name in _MISSING.findall(log):
        if name.startswith(_OURS):
            continue
        number = int(line) if line and int(line) <= source.count("\n") + 1 else None
        number = number or _line_of(name, source)
        where = f"line {number}: " if number else ""
        return CompileError(
            f"{where}`{name}` is declared and called, and nowhere defined. The definition must "
            "have the same name and the same types of parameters as the declaration.",
            line=number,
            log=log,
        )
    return None


def older_compilers(log: str) -> list[str]:
    """Installed versions of g++ that a CUDA toolkit allows which has refused this machine's own."""
    found = _GNU.search(log)
    if not found and "unsupported GNU version" not in log:
        return []
    newest = int(found[1]) if found else 15
    names = [f"g++-{version}" for version in range(newest, 6, -1)]
    return [path for path in map(shutil.which, names) if path]


def too_new(log: str, compiler: str | None) -> BuildError | None:
    """What to do when a toolkit refuses the machine's g++ and there is no older one."""
    found = _GNU.search(log)
    if not found and "unsupported GNU version" not in log:
        return None
    newest = found[1] if found else "an older version"
    own = "this machine's"
    if compiler:
        done = subprocess.run([compiler, "-dumpversion"], capture_output=True, text=True)
        own = f"version {done.stdout.strip()}"
    return BuildError(
        f"This CUDA toolkit works with g++ up to {newest}, and {own} is installed. Install one "
        f"that fits beside it (`sudo apt install g++-{newest}`), or a newer toolkit; until then "
        "move the tensors to the CPU: the same kernel runs there."
    )


def _line_of(name: str, source: str) -> int | None:
    """The line where a function's name, without its parameters, first stands."""
    short = re.match(r"[\w:]*?(\w+)\s*(?:[(<]|$)", name)
    if not short:
        return None
    at = re.search(rf"\b{re.escape(short[1])}\b", source)
    return source.count("\n", 0, at.start()) + 1 if at else None
