"""Known ways to be wrong, put into our flash kernel one by one, are rejected by a named check."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from flash_inputs import from_logits, numbers

from labs_lib import cuda
from labs_lib.cuda import ladder, trials

FLASH = ladder.rung("flash_forward")


def edited(*edits):
    """The kernel with pieces of its text exchanged; each must stand there exactly once."""
    text = FLASH.source
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the kernel"
        text = text.replace(old, new)
    return text


def some(n_q=97, n_k=97, n_head=2, n_kv_head=1, head_dim=16):
    """Distinct inputs of several tiles."""
    q = numbers(1, n_head, n_q, head_dim)
    k, v = (numbers(1, n_kv_head, n_k, head_dim, seed=s) for s in (1, 2))
    return q, k, v + torch.arange(n_k)[:, None] / 64


def long_row():
    """One query that sees 4096 keys alike: a sum in half stops at 2048."""
    v = numbers(1, 1, 4096, 16)
    return torch.zeros(1, 1, 1, 16), torch.zeros(1, 1, 4096, 16), v + 0.5


INPUTS = {
    "some": some,
    "wide": lambda: some(n_q=16, n_k=48),
    "tall": lambda: some(n_q=48, n_k=16),
    "four heads": lambda: some(n_q=33, n_k=33, n_head=4, n_kv_head=2),
    "square tile": lambda: some(n_q=33, n_k=64, head_dim=32),
    "long row": long_row,
}

KEEP = "expf(m[r] - shift)"
SHIFT = "float shift = bigger == -INFINITY ? 0.0f : bigger;"
SCORE = "float s = start + lane < end ? score[r] * scale : -INFINITY;"
END = "int end = causal ? min(n_k, first + mine + r + 1 + n_k - n_q) : n_k;"
# name, edits, input, causal: values differ from the truth, or are NaN where it has none.
VALUES = [
    ("o is not rescaled", [("acc[r][c] *= keep;", ";")], "rising", 0),
    ("l is not rescaled", [("l[r] * keep +", "l[r] +")], "rising", 0),
    ("the rescale is inverted", [(KEEP, "expf(shift - m[r])")], "rising", 0),
    ("m is updated before the rescale", [(KEEP, "expf((m[r] = bigger) - shift)")], "rising", 0),
    ("m starts at 0", [("m[r] = -INFINITY;", "m[r] = 0.0f;")], "minus 200", 0),
    ("m starts at 1e-30", [("m[r] = -INFINITY;", "m[r] = 1e-30f;")], "minus 200", 0),
    ("m starts at a sentinel", [("m[r] = -INFINITY;", "m[r] = -5e4f;")], "minus 60000", 0),
    ("o is divided by l in each tile", [("acc[r][c] *= keep;", "acc[r][c] *= keep / l[r];")],
     "some", 0),
    ("-inf minus -inf", [(SHIFT, "float shift = bigger;")], "first tile masked", 0),
    ("0 for -inf is kept in m", [("m[r] = bigger;", "m[r] = shift;")], "first tile masked", 0),
    ("the mask is -1e4", [(SCORE, SCORE.replace("-INFINITY", "-1e4f"))], "minus 60000", 1),
    ("the mask is 0 before the softmax", [(SCORE, SCORE.replace("-INFINITY", "0.0f"))],
     "minus 8", 1),
    ("no final division", [("float share = l[r] == 0.0f ? 0.0f : 1.0f / l[r];",
                            "float share = 1.0f;")], "some", 0),
    ("the scale is 1/head_dim", [("score[r] * scale", "score[r] / head_dim")], "some", 0),
    ("there is no scale", [("score[r] * scale", "score[r]")], "some", 0),
    ("the maximum is of unscaled scores",
     [("largest_of_warp(s)", "largest_of_warp(score[r])")], "100 to 120", 0),
    ("the sum is over half of the row",
     [("sum_of_warp(weight)", "sum_of_warp(lane < 16 ? weight : 0.0f)")], "some", 0),
    ("one maximum for all rows of a warp",
     [("m[r], largest_of_warp(s)", "r ? m[0] : m[0], largest_of_warp(s)")], "rows alternate", 0),
    ("no maximum", [(SHIFT, "float shift = 0.0f;")], "90 to 110", 0),
    ("exp2 without log2(e)", [("weight = expf(s - shift)", "weight = exp2f(s - shift)"),
                              (KEEP, "exp2f(m[r] - shift)")], "some", 0),
    ("causal is j < i", [(END, END.replace("r + 1 +", "r +"))], "some", 1),
    ("causal is j <= i + 1", [(END, END.replace("r + 1 +", "r + 2 +"))], "some", 1),
    ("causal is on places in the tile", [(END, END.replace("first + ", "start + "))], "some", 1),
    ("causal is top-left", [(END, END.replace(" + n_k - n_q", ""))], "wide", 1),
    ("keys beyond the end are counted", [("start + lane < end", "start + lane < end + 15")],
     "minus 8", 0),
    ("v is read transposed", [("v_tile[j * head_dim + lane + 32 * c]",
                               "v_tile[(lane + 32 * c) * head_dim + j]")], "square tile", 0),
    ("lse is m + l", [("m[r] + logf(l[r])", "m[r] + l[r]")], "some", 0),
    ("lse leaves m out", [("m[r] + logf(l[r])", "logf(l[r])")], "some", 0),
    ("l is kept in half", [("l[r] = l[r] * keep + sum_of_warp(weight);",
                            "for (int i = 0; i < 32; ++i) l[r] = __half2float(__float2half("
                            "(i ? l[r] : l[r] * keep) + __shfl_sync(ALL, weight, i)));"),
                           ("#define WARPS 8", "#include <cuda_fp16.h>\n#define WARPS 8")],
     "long row", 0),
    ("the KV head is h mod n_kv_head",
     [("blockIdx.y / (n_head / n_kv_head)", "blockIdx.y % n_kv_head")], "four heads", 0),
    ("the last tile of keys is left out", [("start < seen", "start + KEYS <= seen")], "some", 0),
    ("rows that see nothing are not written",
     [("if (row >= n_q) continue;", "if (row >= n_q || l[r] == 0.0f) continue;")], "tall", 1),
    ("o is added to what was there",
     [("lane + 32 * c] = acc[r][c]", "lane + 32 * c] += acc[r][c]")], "some", 0),
    ("only one lane updates m", [("m[r] = bigger;", "if (lane == 0) m[r] = bigger;")],
     "rising", 0),
    ("zeros", [("acc[r][c] * share", "0.0f")], "some", 0),
]  # fmt: skip
LOADED = "__syncthreads();  // the tiles are whole"
USED = "__syncthreads();  // nobody needs the tiles any more"
# name, edits, kind of the finding or fault.
TRACED = [
    ("no barrier after the load", [(LOADED, "")], "race"),
    ("no barrier before the next load", [(USED, "")], "race"),
    ("only the warp meets after the load", [(LOADED, "__syncwarp();")], "race"),
    ("weights are read without __syncwarp", [("__syncwarp();", "")], "race"),
    ("rows beyond n_q leave before the barrier",
     [("int seen =", "if (first + mine >= n_q) return;\n    int seen =")], "barrier"),
    ("the barrier is for rows that exist",
     [(LOADED, "if (first + mine < n_q) __syncthreads();")], "barrier"),
    ("rows beyond n_q are written",
     [("if (row >= n_q) continue;", "")], "bounds"),
    ("rows of q beyond n_q are read", [("first + r < n_q ? q[at] : 0.0f", "q[at]")], "bounds"),
    ("keys beyond n_k are read", [("start + j < n_k ? v[at] : 0.0f", "v[at]")], "bounds"),
    ("head and batch change places",
     [("(size_t)blockIdx.z * n_head + blockIdx.y;", "(size_t)blockIdx.z + blockIdx.y * n_head;")],
     "bounds"),
    ("every block writes lse of its first row",
     [("lse[row] =", "lse[mine + r] =")], "cross-block"),
]  # fmt: skip


def tried(text, q, k, v, scale, causal, *, traced=False):
    """The trial after a launch of the given text; the trace, where it was traced."""
    made = trials.flash_trial(FLASH, q, k, v, scale, bool(causal))
    sizes = {"batch": q.shape[0], "n_head": q.shape[1], "n_kv_head": k.shape[1]}
    sizes |= {"n_q": q.shape[2], "n_k": k.shape[2], "head_dim": q.shape[3], "causal": causal}
    kernel = cuda.compile(text)
    found = (kernel.trace if traced else kernel)[FLASH.geometry(sizes)](*made.arguments)
    return made, found


def wrong(made):
    """Whether some output differs from the truth; a NaN on one side only is a difference."""
    return any(
        not torch.allclose(made.outputs[name].double(), wanted, atol=1e-3, rtol=1e-3)
        for name, wanted in made.wanted.items()
    )


def is_wrong(text, inputs, causal):
    q, k, v = INPUTS[inputs]() if inputs in INPUTS else from_logits(inputs)
    return wrong(tried(text, q, k, v, 0.25, causal)[0])


@cache
def is_right_itself(inputs, causal):
    """Whether the kernel gives right values on a killer, which would prove nothing otherwise."""
    return not is_wrong(FLASH.source, inputs, causal)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "edits", "inputs", "causal"), VALUES, ids=lambda v: None)
def test_a_wrong_flash_kernel_gives_wrong_values_on_its_killer(name, edits, inputs, causal):
    assert is_right_itself(inputs, causal)
    assert is_wrong(edited(*edits), inputs, causal), name


@pytest.mark.slow
@pytest.mark.parametrize(("name", "edits", "kind"), TRACED, ids=lambda v: None)
def test_a_kernel_that_is_right_by_luck_is_rejected_by_its_trace(name, edits, kind):
    q, k, v = some(n_q=81, n_k=97, n_head=2, n_kv_head=2)
    _, trace = tried(edited(*edits), q, k, v, 0.25, 0, traced=True)
    assert not trace.clean, name
    assert any(kind in finding.kind for finding in trace.findings), trace


@pytest.mark.slow
def test_a_tile_that_is_not_filled_to_its_end_shows_where_the_first_one_is_short():
    """Later tiles would find old numbers there, whose weight is zero."""
    fill = "v_tile[j * head_dim + i] = start + j < n_k ? v[at] : 0.0f;"
    text = edited((fill, "if (start + j < n_k) v_tile[j * head_dim + i] = v[at];"))
    _, trace = tried(text, *some(n_q=33, n_k=17), 0.25, 0, traced=True)
    assert [finding.kind for finding in trace.findings] == ["uninitialised"]


def barriers():
    """Every barrier of every rung that has one: the rung, the word, and which of them it is."""
    for rung in ladder.RUNGS:
        body = _kernel_of(rung)
        for word in ("__syncthreads();", "__syncwarp();"):
            for number in range(body.count(word)):
                yield pytest.param(rung, word, number, id=f"{rung.name}-{word[:-3]}-{number}")


def _kernel_of(rung):
    """The text of a rung's kernel, up to the next one of its file."""
    return rung.source.split(f"__global__ void {rung.name}(")[1].split("\n}\n")[0]


# Sizes with several tiles along every side, wide heads, so that what a barrier orders happens.
TILES = {
    "scores": {"n_q": 33, "n_k": 33, "head_dim": 72},
    "softmax": {"rows": 2, "cols": 300},
    "transpose": {"rows": 33, "cols": 40},
}
HEADS = {"batch": 1, "n_head": 1, "n_kv_head": 1, "n_q": 65, "n_k": 65, "head_dim": 40, "causal": 0}


@pytest.mark.slow
@pytest.mark.parametrize(("rung", "word", "number"), barriers())
def test_no_barrier_of_the_ladder_can_be_left_out(rung, word, number):
    """Without any one of them the trace reports a race, so each is needed and each is watched."""
    body = _kernel_of(rung)
    pieces = body.split(word)
    without = word.join(pieces[: number + 1]) + ";" + word.join(pieces[number + 1 :])
    text = rung.source.replace(body, without)
    sizes = TILES.get(rung.family, HEADS)
    made = trials.trial(rung, sizes)
    module = cuda.compile(text)
    kernel = module if rung.file == "" else module[rung.name]
    trace = kernel.trace[rung.geometry(sizes)](*made.arguments)
    kinds = {finding.kind for finding in trace.findings if not finding.harmless}
    assert kinds & {"race", "uninitialised"}, trace
