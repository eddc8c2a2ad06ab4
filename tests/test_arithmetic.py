import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from labs_lib.arithmetic import (
    Bytes,
    ModelShape,
    activation_bytes,
    arithmetic_intensity,
    attention_flops,
    attention_params,
    attention_traffic,
    cached_elements,
    element_size,
    kv_bytes,
    latent_flops,
    latent_params,
    matmul_intensity,
    mlp_flops,
    mlp_params,
    model_flops,
    model_params,
    param_share,
    params_by_part,
    score_bytes,
    softmax_work,
    weight_bytes,
)
from labs_lib.attention.heads import split_heads
from labs_lib.attention.multi_head import MultiHeadAttention
from labs_lib.config import AttentionConfig, LatentAttention

GRID = settings(max_examples=40, deadline=None, derandomize=True)


@st.composite
def configs(draw, bias=True):
    n_kv_head, group = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    n_head, head_dim = n_kv_head * group, draw(st.integers(1, 9))
    split = draw(st.booleans())
    d_model = n_head * head_dim if split else draw(st.integers(1, 40))
    d_in = draw(st.one_of(st.none(), st.integers(1, 20)))
    with_bias = bias and draw(st.booleans())
    return AttentionConfig(d_model, n_head, n_kv_head, head_dim, d_in=d_in, bias=with_bias)


@st.composite
def latents(draw):
    sizes = [draw(st.integers(1, 9)) for _ in range(6)]
    return LatentAttention(*sizes, q_lora_rank=draw(st.integers(0, 7)))


def numel(module):
    return sum(p.numel() for p in module.parameters())


def counted(run):
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


class Latent(nn.Module):
    """Latent attention as plain layers, without rotation: both orders of its products."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        q_width = c.n_head * c.qk_head_dim
        if c.q_lora_rank:
            self.q_down = nn.Linear(c.d_model, c.q_lora_rank, bias=False)
            self.q_norm = nn.RMSNorm(c.q_lora_rank)
        self.q_up = nn.Linear(c.q_lora_rank or c.d_model, q_width, bias=False)
        self.kv_down = nn.Linear(c.d_model, c.kv_lora_rank + c.qk_rope_head_dim, bias=False)
        self.kv_norm = nn.RMSNorm(c.kv_lora_rank)
        self.W_UK = nn.Parameter(torch.rand(c.n_head, c.kv_lora_rank, c.qk_nope_head_dim))
        self.W_UV = nn.Parameter(torch.rand(c.n_head, c.kv_lora_rank, c.v_head_dim))
        self.out = nn.Linear(c.width, c.d_model, bias=False)

    def forward(self, x, cache, absorbed):
        c = self.c
        q = self.q_up(self.q_norm(self.q_down(x)) if c.q_lora_rank else x)
        q, q_rope = split_heads(q, c.n_head).split([c.qk_nope_head_dim, c.qk_rope_head_dim], -1)
        latent, k_rope = self.kv_down(x).split([c.kv_lora_rank, c.qk_rope_head_dim], -1)
        new = torch.cat([self.kv_norm(latent), k_rope], -1)
        cache = torch.cat([cache, new], 1)[:, None]  # [batch, 1, seq_k, rank + rope]
        latent, k_rope = cache.split([c.kv_lora_rank, c.qk_rope_head_dim], -1)
        k = latent if absorbed else latent @ self.W_UK
        v = latent if absorbed else latent @ self.W_UV
        q = q @ self.W_UK.mT if absorbed else q
        weights = (q @ k.mT + q_rope @ k_rope.mT).softmax(-1)
        heads = weights @ v
        heads = heads @ self.W_UV if absorbed else heads
        return self.out(heads.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, d_model, d_ff, gated, bias):
        super().__init__()
        self.up = nn.Linear(d_model, d_ff, bias)
        self.gate = nn.Linear(d_model, d_ff, bias) if gated else None
        self.down = nn.Linear(d_ff, d_model, bias)

    def forward(self, x):
        up = self.up(x).relu()
        return self.down(up if self.gate is None else up * self.gate(x))


class Model(nn.Module):
    """The stack that ModelShape describes, made of real layers."""

    def __init__(self, shape):
        super().__init__()
        a, s = shape.attention, shape
        norms = {"none": nn.Identity, "scale": nn.RMSNorm, "scale and shift": nn.LayerNorm}
        norm = norms[s.norm]
        self.tokens = nn.Embedding(s.vocab, a.d_model)
        self.positions = nn.Embedding(s.n_position, a.d_model) if s.n_position else None
        self.attends = nn.ModuleList(MultiHeadAttention(a) for _ in range(s.n_layer))
        self.mlps = nn.ModuleList(
            MLP(a.d_model, s.d_ff, s.gated, s.mlp_bias) for _ in range(s.n_layer)
        )
        self.norms = nn.ModuleList(norm(a.d_model) for _ in range(s.n_layer * s.norms_per_layer))
        self.final = norm(a.d_model) if s.final_norm else nn.Identity()
        scales = range(2 * s.n_layer * s.qk_norm)
        self.qk_norms = nn.ModuleList(nn.RMSNorm(a.head_dim) for _ in scales)
        self.logits = nn.Linear(a.d_model, s.vocab, bias=False)
        if s.tied:
            self.logits.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens)
        for attend, mlp in zip(self.attends, self.mlps, strict=True):
            x = x + attend(x)
            x = x + mlp(x)
        return self.logits(self.final(x))


@st.composite
def shapes(draw):
    n_head, head_dim, bias = draw(st.integers(1, 3)), draw(st.integers(1, 6)), draw(st.booleans())
    return ModelShape(
        AttentionConfig(n_head * head_dim, n_head, bias=bias),
        n_layer=draw(st.integers(1, 3)),
        vocab=draw(st.integers(1, 30)),
        d_ff=draw(st.integers(1, 20)),
        gated=draw(st.booleans()),
        tied=draw(st.booleans()),
        n_position=draw(st.integers(0, 9)),
        attention_bias="all" if bias else "none",
        mlp_bias=draw(st.booleans()),
        norm=draw(st.sampled_from(["none", "scale", "scale and shift"])),
        norms_per_layer=draw(st.integers(1, 4)),
        final_norm=draw(st.booleans()),
        qk_norm=draw(st.booleans()),
    )


# Parameters


@GRID
@given(configs())
def test_attention_parameters_are_those_of_the_module(config):
    module = MultiHeadAttention(config)
    assert attention_params(config) == numel(module)
    if config.bias:
        assert attention_params(config, "qkv") == numel(module) - module.b_O.numel()
        assert attention_params(config, "none") == sum(
            p.numel() for p in module.parameters() if p.dim() == 2
        )


@GRID
@given(latents())
def test_latent_parameters_are_those_of_the_module(config):
    module = Latent(config)
    assert latent_params(config) == numel(module)
    norms = sum(m.weight.numel() for m in module.modules() if isinstance(m, nn.RMSNorm))
    assert latent_params(config, norms=False) == numel(module) - norms


@GRID
@given(st.integers(1, 20), st.integers(1, 40), st.booleans(), st.booleans())
def test_mlp_parameters_are_those_of_the_module(d_model, d_ff, gated, bias):
    assert mlp_params(d_model, d_ff, gated, bias) == numel(MLP(d_model, d_ff, gated, bias))


@GRID
@given(shapes())
def test_model_parameters_are_those_of_a_real_model_part_by_part(shape):
    model, parts = Model(shape), params_by_part(shape)
    assert model_params(shape) == numel(model)
    assert parts["attention"] == numel(model.attends)
    assert parts["mlp"] == numel(model.mlps)
    assert parts["norms"] == numel(model.norms) + numel(model.final) + numel(model.qk_norms)
    assert sum(param_share(shape).values()) == pytest.approx(1)


def test_a_stack_of_latent_attention_is_counted_with_its_own_layers():
    latent = LatentAttention.named("deepseek-v2-lite")
    shape = ModelShape(latent, n_layer=2, vocab=5, d_ff=3)
    assert params_by_part(shape)["attention"] == 2 * latent_params(latent)


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (AttentionConfig(768, 12), 2_359_296),
        (AttentionConfig(768, 12, bias=True), 2_359_296 + 3072),
        (AttentionConfig(512, 8), 1_048_576),
        (AttentionConfig(512, 1), 1_048_576),
        (AttentionConfig(512, 8, 2), 655_360),
        (AttentionConfig(512, 8, 1), 589_824),
        (AttentionConfig(96, 8, head_dim=64), 4 * 96 * 512),
    ],
)
def test_attention_parameters_of_the_lessons(config, wanted):
    assert attention_params(config) == wanted


def test_about_a_quarter_is_true_of_gpt2_small_and_not_of_andrea():
    assert param_share(ModelShape.named("andrea-120m"))["attention"] == pytest.approx(
        0.287, abs=1e-3
    )
    assert param_share(ModelShape.named("gpt2-small"))["attention"] == pytest.approx(
        0.228, abs=1e-3
    )
    quarter = ModelShape(AttentionConfig(768, 12), 12, 35_840, 3072, tied=True, n_position=1024)
    share = param_share(quarter)["attention"]
    assert share == pytest.approx(0.25, abs=0.002)


@pytest.mark.parametrize(("field", "value"), [("attention_bias", "some"), ("norm", "layer")])
def test_an_unknown_word_in_a_shape_is_refused(field, value):
    with pytest.raises(ValueError, match=f"{field}='{value}' is not known"):
        ModelShape(AttentionConfig(8, 2), 1, 5, 8, **{field: value})
    with pytest.raises(ValueError, match="n_layer=0"):
        ModelShape(AttentionConfig(8, 2), 0, 5, 8)


# Operations


@GRID
@given(configs(), st.integers(1, 3), st.integers(1, 6), st.integers(1, 6))
def test_attention_flops_are_those_that_torch_counts(config, batch, seq, seq_k):
    module = MultiHeadAttention(config).to("meta")
    x = torch.empty(batch, seq, config.d_in, device="meta")
    context = torch.empty(batch, seq_k, config.d_in, device="meta")
    flops = attention_flops(config, batch, seq, seq_k)
    assert len(flops) == 6
    assert sum(flops.values()) == counted(lambda: module(x, context))
    assert flops["Q"] == counted(lambda: x @ module.W_Q)
    assert flops["K"] == flops["V"] == counted(lambda: context @ module.W_V)
    q = torch.empty(batch, config.n_head, seq, config.head_dim, device="meta")
    k = torch.empty(batch, config.n_head, seq_k, config.head_dim, device="meta")
    assert flops["QK^T"] == flops["AV"] == counted(lambda: q @ k.mT)


def test_the_lesson_formula_for_all_six_products():
    batch, seq, d_model = 2, 10, 768
    total = sum(attention_flops(AttentionConfig(d_model, 12), batch, seq).values())
    assert total == 8 * batch * seq * d_model**2 + 4 * batch * seq**2 * d_model


@GRID
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 6), st.integers(1, 6))
def test_softmax_work_is_that_of_the_elementwise_steps(batch, n_head, seq, seq_k):
    class Elements(TorchDispatchMode):
        done = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.done += max(a.numel() for a in args if isinstance(a, torch.Tensor))
            return func(*args, **(kwargs or {}))

    scores = torch.rand(batch, n_head, seq, seq_k)
    with Elements() as mode:
        shifted = torch.sub(scores, torch.amax(scores, -1, keepdim=True))
        exps = torch.exp(shifted)
        weights = torch.div(exps, torch.sum(exps, -1, keepdim=True))
    torch.testing.assert_close(weights, scores.softmax(-1))
    assert softmax_work(AttentionConfig(n_head, n_head), batch, seq, seq_k) == mode.done


def test_only_the_softmax_grows_with_the_number_of_heads():
    one, eight = AttentionConfig(512, 1), AttentionConfig(512, 8)
    assert attention_flops(one, 1, 100) == attention_flops(eight, 1, 100)
    assert attention_params(one) == attention_params(eight)
    assert softmax_work(eight, 1, 100) == 8 * softmax_work(one, 1, 100)
    assert score_bytes(eight, 1, 100) == 8 * score_bytes(one, 1, 100)


@GRID
@given(shapes(), st.integers(1, 2), st.integers(1, 5))
def test_model_flops_are_those_that_torch_counts(shape, batch, seq):
    model = Model(shape).to("meta")
    tokens = torch.zeros(batch, seq, dtype=torch.long, device="meta")
    flops = model_flops(shape, batch, seq)
    assert sum(flops.values()) == counted(lambda: model(tokens))
    d_model = shape.attention.d_model
    x = torch.empty(batch * seq, d_model, device="meta")
    assert mlp_flops(d_model, shape.d_ff, batch * seq, shape.gated) == counted(
        lambda: model.mlps[0](x)
    )


@GRID
@given(latents(), st.integers(1, 2), st.integers(1, 4), st.integers(0, 5), st.booleans())
def test_latent_flops_are_those_that_torch_counts(config, batch, seq, past, absorbed):
    module = Latent(config).to("meta")
    x = torch.empty(batch, seq, config.d_model, device="meta")
    cache = torch.empty(batch, past, cached_elements(config), device="meta")
    flops = latent_flops(config, batch, seq, seq + past, absorbed)
    assert sum(flops.values()) == counted(lambda: module(x, cache, absorbed))


def test_both_orders_of_latent_attention_give_the_same_numbers():
    torch.manual_seed(0)
    config = LatentAttention(12, 3, 5, 4, 2, 6, q_lora_rank=7)
    module = Latent(config).double()
    x, cache = torch.rand(2, 3, 12).double(), torch.rand(2, 4, 7).double()
    torch.testing.assert_close(module(x, cache, True), module(x, cache, False))


def test_absorbing_saves_most_when_one_token_meets_a_long_cache():
    config = LatentAttention.named("deepseek-v2")
    formed = sum(latent_flops(config, 1, 1, 4096, absorbed=False).values())
    absorbed = sum(latent_flops(config, 1, 1, 4096, absorbed=True).values())
    assert formed / absorbed > 50


def test_model_flops_do_not_guess_the_order_of_latent_products():
    shape = ModelShape(LatentAttention.named("deepseek-v3"), 1, 5, 3)
    with pytest.raises(TypeError, match="latent_flops"):
        model_flops(shape, 1, 1)


# Bytes


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
