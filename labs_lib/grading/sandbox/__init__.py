"""A fence around the kernel that runs a student's code.

`Policy` says what a kernel may see and use, `level()` which fence this machine can build, and
`write_kernelspec` makes an ordinary kernelspec of it for nbval, nbclient or any other front end.
"""

from labs_lib.grading.sandbox.kernelspec import KERNEL_NAME, write_kernelspec
from labs_lib.grading.sandbox.levels import Level, SandboxUnavailable, level
from labs_lib.grading.sandbox.policy import Limits, Policy

__all__ = [
    "KERNEL_NAME",
    "Level",
    "Limits",
    "Policy",
    "SandboxUnavailable",
    "level",
    "write_kernelspec",
]
