"""SmolLM2 taken apart and put together by lab 12's answers is SmolLM2, whatever attends in it."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from labs_lib.answers import answer
from labs_lib.attention.grouped import grouped_query_attention
from labs_lib.attention.rotary import rotate as turn_neighbours
from labs_lib.models import chat_prompt, generate
from labs_lib.models.generation import ENDS
from labs_lib.models.layer import sdpa
from labs_lib.models.parts import attention_tensors, parts, rotate

pytestmark = pytest.mark.slow
ASSEMBLE, LOAD, SWAP, GENERATE = (
    answer(f"lab12.{name}").reference
    for name in ("assemble", "load_real_weights", "swap_attention", "generate")
)


@pytest.fixture(scope="module")
def tensors(smollm2):
    return attention_tensors()


@pytest.fixture(scope="module")
def weights(tensors):
    return [LOAD(tensors, layer, 9, 3) for layer in range(30)]


def put_together(model, weights, turn=rotate, attend=sdpa):
    def attention(x, number, cache):
        return ASSEMBLE(x, weights[number], 9, 3, turn, attend, cache)

    return SWAP(parts(model), attention)


def test_weights_out_of_the_file_are_the_librarys_number_for_number(smollm2, weights):
    for layer, found in zip(smollm2.layers, weights, strict=True):
        for name, W in found.items():
            assert torch.equal(W, getattr(layer.attention, name))


@pytest.mark.parametrize("attend", [sdpa, grouped_query_attention], ids=["torch's", "the course's"])
def test_logits_are_the_models_own_in_one_step_and_in_three(smollm2, weights, attend):
    ids = smollm2.ids("The capital of France is")
    wanted = smollm2(ids)[:, -1]
    read = put_together(smollm2, weights, attend=attend)
    assert torch.allclose(read(ids)[0], wanted, atol=2e-3)
    _, caches = read(ids[:, :3])
    _, caches = read(ids[:, 3:4], caches)
    assert torch.allclose(read(ids[:, 4:], caches)[0], wanted, atol=2e-3)
    assert sum(t.nbytes for cache in caches for t in cache) == 4 * 2 * 30 * 3 * 64 * 4


def test_pairs_may_stay_as_the_file_has_them_if_neighbours_are_turned(smollm2, tensors):
    kinds = {"W_Q": "attn_q", "W_K": "attn_k", "W_V": "attn_v", "W_O": "attn_output"}
    plain = [
        {name: tensors[f"blk.{layer}.{kind}.weight"].T for name, kind in kinds.items()}
        for layer in range(30)
    ]
    ids = smollm2.ids("The capital of France is")
    read = put_together(smollm2, plain, partial(turn_neighbours, base=100_000.0))
    assert torch.allclose(read(ids)[0], smollm2(ids)[:, -1], atol=2e-3)


def test_it_writes_what_the_library_writes_and_ends_there(smollm2, weights):
    prompt = chat_prompt("What is the capital of France?")
    ends = {smollm2.tokenizer.id(token) for token in ENDS}
    with torch.no_grad():
        tokens = GENERATE(put_together(smollm2, weights), smollm2.ids(prompt), 24, ends)
    assert smollm2.tokenizer.decode(tokens, special=False) == generate(smollm2, prompt)
    assert len(tokens) < 24
