"""The course where students are: any Jupyter, no network, containers, Binder; how to cite it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

from labs_lib import __version__

ROOT = Path(__file__).parents[1]
TESTS = ["tests/test_units.py", "tests/test_config.py", "tests/attention/test_heads.py"]
TESTS += ["tests/exercises/test_lab02_cases.py", "tests/checking/test_check.py"]


def netless():
    """What goes before a command so that it runs in a network namespace with no way out."""
    tool = shutil.which("bwrap")
    command = [tool, "--dev-bind", "/", "/", "--unshare-net", "--"] if tool else []
    if not command or subprocess.run([*command, "true"], capture_output=True).returncode:
        return None
    return command


def alone(folder):
    """An environment that knows nothing of our launcher, and a home that is empty."""
    own = ("JUPYTER", "IPYTHON", "LABS_", "PYTHON", "MPL", "XDG_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(own)}
    return env | {"HOME": str(folder), "OMP_NUM_THREADS": "1", "LABS_STATE": str(folder / "state")}


SOLVED = """
import sys
import nbformat
from nbclient import NotebookClient
from labs_lib.notebook.cells import exercise_name, role
from labs_lib.notebook.regions import strip_markers
name, folder = sys.argv[1:]
notebook = nbformat.read(f"{root}/notebooks/{{name}}", as_version=4)
solution = nbformat.read(f"{root}/solutions/{{name}}", as_version=4)
answers = {{exercise_name(c): c.source for c in solution.cells if role(c) == "answer"}}
for cell in notebook.cells:
    if role(cell) == "answer":
        cell.source = strip_markers(answers[exercise_name(cell)])
NotebookClient(
    notebook, timeout=120, kernel_name="python3", resources={{"metadata": {{"path": folder}}}}
).execute()
checks = ["".join(o.text for o in c.outputs) for c in notebook.cells if role(c) == "check"]
assert checks and all(text.startswith("PASS") for text in checks), checks
print(len(checks), "checks passed")
"""


def solve(folder, before=()):
    """Run a lab with its answers by plain nbclient, in a folder that is not the course's."""
    return subprocess.run(
        [
            *before,
            sys.executable,
            "-c",
            SOLVED.format(root=ROOT),
            "02_splitting_the_width.ipynb",
            ".",
        ],
        cwd=folder,
        env=alone(folder),
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_notebook_passes_by_plain_nbclient_far_from_the_course_with_no_launcher_and_no_network(
    tmp_path,
):
    done = solve(tmp_path, netless() or ())
    assert done.returncode == 0, done.stderr[-3000:]
    assert "10 checks passed" in done.stdout


@pytest.mark.slow
def test_fast_tests_pass_with_the_network_cut(tmp_path):
    before = netless()
    if before is None:
        pytest.skip("no network namespace can be made here")
    script = f"""
        import socket, sys
        import pytest
        try:
            socket.create_connection(("192.0.2.1", 80), timeout=5)
        except OSError as error:
            print("cut:", error)
        else:
            sys.exit("there is a network")
        sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *{TESTS}]))
    """
    done = subprocess.run(
        [*before, sys.executable, "-c", textwrap.dedent(script)],
        cwd=ROOT,
        env=alone(tmp_path),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "cut: " in done.stdout and " passed" in done.stdout


def test_container_is_set_up_by_make_on_a_python_that_the_course_supports():
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    container = json.loads(text)
    assert container["postCreateCommand"] == "make setup"
    assert container["image"].split(":")[1][:4] in ("3.11", "3.12", "3.13")
    settings = container["customizations"]["vscode"]["settings"]
    assert settings["python.defaultInterpreterPath"] == ".venv/bin/python"


def test_binder_installs_the_lock_and_the_course_as_make_does():
    folder = ROOT / ".binder"
    (line,) = (folder / "requirements.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert (folder / line.removeprefix("-r ")).resolve() == ROOT / "requirements.lock"
    build = (folder / "postBuild").read_text(encoding="utf-8")
    assert "pip install --no-deps --no-build-isolation -e ." in build
    assert os.access(folder / "postBuild", os.X_OK)
    assert subprocess.run(["sh", "-n", folder / "postBuild"]).returncode == 0
    python = (folder / "runtime.txt").read_text(encoding="utf-8").strip()
    assert python in ("python-3.11", "python-3.12", "python-3.13")


def test_citation_names_this_version_and_licence():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert (cited["version"], cited["license"]) == (__version__, "MIT")
