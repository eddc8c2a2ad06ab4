"""The picture of a trace: each element's readers and writers are told, exactly, and legibly."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from labs_lib import cuda
from labs_lib.cuda import picture, recorded
from labs_lib.cuda.tiles import BLOCKS, NOBODY, ONE, THREADS
from labs_lib.plots.style import bare_figure, png

SCORES = """
__global__ void scores(const float* q, const float* k, float* s, int n_q, int n_k, int d) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n_k || y >= n_q) return;
    float sum = 0;
    for (int i = 0; i < d; ++i) sum += q[y * d + i] * k[x * d + i];
    s[y * n_k + x] = sum;
}"""


@pytest.fixture(scope="module")
def scores():
    """Eight rows of q, six of k, blocks of four by four."""
    k = cuda.compile(SCORES)
    watched = k.trace.steps(block=[(1, 1), (0, 0)])
    return watched[(2, 2), (4, 4)](torch.ones(8, 3), torch.ones(6, 3), torch.zeros(8, 6), 8, 6, 3)


def drawn(trace, **options):
    return picture.draw(trace, into=bare_figure(9, 4), **options)


def test_each_elements_reads_and_writes_are_those_of_the_source(scores):
    q, k, s = (scores.tiles[name] for name in "qks")
    assert (q.shape, k.shape, s.shape) == ((8, 3), (6, 3), (8, 6)) and q.exact
    assert np.array(q.reads).tolist() == [[6] * 3] * 8 and not np.any(q.writes)
    assert np.array(k.reads).tolist() == [[8] * 3] * 6
    assert np.array(s.writes).tolist() == [[1] * 6] * 8 and not np.any(s.reads)


def test_each_element_knows_its_block_and_thread(scores):
    s, q = scores.tiles["s"], scores.tiles["q"]
    rows, columns = np.mgrid[:8, :6]
    assert np.array_equal(s.block, rows // 4 * 2 + columns // 4)
    assert np.array_equal(s.thread, rows % 4 * 4 + columns % 4)
    assert {w for row in s.who for w in row} == {ONE} and {w for row in q.who for w in row} == {
        BLOCKS
    }


def test_what_a_watched_block_and_its_first_warp_touch_is_framed(scores):
    s = scores.tiles["s"]
    last = np.zeros((8, 6), bool)
    last[4:, 4:] = True
    assert np.array_equal(s.touched_by(0, "write"), last)  # block (1, 1) was named first
    assert np.array_equal(s.touched_by(0, "write", first_warp=True), last)  # 16 threads: one warp
    first = np.zeros((8, 6), bool)
    first[:4, :4] = True
    assert np.array_equal(s.touched_by(1, "write"), first)
    assert not s.touched_by(1, "read").any()
    assert np.array_equal(scores.tiles["q"].touched_by(1, "read")[:, 0], [True] * 4 + [False] * 4)


def test_titles_state_what_is_seen(scores):
    titles = {(p.name, p.what): (p.title, p.note) for p in picture.panels(scores)}
    assert titles["q", "read"][0] == "q: each element is read 6 times"
    assert titles["s", "write"][0] == "s: 4 blocks write, each its own part, once"
    assert (
        "sectors per request" in titles["k", "read"][1]
        and "several blocks read each" in titles["k", "read"][1]
    )
    axes = drawn(scores)
    said = [ax.get_title(loc="left").replace("\n", " ") for ax in axes]
    assert said == [title for title, _ in titles.values()]
    assert "framed: block (1, 1)" in axes[0].figure.get_suptitle()
    assert "framed: block (0, 0)" in drawn(scores, block=(0, 0))[0].figure.get_suptitle()
    with pytest.raises(KeyError, match="was not watched"):
        drawn(scores, block=(1, 0))


@pytest.mark.parametrize(
    ("body", "what", "title"),
    [
        ("x[t] = 1;", "write", "each thread writes its own once"),
        ("if (t < 30) x[t] = 1;", "write", "2 of 32 elements are never written"),
        ("x[t] = 1; x[t] = 2; x[t] = 3;", "write", "each thread writes its own up to 3 times"),
        ("x[t ^ 1] = 1; x[t] = 2;", "write", "one block writes all up to 2 times"),
        ("y[t] = x[t / 2];", "read", "elements are read 0 to 2 times"),
        ("y[t] = x[t];", "read", "each element is read once"),
    ],
)  # fmt: skip
def test_titles_of_one_block(make, body, what, title):
    k = make(f"int t = threadIdx.x; {body}", params="float* x, float* y")
    trace = k.trace[1, 32](torch.zeros(32), torch.zeros(32))
    found = [p.title for p in picture.panels(trace) if (p.name, p.what) == ("x", what)]
    assert found == [f"x: {title}"]


def test_several_writers_of_one_element_are_told_apart(make):
    k = make("x[0] += 1; if (blockIdx.x == 0) x[1 + threadIdx.x / 2] = 1; else x[20] = 2;")
    trace = k.trace[2, 4](torch.zeros(24), 0)
    who = trace.tiles["x"].who[0]
    assert who[:4] == [BLOCKS, THREADS, THREADS, NOBODY] and who[20] == THREADS
    title = next(p.title for p in picture.panels(trace) if p.what == "write")
    assert title == "x: several blocks write one element"


@pytest.mark.parametrize(("rows", "columns"), [(100, 72), (1, 1000), (97, 3), (65, 65), (3, 300)])
def test_larger_tensors_are_drawn_in_boxes_and_nothing_is_lost(make, rows, columns):
    k = make("int i = blockIdx.x * 128 + threadIdx.x;\nif (i < n) y[i] = x[i] + x[n - 1 - i];",
             params="const float* x, float* y, int n")  # fmt: skip
    n = rows * columns
    trace = k.trace[-(-n // 128), 128](torch.zeros(rows, columns), torch.zeros(rows, columns), n)
    x, y = trace.tiles["x"], trace.tiles["y"]
    assert not x.exact and max(len(x.reads), len(x.reads[0])) <= 64
    assert np.sum(x.elements) == n and 4 * np.sum(x.reads) == trace.tensors["x"].read
    assert np.array_equal(np.array(x.reads), 2 * np.array(x.elements))
    assert np.array_equal(y.writes, y.elements)
    axes = drawn(trace)
    assert "a box is" in axes[0].get_xlabel() and png(axes[0].figure)


def test_a_tensor_with_more_elements_than_are_kept_is_counted_whole(make):
    n = 2**20 + 1000
    k = make("for (int i = threadIdx.x; i < n; i += 1024) x[i] = 1;")
    trace = k.trace.steps(most=1)[1, 1024](torch.zeros(n), n)
    x = trace.tiles["x"]
    assert np.sum(x.writes) == np.sum(x.elements) == n and trace.written == 4 * n
    assert [p.title for p in picture.panels(trace)] == ["x: one block writes all once"]
    drawn(trace)


def test_views_and_16_bit_numbers_are_told_by_their_own_elements(make):
    k = make(
        "int t = threadIdx.x; h[t] = __float2half(a[t]); b[2 * t] = 3;",
        params="half* h, const float* a, float* b",
        before="#include <cuda_fp16.h>",
    )
    shared = torch.zeros(64)
    h = torch.zeros(2, 16).half()
    trace = k.trace[1, 32](h, shared[4:36], shared[:63])
    assert trace.tiles["h"].shape == (2, 16) and np.sum(trace.tiles["h"].writes) == 32
    a, b = trace.tiles["a"], trace.tiles["b"]  # they overlap, so each sees what the other does
    assert a.shape == (1, 32) and b.shape == (1, 63)
    assert b.reads[0] == [0] * 4 + [1] * 32 + [0] * 27
    assert b.writes[0] == [1, 0] * 31 + [1] and a.writes[0] == [1, 0] * 16
    assert picture.draw(trace, into=bare_figure())


@pytest.mark.parametrize("name", ["scores_naive", "softmax_rows_warp", "attention_per_head_blocks"])
def test_the_ladders_pictures_are_legible_on_white_at_their_size(name):
    axes = recorded.trace(name).draw()
    figure = axes[0].figure
    assert figure.dpi == 100 and figure.get_facecolor() == (1, 1, 1, 1)
    assert all(text.get_fontsize() >= 7 for ax in axes for text in ax.texts)
    assert all(ax.get_title(loc="left") and ax.get_xlabel() for ax in axes)
    renderer = figure.canvas.get_renderer()
    figure.canvas.draw()
    width = figure.bbox.width
    for ax in axes:
        box = ax._left_title.get_window_extent(renderer)
        assert box.x0 >= 0 and box.x1 <= width + 1, "a title runs out of the picture"
    plt.close(figure)


def test_numbers_stand_beside_colours(make):
    k = make("int t = threadIdx.x; y[t] = x[t % 8];", params="float* x, float* y")
    axes = drawn(k.trace[1, 32](torch.zeros(8), torch.zeros(32)))
    assert [text.get_text() for text in axes[0].texts] == ["4"] * 8
    few, many = drawn(recorded.trace("softmax_rows"))
    assert [text.get_text() for text in few.texts] == ["read 3 times"], (
        "one number where all are equal"
    )
    assert [c.get_ylabel() for c in many.child_axes] == ["block"], "else a bar with numbers"


def test_a_run_that_was_stopped_and_an_empty_one_have_a_picture_too(make):
    k = make("x[threadIdx.x] = 1; x[n] = 2;")
    stopped = k.trace[1, 8](torch.zeros(8), 100)
    assert not stopped.complete and drawn(stopped)
    empty = k.trace[0, 8](torch.zeros(8), 0)
    assert drawn(empty) == [] and empty.tiles["x"].reads == [[0] * 8]


def test_the_picture_is_also_plain_data(scores):
    import json

    data = json.loads(json.dumps(scores.to_dict()))["tiles"]["s"]
    assert data["block"][7] == [2, 2, 2, 2, 3, 3] and data["shape"] == [8, 6]
