"""What the course calls right is real CUDA: references and odd but right kernels."""

from __future__ import annotations

import subprocess

import pytest

from labs_lib.answers import answer
from labs_lib.cuda import compilers
from labs_lib.exercises import exercises

ASKED = [item for item in exercises() if item.kind == "kernel"]
needs_nvcc = pytest.mark.skipif(compilers.nvcc() is None, reason="nvcc is not installed here")


def taken(texts, folder):
    """Compiles all texts in one call, to PTX."""
    names = []
    for number, text in enumerate(texts):
        names.append(f"kernel{number}.cu")
        (folder / names[-1]).write_text(text, encoding="utf-8")
    command = [compilers.nvcc(), "-std=c++17", "-arch=sm_80", "-ptx", "--threads", "2", *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(folder.glob("*.ptx"))) == len(names)


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("name", [item.name for item in ASKED])
def test_references_and_odd_but_right_kernels_are_cuda(name, tmp_path):
    held = answer(name)
    taken([held.reference, *(right.program for right in held.right)], tmp_path)
