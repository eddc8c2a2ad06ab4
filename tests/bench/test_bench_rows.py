"""Figures of a bench: ratios, bars, shares of a peak; wrong results and impossible ones show."""

from __future__ import annotations

import json

import pytest
import torch
from rich.console import Console

from labs_lib.bench import registry, show
from labs_lib.bench.registry import Bench, chosen
from labs_lib.bench.rows import Row, Unavailable, WrongResult, in_words
from labs_lib.bench.timing import median_seconds, must_equal


def test_a_ratio_says_how_many_times_as_fast_as_the_peer():
    row = Row("ours", 0.002, "theirs", 5.0, faster=2000)
    assert row.ratio == 2500 and row.met and row.verdict == "> 2,000 ×: yes"
    assert Row("ours", 0.003, "theirs", 5.0, faster=2000).verdict == "> 2,000 ×: NO"


def test_a_bar_in_seconds_is_missed_when_it_takes_longer():
    assert Row("cell", 0.9, within=1.0).met
    assert Row("cell", 1.1, within=1.0).met is False
    assert Row("cell", 1.1).met is None and Row("cell", 1.1).verdict == ""


def test_a_figure_above_the_chips_peak_is_called_a_mistake():
    honest = Row("kernel", 1e-3, work=1e9, peak=2e12)
    assert honest.share == pytest.approx(0.5) and honest.met is None
    for impossible in (
        Row("kernel", 1e-6, work=1e9, peak=2e12),
        Row("copy", 1e-6, moved=1e9, bandwidth=1e12),
        Row("kernel", 1e-6, "torch", 1.0, faster=2, work=1e9, peak=2e12),
    ):
        assert impossible.met is False and "mistake" in impossible.verdict


def test_the_larger_of_both_shares_counts():
    row = Row("k", 1e-3, work=1e9, moved=9e8, peak=1e13, bandwidth=1e12)
    assert row.share == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("seconds", "words"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (4.2e-5, "42 µs"), (3e-8, "30 ns")]
)
def test_times_are_told_with_their_unit(seconds, words):
    assert in_words(seconds) == words


def test_the_warm_up_does_not_count_and_the_median_does():
    ticks = iter([0, 5, 10, 11, 20, 22])  # three runs of 5, 1 and 2
    ran = []
    took = median_seconds(
        lambda: ran.append(1), repeats=3, warm_up=2, clock=lambda: float(next(ticks))
    )
    assert took == 2 and len(ran) == 5


@pytest.mark.parametrize("wrong", [float("nan"), 1.1, float("inf")])
def test_a_result_that_was_timed_is_looked_at_again(wrong):
    right = torch.ones(3)
    must_equal(right + 1e-6, right, "product")
    with pytest.raises(WrongResult, match="product"):
        must_equal(torch.tensor([1.0, 1.0, wrong]), right, "product")
    with pytest.raises(WrongResult, match=r"\[4\]"):
        must_equal(torch.ones(4), right, "product")


def fake(monkeypatch, result):
    item = Bench("fake", "A title")

    def rows(self):
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(registry, "BENCHES", (item,))
    monkeypatch.setattr(Bench, "rows", rows)


def run(tmp_path, **options):
    console = Console(width=80, record=True, markup=False)
    fine = show.bench("fake", to=tmp_path / "out.json", console=console, **options)
    return fine, console.export_text(), json.loads((tmp_path / "out.json").read_text("utf-8"))[0]


def test_a_bench_prints_a_table_and_writes_the_same_as_json(monkeypatch, tmp_path):
    rows = [Row("one", 0.5, "two", 1.0, faster=1.5, work=1e9), "A note [in brackets]."]
    fake(monkeypatch, rows)
    fine, text, data = run(tmp_path)
    assert fine and "500 ms" in text and "> 1.5 ×: yes" in text and "[in brackets]" in text
    assert "of peak" not in text, "a column that no row fills is left out"
    assert data["rows"][0]["ratio"] == 2 and data["rows"][0]["met"] is True
    assert data["notes"] == ["A note [in brackets]."]


def test_a_missed_bar_is_told_by_the_result(monkeypatch, tmp_path):
    fake(monkeypatch, [Row("one", 2.0, within=1.0)])
    fine, text, _ = run(tmp_path)
    assert not fine and "NO" in text


def test_a_wrong_result_shows_no_figure(monkeypatch, tmp_path):
    fake(monkeypatch, WrongResult("product: the result that was timed is wrong by up to 3"))
    fine, text, data = run(tmp_path)
    assert not fine and "wrong by up to 3" in text and "rows" not in data


def test_what_this_machine_cannot_measure_is_one_sentence(monkeypatch, tmp_path):
    fake(monkeypatch, Unavailable("there is no GPU here."))
    fine, text, data = run(tmp_path)
    assert fine and text.strip() == "A title: there is no GPU here."
    assert data["unavailable"] == "there is no GPU here."


def test_benches_are_chosen_by_name_and_device():
    assert [b.device for b in chosen(None, None)].count("cuda") == 0
    assert {b.device for b in chosen(None, "cuda")} == {"cuda"}
    assert [b.name for b in chosen("cuda", None)] == ["cuda"]
    assert [b.name for b in chosen("cuda", "cuda")] == ["ladder"]
    for name, device in (("models", "cuda"), ("ladder", "cpu")):  # once: all benches of the device
        with pytest.raises(LookupError, match="leave --device out"):
            chosen(name, device)
    with pytest.raises(LookupError, match="cuda, "):
        chosen("nothing", None)


def test_the_command_answers_with_one_sentence_and_a_code(capsys, monkeypatch):
    from labs_lib.cli import main

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["bench", "--device", "cuda"]) == 0
    assert "there is no GPU here" in capsys.readouterr().out
    assert main(["bench", "nothing"]) == 2
    assert "there is no bench 'nothing'" in capsys.readouterr().err


def test_a_copy_without_benches_says_so(capsys, monkeypatch):
    """A handout leaves the room out: its kernels are answers of later labs."""
    import sys

    from labs_lib.cli import main

    monkeypatch.setitem(sys.modules, "labs_lib.bench.show", None)
    assert main(["bench"]) == 2
    assert "holds no benches" in capsys.readouterr().err
