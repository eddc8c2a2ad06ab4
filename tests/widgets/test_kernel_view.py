"""Lab 09's explorer tells step by step what a warp touches, and adds up to the trace's counts."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from labs_lib import cuda
from labs_lib.cuda import recorded
from labs_lib.plots.memory_rows import CLASH, FETCHED, memory_rows
from labs_lib.plots.style import bare_figure
from labs_lib.widgets.kernel_view import kernel_view

SMALL = """
__global__ void k(float* x, float4* y, int n) {
    __shared__ float s[32][32];
    __shared__ float4 wide[32];
    int t = threadIdx.x;
    s[t][0] = x[blockIdx.x * 32 + t];
    __syncthreads();
    if (t < n) x[n] = s[3][0];
    wide[t] = y[t];
}"""


@pytest.fixture(scope="module")
def trace():
    k = cuda.compile(SMALL)
    watched = k.trace.steps(block=[(0,), (1,)])
    return watched[2, 32](torch.zeros(64), torch.zeros(32, 4), 1)


def shown(panel):
    """Numbers written in the cells of the memory that is drawn."""
    return [text.get_text() for text in panel.figure.axes[0].texts]


def test_each_step_names_its_line_lanes_and_sectors(trace):
    panel = kernel_view(trace)
    assert panel.message.startswith("Step 1 of 6 of warp 0 in block (0, 0, 0), before any barrier")
    assert (
        "Line 6 reads x: 32 lanes of 4 bytes; 4 sectors of 32 bytes, 128 bytes moved for 128"
        in (panel.message)
    )
    assert shown(panel) == [str(lane) for lane in range(32)]
    panel.step = 2
    assert "32 passes: 32 different words lie in bank 0" in panel.message
    assert panel.figure.axes[0].get_title(loc="left") == "32 lanes write s: 32 passes"
    assert shown(panel)[-1] == "32", "the conflict is numbered below its bank"
    panel.step = 3
    assert "after 1 barrier; lane 0 is thread 0" in panel.message and "1 lane" in panel.message
    assert "one pass through the banks" in panel.message
    panel.step = 6
    assert "4 passes, as lanes of 16 bytes go by parts of a warp" in panel.message
    assert not panel.failed


def test_the_line_of_the_step_stands_out_in_the_source_beside_it(trace):
    panel = kernel_view(trace, step=3)
    below = panel.figure.axes[1]
    assert below.get_title(loc="left") == "Line 8 of the source"
    (own,) = [text for text in below.texts if text.get_weight() == "bold"]
    assert own.get_text().strip().startswith("8 ") and "if (t < n)" in own.get_text()


def test_block_and_warp_are_chosen_among_those_that_were_watched(trace):
    panel = kernel_view(trace)
    panel.block = (1, 0, 0)
    assert "in block (1, 0, 0)" in panel.message and not panel.failed
    assert panel.choices["block"] == ["(0, 0, 0)", "(1, 0, 0)"]
    tiled = kernel_view(recorded.trace("transpose_tiled"))
    assert tiled.choices["warp"] == list(range(8))
    tiled.set(warp=3, step=2)
    assert "warp 3" in tiled.message and "lane 0 is thread (0, 3)" in tiled.message


def test_the_slider_ends_where_the_warps_steps_end(trace):
    panel = kernel_view(trace, step=99)
    assert panel.last_step == 6 and panel.step == 6 and not panel.failed
    panel.step = 5
    assert panel.message.startswith("Step 5 of 6")


def test_every_step_of_every_warp_is_drawn_and_adds_up(trace):
    counts = {}
    panel = kernel_view(trace)
    for step in range(1, 7):
        panel.step = step
        assert not panel.failed
        line = int(re.search(r"Line (\d+)", panel.message)[1])
        sectors = re.search(r"; (\d+) sectors? of", panel.message)
        counts[line] = counts.get(line, 0) + (int(sectors[1]) if sectors else 0)
    of_one_block = {li.line: 0 for li in trace.lines}
    for li in trace.lines:
        of_one_block[li.line] += li.sectors // 2
    assert counts == of_one_block


def test_a_record_that_ends_early_says_so_at_its_end():
    panel = kernel_view(recorded.trace("scores_naive"))
    panel.step = panel.last_step
    assert "The record ends here" in panel.message and "steps(most=...)" in panel.message
    panel.step = 1
    assert "The record ends here" not in panel.message


def test_where_the_source_is_kept_back_the_picture_still_stands(monkeypatch, tmp_path):
    from labs_lib.cuda import rung

    monkeypatch.setattr(rung, "FOLDER", tmp_path)
    panel = kernel_view(recorded.trace("scores_tiled"))
    assert not panel.failed and "keeps the source back" in (
        panel.figure.axes[1].get_title(loc="left")
    )


def test_a_launch_that_touched_nothing_says_so():
    k = cuda.compile("__global__ void k(float* x) { if (blockIdx.x > 9) x[0] = 1; }")
    for grid in (0, 1):
        panel = kernel_view(k.trace[grid, 32](torch.zeros(1)))
        assert panel.message == "No thread of this launch touched a tensor or shared memory."
        assert not panel.failed


def test_a_function_of_n_head_and_d_model_makes_both_of_them_move():
    asked = []
    k = cuda.compile(
        "__global__ void k(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 1; }"
    )

    def trace_of(n_head, d_model):
        asked.append((n_head, d_model))
        return k.trace[n_head, d_model // n_head](torch.zeros(d_model))

    panel = kernel_view(trace_of, n_head=4, d_model=64)
    assert "16 lanes of 4 bytes" in panel.message and not panel.failed
    panel.set(n_head=2)
    assert "32 lanes of 4 bytes" in panel.message
    panel.n_head = 7
    assert not panel.legal and panel.offers and "63 or 70" in panel.message
    panel.set(**dict([panel.offers[1]]))
    assert (panel.n_head, panel.d_model, panel.legal) == (7, 70, True)
    panel.set(n_head=4, d_model=64)
    assert asked == [(4, 64), (2, 64), (7, 70)], "what was traced once is kept"


def test_a_function_that_fails_is_shown_in_the_panel():
    def trace_of(n_head, d_model):
        raise cuda.BuildError("no compiler here")

    panel = kernel_view(trace_of)
    assert panel.failed and "no compiler here" in panel.message


def test_without_a_front_end_it_shows_a_picture_and_a_sentence(trace):
    bundle, _ = kernel_view(trace)._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert "Line 6 reads x" in bundle["text/plain"] and "0x" not in bundle["text/plain"]


def test_rows_of_memory_show_what_is_touched_and_what_only_comes_along():
    ax = bare_figure().add_subplot()
    memory_rows({3: [0], 40: [1, 2]}, fetched=range(8), label=lambda w: f"x[{w}]", ax=ax)
    assert [text.get_text() for text in ax.texts] == ["0", "×2"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x[0]", "x[32]"]
    image = ax.images[0].get_array()
    assert np.allclose(image[0, 7], to_rgb(FETCHED)) and not np.allclose(
        image[0, 3], to_rgb(FETCHED)
    )
    clash = memory_rows({0: [0], 32: [1]}, clashes={0: 2}, ax=bare_figure().add_subplot())
    assert np.allclose(clash.images[0].get_array()[:, 0], to_rgb(CLASH))
    assert [text.get_text() for text in clash.texts] == ["0", "1", "2"]


def test_the_browser_gets_the_whole_trace_once(trace):
    panel = kernel_view(trace)
    sent = panel.data
    rows = np.frombuffer(sent["steps"], np.int32).reshape(-1, 35)
    assert [count for *_, count in sent["warps"]] == [6, 6] and len(rows) == 12
    requests = [r for block in trace.log.blocks for r in trace.log.requests(block, 0)]
    for row, request in zip(rows, requests, strict=True):
        assert trace.log.sites[row[0]] == request.site and row[1] == request.size
        assert {i: at for i, at in enumerate(row[3:].tolist()) if at >= 0} == request.lanes
    panel.set(block=(1, 0, 0), step=5)
    assert panel.data is sent and panel.block == "(1, 0, 0)" and panel.own is None
