"""Kernels that a control group holds: what they take is refused at once, not at the next look."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from fences import FENCED, MIB, WAYS, Starter

from labs_lib.grading.sandbox import KERNEL_NAME, Limits, Policy, groups, holding, level, places
from labs_lib.grading.sandbox import provisioner as watching
from labs_lib.grading.sandbox.nursery import possible

pytestmark = pytest.mark.slow
SMALL = Limits(memory_bytes=400 * MIB, processes=40, scratch_bytes=256 * MIB)


def only_held(test):
    """Where no group may be made, the promise is that reports say that kernels are watched."""

    @functools.wraps(test)
    def either(*args, **kwargs):
        if holding.here().folders:
            test(*args, **kwargs)
        else:
            assert "were watched ten times a second" in level().sentence

    return either


@pytest.fixture(autouse=True)
def the_watcher_sleeps(monkeypatch):
    """It looks once a minute here, so that it is the group that holds."""
    monkeypatch.setattr(watching, "WATCH_S", 60.0)


@pytest.fixture
def start_one(tmp_path, monkeypatch):
    """The best way to start a kernel that this machine has."""
    return Starter(WAYS[0], tmp_path / "jupyter", monkeypatch)


def taken(group: groups.Group) -> int:
    """Bytes that a group holds now."""
    for name in ("memory.current", "memory.usage_in_bytes"):
        for folder in group.folders:
            if (folder / name).exists():
                return int((folder / name).read_text(encoding="ascii"))
    raise FileNotFoundError(f"no count of memory in {group.folders}")


def allowed(group: groups.Group, name: str) -> str:
    """What stands in the first of a group's files with this name."""
    return next(p for p in (f / name for f in group.folders) if p.exists()).read_text("ascii")


def joined(kernel) -> groups.Group:
    """A kernel's group, when all of the kernel is in it."""
    provisioner = kernel.provisioner
    deadline = time.monotonic() + 10
    while not set(provisioner.everything()) <= provisioner._group.pids():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return provisioner._group


@only_held
def test_one_bite_larger_than_the_limit_is_refused_at_once(start):
    with start(Policy(limits=SMALL)) as kernel:
        kernel.send("block = bytearray(b'x') * (600 << 20)")
        assert kernel.ends_within(20)
        death = kernel.provisioner.death()
    assert death.status == "memory" and "where 400 MiB are allowed" in death.sentence, death
    assert kernel.provisioner.death() == death  # also when the group is gone


@only_held
def test_honest_work_near_the_limit_is_done(start):
    with start(Policy(limits=SMALL)) as kernel:
        for _ in range(3):
            kernel.run("block = None; block = bytearray(b'x') * (280 << 20)")
        assert kernel.run("print(sum(block[:: 1 << 20]))") == str(280 * ord("x"))
        assert not joined(kernel).robbed()


@only_held
@pytest.mark.skipif(not FENCED, reason="without a fence its folders are on the disk")
def test_what_a_kernel_writes_into_its_private_folders_counts(start_one):
    with start_one(Policy(limits=SMALL)) as kernel:
        kernel.send("""
            for place in ("/tmp", "/dev/shm"):
                for n in range(4):
                    with open(f"{place}/{n}", "wb") as file:
                        file.write(bytes(60 << 20))
        """)
        assert kernel.ends_within(20)
        assert kernel.provisioner.death().status == "memory"


@only_held
def test_more_processes_than_allowed_never_live(start):
    with start(Policy(limits=SMALL)) as kernel:
        group = joined(kernel)
        kernel.send("import os\nwhile True:\n    try:\n        os.fork()\n    except OSError: pass")
        most, deadline = 0, time.monotonic() + 2
        while time.monotonic() < deadline:
            most = max(most, len(group.pids()))
            time.sleep(0.02)
        assert 10 < most <= 40 + groups.SPARE_PROCESSES
    assert group.pids() == set()


@only_held
def test_a_kernel_that_asks_for_too_many_processes_is_told_so(start, monkeypatch):
    monkeypatch.setattr(watching, "WATCH_S", 0.1)
    with start(Policy(limits=SMALL)) as kernel:
        joined(kernel)
        kernel.send("""
            import os, time
            for _ in range(80):
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
        """)
        ended = kernel.ends_within(2)
        death = kernel.provisioner.death()
        # behind a fence the user's own bound may refuse first, and the cell has an error
        assert death.sentence == "more than 40 processes were started" or not ended


@only_held
def test_two_kernels_are_held_apart(start_one):
    with start_one(Policy(limits=SMALL)) as kernel, start_one(Policy(limits=SMALL)) as other:
        other.run("block = bytearray(b'y') * (200 << 20)")
        kernel.send("block = bytearray(b'x') * (600 << 20)")
        assert kernel.ends_within(20)
        assert kernel.provisioner.death().status == "memory"
        assert other.run("print(len(block) >> 20)") == "200"
        assert not other.provisioner._group.robbed()


@only_held
@pytest.mark.skipif(not possible(), reason="kernels can't be forked here")
def test_what_a_forked_kernel_shares_with_its_parent_is_not_charged_to_it(tmp_path, monkeypatch):
    with Starter("warm", tmp_path, monkeypatch)(Policy(limits=SMALL)) as kernel:
        kernel.run("import torch; x = torch.ones(1)")
        group = joined(kernel)
        with open(f"/proc/{kernel.provisioner._forked.pid}/statm", encoding="ascii") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        before = taken(group)
        assert before < resident / 2
        kernel.run("block = bytearray(b'x') * (100 << 20)")
        assert 95 * MIB < taken(group) - before < 120 * MIB


@only_held
def test_a_group_has_the_limits_of_its_policy_and_goes_with_its_kernel(start_one):
    with start_one(Policy(limits=SMALL)) as kernel:
        group = joined(kernel)
        names = ("memory.max", "memory.limit_in_bytes")
        name = next(n for n in names if any((f / n).exists() for f in group.folders))
        assert allowed(group, name).strip() == str(400 * MIB)
        assert allowed(group, "pids.max").strip() == str(40 + groups.SPARE_PROCESSES)
        kernel.client.stop_channels()
        kernel.manager.restart_kernel(now=True)
        assert not any(folder.exists() for folder in group.folders)
        again = kernel.provisioner._group
        assert again.folders != group.folders and all(f.is_dir() for f in again.folders)
    assert not any(folder.exists() for folder in again.folders)


@only_held
def test_a_kernel_whose_group_is_lost_is_watched_as_before(start_one, monkeypatch):
    """The second line: who is seen outside of the group is counted ten times a second."""
    monkeypatch.setattr(watching, "WATCH_S", 0.1)
    with start_one(Policy(limits=SMALL)) as kernel:
        group = joined(kernel)
        for folder in group.folders:
            newer = (folder / "memory.max").exists()
            out = places.own("").folder if newer else folder.parent.parent
            for pid in kernel.provisioner.everything():
                groups.write(out / "cgroup.procs", str(pid))
        kernel.send("import time\nblock = bytearray(b'x') * (600 << 20)\ntime.sleep(60)")
        assert kernel.ends_within(20)
        death = kernel.provisioner.death()
    assert death.status == "memory" and not death.sentence.startswith("more")


@only_held
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_group_outlives_a_grader_that_is_killed_or_stopped(tmp_path, how):
    """Killed outright it can't tidy up: its warm parent does, or the next run."""
    script = textwrap.dedent(f"""
        import time
        from jupyter_client.manager import KernelManager
        from labs_lib.grading.sandbox import Policy, holding, level, write_kernelspec
        level()
        write_kernelspec({str(tmp_path)!r}, policy=Policy())
        manager = KernelManager(kernel_name="{KERNEL_NAME}")
        manager.start_kernel()
        print(*holding.here().folders, flush=True)
        time.sleep(60)
    """)
    grader = subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ | {"JUPYTER_PATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    folders = [Path(word) for word in grader.stdout.readline().split()]
    assert folders and all(any(folder.glob("kernel-*")) for folder in folders)
    grader.send_signal(how)
    grader.wait()
    grader.stdout.close()
    for folder in folders:
        groups.sweep(folder.parent)  # as the next run does
    assert not any(folder.exists() for folder in folders)


@only_held
def test_a_run_leaves_no_group_and_who_comes_later_makes_its_own():
    script = "from labs_lib.grading.sandbox import holding as h; print(*h.here().folders)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    folders = [Path(word) for word in done.stdout.split()]
    assert folders and not any(folder.exists() for folder in folders), done.stderr
    gone = holding.given([str(folder) for folder in folders])
    assert all(folder.is_dir() for folder in gone.folders)
    assert set(gone.folders).isdisjoint(folders)


@only_held
def test_a_kernel_that_the_machine_robs_is_no_fault_of_a_student(start_one, monkeypatch):
    """Linux ended one of its processes, yet the group had not reached its limit."""
    with start_one(Policy(limits=SMALL)) as kernel:
        monkeypatch.setattr(groups.Group, "robbed", lambda group: True)
        assert kernel.provisioner.death().status == "infrastructure"
        monkeypatch.setattr(groups.Group, "out_of_memory", lambda group: True)
        assert kernel.provisioner.death().status == "memory"
