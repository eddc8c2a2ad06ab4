"""The fence around a student's kernel keeps what its level promises."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import nbformat
import psutil
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

from labs_lib.grading.run.warm import shared
from labs_lib.grading.sandbox import (
    KERNEL_NAME,
    Limits,
    Policy,
    SandboxUnavailable,
    bubblewrap,
    level,
    levels,
    refused,
    write_kernelspec,
)
from labs_lib.grading.sandbox.__main__ import main as fence_as_kernelspec
from labs_lib.grading.sandbox.nursery import Nursery, possible
from labs_lib.grading.sandbox.room import Room

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


@pytest.fixture(params=WAYS)
def start(request, tmp_path, monkeypatch):
    """Every way to start a kernel that this machine has."""
    return Starter(request.param, tmp_path / "jupyter", monkeypatch)


@pytest.fixture(params=FENCES or ["process-limits"])
def start_fenced(request, tmp_path, monkeypatch):
    """The ways that have a fence."""
    return Starter(request.param, tmp_path / "jupyter", monkeypatch)


@pytest.fixture
def short():
    """A temporary folder short enough for sockets, for programs that can't tidy up any more."""
    with tempfile.TemporaryDirectory(prefix="labs-t", dir="/tmp") as folder:
        yield folder


def processes_with(word: str) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if process.info["status"] != psutil.STATUS_ZOMBIE and word in (
            process.info["cmdline"] or []
        ):
            found.append(process.pid)
    return found


def gone_within(word: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while processes_with(word) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not processes_with(word)


def test_the_level_is_said_in_words():
    found = level()
    assert found.name in levels.LEVELS
    assert "network" in found.sentence and found.sentence.endswith(".")
    forced = level(Policy(level="process-limits"))
    assert forced.name == "process-limits" and "could read the files" in forced.sentence


@pytest.mark.parametrize("script", [None, "echo 'No permissions to make namespaces' >&2; exit 1"])
def test_without_a_working_bubblewrap_it_falls_back_and_says_why(tmp_path, monkeypatch, script):
    if script is not None:
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tmp_path / "bwrap").chmod(0o755)
        (tmp_path / "setpriv").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("LABS_SANDBOX_LEVEL", raising=False)
    levels._obstacle.cache_clear()
    try:
        found = level()
        assert found.name == "process-limits"
        assert ("not installed" if script is None else "No permissions") in found.sentence
        with pytest.raises(SandboxUnavailable, match=r"asked for, but bubblewrap.*; install"):
            level(Policy(level="bubblewrap"))
    finally:
        levels._obstacle.cache_clear()


def test_unknown_levels_and_empty_limits_are_refused_by_name():
    with pytest.raises(ValueError, match="level='docker' is not one of bubblewrap"):
        level(Policy(level="docker"))
    with pytest.raises(ValueError, match="cell_s=0 is not a limit"):
        Limits(cell_s=0)


def test_a_policy_survives_its_way_through_a_kernelspec(tmp_path):
    policy = Policy(
        limits=Limits(cell_s=1.5, processes=7),
        handout=tmp_path / "handout",
        run_json=tmp_path / "run.json",
        readable=(tmp_path / "data",),
        hidden=(tmp_path / "data" / "secret",),
        environment={"A": "b"},
        level="process-limits",
    )
    assert Policy.from_json(json.loads(json.dumps(policy.to_json()))) == policy


def test_plain_nbclient_nbval_and_papermill_start_the_fence(tmp_path, monkeypatch, capsys):
    assert fence_as_kernelspec([str(tmp_path / "jupyter")]) == 0
    assert f"--nbval-kernel-name {KERNEL_NAME}" in capsys.readouterr().out
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    cell = nbformat.v4.new_code_cell(
        "import os; print(os.environ['PIP_NO_INDEX'], os.getcwd()[:1])"
    )
    notebook = nbformat.v4.new_notebook(cells=[cell])
    NotebookClient(notebook, kernel_name=KERNEL_NAME, timeout=30).execute()
    assert notebook.cells[0].outputs[0].text == "1 /\n"
    nbformat.write(notebook, tmp_path / "plain.ipynb")
    options = ["-q", "-p", "no:cacheprovider", "--nbval", "--nbval-kernel-name", KERNEL_NAME]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "plain.ipynb"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
    if find_spec("papermill") is not None:  # installed where CI runs
        import papermill

        given, made = str(tmp_path / "plain.ipynb"), tmp_path / "made.ipynb"
        papermill.execute_notebook(given, made, kernel_name=KERNEL_NAME, progress_bar=False)
        assert nbformat.read(made, as_version=4).cells[-1].outputs[0].text == "1 /\n"


def test_the_environment_is_made_from_nothing(start, monkeypatch, tmp_path):
    monkeypatch.setenv("GRADER_TOKEN", "secret")
    (tmp_path / "run.json").write_text('{"seed": 7}', encoding="utf-8")
    (tmp_path / "run.json").chmod(0o600)
    policy = Policy(run_json=tmp_path / "run.json", environment={"LABS_EXTRA": "x"})
    with start(policy) as kernel:
        seen = json.loads(kernel.run("import json, os; print(json.dumps(dict(os.environ)))"))
        text = kernel.run("print(open(os.environ['LABS_RUN'], encoding='utf-8').read())")
    assert "secret" not in seen.values() and "JPY_PARENT_PID" not in seen
    wanted = {"PYTHONSAFEPATH": "1", "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    wanted |= {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", "TQDM_DISABLE": "1", "LABS_EXTRA": "x"}
    assert {key: seen[key] for key in wanted} == wanted
    assert seen["HOME"] != os.environ.get("HOME")
    assert json.loads(text) == {"seed": 7}


def test_the_handout_is_the_only_labs_lib_that_imports(start, tmp_path):
    package = tmp_path / "handout" / "labs_lib"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("KIND = 'handout'\n", encoding="utf-8")
    (tmp_path / "handout").chmod(0o755)
    with start(Policy(handout=tmp_path / "handout")) as kernel:
        assert kernel.run("import labs_lib; print(labs_lib.KIND)") == "handout"
        checkout = Path(levels.__file__).resolve().parents[3]
        seen = kernel.run(f"import os; print(os.path.exists({str(checkout / 'labs_lib')!r}))")
    assert seen == str(start.level == "process-limits")


def fenced(policy: Policy, code: str) -> subprocess.CompletedProcess[str]:
    room = Room(policy, uid=bubblewrap.sandbox_uid())
    try:
        room.outside_connection.write_text("{}", encoding="utf-8")
        room.write_inside_connection("/labs/sockets")
        python = str(Path(sys.executable).absolute())
        argv, environment = bubblewrap.command(policy, room, [python, "-c", code])
        return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    finally:
        room.remove()


@only_fenced
def test_a_copy_of_the_package_in_a_readable_tree_is_covered_up(tmp_path):
    tmp_path.chmod(0o755)
    site = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    (site / "labs_lib").mkdir(parents=True)
    (site / "labs_lib" / "answers.py").write_text("x", encoding="utf-8")
    (site / "other").mkdir()
    (tmp_path / "env" / "marks").mkdir()
    (tmp_path / "env" / "marks" / "grades.csv").write_text("x", encoding="utf-8")
    policy = Policy(readable=(tmp_path / "env",), hidden=(tmp_path / "env" / "marks",))
    done = fenced(
        policy, f"import os; print([files for *_, files in os.walk({str(tmp_path / 'env')!r})])"
    )
    assert done.returncode == 0, done.stderr
    assert "answers.py" not in done.stdout and "grades.csv" not in done.stdout
    assert "'other'" in fenced(policy, f"import os; print(os.listdir({str(site)!r}))").stdout


@only_fenced
def test_no_network_is_in_reach(start_fenced):
    with socket.create_server(("127.0.0.1", 0)) as server, start_fenced(Policy()) as kernel:
        port = server.getsockname()[1]
        seen = kernel.run(f"""
            import socket
            for address in (("127.0.0.1", {port}), ("192.0.2.1", 80)):
                try:
                    socket.create_connection(address, timeout=2)
                    print("connected")
                except OSError:
                    print("refused")
            print([name for _, name in socket.if_nameindex()])
        """)
    assert seen.splitlines() == ["refused", "refused", "['lo']"]


@only_fenced
def test_the_system_is_read_only_and_the_home_private(start_fenced):
    places = ["/x", "/usr/x", "/etc/x", "/dev/x", "/labs/x", "/labs/sockets/x", sys.prefix + "/x"]
    environments = {Path(sys.prefix), Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()}
    bound = {p.parts[2] for p in environments if p.parts[:2] == ("/", "tmp")}  # seen read-only
    probe = f"""
        import os
        for place in {places!r}:
            try:
                open(place, "w", encoding="utf-8").close()
                print(place, "written")
            except OSError:
                pass
        print(os.listdir("."), sorted(set(os.listdir("/tmp")) - {bound!r}))
        open("mine", "w", encoding="utf-8").close()
        open("/tmp/mine", "w", encoding="utf-8").close()
    """
    with start_fenced(Policy()) as kernel:
        time.sleep(0.3)  # the socket folder closes when all five sockets stand
        assert kernel.run(probe) == "['.ipython'] []"
    with start_fenced(Policy()) as kernel:
        assert "mine" not in kernel.run("import os; print(os.listdir('.'), os.listdir('/tmp'))")
    assert not Path("/tmp/mine").exists()


@only_fenced
def test_nothing_of_the_starter_is_left_inside(start_fenced, tmp_path):
    secret = tmp_path / "expected.txt"
    secret.write_text("expected", encoding="utf-8")
    descriptor = os.open(secret, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        with start_fenced(Policy()) as kernel:
            seen = kernel.run("""
                import os
                for name in os.listdir("/proc/self/fd"):
                    try:
                        print(os.readlink(f"/proc/self/fd/{name}"))
                    except OSError:
                        pass
                lines = open("/proc/self/status", encoding="ascii").read().splitlines()
                print([line.split() for line in lines if line.startswith(("Cap", "NoNewPrivs"))])
                print("uid", os.getuid())
                print("numbers", sorted(int(n) for n in os.listdir("/proc") if n.isdigit())[:2])
            """)
    finally:
        os.close(descriptor)
    assert "expected.txt" not in seen
    assert re.findall(r"'Cap(?:Prm|Eff|Bnd|Amb):', '(\w+)'", seen).count("0" * 16) >= 3
    assert "['NoNewPrivs:', '1']" in seen
    assert "numbers [1, 2]" in seen
    if os.getuid() == 0:
        assert "uid 0" not in seen


@pytest.fixture
def readable_launcher(monkeypatch):
    """The launcher where every user can read it: the checkout may lie in a private folder."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "launch.py"
        copy.write_bytes(bubblewrap.LAUNCHER.read_bytes())
        Path(folder).chmod(0o755)
        monkeypatch.setattr(bubblewrap, "LAUNCHER", copy)
        yield


@only_fenced
def test_the_fence_that_an_ordinary_user_builds_gives_no_rights_either(readable_launcher):
    """Root tries it as the user nobody, with the system's own Python."""
    system = Path("/usr/bin/python3")
    python = system if system.exists() else Path(sys.executable)
    code = textwrap.dedent("""
        import os, socket
        status = open("/proc/self/status", encoding="ascii").read().splitlines()
        print({line.split()[1].strip("0") for line in status if line.startswith("Cap")})
        print(os.getuid() != 0, [name for _, name in socket.if_nameindex()])
        for place in ("/x", "/dev/x", "/usr/x", "/labs/x"):
            try:
                open(place, "w", encoding="utf-8")
                print("written", place)
            except OSError:
                pass
        open("mine", "w", encoding="utf-8").close()
        print(os.system("unshare --user true 2>/dev/null") != 0)
    """)
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    argv = bubblewrap._fence(Policy(python=python), [], None)
    done = subprocess.run(
        [*(become if os.getuid() == 0 else []), *argv, str(python), "-I", "-S", "-c", code],
        capture_output=True,
        text=True,
        env={},
        check=False,
    )
    if "amespace" in done.stderr:  # closed to ordinary users here: then nothing ran at all
        assert done.returncode != 0 and done.stdout == ""
        return
    assert done.stdout.splitlines() == ["{''}", "True ['lo']", "True"], done.stderr


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


def test_an_interrupt_reaches_the_cell_and_leaves_the_kernel(start):
    with start(Policy()) as kernel:
        kernel.send("import time\ntime.sleep(60)")
        time.sleep(0.5)
        kernel.manager.interrupt_kernel()
        assert kernel.run("print('alive')", timeout=10) == "alive"


def test_a_restarted_kernel_stands_behind_the_same_fence(start):
    with start(Policy()) as kernel:
        kernel.run("x = 1")
        kernel.client.stop_channels()
        kernel.manager.restart_kernel(now=True)
        again = Kernel(kernel.manager)
        try:
            assert again.run("x").startswith("NameError")
            assert again.run("import os; print(os.environ['PIP_NO_INDEX'])") == "1"
        finally:
            again.client.stop_channels()


@linux
@pytest.mark.parametrize("entry", ["file", "link"])
def test_a_stranger_among_the_sockets_is_noticed(tmp_path, entry):
    room = Room(Policy())
    try:
        assert room.intruder() is None
        if entry == "file":
            (room.sockets / "big").write_bytes(b"x")
        else:
            (room.sockets / "s-1").symlink_to("/run/other.sock")
        assert room.intruder() in ("big", "s-1")
    finally:
        room.remove()
    assert not room.path.exists()


def test_a_handout_that_only_root_can_read_is_named(tmp_path):
    (tmp_path / "handout").mkdir(mode=0o700)
    bubblewrap._require_readable(tmp_path / "handout", uid=None)
    with pytest.raises(bubblewrap.UnreadableTree, match=r"has mode 0700.*chmod -R a\+rX"):
        bubblewrap._require_readable(tmp_path / "handout", uid=700_000_001)


def test_long_temporary_folders_do_not_break_the_sockets(tmp_path, monkeypatch, start):
    deep = tmp_path / ("x" * 60) / ("y" * 60)
    deep.mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with start(Policy()) as kernel:
        assert kernel.run("print('alive')") == "alive"
    shutil.rmtree(deep)


warm_only = pytest.mark.skipif(not possible(), reason="needs Linux 5.8 and bubblewrap")


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


@warm_only
def test_nobody_is_ended_who_took_a_dead_kernels_number(start_fenced):
    with start_fenced(Policy()) as kernel:
        provisioner = kernel.provisioner
        forked = provisioner._forked
        if forked is not None:
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
