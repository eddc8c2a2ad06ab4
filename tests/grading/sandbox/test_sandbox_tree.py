"""How much memory a tree of processes holds: what a fork shares is counted once."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from labs_lib.grading.sandbox import tree

MIB = 2**20
FORKED = """
    import os, sys, time
    held = bytearray(os.urandom(1)) * (100 * 2**20)
    for seconds in (60, 60, 60, 0):
        if not os.fork():
            time.sleep(seconds)
            os._exit(0)
    time.sleep(0.3)
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="shared pages are told by Linux only")
def test_what_a_fork_shares_is_counted_once_though_one_process_has_ended():
    """One that has ended and was not waited for is listed, and can't be asked for its share."""
    code = textwrap.dedent(FORKED)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        parent.stdout.readline()
        pids = tree.descendants(parent.pid)
        try:
            assert len(pids) == 5
            assert tree.memory(pids, 10**12) > 350 * MIB  # quickly, and more than there is
            assert 100 * MIB < tree.memory(pids, 200 * MIB) < 200 * MIB
        finally:
            tree.end(pids)
