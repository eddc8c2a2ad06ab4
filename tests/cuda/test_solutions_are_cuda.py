"""Each kernel that a solution notebook holds is real CUDA: NVIDIA's compiler takes it."""

from __future__ import annotations

import subprocess

import jupytext
import pytest

from labs_lib import paths
from labs_lib.cuda import compilers, nvrtc

SOURCES = sorted((paths.home() / "solutions").glob("*.md"))


def cells(path):
    """The texts of the CUDA cells of a lab's source."""
    notebook = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst")
    found = [cell.source for cell in notebook.cells if cell.source.startswith("%%cuda")]
    return [text.partition("\n")[2] for text in found]


WITH_KERNELS = [path for path in SOURCES if cells(path)]


def test_lab_09_holds_a_kernel_for_each_of_its_six_exercises_and_its_demonstrations():
    lab = next(path for path in WITH_KERNELS if path.stem.startswith("09"))
    assert sum("BEGIN SOLUTION" in text for text in cells(lab)) == 6 < len(cells(lab))


@pytest.mark.slow
@pytest.mark.skipif(
    compilers.nvcc() is None and nvrtc.library() is None,
    reason="neither nvcc nor the package nvidia-cuda-nvrtc is installed here",
)
@pytest.mark.parametrize("path", WITH_KERNELS, ids=lambda path: path.stem)
def test_nvidias_compiler_takes_every_kernel_of_a_solution(path, tmp_path):
    for number, text in enumerate(cells(path)):
        if compilers.nvcc() is None:
            assert nvrtc.cubin(text, "sm_75")[:4] == b"\x7fELF"
            continue
        file = tmp_path / f"cell_{number}.cu"
        file.write_text(text, encoding="utf-8")
        command = [compilers.nvcc(), "-std=c++17", "-arch=sm_75", "-cubin", file.name]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False
        )
        told = done.stdout + done.stderr
        assert done.returncode == 0 and "warning" not in told, told
