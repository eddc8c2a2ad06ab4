"""`labs doctor`: the truth about this machine, and no exception whatever it finds."""

from __future__ import annotations

import builtins
import importlib
import io
import shutil
import sys

import pytest
from rich.console import Console

from labs_lib.workbook import doctor

NAMES = [
    *("Python", "PyTorch", "Jupyter kernel", "widgets", "C++ compiler", "GPU"),
    *("CUDA compiler", "sandbox", "models", "memory", "disk"),
]


def row(name):
    return next(one for one in doctor.report() if one.name == name)


def test_every_row_is_there_and_says_what_was_found():
    found = doctor.report()
    assert [one.name for one in found] == NAMES
    assert all(one.found and one.state in doctor.STYLES for one in found)


def test_report_fits_on_one_screen():
    console = Console(record=True, width=100)
    doctor.show(console)
    lines = console.export_text().splitlines()
    assert len(lines) <= 24


def test_missing_compiler_is_named_with_the_way_to_get_one(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name, *a, **k: None)
    assert row("C++ compiler").state == doctor.OPTIONAL
    assert "g++" in row("C++ compiler").how or "xcode" in row("C++ compiler").how
    assert "no nvcc" in row("CUDA compiler").found


@pytest.mark.parametrize(
    ("error", "way_out"),
    [(ImportError("No module named torch"), "make lab"), (OSError("fbgemm.dll"), "Visual C++")],
)
def test_torch_that_does_not_load_is_a_row_and_no_traceback(monkeypatch, error, way_out):
    real = importlib.import_module

    def load(name, *rest):
        if name == "torch":
            raise error
        return real(name, *rest)

    monkeypatch.setattr(doctor.importlib, "import_module", load)
    found = row("PyTorch")
    assert (found.state, str(error)) == (doctor.MISSING, found.found)
    assert way_out in found.how
    console = Console(record=True, width=100)
    assert doctor.show(console) is False
    assert "missing: PyTorch" in console.export_text()


def test_kernel_of_another_environment_is_noticed(monkeypatch):
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

    spec = KernelSpec(argv=["/opt/elsewhere/bin/python", "-m", "ipykernel_launcher"])
    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", lambda self, name: spec)
    found = row("Jupyter kernel")
    assert found.state == doctor.MISSING
    assert "/opt/elsewhere/bin/python" in found.found
    assert sys.executable in found.how


def test_linux_that_refuses_no_system_call_is_named_with_the_page_that_says_what_that_means(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(doctor.platform, "system", lambda: "Linux")
    monkeypatch.setattr(shutil, "which", lambda name, *a, **k: f"/usr/bin/{name}")
    monkeypatch.setattr(doctor, "_fails", lambda command: False)
    monkeypatch.setattr(doctor, "SECCOMP", tmp_path / "none")
    monkeypatch.setattr(doctor, "_held", lambda: "; memory is held")
    found = doctor._sandbox()
    assert (found.state, "no seccomp" in found.found) == (doctor.OPTIONAL, True)
    assert "docs/trust.md" in found.how
    monkeypatch.setattr(doctor, "SECCOMP", tmp_path)
    found = doctor._sandbox()
    assert (found.state, "; memory is held" in found.found) == (doctor.OK, True)


def test_what_holds_the_memory_of_graded_kernels_is_said_in_the_graders_words():
    from labs_lib.grading.sandbox import holding

    told = doctor._held()
    assert told == f"; {holding.here().sentence('are')}"
    assert "held by a control group" in told


def test_a_look_that_fails_costs_its_own_row_only(monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("no such sensor")

    monkeypatch.setattr(doctor.psutil, "virtual_memory", fail)
    assert "no such sensor" in row("memory").found
    assert row("disk").state in doctor.STYLES


def test_full_disk_is_missing_space(monkeypatch):
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage._replace(free=10_000_000))
    assert row("disk").state == doctor.MISSING


def test_looking_writes_nothing(monkeypatch):
    real, opened = builtins.open, []

    def watch(file, mode="r", *rest, **more):
        opened.append((file, mode))
        return real(file, mode, *rest, **more)

    for module in (builtins, io):  # pathlib's files are opened by the latter
        monkeypatch.setattr(module, "open", watch)
    doctor.report()
    own = [(f, m) for f, m in opened if set(m) & set("wax+") and str(f) != "/dev/null"]
    assert own == []
