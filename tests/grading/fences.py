"""Kernels behind each fence there is here, and what is left of them afterwards."""

from __future__ import annotations

import functools
import sys
import textwrap
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

from labs_lib.grading.run.warm import shared
from labs_lib.grading.sandbox import (
    KERNEL_NAME,
    Policy,
    level,
    write_kernelspec,
)
from labs_lib.grading.sandbox.nursery import possible

MIB = 1 << 20
LEVELS = sorted({level().name, "process-limits"})
FENCED = level().name == "bubblewrap"
# A cold kernel behind bubblewrap is tried where the fence itself is; elsewhere a warm one is.
FENCES = ["warm", "bubblewrap"] if possible() else [name for name in LEVELS if FENCED]
WAYS = ["warm" if name == "bubblewrap" and possible() else name for name in LEVELS]
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def only_fenced(test):
    """Where no fence can be built, the promise is that the level says what it leaves open."""

    @functools.wraps(test)
    def either(*args, **kwargs):
        if FENCED:
            test(*args, **kwargs)
        else:
            assert "could read the files of this account and use the network" in level().sentence

    return either


class Kernel:
    """A started kernel of ours, and a way to ask it things."""

    def __init__(self, manager: KernelManager) -> None:
        self.manager = manager
        self.provisioner = manager.provisioner
        self.client = manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code: str, timeout: float = 30.0) -> str:
        """Standard output of `code`; an exception's name and text if it raised."""
        parts: list[str] = []

        def collect(message):
            content = message["content"]
            if message["msg_type"] == "stream" and content["name"] == "stdout":
                parts.append(content["text"])
            elif message["msg_type"] == "error":
                parts.append(f"{content['ename']}: {content['evalue']}")

        source = textwrap.dedent(code)
        self.client.execute_interactive(source, timeout=timeout, output_hook=collect)
        return "".join(parts).strip()

    def send(self, code: str) -> None:
        self.client.execute(textwrap.dedent(code), stop_on_error=False)

    def ends_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.manager.is_alive() and time.monotonic() < deadline:
            time.sleep(0.02)
        return not self.manager.is_alive()


class Starter:
    """Starts kernels at one level: `start(policy)` is a context manager."""

    def __init__(self, way: str, folder: Path, monkeypatch) -> None:
        self.level = "bubblewrap" if way == "warm" else way
        self.warm = shared().kernels if way == "warm" else None
        self.folder, self.monkeypatch = folder, monkeypatch

    @contextmanager
    def __call__(self, policy: Policy):
        policy = replace(policy, level=policy.level or self.level)
        write_kernelspec(self.folder, policy=policy, warm=self.warm)
        self.monkeypatch.setenv("JUPYTER_PATH", str(self.folder))
        manager = KernelManager(kernel_name=KERNEL_NAME)
        manager.start_kernel()
        kernel = Kernel(manager)
        try:
            yield kernel
            assert (kernel.provisioner._forked is not None) == (self.warm is not None)
        finally:
            kernel.client.stop_channels()
            if manager.has_kernel:
                manager.shutdown_kernel(now=True)
