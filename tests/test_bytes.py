"""The bytes of each formula are those of real tensors."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from layers_to_count import GRID, Latent, configs, counted, latents
from torch.utils._python_dispatch import TorchDispatchMode

from labs_lib.arithmetic import (
    Bytes,
    activation_bytes,
    arithmetic_intensity,
    attention_params,
    attention_traffic,
    cached_elements,
    element_size,
    kv_bytes,
    matmul_intensity,
    weight_bytes,
)
from labs_lib.attention.multi_head import MultiHeadAttention
from labs_lib.config import AttentionConfig, LatentAttention


@GRID
@given(
    configs(bias=False),
    st.integers(1, 3),
    st.integers(1, 6),
    st.sampled_from(["float64", "float32", "float16", "bfloat16"]),
)
def test_activation_bytes_are_those_of_the_real_tensors(config, batch, seq, dtype):
    torch_dtype = getattr(torch, dtype)
    seen = {}

    def attend(q, k, v, mask):
        scores = q @ k.mT
        seen.update(q=q, scores=scores, weights=scores.softmax(-1))
        seen["heads"] = seen["weights"] @ v
        return seen["heads"]

    module = MultiHeadAttention(config, attend).to(torch_dtype)
    seen["x"] = torch.rand(batch, seq, config.d_in).to(torch_dtype)
    seen["k"], seen["v"] = seen["x"] @ module.W_K, seen["x"] @ module.W_V
    seen["out"] = module(seen["x"])
    real = {name: tensor.numel() * tensor.element_size() for name, tensor in seen.items()}
    assert activation_bytes(config, batch, seq, dtype) == real
    cache = torch.stack([seen["k"], seen["v"]])
    assert kv_bytes(config, 1, seq, batch, dtype) == cache.nbytes
    assert kv_bytes(config, 5, seq, batch, dtype) == 5 * cache.nbytes
    weights = sum(p.nbytes for p in module.parameters())
    assert weight_bytes(attention_params(config), dtype) == weights


class Traffic(TorchDispatchMode):
    """Counts the bytes that operators read and write; views move nothing."""

    VIEWS = ("aten.transpose", "aten.view", "aten.expand", "aten._unsafe_view", "aten.unsqueeze")

    def __init__(self):
        super().__init__()
        self.moved = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if not str(func).startswith(self.VIEWS):
            tensors = [t for t in (*args, out) if isinstance(t, torch.Tensor)]
            self.moved += sum(t.nbytes for t in tensors if t.dim())
        return out


@pytest.mark.parametrize(("scaled", "n_pass"), [(False, 4), (True, 6)])
@pytest.mark.parametrize(("seq", "seq_k"), [(7, 7), (5, 9)])
def test_traffic_of_plain_attention_is_what_its_operators_read_and_write(
    scaled, n_pass, seq, seq_k
):
    config = AttentionConfig(12, 3)
    q, k, v = torch.rand(6, seq, 4), torch.rand(6, seq_k, 4), torch.rand(6, seq_k, 4)
    with Traffic() as traffic:
        scores = torch.bmm(q, k.mT)
        scores = scores / 2 if scaled else scores
        torch.bmm(scores.softmax(-1), v)
    counted_by_formula = attention_traffic(config, 2, seq, seq_k, "float32", n_pass)
    assert traffic.moved == counted_by_formula


def test_traffic_without_the_score_matrix_is_the_ends_alone():
    config = AttentionConfig(12, 3)
    ends = 4 * 2 * 7 * 12 * 4
    assert attention_traffic(config, 2, 7, dtype="float32", n_pass=0) == ends


def test_intensity_is_flops_over_bytes():
    a, b = torch.rand(6, 5, dtype=torch.float32), torch.rand(5, 7, dtype=torch.float32)
    moved = Bytes(a.nbytes + b.nbytes + (a @ b).nbytes)
    flops = counted(lambda: a @ b)
    assert matmul_intensity(6, 5, 7, "float32") == arithmetic_intensity(flops, moved)


def test_one_decoding_step_is_bound_by_memory_and_a_long_prompt_is_not():
    assert matmul_intensity(1, 4096, 4096) < 1
    assert matmul_intensity(4096, 4096, 4096) > 1000


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int8"])
def test_element_sizes_are_those_of_torch(dtype):
    assert element_size(dtype) == getattr(torch, dtype).itemsize


def test_an_unknown_dtype_is_refused():
    with pytest.raises(ValueError, match="'fp4' is not known; float64"):
        element_size("fp4")


@GRID
@given(latents(), st.integers(1, 4), st.integers(1, 5))
def test_the_latent_cache_is_one_latent_and_one_key(config, n_layer, seq):
    cache = Latent(config).kv_down(torch.rand(2, seq, config.d_model)).half()
    assert kv_bytes(config, n_layer, seq, 2) == n_layer * cache.nbytes


def test_five_ratios_of_deepseek_v2():
    latent = 60 * cached_elements(LatentAttention.named("deepseek-v2"))
    same_heads = 60 * cached_elements(AttentionConfig(5120, 128, head_dim=128))
    older = 95 * cached_elements(AttentionConfig.named("deepseek-llm-67b"))
    assert latent == 34_560
    assert same_heads / latent == pytest.approx(56.9, abs=0.05)
    assert 60 * 128 * (192 + 128) / latent == pytest.approx(71.1, abs=0.05)
    assert latent / older == pytest.approx(0.178, abs=5e-4)
    assert latent * 6 / (older * 16) == pytest.approx(0.0666, abs=5e-5)
    assert latent / 60 / (2 * 128) == 2.25
