"""Kernels and graders that die, and what a run keeps all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import nbformat
import pytest
from runs import exercise, notebook, of, right, run
from waiting import processes_with, wait_for

from labs_lib.grading.run import read_results, run_notebook
from labs_lib.grading.run.warm import Warm
from labs_lib.grading.sandbox import Policy

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def starter(tmp_path: Path, failures: int) -> Path:
    """A Python that fails to start so many times before it works."""
    count = tmp_path / "count"
    script = tmp_path / "python"
    script.write_text(
        f'#!/bin/sh\necho x >> "{count}"\n[ $(wc -l < "{count}") -gt {failures} ] || '
        f'{{ echo broken environment >&2; exit 3; }}\nexec "{sys.executable}" "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    return script


@linux
def test_a_kernel_that_does_not_start_is_tried_again_and_costs_nobody(tmp_path):
    python = starter(tmp_path, failures=1)
    runs = run(tmp_path, right("one"), name="process-limits", python=python)
    assert of(runs, "one").status == "ok"


@linux
@pytest.mark.slow
@pytest.mark.parametrize("which", ["runs", "kernels"])
def test_the_end_of_a_warm_parent_half_way_costs_nobody(tmp_path, which):
    with Warm() as warm:
        parent = warm.process if which == "runs" or warm.nursery is None else warm.nursery.process
        waiting = "import time\ndef one():\n    return base + 2\ntime.sleep(2)"
        whole = notebook(exercise("one", waiting), right("two"))
        results = tmp_path / "out" / "cells.jsonl"

        def kill():
            while not (results.exists() and '"setup"' in results.read_text(encoding="utf-8")):
                time.sleep(0.05)
            parent.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        runs = run_notebook(whole, policy=Policy(), out=tmp_path / "out", warm=warm)
        killer.join()
        assert parent.poll() is not None
    assert [one.status for one in runs] == ["ok"] * 5


@linux
def test_a_kernel_that_never_starts_is_infrastructure_and_says_why(tmp_path):
    python = starter(tmp_path, failures=99)
    runs = run(tmp_path, right("one"), name="process-limits", python=python)
    assert {one.status for one in runs} == {"infrastructure"}
    assert "broken environment" in of(runs, "one").reason
    assert (tmp_path / "count").read_text(encoding="utf-8").count("x") >= 4


@linux
def test_killing_the_grader_keeps_what_is_finished_and_ends_the_rest(tmp_path):
    word = f"{95_000_000 + os.getpid()}"
    source = notebook(
        right("one"),
        exercise("two", f"import subprocess\nsubprocess.run(['sleep', '{word}'])"),
    )
    nbformat.write(source, tmp_path / "given.ipynb")
    script = textwrap.dedent(f"""
        from pathlib import Path
        from labs_lib.grading.run import run_notebook
        from labs_lib.grading.sandbox import Policy
        folder = Path({str(tmp_path)!r})
        run_notebook(folder / "given.ipynb", policy=Policy(), out=folder / "out")
    """)
    with tempfile.TemporaryDirectory(prefix="labs-t", dir="/tmp") as short:
        grader = subprocess.Popen(
            [sys.executable, "-c", script], env=os.environ | {"TMPDIR": short}
        )
        try:
            wait_for(lambda: processes_with(word), 60)
        finally:
            grader.send_signal(signal.SIGKILL)
            grader.wait()
        wait_for(lambda: not processes_with(word), 10)
    runs = read_results(tmp_path / "out" / "cells.jsonl")
    assert [(one.exercise, one.role, one.status) for one in runs] == [
        (None, "setup", "ok"),
        ("one", "answer", "ok"),
        ("one", "check", "ok"),
    ]
