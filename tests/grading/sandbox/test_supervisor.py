"""At the level of process limits a kernel has a supervisor: it doesn't go on without."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import psutil
import pytest

from labs_lib.grading.sandbox.processes import LAUNCHER

ENDED = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells of a parent's end")
def test_a_kernel_ends_when_its_supervisor_is_killed():
    settings = json.dumps({"limits": {}, "supervise": True})
    kernel = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]
    supervisor = subprocess.Popen([sys.executable, "-I", "-S", str(LAUNCHER), settings, *kernel])
    try:
        deadline = time.monotonic() + 20
        while not (below := psutil.Process(supervisor.pid).children()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        while below[0].cmdline()[1:] != kernel[1:]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        supervisor.kill()
        supervisor.wait()
    while below[0].is_running() and below[0].status() not in ENDED:
        assert time.monotonic() < deadline, "the kernel outlived its supervisor"
        time.sleep(0.02)
