"""What tests of the grader share: kernels, in each way that this machine has, and handouts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fences import FENCES, WAYS, Starter

from labs_lib.authoring import handout as room
from labs_lib.authoring.handout import handout
from labs_lib.exercises import lab
from labs_lib.paths import home

HOST = Path(__file__).with_name("handout_host.py")


@pytest.fixture(params=WAYS)
def start(request, tmp_path, monkeypatch):
    """Every way to start a kernel that this machine has."""
    return Starter(request.param, tmp_path / "jupyter", monkeypatch)


@pytest.fixture(params=FENCES or ["process-limits"])
def start_fenced(request, tmp_path, monkeypatch):
    """The ways that have a fence."""
    return Starter(request.param, tmp_path / "jupyter", monkeypatch)


@pytest.fixture(scope="session")
def handouts(tmp_path_factory):
    """Handouts without stored outputs: those are dear, and put in where they are needed."""
    built = {}

    def of(name):
        if name not in built:
            built[name] = tmp_path_factory.mktemp("handouts") / f"from {name} é"
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(room, "_packed", lambda _: ("{}", b""))
                handout(built[name], name)
        return built[name]

    return of


@pytest.fixture(scope="session")
def with_outputs(handouts):
    """A handout with the stored outputs of its first lab, as `labs handout` puts them there."""
    done = {}

    def of(name):
        if name not in done:
            folder = handouts(name) / "labs_lib" / "checking" / "stored_outputs"
            entries, arrays = room._packed(lab(name).number)
            (folder / f"{name}.json").write_text(entries, encoding="utf-8")
            (folder / f"{name}.npz").write_bytes(arrays)
            done[name] = handouts(name)
        return done[name]

    return of


@pytest.fixture(scope="session")
def inside(tmp_path_factory):
    """What a program leaves in `found` that runs in a handout, far from this checkout."""
    folder = tmp_path_factory.mktemp("host")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LABS"))}
    kept |= {"LABS_STATE": "off", "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    hosts = []

    def start():
        hosts.append(
            subprocess.Popen(
                [sys.executable, "-P", str(HOST), str(home())],
                cwd=folder,
                env=kept,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=(folder / "stderr").open("wb"),
                text=True,
                encoding="utf-8",
            )
        )

    def run(where, program):
        if not hosts or hosts[-1].poll() is not None:
            start()
        answer_file = folder / f"answer {len(list(folder.iterdir()))}.json"
        request = {"folder": str(where), "program": textwrap.dedent(program)}
        print(json.dumps(request | {"answer": str(answer_file)}), file=hosts[-1].stdin, flush=True)
        if hasattr(os, "fork"):
            hosts[-1].stdout.readline()
        else:
            hosts[-1].wait()
        assert answer_file.exists(), (folder / "stderr").read_text(encoding="utf-8")[-3000:]
        return json.loads(answer_file.read_text(encoding="utf-8"))

    yield run
    for host in hosts:
        host.stdin.close()
        host.wait()
