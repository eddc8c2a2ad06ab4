"""The backward pass by recomputation: right gradients, every known mistake shown, no atomics."""

from __future__ import annotations

import pytest
import torch
from flash_inputs import KILLERS, from_logits, numbers

from labs_lib import cuda
from labs_lib.cuda import ladder, trials

FORWARD = ladder.rung("flash_forward")
RUNGS = [ladder.rung(f"flash_backward_{what}") for what in ("delta", "q", "kv")]


def some(n_q=49, n_k=97, n_head=4, n_kv_head=2, head_dim=16):
    q = numbers(1, n_head, n_q, head_dim)
    k, v = (numbers(1, n_kv_head, n_k, head_dim, seed=s) for s in (1, 2))
    return q, k, v + torch.arange(n_k)[:, None] / 64


def sizes_of(q, k, causal):
    sizes = {"batch": q.shape[0], "n_head": q.shape[1], "n_kv_head": k.shape[1]}
    return sizes | {"n_q": q.shape[2], "n_k": k.shape[2], "head_dim": q.shape[3], "causal": causal}


def chain(q, k, v, scale, causal, *, text=None, traced=False):
    """All gradients by our four kernels, each fed by the one before; their traces."""
    module = cuda.compile(text or RUNGS[0].source)
    sizes, traces = sizes_of(q, k, causal), []
    forward = trials.flash_trial(FORWARD, q, k, v, scale, bool(causal))
    FORWARD.compile()[FORWARD.geometry(sizes)](*forward.arguments)
    o, lse = forward.outputs["o"], forward.outputs["lse"]
    d_o = numbers(*q.shape, seed=7)
    delta = trials.unwritten(*lse.shape)
    made = {"d_q": q * torch.nan, "d_k": k * torch.nan, "d_v": v * torch.nan}
    counts = (q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3], scale, causal)
    given = (q, k, v, d_o, lse, delta)
    for rung, arguments in zip(
        RUNGS,
        [
            (o, d_o, delta, lse.numel(), q.shape[3]),
            (*given, made["d_q"], *counts),
            (*given, made["d_k"], made["d_v"], *counts),
        ],
        strict=True,
    ):
        kernel = module[rung.name]
        launch = (kernel.trace if traced else kernel)[rung.geometry(sizes)]
        traces.append(launch(*arguments))
    return made, trials.gradients(q, k, v, d_o, scale, bool(causal)), traces


def wrong(made, wanted, *, within=1e-3):
    """The gradients that differ from the truth; a NaN is a difference."""
    return {
        name
        for name, got in made.items()
        if not torch.allclose(got.double(), wanted[name], atol=within, rtol=within)
    }


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize(("n_q", "n_k"), [(49, 97), (97, 33), (1, 65), (65, 1)])
def test_four_kernels_in_a_row_give_the_gradients_of_autograd(n_q, n_k, causal):
    made, wanted, _ = chain(*some(n_q, n_k), 0.25, causal)
    assert not wrong(made, wanted, within=2e-5)


@pytest.mark.parametrize("shape", [name for name in KILLERS if "masked" not in name])
def test_logits_that_break_wrong_softmaxes_dont_break_the_gradients(shape):
    """An lse near -60000 is known to 1/256 in float32, and its gradients are as exact as it is."""
    q, k, v = from_logits(shape)
    k = k.nan_to_num(neginf=-5e3)  # a gradient through minus infinity is undefined
    made, wanted, _ = chain(q, k, v, 0.25, 0)
    atol = 0.1 if shape == "minus 60000" else 3e-3
    for name, got in made.items():
        torch.testing.assert_close(got.double(), wanted[name], atol=atol, rtol=3e-5)


def test_a_query_that_sees_nothing_gets_and_gives_no_gradient():
    made, _, _ = chain(*some(n_q=40, n_k=24), 0.25, 1)
    assert (made["d_q"][:, :, :16] == 0).all()
    assert all(got.isfinite().all() for got in made.values())


def test_tiles_that_no_query_sees_are_skipped_in_both_directions():
    """Of a long causal square the gradients fetch little more than half."""
    sizes = sizes_of(*(torch.empty(1, 1, 1024, 64),) * 2, 1)
    for rung, tensor in ((RUNGS[1], "k"), (RUNGS[2], "q")):
        half = rung.traffic(sizes)[tensor][0]
        whole = rung.traffic(sizes | {"causal": 0})[tensor][0]
        assert 0.5 < half / whole < 0.53


P = "float p = sees && any ? expf(score[r] * scale - lse_tile[lane]) : 0.0f;"
# name, edits, the gradients that come out wrong
MUTANTS = [
    ("d_s without delta", [("(gain[r] - row_delta)", "gain[r]"),
                           ("(gain[r] - delta_tile[lane])", "gain[r]")], {"d_q", "d_k"}),
    ("no scale in d_q", [("acc[r][c] * scale;", "acc[r][c];")], {"d_q"}),
    ("no scale in d_k", [("acc_k[r][c] * scale;", "acc_k[r][c];")], {"d_k"}),
    ("delta of an o that was not divided by l", [("delta[row] = sum;", "delta[row] = 40 * sum;")],
     {"d_q", "d_k"}),
    ("scores are not scaled again", [("expf(score[r] * scale - row_lse)",
                                      "expf(score[r] - row_lse)")], {"d_q"}),
    ("the KV head is h mod n_kv_head", [("blockIdx.y / (n_head / n_kv_head)",
                                         "blockIdx.y % n_kv_head")], {"d_q"}),
    ("only the first query head of a group gives gradients",
     [("member < group", "member < 1")], {"d_k", "d_v"}),
    ("d_v from d_s", [("acc_v[r][c] += p_tile", "acc_v[r][c] += s_tile")], {"d_v"}),
    ("top-left mask in d_k and d_v", [("start + lane + n_k - n_q", "start + lane")],
     {"d_k", "d_v"}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "edits", "broken"), MUTANTS, ids=lambda v: None)
def test_a_wrong_backward_kernel_gives_wrong_gradients(name, edits, broken):
    text = RUNGS[0].source
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    made, wanted, _ = chain(*some(), 0.25, 1, text=text)
    assert wrong(made, wanted) == broken, name


@pytest.mark.slow
def test_gradients_summed_by_several_blocks_without_atomics_are_reported():
    """d_q added up by the blocks of keys: right only when they happen to take turns."""
    used = "__syncthreads();  // nobody needs the tiles any more\n        }\n    }\n"
    added = """if (start + lane < n_q) for (int r = 0; r < EACH; ++r)
                d_q[(head * n_q + start + lane) * head_dim] +=
                    s_tile[(mine + r) * TILE + lane] * k_tile[(mine + r) * head_dim];
            """
    text = RUNGS[0].source
    assert text.count(used) == text.count("float* d_k, float* d_v,") == 1
    text = text.replace("float* d_k, float* d_v,", "float* d_k, float* d_v, float* d_q,")
    text = text.replace(used, added + used)
    q, k, v = some()
    rung, forward = RUNGS[2], trials.flash_trial(FORWARD, q, k, v, 0.25, False)
    made = trials.backward_trial(rung, forward, numbers(*q.shape, seed=7))
    arguments = (*made.arguments[:8], torch.zeros_like(q), *made.arguments[8:])
    kernel = cuda.compile(text)["flash_backward_kv"]
    trace = kernel.trace[rung.geometry(sizes_of(q, k, 0))](*arguments)
    assert "cross-block" in {finding.kind for finding in trace.findings}
