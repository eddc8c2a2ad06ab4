"""What the course says about the two models, measured."""

from __future__ import annotations

import jinja2
import numpy as np
import pytest
import torch

from labs_lib.arithmetic import kv_bytes
from labs_lib.config import AttentionConfig
from labs_lib.models import Hooks, KVCache, chat_prompt, generate
from labs_lib.models.on_disk import require

TEXT = (
    "The quick brown fox jumps over the lazy dog while the old farmer watches from his wooden "
    "porch, and nobody in the village remembers when the bridge across the river was built."
)


@pytest.fixture(scope="module")
def seen(minilm):
    """MiniLM's weights on an English sentence: [n_layer, n_head, seq, seq]."""
    hooks = Hooks(keep="weights")
    minilm.sentence_vectors(TEXT, hooks=hooks)
    return hooks.stacked("weights")[:, 0]


@pytest.fixture(scope="module")
def repeated(smollm2):
    """Losses and weights on 50 random tokens that are read twice."""
    random = np.random.Generator(np.random.PCG64(0))
    once = torch.tensor(random.integers(1000, 40_000, 50))
    hooks = Hooks(keep="weights")
    with torch.no_grad():
        losses = smollm2.losses(torch.cat([once, once])[None], hooks=hooks)[0]
    return losses, hooks.stacked("weights")[:, 0]


def test_minilm_has_a_head_that_looks_one_token_back(seen):
    back = seen.diagonal(-1, dim1=-2, dim2=-1).mean(dim=-1)
    assert divmod(int(back.argmax()), 12) == (0, 2)
    assert back[0, 2] > 0.995


def test_several_heads_of_minilm_rest_on_the_first_token(minilm, seen):
    hooks = Hooks(keep="weights")
    minilm.sentence_vectors("The cat sat on the mat.", hooks=hooks)
    first = hooks.stacked("weights")[:, 0, :, 1:-1, 0].mean(dim=-1)
    assert (first > 0.85).sum() >= 5
    assert 0.9 < first.max() < 0.95
    assert seen[:, :, 1:-1, 0].mean(dim=-1).max() < 0.85, "less so the longer the text is"


def test_similar_sentences_have_similar_vectors(minilm):
    cat, kitten, tax = minilm.sentence_vectors(
        ["A cat sleeps on the sofa.", "The kitten naps on a couch.", "Taxes are due in April."]
    )
    assert cat @ kitten > 0.6 > 0.2 > cat @ tax


def test_a_texts_vector_does_not_depend_on_its_company(minilm):
    alone = minilm.sentence_vectors("A cat.")
    among = minilm.sentence_vectors(["A cat.", TEXT, ""])[:1]
    torch.testing.assert_close(among, alone, rtol=0, atol=2e-6)


def test_smollm2_says_paris(smollm2):
    assert generate(smollm2, "The capital of France is", 1) == " Paris"


@pytest.mark.slow
def test_smollm2_answers_when_asked_as_it_was_trained_and_then_ends(smollm2):
    answer = generate(smollm2, chat_prompt("What is the capital of Japan?"), 40)
    assert answer == "The capital of Japan is Tokyo."


def test_chat_prompt_is_what_the_models_own_template_makes(smollm2):
    with open(require("smollm2").folder / "SmolLM2-135M-Instruct.Q4_1.gguf", "rb") as file:
        head = file.read(4_000_000)  # gguf would take seconds to read all of it
    start = head.index(b"{% for message in messages %}")
    template = head[start : head.index(b"{% endif %}", head.index(b"add_generation_prompt"))]
    made = jinja2.Template(template.decode() + "{% endif %}").render(
        messages=[{"role": "user", "content": "hé?"}], add_generation_prompt=True
    )
    assert chat_prompt("hé?") == made


def test_repetition_is_noticed(repeated):
    losses, _ = repeated
    assert losses[:49].mean() > 12
    assert losses[50:].mean() < 3.5


def test_induction_heads_are_where_we_say(repeated):
    """From the second reading on, they look at the token after the earlier one."""
    score = repeated[1].diagonal(-49, dim1=-2, dim2=-1)[..., 1:].mean(dim=-1)
    assert divmod(int(score.argmax()), 9) == (18, 6)
    assert score[18, 6] > 0.8
    assert score[17, 4] > 0.7
    assert score.median() < 0.02


@pytest.mark.slow
def test_silencing_induction_heads_takes_the_repetition_away(smollm2, repeated):
    losses, weights = repeated
    score = weights.diagonal(-49, dim1=-2, dim2=-1)[..., 1:].mean(dim=-1)
    best = [divmod(int(i), 9) for i in score.flatten().topk(12).indices]
    random = np.random.Generator(np.random.PCG64(1))
    others = [divmod(int(i), 9) for i in random.permutation(270) if divmod(int(i), 9) not in best]
    random = np.random.Generator(np.random.PCG64(0))
    ids = torch.tensor(random.integers(1000, 40_000, 50)).repeat(2)[None]
    with torch.no_grad():
        without = smollm2.losses(ids, hooks=Hooks(ablate=best))[0, 50:].mean()
        control = smollm2.losses(ids, hooks=Hooks(ablate=others[:12]))[0, 50:].mean()
    assert without > 2 * losses[50:].mean()
    assert without > control + 1


def test_smollm2_has_sinks_that_take_nearly_everything(smollm2):
    hooks = Hooks(keep="weights")
    with torch.no_grad():
        smollm2(smollm2.ids(TEXT), hooks=hooks)
    first = hooks.stacked("weights")[:, 0, :, 1:, 0]
    assert first.max() > 0.9999
    assert first.mean(dim=-1).max() > 0.999


@pytest.mark.parametrize(("model", "row"), [("minilm", "minilm-l6"), ("smollm2", "smollm2-135m")])
def test_geometry_is_that_of_the_table_of_models(model, row, request):
    shape, listed = request.getfixturevalue(model).shape, AttentionConfig.named(row)
    for name in ("d_model", "n_head", "n_kv_head", "head_dim"):
        assert getattr(shape, name) == getattr(listed, name)


def test_cache_takes_the_bytes_that_the_formula_says(smollm2):
    cache = KVCache()
    with torch.no_grad():
        smollm2(smollm2.ids("one two three four"), cache=cache)
    wanted = kv_bytes(AttentionConfig.named("smollm2-135m"), 30, seq=len(cache), dtype="float32")
    assert cache.bytes == int(wanted)
