"""Flash kernels on the inputs that wrong online softmaxes pass or fail by luck."""

from __future__ import annotations

from math import inf, nan

import pytest
import torch
from flash_inputs import KILLERS, from_logits, numbers

from labs_lib import cuda
from labs_lib.cuda import ladder, trials

FLASH = ladder.rung("flash_forward")
BOTH = [FLASH, ladder.rung("flash_forward_mma")]


def run(q, k, v, scale, causal, rung=FLASH):
    """The trial of given tensors after the kernel has run in its fast mode."""
    made = trials.flash_trial(rung, q, k, v, scale, causal)
    sizes = {"batch": q.shape[0], "n_head": q.shape[1], "n_kv_head": k.shape[1]}
    sizes |= {"n_q": q.shape[2], "n_k": k.shape[2], "head_dim": q.shape[3], "causal": causal}
    rung.compile()[rung.geometry(sizes)](*made.arguments)
    return made


def right(made):
    within = 2e-3 if made.outputs["o"].dtype == torch.float16 else 4e-6
    for name, wanted in made.wanted.items():
        torch.testing.assert_close(made.outputs[name].double(), wanted, atol=within, rtol=within)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", KILLERS)
@pytest.mark.parametrize("rung", BOTH, ids=lambda r: r.name)
def test_logits_that_break_wrong_softmaxes_dont_break_ours(rung, shape, causal):
    right(run(*from_logits(shape), 0.25, causal, rung))


@pytest.mark.parametrize(("n_q", "n_k"), [(16, 48), (48, 16), (2, 5), (97, 33), (5, 0)])
@pytest.mark.parametrize("rung", BOTH, ids=lambda r: r.name)
def test_causal_is_bottom_right_and_rows_that_see_nothing_give_zeros(rung, n_q, n_k):
    q, k, v = numbers(1, 2, n_q, 16), numbers(1, 1, n_k, 16, seed=1), numbers(1, 1, n_k, 16, seed=2)
    made = run(q, k, v, 0.25, True, rung)
    o, lse, blind = made.outputs["o"], made.outputs["lse"], max(0, n_q - n_k)
    assert (o[:, :, :blind] == 0).all() and (lse[:, :, :blind] == -inf).all()
    assert lse[:, :, blind:].isfinite().all()
    right(made)


@pytest.mark.parametrize("each", [1, 2, 8])
def test_tiles_of_queries_may_be_narrower_or_wider_than_tiles_of_keys(each):
    """8, 16 or 64 queries a block against tiles of 32 keys."""
    text = ladder.source("flash_forward")
    assert text.count("#define EACH 4 ") == 1
    kernel = cuda.compile(text.replace("#define EACH 4 ", f"#define EACH {each} "))
    rows = 8 * each
    q, k, v = (numbers(1, 1, n, 32, seed=i) for i, n in enumerate((97, 65, 65)))
    made = trials.flash_trial(FLASH, q, k, v, 0.2, True)
    shared = 4 * ((rows + 32) * 32 + 32 * 33 + rows * 32)
    trace = kernel.trace[(-(-97 // rows), 1, 1), 256, shared](*made.arguments)
    assert trace.clean, trace
    right(made)


def test_a_nan_stays_in_its_row_and_an_infinite_key_reaches_only_who_sees_it():
    q, k, v = (numbers(1, 1, 40, 16, seed=i) for i in range(3))
    q[0, 0, 7, 3], k[0, 0, 39] = nan, inf  # only the last query sees key 39
    broken = run(q, k, v, 0.25, True).outputs["o"][0, 0].isnan().any(1)
    assert broken.nonzero().flatten().tolist() == [7, 39]


@pytest.mark.parametrize("size", [30.0, 256.0])
def test_products_beyond_the_range_of_half_stay_finite(size):
    """q = k = 30 and head_dim 128 make 115200, and 256 makes 8 million; half ends at 65504."""
    q = k = torch.full((1, 1, 33, 128), size)
    made = run(q, k, numbers(1, 1, 33, 128), 128**-0.5, True, BOTH[1])
    assert made.outputs["o"].isfinite().all()
    torch.testing.assert_close(made.outputs["o"].double(), made.wanted["o"], atol=2e-3, rtol=2e-3)
    torch.testing.assert_close(
        made.outputs["lse"].double(), made.wanted["lse"], atol=1e-3, rtol=2e-7
    )


def test_a_sum_of_weights_that_were_not_rounded_yet_is_within_the_tolerance_of_half():
    """The weights of a long row are used as halves; either sum of them is right, and none fails."""
    text = ladder.source("flash_forward_mma")
    rounded = "sum += __low2float(two) + __high2float(two);"
    assert text.count(rounded) == 1
    exact = "sum += exp2f((s[at] - shift) * LOG2_E) + exp2f((s[at + 1] - shift) * LOG2_E);"
    q, k, v = (numbers(1, 1, n, 16, seed=i) for i, n in enumerate((9, 4096, 4096)))
    ours = run(q, k, v, 0.25, False, BOTH[1])
    theirs = trials.flash_trial(BOTH[1], q, k, v, 0.25, False)
    sizes = {"batch": 1, "n_head": 1, "n_kv_head": 1, "n_q": 9, "n_k": 4096}
    geometry = BOTH[1].geometry(sizes | {"head_dim": 16, "causal": False})
    cuda.compile(text.replace(rounded, exact))[geometry](*theirs.arguments)
    right(ours)
    right(theirs)
    assert not torch.equal(ours.outputs["lse"], theirs.outputs["lse"])


@pytest.mark.parametrize("head_dim", [5, 20, 63, 80, 120])
def test_head_dims_that_are_no_multiple_of_sixteen_or_eight(head_dim):
    """Filled up with zeros inside; the scale is the caller's and not that of the padded width."""
    q, k, v = (numbers(1, 2, 35, head_dim, seed=i) for i in range(3))
    for rung in BOTH:
        right(run(q, k, v, head_dim**-0.5, True, rung))


@pytest.mark.parametrize("at", range(5), ids=["q", "k", "v", "o", "lse"])
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2), "is not contiguous"),
        (lambda x: x.double(), "must be float32, .* float64 was given"),
        (lambda x: x.half(), "must be float32, .* float16 was given"),
        (lambda x: x.numpy(), "needs a tensor, ndarray was given"),
    ],
    ids=["view", "float64", "float16", "array"],
)
def test_each_argument_that_does_not_fit_is_refused_by_name_before_anything_runs(at, spoil, words):
    q, k, v = (numbers(2, 2, 9, 16, seed=i) for i in range(3))
    made = trials.flash_trial(FLASH, q, k, v, 0.25, False)
    arguments = list(made.arguments)
    name, arguments[at] = ("q", "k", "v", "o", "lse")[at], spoil(arguments[at])
    with pytest.raises(cuda.LaunchError, match=f"^{name} .*{words}"):
        FLASH.compile()[1, 256](*arguments)
    assert made.outputs["lse"].isnan().all()


@pytest.mark.parametrize(
    "rung", [*BOTH, ladder.rung("attention_per_head_blocks")], ids=lambda r: r.name
)
@pytest.mark.parametrize("empty", ["batch", "n_q", "n_k"])
def test_nothing_in_gives_nothing_out_and_no_keys_give_zeros(rung, empty):
    sizes = trials.SIZES[rung.family][1] | {empty: 0}
    made = trials.trial(rung, sizes)
    trace = rung.compile().trace[rung.geometry(sizes)](*made.arguments)
    assert trace.clean
    assert (made.outputs["o"] == 0).all()
    assert {n: (t.read, t.written) for n, t in trace.tensors.items()} == rung.traffic(sizes)
