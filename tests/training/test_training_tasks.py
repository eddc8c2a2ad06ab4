"""The tasks ask what they say they ask, and each variant of the layer is what its name says."""

import ast
from pathlib import Path

import pytest
import torch

import labs_lib.training
from labs_lib.training import byte_text
from labs_lib.training.byte_text import ByteText
from labs_lib.training.layers import AttentionLayer
from labs_lib.training.loop import build, measure
from labs_lib.training.pooling import PooledHeads, with_fewer_heads
from labs_lib.training.retrieval import N_KEY, TwoRules, TwoTargets


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_two_rules_asks_by_key_and_by_position_about_equally():
    keys, values, query, slot, by_key = TwoRules().sample(2000, generator())
    assert 0.45 < by_key.float().mean() < 0.55
    asked = query.squeeze(1)
    assert torch.equal(keys.gather(1, slot[:, None]).squeeze(1)[by_key], asked[by_key])
    assert torch.equal(slot[~by_key], asked[~by_key] - N_KEY)
    assert slot.unique().numel() == 8
    for row in (*keys[:50], *values[:50]):
        assert row.unique().numel() == 8


@pytest.mark.parametrize("ordered", [True, False])
def test_two_targets_names_two_different_slots(ordered):
    keys, _, query, slots = TwoTargets(ordered=ordered).sample(500, generator())
    assert (slots[:, 0] != slots[:, 1]).all()
    assert torch.equal(keys.gather(1, slots), query % N_KEY)
    assert ((query[:, 1] >= N_KEY) == ordered).all()
    assert (query[:, 0] < N_KEY).all()


def test_a_set_of_targets_looks_the_same_in_either_order():
    task = TwoTargets(ordered=False)
    model = build(task, seed=0)
    keys, values, query, _ = task.sample(5, generator())
    assert torch.equal(model(keys, values, query), model(keys, values, query.flip(1)))


def test_chance_is_what_guessing_on_the_shelf_gives():
    assert TwoRules().chance == 1 / 8
    assert TwoTargets(ordered=True).chance == pytest.approx(1 / 56)
    assert TwoTargets(ordered=False).chance == pytest.approx(1 / 28)


def test_the_control_gives_every_slot_the_same_weight():
    task = TwoRules(attention="uniform")
    model = build(task, seed=0)
    weights = model.weights(*task.sample(4, generator())[:3])
    assert torch.allclose(weights, torch.full_like(weights, 1 / 8))


def test_read_out_weights_are_the_softmax_of_the_scores():
    torch.manual_seed(0)
    layer = AttentionLayer(12, 3)
    x = 2 * torch.randn(2, 7, 12, generator=generator())
    mask = torch.ones(7, 7, dtype=torch.bool).tril()
    q, k, _ = layer.project(x, x)
    scores = (q @ k.mT / 2).masked_fill(~mask, -torch.inf)
    assert torch.allclose(layer.weights(x, mask=mask), scores.softmax(-1), atol=1e-6)


@pytest.mark.parametrize("sliced", [False, True])
def test_a_sliced_head_reads_its_own_inputs_and_an_ordinary_one_reads_all(sliced):
    layer = AttentionLayer(12, 3, sliced=sliced)
    x = torch.randn(1, 1, 12, requires_grad=True)
    q, k, v = layer.project(x, x)
    for head in range(3):
        (grad,) = torch.autograd.grad((q + k + v)[0, head].sum(), x, retain_graph=True)
        read = grad.flatten().nonzero().flatten().tolist()
        assert read == (list(range(4 * head, 4 * head + 4)) if sliced else list(range(12)))


def test_neighbouring_query_heads_share_a_kv_head():
    layer = AttentionLayer(12, 6, n_kv_head=2)
    x = torch.randn(2, 5, 12)
    _, k, v = layer.project(x, x)
    for t in (k, v):
        assert torch.equal(t[:, 0], t[:, 2]) and torch.equal(t[:, 3], t[:, 5])
        assert not torch.equal(t[:, 2], t[:, 3])


def test_without_w_o_the_heads_are_put_side_by_side():
    layer = AttentionLayer(12, 3, output=False)
    x = torch.randn(2, 5, 12)
    heads = layer.attend(*layer.project(x, x), None)
    assert torch.equal(layer(x), torch.cat(heads.unbind(1), dim=-1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_head": 5}, r"n_head=5 does not divide d_model=12; these do: \[1, 2, 3, 4, 6, 12\]"),
        ({"n_head": 0}, "n_head=0 does not divide"),
        ({"n_head": 6, "n_kv_head": 4}, r"n_kv_head=4 .* n_head=6; these do: \[1, 2, 3, 6\]"),
        ({"n_head": 6, "n_kv_head": 0}, "n_kv_head=0 does not divide"),
        ({"n_head": 6, "n_kv_head": 2, "sliced": True}, "n_kv_head=2 must be n_head=6"),
    ],
)
def test_heads_that_do_not_divide_are_refused_with_those_that_do(arguments, message):
    with pytest.raises(ValueError, match=message):
        AttentionLayer(12, **arguments)


def test_variants_of_the_byte_model_have_the_parameters_that_arithmetic_says():
    def count(**settings):
        return sum(p.numel() for p in build(ByteText(**settings), seed=0).parameters())

    d, layers = 64, 2
    base = count()
    norms_and_biases = layers * (4 * d + 256 + d) + 2 * d
    assert base == (128 + 64) * d + layers * (4 * d * d + 2 * d * 256) + norms_and_biases
    assert {count(n_head=n) for n in (1, 2, 4, 16, 32)} == {base}
    assert base - count(output=False) == layers * d * d
    assert count(output=False, d_ffn=288) - base == layers * 32
    assert base - count(sliced=True) == layers * 3 * d * d * 7 // 8
    assert base - count(n_kv_head=2) == layers * 2 * d * d * 3 // 4


def test_the_byte_model_never_looks_ahead():
    model = build(ByteText(), seed=0)
    tokens = torch.randint(128, (1, 64), generator=generator())
    changed = tokens.clone()
    changed[0, 40:] = (changed[0, 40:] + 1) % 128
    before, after = model(tokens), model(changed)
    assert torch.equal(before[:, :40], after[:, :40])
    assert not torch.allclose(before[:, 40:], after[:, 40:])


def test_held_out_text_is_a_tenth_and_no_part_of_the_training_text():
    train, held_out = byte_text.text_parts()
    text = byte_text.text_path().read_bytes()
    assert len(train) + len(held_out) == len(text)
    assert 0.09 < len(held_out) / len(text) < 0.12
    training_text = bytes(train.to(torch.uint8).tolist())
    for start in range(0, len(held_out), byte_text.BLOCK):
        block = bytes(held_out[start : start + byte_text.BLOCK].to(torch.uint8).tolist())
        assert block in text and block not in training_text


def test_the_text_is_plain_ascii_under_two_megabytes_with_its_licence_beside_it():
    path = byte_text.text_path()
    text = path.read_bytes()
    assert text.isascii() and b"\r" not in text and len(text) < 2_000_000
    assert b"://" not in text
    readme = path.with_name("README.md").read_text(encoding="utf-8")
    assert f"{len(text):,} bytes" in readme and "LICENSE-PSF.txt" in readme
    licence = path.with_name("LICENSE-PSF.txt").read_text(encoding="utf-8")
    assert "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2" in licence


def test_trainings_never_import_the_reference_attention_or_jupyter_at_the_top():
    for path in Path(labs_lib.training.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        names |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        assert not [name for name in names if name.startswith("labs_lib.attention")], path
        top = {n.module or "" for n in tree.body if isinstance(n, ast.ImportFrom)}
        assert not [name for name in top if name.startswith(("IPython", "ipywidgets"))], path


def test_merged_heads_are_means_of_neighbours_and_heads_of_their_own_lose_nothing():
    model = build(PooledHeads(), seed=0)
    tokens = torch.randint(128, (1, 64), generator=generator())
    assert torch.equal(with_fewer_heads(model, 8, "first")(tokens), model(tokens))
    for name in ("W_K", "W_V"):
        heads = getattr(model.blocks[1].attention, name).unflatten(1, (2, 4, 8))
        for how, wanted in (("mean", heads.mean(2)), ("first", heads[:, :, 0])):
            merged = with_fewer_heads(model, 2, how).blocks[1].attention
            assert merged.n_kv_head == 2
            torch.testing.assert_close(getattr(merged, name), wanted.flatten(1))


@pytest.mark.slow
def test_measuring_merged_heads_leaves_the_model_as_it_was():
    task = PooledHeads(more_steps=1)
    model = build(task, seed=0)
    before = [p.clone() for p in model.parameters()]
    found = measure(task, model)
    assert set(found) == {"loss", "more"} | {
        f"{how}_{n}{more}" for n in (4, 2, 1) for how, more in
        (("mean", ""), ("first", ""), ("mean", "_more"))
    }  # fmt: skip
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
