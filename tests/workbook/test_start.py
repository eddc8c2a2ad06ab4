"""`labs start`: JupyterLab on the first page, and not a byte outside the course's folder."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from labs_lib.errors import UsageError
from labs_lib.workbook import start


def test_first_page_is_quoted_in_the_address(course):
    course.file.rename(course.notebooks / "00 начало & 始.ipynb")
    (page,) = (x for x in start.command_line() if x.startswith("--LabApp.default_url="))
    assert page.isascii()
    assert " " not in page
    assert "&" not in page
    assert page.startswith("--LabApp.default_url=/lab/tree/notebooks/00%20")


def test_every_folder_that_jupyter_writes_to_is_the_courses(course):
    env = start.environment()
    for name in (
        *("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"),
        *("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR"),
    ):
        assert Path(env[name]).is_relative_to(course.home / ".labs")
    assert env["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)


def test_courses_notebooks_are_trusted_and_others_are_not(course):
    notebook = nbformat.read(course.file, as_version=4)
    notebook.cells[1].outputs = [nbformat.v4.new_output("display_data", {"text/html": "<b>x</b>"})]
    nbformat.write(notebook, course.file)
    stranger = course.write("someone else's.ipynb", {course.name: "x = 1"})
    assert start.trust() == [course.file]
    notary = NotebookNotary(data_dir=str(course.home / ".labs" / "jupyter" / "data"))
    assert notary.check_signature(nbformat.read(course.file, as_version=4))
    assert not notary.check_signature(nbformat.read(stranger, as_version=4))


def test_damaged_notebook_does_not_keep_the_course_from_starting(course):
    course.file.write_text("{", encoding="utf-8")
    assert start.trust() == []
    assert start.command_line()


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_port_out_of_range_is_refused(course, port):
    with pytest.raises(UsageError, match="port"):
        start.command_line(port=port)


def test_missing_first_notebook_is_one_sentence(course):
    course.file.unlink()
    with pytest.raises(UsageError, match="00_"):
        start.command_line()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals a process group")
def test_server_comes_up_with_the_courses_settings_and_leaves_home_alone(course, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "XDG_"))}
    env |= {"HOME": str(home), "JUPYTER_TOKEN": "t0ken"}
    command = [sys.executable, "-m", "labs_lib.cli", "start", "--no-browser", f"--port={port}"]
    with open(tmp_path / "log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        news = _get(server, f"http://127.0.0.1:{port}", _settings("notification"))
        widgets = _get(server, f"http://127.0.0.1:{port}", _settings("plugin", "manager"))
        kernels = _get(server, f"http://127.0.0.1:{port}", "/api/kernelspecs")
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)
    assert news["schema"]["properties"]["fetchNews"]["default"] == "false"
    assert widgets["schema"]["properties"]["saveState"]["default"] is True
    assert list(kernels["kernelspecs"]) == ["python3"]
    assert list(home.rglob("*")) == []


def _settings(name, package="apputils"):
    owner = "@jupyter-widgets/jupyterlab" if package == "manager" else "@jupyterlab"
    middle = "-manager" if package == "manager" else "/apputils-extension"
    return f"/lab/api/settings/{owner}{middle}:{name}"


def _get(server, address, path):
    """The JSON at a path, as soon as the server answers (a minute and a half at most)."""
    request = urllib.request.Request(f"{address}{path}", headers={"Authorization": "token t0ken"})
    end = time.monotonic() + 90
    while True:
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except OSError:
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < end, "the server did not come up"
            time.sleep(0.3)
