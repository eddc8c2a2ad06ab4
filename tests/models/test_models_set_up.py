"""Where models lie, what importing them costs, and what the doctor says of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_wheel import cut_short

from labs_lib import models, paths
from labs_lib.models import fetch, gguf_reading, on_disk

ROOT = Path(__file__).parents[2]


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
    cut_short(on_disk.folder_of("tiny") / "weights.bin")
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
