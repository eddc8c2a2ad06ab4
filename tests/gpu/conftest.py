"""The same kernels on a real GPU: `pytest tests/gpu`, where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
WHY = "torch finds no CUDA GPU on this machine; the same kernels run on the CPU in tests/cuda."


def pytest_collection_modifyitems(items):
    """Without a GPU the whole folder is skipped, with one sentence."""
    if not torch.cuda.is_available():
        for item in items:
            if HERE in Path(item.path).parents:
                item.add_marker(pytest.mark.skip(reason=WHY))


@pytest.fixture
def milliseconds():
    """`milliseconds(call)`: the median of 20 calls after 5 that don't count, by the GPU's clock."""

    def measure(call, *, before: int = 5, counted: int = 20) -> float:
        for _ in range(before):
            call()
        marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(counted)]
        for start, end in marks:
            start.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return sorted(start.elapsed_time(end) for start, end in marks)[counted // 2]

    return measure
