"""The table of the ladder on a GPU, with a clock of our own in place of CUDA's events."""

from __future__ import annotations

import pytest
import torch

from labs_lib.bench import ladder
from labs_lib.bench.chips import CHIPS, Chip, chip
from labs_lib.bench.rows import Unavailable, WrongResult

SMALL = {
    "scores": {"n_q": 33, "n_k": 17, "head_dim": 16},
    "transpose": {"rows": 33, "cols": 20},
    "softmax": {"rows": 5, "cols": 40},
    "attention": {"batch": 1, "n_head": 2, "n_q": 17, "n_k": 17, "head_dim": 8, "causal": 0},
}
CHIP = Chip("test", 1e12, 8e12, 1e11)


@pytest.fixture
def few(monkeypatch):
    """One rung of each family: compiling all of them would prove nothing more here."""
    first = {r.family: r for r in reversed(ladder.RUNGS)}
    monkeypatch.setattr(ladder, "RUNGS", tuple(first.values()))


def clock(seconds):
    def timer(run):
        run()
        return seconds

    return timer


@pytest.mark.slow
def test_each_rung_stands_beside_torch_with_its_work_and_its_share(few):
    rows = ladder.measured(clock(1e-3), torch.device("cpu"), CHIP, SMALL)
    by_name = {row.what: row for row in rows}
    assert {r.name for r in ladder.RUNGS if r.family in SMALL} == set(by_name)
    scores = by_name["scores_naive"]
    assert scores.peer == "torch: matmul" and scores.ratio == 1
    assert scores.work == 2 * 33 * 17 * 16 and scores.moved == 4 * (33 * 16 + 17 * 16 + 33 * 17)
    assert scores.share == pytest.approx(scores.moved / 1e-3 / 1e11)
    assert by_name["transpose_naive"].work is None
    assert by_name["attention_per_head_blocks"].work == 4 * 2 * 17 * 17 * 8
    impossible = ladder.measured(clock(1e-9), torch.device("cpu"), CHIP, SMALL)
    assert all("mistake" in row.verdict for row in impossible)


def test_a_rung_that_is_wrong_gets_no_figure(few, monkeypatch):
    rung = next(r for r in ladder.RUNGS if r.family == "transpose")
    monkeypatch.setattr(ladder, "RUNGS", (rung,))
    with pytest.raises(WrongResult, match="transpose_naive"):  # it never ran: NaN
        ladder.measured(lambda run: 1.0, torch.device("cpu"), CHIP, SMALL)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A10G", None),
        ("NVIDIA L40S", "L40S"),
        ("Tesla T4", "T4"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
    ],
)
def test_a_chip_is_known_by_the_name_of_the_device(name, wanted):
    found = chip(name)
    assert (found.name if found else None) == wanted


def test_peaks_are_in_plausible_order():
    for known in CHIPS:
        assert 1e12 < known.single < known.half < 3e15 and 1e11 < known.bandwidth < 1e13


def test_without_a_gpu_or_nvcc_it_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(Unavailable, match="no GPU here"):
        ladder.rows()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(ladder.compilers, "nvcc", lambda: None)
    with pytest.raises(Unavailable, match="no nvcc"):
        ladder.rows()


def test_work_of_attention_is_halved_by_a_causal_mask():
    sizes = ladder.SIZES["attention"]
    assert ladder.work("attention", sizes | {"causal": 1}) * 2 == ladder.work("attention", sizes)
