"""A CUDA kernel drives both models: without a GPU on the CPU, from the same source."""

from __future__ import annotations

import math
from functools import cache

import pytest
import torch

from labs_lib.cuda import ladder
from labs_lib.models import KVCache

FLASH = ladder.rung("flash_forward")


@cache
def compiled():
    return FLASH.compile()


def by_kernel(q, k, v, mask):
    """Attention of the bundled flash kernel, which knows no mask but the causal one."""
    n_q, n_k = q.shape[2], k.shape[2]
    if mask is not None:
        assert (mask == torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)).all()
    sizes = {"batch": q.shape[0], "n_head": q.shape[1], "n_kv_head": k.shape[1]}
    sizes |= {"n_q": n_q, "n_k": n_k, "head_dim": q.shape[3], "causal": int(mask is not None)}
    out, lse = torch.empty_like(q).contiguous(), torch.empty(q.shape[:3])
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    scale = 1 / math.sqrt(q.shape[3])
    numbers = [sizes[name] for name in ("n_head", "n_kv_head", "n_q", "n_k", "head_dim")]
    compiled()[FLASH.geometry(sizes)](q, k, v, out, lse, *numbers, scale, sizes["causal"])
    return out


def test_encoder_says_the_same_with_a_cuda_kernel(minilm):
    text = "An old clock on the wall."
    got = minilm.sentence_vectors(text, attend=by_kernel)
    torch.testing.assert_close(got, minilm.sentence_vectors(text), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_decoder_says_the_same_with_a_cuda_kernel_and_a_cache(smollm2):
    ids, kept = smollm2.ids("The capital of France is"), KVCache()
    with torch.no_grad():
        parts = [smollm2(part, attend=by_kernel, cache=kept) for part in (ids[:, :-1], ids[:, -1:])]
        torch.testing.assert_close(torch.cat(parts, dim=1), smollm2(ids), rtol=0, atol=3e-3)
    assert smollm2.tokenizer.decode([int(parts[1][0, -1].argmax())]) == " Paris"
