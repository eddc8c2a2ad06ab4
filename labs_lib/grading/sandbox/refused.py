"""System calls that no fenced kernel has a use for, as a filter that Linux runs before each call.

The fence's namespaces and limits don't reach what is refused here:

- memory that no process is seen to hold: anonymous files, the shared memory and the queues of
  System V, a file system of one's own, pages of `io_uring`
- what the machine keeps by user or by session, such as keys
- other programs inside the fence: the one that ends it
- sockets that no network namespace holds back, such as those to a virtual machine's host

A refused call fails as one that this kernel of Linux doesn't have (ENOSYS), so that libraries take
another way. The format is classic BPF: seccomp(2), linux/filter.h and linux/seccomp.h.
"""

from __future__ import annotations

import os
import platform
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

AVAILABLE = Path("/proc/sys/kernel/seccomp/actions_avail")
ENOSYS = 38
CLONE_NEWUSER = 0x10000000
FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: what a network namespace holds
X32 = 0x40000000  # numbers from here on are those of another way to call
_NAMES = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "perf_event_open", "bpf"),
    *("shmget", "semget", "msgget", "memfd_create", "memfd_secret"),
    *("io_uring_setup", "userfaultfd", "add_key", "request_key", "keyctl"),
    *("unshare", "setns", "clone3"),  # without clone3, whose flags no filter sees, clone is taken
)
_NUMBERS = {
    "x86_64": (
        *(101, 310, 311, 298, 321, 29, 64, 68, 319, 447, 425, 323, 248, 249, 250),
        *(272, 308, 435),
    ),
    "aarch64": (
        *(117, 270, 271, 241, 280, 194, 190, 186, 279, 447, 425, 282, 217, 218, 219),
        *(97, 268, 435),
    ),
}
_MACHINES = {"x86_64": (0xC000003E, 56, 41), "aarch64": (0xC00000B7, 220, 198)}
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # places in struct seccomp_data
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | ENOSYS


def program(machine: str | None = None) -> bytes:
    """The filter for a kind of machine, this one's unless given; empty where none is known."""
    machine = machine or platform.machine()
    if machine not in _MACHINES:
        return b""
    architecture, clone, socket = _MACHINES[machine]
    numbers = dict(zip(_NAMES, _NUMBERS[machine], strict=True)).values()
    steps: list[tuple[int, int, str, str]] = [
        (_LOAD, _MACHINE, "", ""),
        (_EQUAL, architecture, "", "refuse"),
        (_LOAD, _NUMBER, "", ""),
        (_AT_LEAST, X32, "refuse", ""),
        *((_EQUAL, number, "refuse", "") for number in numbers),
        (_EQUAL, clone, "clone", ""),
        (_EQUAL, socket, "", "allow"),
        (_LOAD, _FIRST_ARGUMENT, "", ""),
        *((_EQUAL, family, "allow", "") for family in FAMILIES),
        (_RETURN, _REFUSE, "", ""),
        (_LOAD, _FIRST_ARGUMENT, "", ""),
        (_ANY_BIT, CLONE_NEWUSER, "refuse", ""),
        (_RETURN, _ALLOW, "", ""),
        (_RETURN, _REFUSE, "", ""),
    ]
    places = {"clone": len(steps) - 4, "allow": len(steps) - 2, "refuse": len(steps) - 1}
    return _packed(steps, places)


def here() -> bytes:
    """The filter for this machine; empty where Linux runs none."""
    return program() if sys.platform == "linux" and AVAILABLE.exists() else b""


def as_descriptor() -> int | None:
    """An open file that holds the filter, for bubblewrap to read; None where there is none."""
    filter_ = here()
    if not filter_:
        return None
    reading, writing = os.pipe()
    os.write(writing, filter_)  # shorter than what a pipe holds
    os.close(writing)
    return reading


def _packed(steps: Sequence[tuple[int, int, str, str]], places: dict[str, int]) -> bytes:
    """struct sock_filter for each step; jumps count the steps that they pass over."""
    made = b""
    for here_, (code, value, if_so, if_not) in enumerate(steps):
        jumps = [places[name] - here_ - 1 if name else 0 for name in (if_so, if_not)]
        made += struct.pack("=HBBI", code, *jumps, value)
    return made
