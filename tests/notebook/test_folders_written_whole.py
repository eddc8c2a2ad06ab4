"""A folder is there whole or not at all, whoever ends the process that makes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from labs_lib.cli import main
from labs_lib.errors import ended_in_order
from labs_lib.notebook import atomic
from labs_lib.notebook.atomic import folder_beside, sweep_beside

unix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks or signals")
MAKER = """
import sys, time
from pathlib import Path
from labs_lib.notebook.atomic import folder_beside
with folder_beside(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("")
    print("made", flush=True)
    time.sleep(60)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@unix
def test_what_a_killed_process_left_is_swept_and_what_one_still_makes_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "FRESH_S", -1.0)
    target = tmp_path / "class (1)"
    for hidden in (
        ".class (1)-abcdefgh",
        ".class (1).building-short",
        ".class 1.building-abcdefgh",
    ):
        (tmp_path / hidden).mkdir()  # somebody else's
    before = names(tmp_path)
    maker = subprocess.Popen(
        [sys.executable, "-c", MAKER, str(target)], stdout=subprocess.PIPE, text=True
    )
    said = maker.stdout
    assert said is not None
    try:
        assert said.readline() == "made\n"
        sweep_beside(target)
        assert len(names(tmp_path)) == len(before) + 1
    finally:
        maker.kill()
        maker.wait()
        said.close()
    (left,) = set(names(tmp_path)) - set(before)
    (tmp_path / left).rename(tmp_path / f"{left}.old")
    (tmp_path / left).symlink_to(tmp_path / f"{left}.old")
    with folder_beside(target) as folder:
        assert names(tmp_path) == sorted([*before, left, folder.name])  # a link is left alone
    (tmp_path / left).unlink()
    assert names(tmp_path) == before


@unix
def test_a_fresh_folder_is_never_swept(tmp_path):
    (tmp_path / ".class.building-abcdefgh").mkdir()
    sweep_beside(tmp_path / "class")
    assert names(tmp_path) == [".class.building-abcdefgh"]


@unix
@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGHUP")]
)
def test_a_handout_that_is_asked_to_end_leaves_nothing(tmp_path, monkeypatch, capsys, number, word):
    def copy(building, lab):
        (building / "half").write_text("", encoding="utf-8")
        os.kill(os.getpid(), number)
        time.sleep(5)

    monkeypatch.setattr("labs_lib.authoring.handout._copy_course", copy)
    before = signal.getsignal(number)
    assert main(["handout", str(tmp_path / "class"), "--from", "02"]) == 128 + number
    assert f"ended by {word}" in capsys.readouterr().err
    assert names(tmp_path) == [] and signal.getsignal(number) is before


@unix
def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert ended_in_order(lambda: os.kill(os.getpid(), signal.SIGHUP) or "done")() == "done"
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
