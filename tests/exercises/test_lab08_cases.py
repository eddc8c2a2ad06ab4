"""Lab 08: how its programs are met, and what its rules measure."""

from __future__ import annotations

import math

import pytest
import torch

from labs_lib.answers import answer
from labs_lib.answers.lab08.cache import Kept
from labs_lib.answers.lab08.step import Step
from labs_lib.attention.rotary import rotate
from labs_lib.checking.oracle import LiveOracle
from labs_lib.checking.verdict import judge
from labs_lib.exercises import exercise
from labs_lib.exercises.lab08_cases import turn
from labs_lib.exercises.lab08_rules import repeats_no_key, unpacks_no_latent


def said(name, program):
    return "\n".join(judge(exercise(name), program, LiveOracle()).lines)


@pytest.mark.parametrize("start", [0, 1, 40])
def test_the_exercises_turn_as_the_course_does(start):
    t = torch.rand(2, 3, 5, 6, dtype=torch.float64)
    torch.testing.assert_close(turn(t, start), rotate(t, start), rtol=1e-12, atol=1e-12)


def test_a_product_over_broadcast_axes_is_seen_to_copy_the_keys():
    def broadcast(q, k, v):
        rows = q.unflatten(1, (k.shape[1], -1))
        weights = (rows @ k.unsqueeze(2).mT / math.sqrt(q.shape[-1])).softmax(-1)
        return (weights @ v.unsqueeze(2)).flatten(1, 2)

    reference = answer("lab08.grouped_query_attention").reference
    q, k, v = torch.rand(2, 8, 3, 4), torch.rand(2, 2, 5, 4), torch.rand(2, 2, 5, 4)
    torch.testing.assert_close(broadcast(q, k, v), reference(q, k, v))
    assert repeats_no_key(reference) and not repeats_no_key(broadcast)


def test_the_order_of_the_products_is_counted():
    def keys_first(q, q_rotary, latent, rotary_key, W_UK, W_UV):
        W_UK, W_UV = (W.unflatten(1, (q.shape[1], -1)).transpose(0, 1) for W in (W_UK, W_UV))
        scores = q @ (latent.unsqueeze(1) @ W_UK).mT + q_rotary @ rotary_key.unsqueeze(1).mT
        weights = (scores / math.sqrt(q.shape[-1] + q_rotary.shape[-1])).softmax(-1)
        return (weights @ latent.unsqueeze(1)) @ W_UV

    reference = answer("lab08.mla_absorb").reference
    shapes = (2, 3, 4, 5), (2, 3, 4, 2), (2, 6, 7), (2, 6, 2), (7, 15), (7, 9)
    given = [torch.rand(*shape) for shape in shapes]
    torch.testing.assert_close(keys_first(*given), reference(*given))
    assert unpacks_no_latent(reference) and not unpacks_no_latent(keys_first)


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (lambda out, pair: out, "a step returns what it computed and the cache"),
        (lambda out, pair: (out, pair[0]), "the cache is a pair of tensors, not a Tensor"),
        (lambda out, pair: (out, (*pair, out)), "the cache is a pair of tensors, not a tuple of 3"),
    ],
)
def test_a_step_that_returns_another_structure_is_told_what_is_wanted(returned, told):
    assert told in said("lab08.decode_step", lambda *given: returned(*Step()(*given)))


def test_a_cache_that_returns_one_tensor_is_told_what_is_wanted():
    class KeysAlone(Kept):
        def read(self):
            return self.k[:, :, : self.length]

    assert "append returns two tensors" in said("lab08.kv_cache", KeysAlone)


def test_an_unfinished_append_is_not_attempted():
    class Half(Kept):
        def append(self, k, v):
            raise NotImplementedError

    assert judge(exercise("lab08.kv_cache"), Half, LiveOracle()).outcome == "NOT ATTEMPTED"


def test_a_finished_class_that_refuses_by_torchs_own_error_is_not_accepted():
    class Unchecked(Kept):
        def check(self, new):
            pass

    assert "RuntimeError" in said("lab08.kv_cache", Unchecked)


def test_a_unit_mistake_is_named_by_its_way():
    def mixed(n_layer, n_head, n_kv_head, head_dim, seq, batch=1, element_bytes=2):
        size = 2 * n_layer * n_kv_head * head_dim * seq * batch * element_bytes
        return {"bytes": size, "GB": size / 2**20 / 1000, "GiB": size / 2**30}

    assert "two units mixed" in said("lab08.kv_bytes", mixed)
