"""Keys made ahead: each set serves one run, never another, and is nobody's but the instructor's."""

from __future__ import annotations

import contextlib
import io
import json
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from labs_lib.bench.grading import solved
from labs_lib.errors import UsageError
from labs_lib.grading.course import chosen
from labs_lib.grading.expected import keys as keys_room
from labs_lib.grading.expected import ready
from labs_lib.grading.expected.ready import Entry, ReadySet
from labs_lib.grading.grade import grade, prepare
from labs_lib.grading.reports.report import Report
from labs_lib.grading.sandbox import level
from labs_lib.grading.sandbox.levels import BUBBLEWRAP, PROCESS_LIMITS

ENTRY = Entry("b", 7, {"lab00.f": {"0": {"": {"at": [1], "decimals": 4}}}}, {"lab00.f": "text\n"})
unix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
ONE = ReadySet(7, {"lab00": ENTRY})


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_GRADING_CACHE", str(tmp_path / "cache" / "grading"))
    return tmp_path / "cache" / "grading"


def test_a_set_is_taken_as_it_was_laid_down_and_only_once(cache):
    ready.put(ONE)
    assert ready.take(BUBBLEWRAP) == ONE
    assert ready.take(BUBBLEWRAP) is None
    assert list(cache.iterdir()) == []


def test_of_many_graders_at_once_each_gets_a_set_of_its_own():
    for seed in range(12):
        ready.put(ReadySet(seed))
    with ThreadPoolExecutor(16) as pool:
        taken = [one for one in pool.map(lambda _: ready.take(BUBBLEWRAP), range(16)) if one]
    assert sorted(one.seed for one in taken) == list(range(12))


def test_what_a_set_rests_on_is_compared():
    assert ONE.find("lab00", "b") == ENTRY
    assert ONE.find("lab00", "changed since") is None
    assert ONE.find("lab01", "b") is None


@unix
def test_no_other_account_can_read_a_set_or_lay_one_down(cache, tmp_path):
    path = ready.put(ONE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    path.rename(tmp_path / "elsewhere.json")
    (cache / "keys-00000001.json").symlink_to(tmp_path / "elsewhere.json")
    assert ready.take(BUBBLEWRAP) is None
    if os.getuid() == 0:
        (cache / "keys-00000001.json").unlink()
        (tmp_path / "elsewhere.json").rename(cache / "keys-00000002.json")
        os.chown(cache / "keys-00000002.json", 4242, 4242)
        assert ready.take(BUBBLEWRAP) is None


def test_a_fence_that_keeps_no_file_back_has_nothing_to_read(cache):
    ready.put(ONE)
    assert ready.take(PROCESS_LIMITS) is None
    assert list(cache.iterdir()) == []
    with pytest.raises(UsageError, match="could read them"):
        ready.require(PROCESS_LIMITS)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'{"seed": 1}',
        b'{"seed": "x", "labs": {}}',
        b'{"seed":1,"labs":{"l":{}}}',
        b'{"seed":-1,"labs":{}}',
        b'{"seed":1e400,"labs":{}}',
        b'{"seed":true,"labs":{}}',
        b'{"seed":' + b"9" * 30 + b',"labs":{}}',
        b'{"seed":1,"labs":{"l":{"basis":"b","seed":1,"places":{},"expected":{"x":null}}}}',
        b"[" * 100_000,
    ],
    ids=range(11),
)
def test_a_damaged_set_is_passed_over(text):
    ready.put(replace(ONE, seed=9))
    ready.put(ONE).write_bytes(text)
    assert ready.take(BUBBLEWRAP).seed == 9


def test_there_is_an_end_to_what_is_made_ahead(cache, monkeypatch):
    monkeypatch.setattr(ready, "MOST_SETS", 2)
    for seed in range(5):
        ready.put(ReadySet(seed))
    assert len(list(cache.iterdir())) == 2
    assert [ready.take(BUBBLEWRAP).seed for _ in range(2)] == [4, 3]


def test_graders_that_make_sets_at_once_lose_none(cache):
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda seed: ready.put(ReadySet(seed)), range(16)))
    assert sorted(ready.take(BUBBLEWRAP).seed for _ in range(16)) == list(range(16))


@unix
def test_a_folder_or_a_set_that_others_could_open_is_passed_over(cache):
    ready.put(ONE).chmod(0o644)
    assert ready.take(BUBBLEWRAP) is None
    ready.put(ONE)
    cache.chmod(0o777)
    assert ready.take(BUBBLEWRAP) is None
    ready.forget()
    assert list(cache.iterdir()) == []
    if os.getuid() == 0:
        cache.chmod(0o700)
        ready.put(ONE)
        os.chown(cache, 4242, 4242)
        assert ready.take(BUBBLEWRAP) is None
        with pytest.raises(UsageError, match="another user"):
            ready.put(ONE)


def test_a_folder_of_something_else_stays_as_it_is(cache, tmp_path):
    cache.mkdir(parents=True, mode=0o755)
    (cache / "2026.json").write_text("marks", encoding="utf-8")
    with pytest.raises(UsageError, match=r"2026\.json.* a folder of its own"):
        ready.put(ONE)
    ready.forget()
    assert (cache / "2026.json").read_text(encoding="utf-8") == "marks"
    assert stat.S_IMODE(cache.stat().st_mode) == 0o755


def test_a_full_disk_leaves_nothing_behind(cache, monkeypatch):
    monkeypatch.setattr(Path, "replace", lambda *_: full_disk())
    with pytest.raises(OSError) as caught:
        ready.put(ONE)
    assert caught.value.filename.endswith("keys-00000001.json")
    assert list(cache.iterdir()) == []


def full_disk():
    raise OSError(28, "No space left on device")


def test_a_folder_that_can_not_be_written_to_has_no_set_to_take(cache, monkeypatch):
    path = ready.put(ONE)

    def refuse(*_, **__):
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuse)
        patched.setattr(Path, "unlink", refuse)
        assert ready.take(BUBBLEWRAP) is None
        ready.forget()
    assert path.is_file()


def test_what_a_killed_grader_left_of_a_set_is_swept_and_what_is_being_written_stays(cache):
    kept = ready.put(ONE)
    old, new = kept.with_name(f"{kept.name}.aa.taken"), kept.with_name(f"{kept.name}.bb")
    for path in (old, new):
        path.write_bytes(b"")
    os.utime(old, (1, 1))
    ready.forget()
    assert list(cache.iterdir()) == [new]


def test_a_set_that_no_key_can_be_made_of_costs_nobody(tmp_path, monkeypatch):
    lab = chosen("00")[0]
    expected = {item.name: "" for item in lab.exercises}
    monkeypatch.setattr(keys_room, "make_key", lambda course, seed, *_, **__: f"anew on {seed}")
    monkeypatch.setattr(keys_room, "fence_level", lambda _: (BUBBLEWRAP, ""))
    for number, texts in enumerate((expected, {})):
        broken = Entry(keys_room.key_basis(lab), 7, {}, texts)
        ready.put(ReadySet(7, {lab.lab.name: broken}))
        (tmp_path / str(number)).mkdir()
        with contextlib.closing(keys_room.Keys(tmp_path / str(number), None)) as keys:
            assert keys.of(lab) == "anew on 7"


@pytest.mark.slow
@pytest.mark.skipif(level().name != BUBBLEWRAP, reason="keys are made ahead behind bubblewrap")
def test_a_run_compares_with_what_was_made_ahead_and_the_next_draws_its_own(tmp_path, monkeypatch):
    told = io.StringIO()
    prepare(1, "00", stream=told)
    assert "1 of 1" in told.getvalue()
    made = json.loads(next((tmp_path / "cache" / "grading").glob("*.json")).read_bytes())
    first = grade_one(tmp_path / "first", monkeypatch, makes_keys=False)
    again = grade_one(tmp_path / "again", monkeypatch, makes_keys=True)
    assert first.seed == made["seed"] != again.seed
    for report in (first, again):
        assert report.rows[0].total == report.maximum


def grade_one(folder: Path, monkeypatch, *, makes_keys: bool) -> Report:
    made = []

    def counted(*given, **more):
        made.append(given)
        return make_key(*given, **more)

    make_key = keys_room.make_key
    course = chosen("00")[0]
    (folder / "in" / "ada").mkdir(parents=True)
    nbformat.write(solved(course, 1), folder / "in" / "ada" / "lab00.ipynb")
    with monkeypatch.context() as patched:
        patched.setattr(keys_room, "make_key", counted)
        report = grade(folder / "in", folder / "out", labs="00", stream=io.StringIO())
    assert bool(made) == makes_keys
    return report
