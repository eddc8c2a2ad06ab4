"""What a kernel may use, and that all of it ends with the kernel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import psutil
import pytest
from fences import LEVELS, MIB, linux, only_fenced
from waiting import gone_within, processes_with

from labs_lib.grading.sandbox import (
    KERNEL_NAME,
    Limits,
    Policy,
    refused,
    write_kernelspec,
)


@pytest.fixture
def short():
    """A temporary folder short enough for sockets, for programs that can't tidy up any more."""
    with tempfile.TemporaryDirectory(prefix="labs-t", dir="/tmp") as folder:
        yield folder


def test_a_child_in_a_session_of_its_own_dies_with_the_kernel(start):
    word = f"{98_000_000 + os.getpid()}"
    with start(Policy()) as kernel:
        kernel.run(f"""
            import subprocess
            subprocess.Popen(["sleep", "{word}"], start_new_session=True)
            subprocess.Popen(["sh", "-c", "setsid sleep {word} & setsid sleep {word} & exit"])
        """)
        deadline = time.monotonic() + 5
        while len(processes_with(word)) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(processes_with(word)) == 3
        folder = kernel.provisioner._room.path
    assert processes_with(word) == []
    assert not folder.exists()


@linux
@pytest.mark.parametrize("how", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_a_kernel_that_ends_itself_leaves_nothing_behind(start, how):
    word = f"{97_000_000 + os.getpid()}"
    with start(Policy()) as kernel:
        code = f"import os, subprocess; subprocess.Popen(['setsid', 'sleep', '{word}'])"
        kernel.run(code)
        kernel.send(how)
        assert kernel.ends_within(5)
        assert gone_within(word, 2)
        assert kernel.provisioner.death().status == "crash"


@linux
@pytest.mark.parametrize("name", LEVELS)
def test_all_dies_when_the_front_end_is_killed(tmp_path, short, name):
    word = f"{96_000_000 + os.getpid()}"
    write_kernelspec(tmp_path / "jupyter", policy=Policy(level=name))
    script = textwrap.dedent(f"""
        import time
        from jupyter_client.manager import start_new_kernel
        manager, client = start_new_kernel(kernel_name="{KERNEL_NAME}")
        client.execute_interactive(
            "import subprocess; subprocess.Popen(['setsid', 'sleep', '{word}'])"
        )
        print("ready", flush=True)
        time.sleep(60)
    """)
    front_end = subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ | {"JUPYTER_PATH": str(tmp_path / "jupyter"), "TMPDIR": short},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        while "ready" not in front_end.stdout.readline():
            assert front_end.poll() is None
        assert len(processes_with(word)) == 1
    finally:
        front_end.send_signal(signal.SIGKILL)
        front_end.wait()
        front_end.stdout.close()
    assert gone_within(word, 5)


def test_memory_is_limited_in_one_process(start):
    with start(Policy(limits=Limits(memory_bytes=300 * MIB))) as kernel:
        seen = kernel.run("block = bytearray(6 << 30)")
        assert seen.startswith("MemoryError")
        assert kernel.run("print('alive')") == "alive"


@linux
def test_memory_is_limited_over_all_processes_together(start):
    with start(Policy(limits=Limits(memory_bytes=300 * MIB))) as kernel:
        kernel.send("""
            import os, time
            for _ in range(5):
                if os.fork() == 0:
                    block = bytearray(b"x") * (80 << 20)
                    time.sleep(60)
        """)
        assert kernel.ends_within(10)
        death = kernel.provisioner.death()
    assert death.status == "memory" and "300 MiB are allowed" in death.sentence


@linux
def test_too_many_processes_are_refused_or_end_the_kernel(start):
    with start(Policy(limits=Limits(processes=40))) as kernel:
        kernel.send("""
            import os, time
            for _ in range(80):
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
        """)
        most, deadline = 0, time.monotonic() + 2
        while kernel.manager.is_alive() and time.monotonic() < deadline:
            most = max(most, len(kernel.provisioner.everything()))
            time.sleep(0.02)
        if start.level == "process-limits" and os.getuid() == 0:  # root's are only counted
            assert "more than 40 processes" in kernel.provisioner.death().sentence
        else:
            assert 3 < most <= 42 + len(psutil.pids()) * (start.level == "process-limits")


@only_fenced
def test_a_fork_bomb_stays_inside(start_fenced):
    before = len(psutil.pids())
    with start_fenced(Policy(limits=Limits(processes=48))) as kernel:
        kernel.send("import os\nwhile True:\n    try:\n        os.fork()\n    except OSError: pass")
        time.sleep(1.0)
        assert len(psutil.pids()) - before < 80
    assert len(psutil.pids()) - before < 30


@linux
def test_processor_time_and_file_size_are_limited(start):
    limits = Limits(cpu_s=2, file_bytes=1 * MIB)
    with start(Policy(limits=limits)) as kernel:
        seen = kernel.run("""
            try:
                with open("big", "wb") as file:
                    file.write(bytes(8 << 20))
            except OSError as error:
                print("refused", error.errno)
        """)
        assert seen == "refused 27"
        kernel.send("while True: pass")
        assert kernel.ends_within(20)
        death = kernel.provisioner.death()
    assert death.status == "timeout" and "2 s of processor time" in death.sentence, death


@only_fenced
def test_scratch_space_is_limited(start_fenced):
    with start_fenced(Policy(limits=Limits(scratch_bytes=4 * MIB))) as kernel:
        seen = kernel.run("""
            for place in ("/tmp/a", "b", "/dev/shm/c"):
                try:
                    with open(place, "wb") as file:
                        file.write(bytes(8 << 20))
                    print("written")
                except OSError as error:
                    print(error.errno)
        """)
    assert seen.split() == ["28", "28", "28"]


@only_fenced
def test_no_memory_is_held_unseen_and_nothing_is_kept_for_the_next(start_fenced):
    if not refused.here():
        assert not refused.AVAILABLE.exists() or refused.program() == b""
        return
    with start_fenced(Policy()) as kernel:
        seen = kernel.run("""
            import ctypes, os, socket
            libc = ctypes.CDLL(None, use_errno=True)
            def tried(call):
                try:
                    return call()
                except OSError as error:
                    return os.strerror(error.errno)
            def answer(value):
                return os.strerror(ctypes.get_errno()) if value == -1 else value
            print(tried(lambda: os.memfd_create("held")))
            print(answer(libc.shmget(0, 1 << 20, 0o1600)))
            print(answer(libc.ptrace(16, os.getppid() or 2, 0, 0)))
            print(tried(lambda: socket.socket(socket.AF_VSOCK)))
            if not os.fork():
                os._exit(0 if libc.unshare(0x10000000) == -1 else 1)
            print(os.waitstatus_to_exitcode(os.wait()[1]))
            print([s.fileno() > 2 for s in (*socket.socketpair(), socket.socket())])
        """)
    missing = os.strerror(refused.ENOSYS)
    assert seen.splitlines() == [*[missing] * 4, "0", "[True, True, True]"]


@only_fenced
@pytest.mark.parametrize("what", ["files", "sockets"])
def test_memory_that_no_process_holds_is_limited(start_fenced, what):
    takes = {
        "files": "os.close(os.open(f'/tmp/{n}', os.O_CREAT))",
        "sockets": "kept.append(socket.socketpair())",
    }
    with start_fenced(Policy()) as kernel:
        kernel.send(f"""
            import os, socket
            kept, n = [], 0
            for _ in range(6):
                if {what == "sockets"} and os.fork():
                    continue
                while True:
                    try:
                        n += 1
                        {takes[what]}
                    except OSError:
                        import time
                        time.sleep(30)
        """)
        assert kernel.ends_within(25)
        death = kernel.provisioner.death()
    assert death.status == "memory" and what in death.sentence, death


@only_fenced
def test_a_kernel_can_neither_stop_nor_steer_what_ends_its_fence(start_fenced):
    with start_fenced(Policy()) as kernel:
        seen = kernel.run("""
            import os, signal
            above = os.getpid() - 1  # a warm kernel's fence has a shell in it; else bubblewrap
            for meddle in (
                lambda: os.kill(above, signal.SIGSTOP),
                lambda: open(f"/proc/{above}/fd/0", "w").close(),
            ):
                try:
                    meddle()
                    print("done")
                except PermissionError:
                    print("refused")
        """)
        kernel.send("import os; os._exit(7)")
        ended = kernel.ends_within(10)
    if os.getuid() == 0:  # else both have the one user that there is; the filter still holds
        assert ended and seen.splitlines() == ["refused", "refused"]
