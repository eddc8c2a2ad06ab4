"""Where control groups are made, on trees of every kind that Linux machines have."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from cgroup_tree import Systemd, Tree

from labs_lib.grading.sandbox import groups, holding, places
from labs_lib.grading.sandbox.policy import MIB, Limits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="control groups are Linux's")
ME, SHELL, STRANGER, CHILD = os.getpid(), 900_001, 900_002, 900_003
RUN = "labs-" if sys.platform != "linux" else groups.name_for(ME)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    made = Tree(tmp_path, monkeypatch)
    for pid, parent in ((ME, SHELL), (SHELL, 1), (STRANGER, 1), (CHILD, ME)):
        made.process(pid, parent)
    monkeypatch.setattr(holding, "_FOUND", {})
    monkeypatch.delenv(holding.SWITCH, raising=False)
    return made


@pytest.fixture
def ends(monkeypatch):
    """What is done when this process ends: call it to be at the end."""
    kept = []
    monkeypatch.setattr(holding.atexit, "register", lambda call, *given: kept.append((call, given)))

    def end():
        while kept:
            call, given = kept.pop()
            call(*given)

    return end


def below(root: Path, *folders: Path) -> list[str]:
    return [str(folder.relative_to(root)) for folder in folders]


def test_a_group_of_ones_own_is_given_children_and_is_afterwards_as_before(tree, ends):
    tree.group("", gives=True)
    own = tree.group("unit.service", ME, CHILD, given=True)
    tree.only_given(own)
    found = holding.here()
    assert below(tree.root, *found.folders) == [f"unit.service/{RUN}"]
    assert tree.where(ME) == tree.where(CHILD) == own / f"{RUN}-grader"
    group = found.group(Limits(memory_bytes=100 * MIB, processes=20))
    files = {name: (group.folders[0] / name).read_text(encoding="utf-8") for name in group_files()}
    assert files == group_files()
    ends()
    assert tree.folders() == ["unit.service"]
    assert tree.where(ME) == tree.where(CHILD) == own
    assert (own / "cgroup.subtree_control").read_text(encoding="utf-8") == ""


def group_files() -> dict[str, str]:
    return {
        "memory.max": str(100 * MIB),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": str(20 + groups.SPARE_PROCESSES),
    }


def test_strangers_are_never_moved_and_the_group_is_made_beside_theirs(tree, ends):
    tree.group("", gives=True)
    slice_ = tree.group("app.slice", gives=True, given=True)
    tree.only_given(slice_)
    terminal = tree.group("app.slice/terminal.scope", SHELL, ME)
    found = holding.here()
    assert below(tree.root, *found.folders) == [f"app.slice/{RUN}"]
    assert tree.where(ME) == tree.where(SHELL) == terminal
    ends()
    assert tree.folders() == ["app.slice", "app.slice/terminal.scope"]


@pytest.mark.parametrize(
    ("name", "limit"), [("memory.max", "2147483648"), ("memory.high", "5000"), ("cpu.max", "5 10")]
)
def test_no_way_leads_past_a_limit_that_the_grader_is_held_by(tree, ends, name, limit):
    tree.group("", gives=True)
    tree.group("app.slice", gives=True)
    terminal = tree.group("app.slice/terminal.scope", SHELL, ME)
    (terminal / name).write_text(limit, encoding="utf-8")
    found = holding.here()
    assert found.folders == () and "others are in the group" in found.reason
    assert tree.folders() == ["app.slice", "app.slice/terminal.scope"]


def test_who_only_starts_a_kernel_is_left_where_it_is(tree, ends):
    tree.group("", gives=True)
    own = tree.group("unit.service", ME, given=True)
    tree.only_given(own)
    assert holding.here(move=False).folders == ()
    assert tree.where(ME) == own and tree.folders() == ["unit.service"]
    assert holding.known() is None
    assert holding.here().folders == (own / RUN,)  # a grader is asked again, and may move
    assert holding.known() == holding.given([str(own / RUN)]) == holding.here()
    ends()


def test_in_a_login_the_users_own_systemd_is_asked_for_a_scope(tree, ends, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(places.shutil, "which", lambda name: f"/usr/bin/{name}")
    user = "user.slice/user-1000.slice"
    for path in ("", "user.slice", user):
        tree.group(path, gives=True)
    tree.group(f"{user}/session-3.scope", SHELL, ME, CHILD)
    slice_ = f"{user}/user@1000.service/app.slice"
    tree.only_given(tree.group(f"{user}/user@1000.service", given=True))
    systemd = Systemd(tree, slice_)
    monkeypatch.setattr(places.subprocess, "run", systemd)
    found = holding.here()
    assert below(tree.root, *found.folders) == [f"{slice_}/{RUN}.scope/{RUN}"]
    words = systemd.asked[0]
    assert words[words.index("Delegate") : words.index("Delegate") + 3] == ["Delegate", "b", "true"]
    assert sorted(words[words.index("au") + 2 : -1]) == sorted([str(ME), str(CHILD)])
    assert tree.where(SHELL) == tree.root / user / "session-3.scope"
    ends()
    assert tree.where(ME).name == f"{RUN}.scope"


@pytest.mark.parametrize("trouble", ["not there", "refuses", "no login", "limited"])
def test_without_a_systemd_that_gives_the_kernels_are_watched(tree, ends, monkeypatch, trouble):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    path = None if trouble == "not there" else "/usr/bin/busctl"
    monkeypatch.setattr(places.shutil, "which", lambda name: path)
    job = "system.slice/job" if trouble == "no login" else "user-1000.slice/session-3.scope"
    own = tree.group(job, SHELL, ME)
    tree.only_given()
    if trouble == "limited":
        (own / "memory.max").write_text("2147483648", encoding="utf-8")
    systemd = Systemd(tree, "", code=1)
    monkeypatch.setattr(places.subprocess, "run", systemd)
    found = holding.here()
    assert found.folders == () and found.sentence().startswith("memory and processes were watched")
    assert len(systemd.asked) == (trouble == "refuses")  # out of limits nobody is moved
    assert (trouble == "refuses") == ("Failed to connect to bus" in found.reason)


def test_a_machine_without_the_controllers_says_so(tmp_path, monkeypatch, ends):
    tree = Tree(tmp_path, monkeypatch, controllers="cpu io")
    tree.group("unit.service", ME)
    tree.process(ME, 1)
    monkeypatch.setattr(holding, "_FOUND", {})
    found = holding.here()
    assert found.folders == () and "hold no memory or no processes" in found.reason
    assert tree.folders() == ["unit.service"]


def test_a_tree_that_can_only_be_read_is_left_as_it_is(tree, ends):
    tree.group("", gives=True)
    tree.group("unit.service", ME)
    tree.read_only = True
    found = holding.here()
    assert found.folders == () and found.reason == "Read-only file system"


def test_a_limit_that_holds_nothing_is_not_believed(tree, ends, monkeypatch):
    def trial(group):
        group.end()
        raise places.NoPlace("a group's limit on memory holds nothing")

    monkeypatch.setattr(places, "_trial", trial)
    tree.group("", gives=True)
    tree.group("unit.service", ME)
    found = holding.here()
    assert found.folders == () and "holds nothing" in found.reason
    assert tree.folders() == ["unit.service"] and tree.where(ME).name == "unit.service"


def test_groups_are_not_made_where_they_are_not_wanted(tree, ends, monkeypatch):
    tree.group("", gives=True)
    tree.group("unit.service", ME)
    monkeypatch.setenv(holding.SWITCH, "off")
    assert holding.here() == holding.Holding((), "as asked for")
    assert tree.folders() == ["unit.service"]


@pytest.mark.parametrize(
    ("path", "root", "found"),
    [
        ("/docker/1/unit.service", "/docker/1", "unit.service"),  # mounted from a group on
        ("/unit.service", "/", "unit.service"),
        ("/../unit.service", "/", None),  # out of the namespace
        ("/docker/2", "/docker/1", None),
    ],
)
def test_the_own_group_is_found_where_it_is_mounted(tree, path, root, found):
    tree.group("unit.service", ME)
    (tree.proc / "self" / "cgroup").write_text(f"1:name=systemd:/\n0::{path}\n", encoding="utf-8")
    mount = f"30 23 0:26 {root} {tree.root} rw - cgroup2 cgroup2 rw\n"
    (tree.proc / "self" / "mountinfo").write_text(mount, encoding="utf-8")
    own = places.own("")
    assert own == (None if found is None else (tree.root / found, tree.root))


def test_in_version_1_both_hierarchies_are_found_and_no_limit_is_left_behind(tree):
    folders = {name: tree.root / name for name in ("memory", "cpu,pids")}
    for name in folders:
        tree.group(f"{name}/job")
    lines = ["5:memory:/job", "4:cpu,pids:/job", "1:name=systemd:/", "0::/"]
    (tree.proc / "self" / "cgroup").write_text("\n".join(lines), encoding="utf-8")
    mounts = [f"3 2 0:2 / {path} rw - cgroup cgroup rw,{name}" for name, path in folders.items()]
    (tree.proc / "self" / "mountinfo").write_text("\n".join(mounts), encoding="utf-8")
    flat = folders["memory"] / "job" / "memory.use_hierarchy"
    flat.write_text("1\n", encoding="utf-8")
    assert places.legacy() == (folders["memory"] / "job", folders["cpu,pids"] / "job")
    flat.write_text("0\n", encoding="utf-8")
    with pytest.raises(places.NoPlace, match="out of its limit"):
        places.legacy()


def test_what_a_killed_grader_left_is_swept_and_nothing_else(tree, monkeypatch):
    tree.group("", gives=True)
    dead, born = 900_009, groups._born
    monkeypatch.setattr(groups, "_born", lambda pid: 0 if pid == dead else born(pid))
    namespace = os.stat("/proc/self/ns/pid").st_ino
    stale = [f"slice/labs-{namespace}-{dead}-77", f"login/labs-{namespace}-{dead}-78"]
    emptied = f"slice/labs-{namespace}-{dead}-79-grader"
    kept = [f"slice/{RUN}", f"slice/labs-1-{dead}-77", "slice/labs", f"slice/labs-{namespace}-x"]
    kept += [f"slice/labs-{namespace}-{dead}-80-grader"]
    for path in (*stale, emptied, *kept):
        tree.group(path, gives=True)
    tree.group(f"{stale[0]}/kernel-1-0", STRANGER)
    tree.group(kept[-1], SHELL)
    groups.sweep(tree.root / "slice")
    assert tree.folders() == sorted(["login", "slice", *kept])
    assert tree.where(STRANGER) is None  # killed: it was in a dead grader's group
    assert tree.where(SHELL) == tree.root / kept[-1]
