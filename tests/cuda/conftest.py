"""What the tests of the CUDA room share: small kernels from a few lines of body."""

from __future__ import annotations

import textwrap

import pytest

from labs_lib import cuda


@pytest.fixture(autouse=True)
def _short_limit(monkeypatch):
    monkeypatch.setenv("LABS_CUDA_SECONDS", "20")


@pytest.fixture
def make():
    """`make(body, params=..., before=...)` compiles a kernel `k` whose body starts in line 3."""

    def build(body, params="float* x, int n", before="", **options):
        text = f"{before}\n__global__ void k({params}) {{\n{textwrap.dedent(body).strip()}\n}}\n"
        return cuda.compile(text, **options)

    return build
