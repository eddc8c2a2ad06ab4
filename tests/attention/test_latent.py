"""Latent attention: two ways to the same numbers, and a cache that holds latents alone."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from labs_lib.arithmetic import cached_elements
from labs_lib.attention.latent import MultiHeadLatentAttention, mla_absorb
from labs_lib.attention.single_head import causal_mask
from labs_lib.config import LatentAttention

SMALL = LatentAttention(20, 3, kv_lora_rank=8, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5)
WITH_Q = LatentAttention(20, 3, 8, 6, 4, 5, q_lora_rank=7)


@pytest.fixture(params=[SMALL, WITH_Q], ids=["plain queries", "compressed queries"])
def layer(request, dtype):
    torch.manual_seed(2)
    layer = MultiHeadLatentAttention(request.param).to(dtype)
    with torch.no_grad():
        for W in layer.parameters():
            W.mul_(2.0)
    return layer


def test_absorbed_equals_plain_in_value_and_gradient(numbers, close, layer):
    x = numbers(2, 7, 20, grad=True)
    plain, absorbed = layer(x)[0], layer(x, absorb=True)[0]
    close(absorbed, plain, scale=10)
    upstream, leaves = numbers(*plain.shape), (x, *layer.parameters())
    slopes = (torch.autograd.grad(out, leaves, upstream) for out in (absorbed, plain))
    for a, b in zip(*slopes, strict=True):
        close(a, b, scale=1000)


def test_plain_equals_the_equations_written_out_token_by_token(numbers, close, layer):
    x, c = numbers(1, 5, 20), layer.config
    q, q_rotary = layer.queries(x, 0)
    k_rotary = layer(x)[1][1]
    latent = x @ layer.W_DKV
    heads = []
    for h in range(c.n_head):
        W_UK = layer.W_UK[:, h * 6 : (h + 1) * 6]
        W_UV = layer.W_UV[:, h * 5 : (h + 1) * 5]
        rows = []
        for t in range(5):
            scores = [
                (q[0, h, t] @ (latent[0, j] @ W_UK) + q_rotary[0, h, t] @ k_rotary[0, j]) / 10**0.5
                for j in range(t + 1)
            ]
            weights = torch.stack(scores).softmax(0)
            rows.append(sum(w * (latent[0, j] @ W_UV) for j, w in enumerate(weights)))
        heads.append(torch.stack(rows))
    close(layer(x)[0][0], torch.cat(heads, dim=1) @ layer.W_O, scale=10)


@pytest.mark.parametrize("absorb", [False, True])
@pytest.mark.parametrize("split", [[1] * 7, [4, 3], [1, 6]])
def test_cached_equals_uncached_over_any_split(numbers, close, layer, absorb, split):
    x = numbers(2, 7, 20)
    whole, kept = layer(x)
    cache, outs = None, []
    for part in x.split(split, dim=1):
        out, cache = layer(part, cache, absorb=absorb)
        outs.append(out)
    close(torch.cat(outs, dim=1), whole, scale=10)
    for a, b in zip(cache, kept, strict=True):
        close(a, b)
    assert torch.equal(layer(x)[0], whole)


def test_the_cache_holds_latents_and_one_rotary_key_and_nothing_else(numbers, layer):
    _, cache = layer(numbers(2, 7, 20))
    assert sum(part.numel() for part in cache) == 2 * 7 * (8 + 4)
    assert sum(part.shape[-1] for part in cache) == cached_elements(layer.config) == 12


def test_a_layer_of_deepseek_v2_keeps_512_and_64_numbers_a_token():
    config = LatentAttention.named("deepseek-v2")
    with torch.device("meta"):
        layer = MultiHeadLatentAttention(config)
        _, cache = layer(torch.empty(1, 3, config.d_model), absorb=True)
    assert [part.shape[-1] for part in cache] == [512, 64]
    assert sum(part.shape[-1] for part in cache) == cached_elements(config) == 576


def test_absorbed_never_forms_a_key_and_multiplies_less_in_a_step():
    n_head, nope, rank, seq = 16, 32, 48, 512
    q, q_r = torch.rand(1, n_head, 1, nope), torch.rand(1, n_head, 1, 8)
    latent, k_r = torch.rand(1, seq, rank), torch.rand(1, seq, 8)
    W_UK, W_UV = torch.rand(2, rank, n_head * nope)
    with FlopCounterMode(display=False) as counter:
        mla_absorb(q, q_r, latent, k_r, W_UK, W_UV)
    unpacking = 2 * seq * rank * 2 * n_head * nope
    assert counter.get_total_flops() < unpacking / 20


def test_a_query_that_sees_nothing_gets_zeros(numbers):
    q, q_r, latent, k_r = (
        numbers(1, 3, 4, 6),
        numbers(1, 3, 4, 2),
        numbers(1, 2, 5),
        numbers(1, 2, 2),
    )
    out = mla_absorb(q, q_r, latent, k_r, numbers(5, 18), numbers(5, 12), causal_mask(4, 2))
    assert out[:, :, :2].count_nonzero() == 0 and out.isfinite().all()


def test_rotary_keys_carry_the_position_and_latents_do_not(numbers, layer):
    x = numbers(1, 1, 20).expand(1, 6, 20)  # one token six times
    _, (latent, rotary_key) = layer(x)
    assert torch.equal(latent, latent[:, :1].expand_as(latent))
    assert all(not torch.equal(rotary_key[0, 0], rotary_key[0, j]) for j in range(1, 6))
