"""How pytest is asked to run one notebook, in a process from nothing or in a fork."""

from __future__ import annotations

from pathlib import Path

from labs_lib.grading.sandbox import KERNEL_NAME

INI = "own.ini"
NEEDED = ("nbval.plugin", "labs_lib.grading.run.plugin")
# What pytest brings for tests that are functions: each of them looks at every cell.
UNUSED = (
    *("assertion", "cacheprovider", "debugging", "doctest", "faulthandler"),
    *("logging", "monkeypatch", "pastebin", "recwarn", "reports", "setuponly", "setupplan"),
    *("skipping", "stepwise", "subtests", "threadexception", "tmpdir", "unittest"),
    *("unraisableexception", "warnings"),
)


def arguments(root: Path) -> list[str]:
    """pytest with nbval and our plugin, and with nothing that lies beside a notebook; `root` is a
    folder of our own."""
    (root / INI).write_text("[pytest]\n", encoding="utf-8")
    return [
        *("-q", "-s", "--color=no", "--tb=short"),
        *("-c", str(root / INI), "--rootdir", str(root), "--noconftest"),
        *(word for name in UNUSED for word in ("-p", f"no:{name}")),
        *(word for name in NEEDED for word in ("-p", name)),
        *("--nbval-lax", "--nbval-kernel-name", KERNEL_NAME),
    ]
