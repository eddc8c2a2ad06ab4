"""`make`: set up once, anywhere, models last, and a clear word where it can't be done."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def checkout(tmp_path):
    """A folder with an awkward path that has what set-up reads, and nothing else."""
    folder = tmp_path / "mein Ordner (2) $HOME 'x' 課程"
    folder.mkdir()
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return folder


def make(folder, *arguments):
    own = ("PYTHON", "MAKEFLAGS", "MAKELEVEL", "MODELS")
    env = {k: v for k, v in os.environ.items() if k not in own}
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def python_that_says(folder, version):
    """A program that answers as a Python of some version would, and makes no environment."""
    program = folder / f"python{version}"
    program.write_text(f"#!/bin/sh\n[ '{version}' = 3.12 ] && [ \"$1\" = -c ]\n", encoding="utf-8")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("version", ["3.10", "3.14"])
def test_python_out_of_range_is_refused_with_the_way_out(checkout, version):
    done = make(checkout, "setup", f"PYTHON={python_that_says(checkout.parent, version)}")
    assert done.returncode != 0
    assert "is not Python 3.11, 3.12 or 3.13" in done.stdout
    assert "PYTHON=python3.12" in done.stdout
    assert not (checkout / ".venv").exists()


def test_missing_python_is_said(checkout):
    done = make(checkout, "setup", "PYTHON=")
    assert done.returncode != 0
    assert "No Python 3.11, 3.12 or 3.13 found" in done.stdout


def test_python_without_venv_names_the_package_and_leaves_nothing(checkout):
    done = make(checkout, "setup", f"PYTHON={python_that_says(checkout.parent, '3.12')}")
    assert done.returncode != 0
    assert "python3-venv" in done.stdout
    assert not (checkout / ".venv").exists()


def test_set_up_is_done_once(checkout):
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / ".ready").write_text(f"{checkout}\n", encoding="utf-8")
    done = make(checkout, "setup", "PYTHON=/nowhere")
    assert (done.returncode, "Nothing to be done" in done.stdout) == (0, True), done.stderr


def test_moved_checkout_is_set_up_again(checkout):
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / ".ready").write_text("/some/where/else", encoding="utf-8")
    assert make(checkout, "setup", "PYTHON=/nowhere").returncode != 0


def test_new_lock_file_is_installed(checkout):
    ready = checkout / ".venv" / ".ready"
    ready.parent.mkdir()
    ready.write_text(str(checkout), encoding="utf-8")
    os.utime(ready, (1, 1))
    assert make(checkout, "setup", "PYTHON=/nowhere").returncode != 0


def test_help_names_every_target(checkout):
    shown = make(checkout, "help").stdout
    for target in ("lab", "setup", "test", "smoke", "release", "records", "clean"):
        assert f"make {target}" in shown


def test_clean_keeps_answers_and_progress(checkout):
    for name in (".venv/bin", ".labs/progress", "notebooks", "labs_lib", "tests"):
        (checkout / name).mkdir(parents=True)
    (checkout / "notebooks" / "mine.ipynb").touch()
    assert make(checkout, "clean").returncode == 0
    assert not (checkout / ".venv").exists()
    assert (checkout / ".labs" / "progress").is_dir()
    assert (checkout / "notebooks" / "mine.ipynb").is_file()


@pytest.fixture
def diarist(checkout):
    """A Python that makes a .venv whose python writes a diary and finds no network."""
    program = checkout.parent / "python"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python;; esac\n'
        'echo "$*" >> diary\n'
        'case "$*" in *"models get"*) echo "labs: no network" >&2; exit 2;; esac\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    return program


def test_set_up_gets_the_models_last_and_no_network_is_no_obstacle(checkout, diarist):
    done = make(checkout, "lab", f"PYTHON={diarist}")
    assert done.returncode == 0, done.stderr
    diary = (checkout / "diary").read_text(encoding="utf-8").splitlines()
    assert diary[-2:] == ["-m labs_lib.cli models get", "-m labs_lib.cli start"]
    assert (checkout / ".venv" / ".ready").is_file()
    assert done.stderr == "labs: no network\n"


def test_models_0_leaves_the_models_out(checkout, diarist):
    assert make(checkout, "lab", f"PYTHON={diarist}", "MODELS=0").returncode == 0
    assert "models get" not in (checkout / "diary").read_text(encoding="utf-8")
