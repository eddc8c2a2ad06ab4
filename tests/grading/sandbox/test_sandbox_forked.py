"""Kernels that are forked from a warm parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest
from fences import MIB, Kernel, Starter
from jupyter_client.manager import KernelManager
from waiting import gone_within

from labs_lib.grading.sandbox import (
    KERNEL_NAME,
    Limits,
    Policy,
    bubblewrap,
    tree,
    write_kernelspec,
)
from labs_lib.grading.sandbox.nursery import Nursery, possible

warm_only = pytest.mark.skipif(not possible(), reason="needs Linux 5.8 and bubblewrap")


@warm_only
def test_nobody_is_ended_who_took_a_dead_kernels_number(tmp_path, monkeypatch):
    with Starter("warm", tmp_path, monkeypatch)(Policy()) as kernel:
        provisioner = kernel.provisioner
        forked = provisioner._forked
        assert forked.pid in provisioner.everything()
        stranger = subprocess.Popen(["/bin/sleep", "60"])
        forked._pid = stranger.pid  # what psutil sees once the number is taken again
        assert stranger.pid not in provisioner.everything()
        kernel.manager.shutdown_kernel(now=True)
        assert stranger.poll() is None
        stranger.kill()
        stranger.wait()


def test_kernels_share_no_user(monkeypatch):
    if sys.platform == "linux":
        monkeypatch.setattr(os, "getuid", lambda: 0)
        users = [bubblewrap.sandbox_uid() for _ in range(20)]
        assert len({*users, *(user + 1 for user in users)}) == 40


@warm_only
def test_forked_kernels_are_strangers_to_each_other_and_to_chance(start_fenced):
    code = """
        import os, random, numpy, torch
        print(random.random(), numpy.random.rand(), float(torch.rand(())))
        print(sorted(os.environ), os.listdir("/labs/sockets"))
    """
    with start_fenced(Policy()) as one, start_fenced(Policy()) as two:
        first, second = one.run(code).splitlines(), two.run(code).splitlines()
        assert not set(first[0].split()) & set(second[0].split())
        assert first[1] == second[1]
        one.run("open('/tmp/mine', 'w', encoding='utf-8').close()")
        assert two.run("import os; print(os.path.exists('/tmp/mine'))") == "False"


@warm_only
def test_a_forked_kernel_computes_draws_and_forks_as_a_fresh_one(start_fenced):
    with start_fenced(Policy(limits=Limits(memory_bytes=700 * MIB))) as kernel:
        seen = kernel.run(
            """
            import multiprocessing, os, sys, time, torch
            import matplotlib.pyplot as plt
            torch.set_num_threads(4)
            x = torch.ones(300, 300, requires_grad=True)
            (x @ x).sum().backward()
            plt.plot([1, 2]); plt.savefig("a.png")
            with multiprocessing.get_context("fork").Pool(4) as pool:
                print(pool.map(abs, [-1, -2, -3]), float(x.grad[0, 0]), os.path.isfile("a.png"))
            print(sys.flags.safe_path, "labs_lib" in sys.modules)
        """,
            timeout=120,
        )
        assert seen.splitlines()[0] == "[1, 2, 3] 600.0 True"
        assert seen.splitlines()[1] == "True False"


@warm_only
def test_without_its_warm_parent_a_kernel_starts_cold(tmp_path, monkeypatch):
    start = Starter("bubblewrap", tmp_path / "jupyter", monkeypatch)
    start.warm = tmp_path / "nobody"
    write_kernelspec(tmp_path / "jupyter", policy=Policy(), warm=start.warm)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    manager = KernelManager(kernel_name=KERNEL_NAME)
    manager.start_kernel()
    kernel = Kernel(manager)
    try:
        assert kernel.run("print('alive')") == "alive"
        assert kernel.provisioner._forked is None
        assert "does not answer" in kernel.provisioner.errors()
    finally:
        kernel.client.stop_channels()
        manager.shutdown_kernel(now=True)


@warm_only
def test_forked_kernels_end_with_their_parent(tmp_path, monkeypatch):
    word = f"{94_000_000 + os.getpid()}"
    start = Starter("bubblewrap", tmp_path / "jupyter", monkeypatch)
    with Nursery() as nursery:
        start.warm = nursery.socket
        with start(Policy()) as kernel:
            kernel.run(f"import subprocess; subprocess.Popen(['setsid', 'sleep', '{word}'])")
            nursery.close()
            assert kernel.ends_within(5)
            assert gone_within(word, 2)


@warm_only
def test_a_forked_kernel_has_its_own_folder_for_temporary_files(tmp_path, monkeypatch):
    with Starter("warm", tmp_path, monkeypatch)(Policy()) as kernel:
        code = "import tempfile; print(tempfile.gettempdir(), tempfile.mkdtemp())"
        folder, made = kernel.run(code).split()
        assert folder == "/tmp" and made.startswith("/tmp/")


@warm_only
@pytest.mark.parametrize("deed", ["0", "152", "rubbish", "killed"])
def test_who_ends_a_fence_from_inside_ends_it_for_himself_alone(tmp_path, monkeypatch, deed):
    """As an ordinary user a kernel has the user of the shell that waits in its fence."""
    start = Starter("warm", tmp_path, monkeypatch)
    with start(Policy()) as kernel, start(Policy()) as other:
        everything = [psutil.Process(pid) for pid in kernel.provisioner.everything()]
        shell = tree.descendants(kernel.provisioner.process.pid)[-1]
        if deed == "killed":
            os.kill(shell, signal.SIGKILL)
        else:
            with open(f"/proc/{shell}/fd/0", "w", encoding="ascii") as pipe:
                pipe.write(f"{deed}\n")
        assert kernel.ends_within(10)
        assert kernel.provisioner.death().status in ("crash", "timeout")
        _, alive = psutil.wait_procs(everything, timeout=10)
        assert all(one.status() == psutil.STATUS_ZOMBIE for one in alive if one.is_running())
        assert other.run("print(7)") == "7"
