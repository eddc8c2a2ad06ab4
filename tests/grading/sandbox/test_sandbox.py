"""What a fence is made of: its level, its policy, its environment, its folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from fences import Kernel
from nbclient import NotebookClient

from labs_lib.grading.sandbox import (
    KERNEL_NAME,
    Limits,
    Policy,
    SandboxUnavailable,
    holding,
    level,
    levels,
)
from labs_lib.grading.sandbox.__main__ import main as fence_as_kernelspec


def test_the_level_is_said_in_words():
    found = level()
    assert found.name in levels.LEVELS
    assert "network" in found.sentence and found.sentence.endswith(".")
    forced = level(Policy(level="process-limits"))
    assert forced.name == "process-limits" and "could read the files" in forced.sentence


def test_it_is_said_whether_a_control_group_holds_or_a_watcher_looks():
    held = level(held=holding.Holding((Path("/groups"),))).sentence
    assert held.endswith(". Memory and processes were held by a control group.")
    seen = level(held=holding.Holding((), "Read-only file system")).sentence
    assert seen.endswith("not held by a control group (Read-only file system).")
    assert level().sentence == level(held=holding.here()).sentence


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
