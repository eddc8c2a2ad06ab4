"""What is out of reach from behind a fence."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest
from fences import linux, only_fenced

from labs_lib.grading.sandbox import (
    Policy,
    bubblewrap,
)
from labs_lib.grading.sandbox.room import Room


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
