"""Each kernel that a solution notebook holds is real CUDA: NVIDIA's compiler takes it."""

from __future__ import annotations

import subprocess
from collections import Counter

import jupytext
import pytest

from labs_lib import paths
from labs_lib.cuda import compilers, nvrtc
from labs_lib.exercises import exercises

SOURCES = sorted((paths.home() / "solutions").glob("*.md"))


def cells(path):
    """The texts of the CUDA cells of a lab's source."""
    notebook = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst")
    found = [cell.source for cell in notebook.cells if cell.source.startswith("%%cuda")]
    return [text.partition("\n")[2] for text in found]


WITH_KERNELS = [path for path in SOURCES if cells(path)]


def test_every_exercise_of_a_kernel_has_its_cell_and_lab_09_demonstrations_too():
    asked = Counter(item.lab for item in exercises() if item.kind == "kernel")
    answers = {
        f"lab{path.stem[:2]}": sum("BEGIN SOLUTION" in text for text in cells(path))
        for path in WITH_KERNELS
    }
    assert {lab: number for lab, number in answers.items() if number} == asked
    lab_09 = next(path for path in WITH_KERNELS if path.stem.startswith("09"))
    assert asked["lab09"] < len(cells(lab_09))


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
