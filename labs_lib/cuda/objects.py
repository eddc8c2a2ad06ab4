"""What a compiled kernel turned out to need and to keep, read from its object file.

A text may hide a call from whoever reads it; the compiler's own list of names hides nothing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from labs_lib.cuda.errors import CompileError

# None that stores through a pointer, where nobody would count it; mathfn.h has its own of these.
_MATH = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 "
    "expm1 fabs fdim floor fma fmax fmin fmod hypot ilogb ldexp lgamma llrint llround log log10 "
    "log1p log2 logb lrint lround nan nearbyint nextafter pow remainder rint round scalbln scalbn "
    "sin sinh sqrt tan tanh tgamma trunc j0 j1 jn y0 y1 yn"
)
_ALLOWED = re.compile(
    rf"(?:{'|'.join(_MATH.split())})[fl]?|labs_\w+|__tsan_\w+|__ubsan_\w+|memcpy|memset|l?l?abs"
    r"|_GLOBAL_OFFSET_TABLE_|__dso_handle|__stack_chk_fail|__tls_get_addr|_ZTVN10__cxxabiv1\w+"
    r"|__cxa_(?:atexit|guard_acquire|guard_release|pure_virtual)|_ZdlPv\w*"
    # What g++'s own library does for numbers that no register holds.
    r"|__(?:add|ash|bswap|clrsb|clz|cmp|ctz|div|eq|ext|extend|ffs|fix|fixuns|float|floatun|ge|gt"
    r"|le|lshr|lt|mod|mul|ne|neg|parity|popcount|powi|sub|trunc|ucmp|udiv|udivmod|umod|unord)"
    r"(?:bf|[shdxto][fi])\w*"
)
_WRITABLE = re.compile(r"\.t?(?:bss|data)(?!\.rel\.ro)|\*COM\*|__data|__bss|__common")
_OURS = re.compile(r"_ZZN3labL?6shared|_ZGV")


def foreign(path: Path, source: str) -> CompileError | None:
    """The error for the first name of the host's libraries that a kernel needs, if there is one."""
    for name, kind, _ in _symbols(path):
        if kind not in "Uwv" or _ALLOWED.fullmatch(name):
            continue
        plain = _plain(name)
        if not re.search(rf"\b{re.escape(plain)}\b", source) and plain not in ("memmove", "strlen"):
            plain = name
        return CompileError(
            f"`{plain}` is a function of the host, which no GPU has: either the cell calls it by "
            "some other name, or what the cell takes of the host's library does"
        )
    return None


def kept(path: Path) -> list[str]:
    """Variables that outlive a thread and may be written: no trace counts what is kept there."""
    found = _symbols(path)
    names = [name for name, _, where in found if _WRITABLE.match(where) and not _OURS.match(name)]
    return sorted({_plain(name) for name in names})


def _symbols(path: Path) -> list[tuple[str, str, str]]:
    """Name, kind and section of each symbol as `nm` has them; none where there is no `nm`."""
    nm = shutil.which("nm")
    if nm is None:
        return []
    done = subprocess.run(
        [nm, "--format=sysv", str(path)],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    cut = 1 if sys.platform == "darwin" else 0
    rows = ([field.strip() for field in line.split("|")] for line in done.stdout.splitlines())
    return [(row[0][cut:], row[2], row[-1]) for row in rows if len(row) == 7]


def _plain(name: str) -> str:
    """The last word of a mangled name, and others as they are."""
    local = re.search(r"E\d+([A-Za-z_]\w*?)(?:_\d+)?$", name) if name.startswith("_ZZ") else None
    if local or not name.startswith("_Z"):
        return local[1] if local else name
    found, at = name, 2
    while match := re.compile(r"\D*?(\d+)").match(name, at):
        end = match.end() + int(match[1])
        found, at = name[match.end() : end], end
        if not re.match(r"\d|[A-Z]*?N?\d|L\d|ZL?\d", name[at:]):
            break
    return found
