"""The cache: what was computed once and kept gives what computing it again would give."""

import itertools

import pytest
import torch

from labs_lib.attention.cache import FIRST_CAPACITY, KVCache, decode_step, layer_step
from labs_lib.attention.multi_head import MultiHeadAttention
from labs_lib.attention.rotary import rotate
from labs_lib.attention.single_head import causal_mask
from labs_lib.config import AttentionConfig

SPLITS = [[7], [1] * 7, [4, 3], [3, 1, 2, 1], [1, 6]]


def pair(numbers, tokens, batch=2):
    return numbers(batch, 3, tokens, 4), numbers(batch, 3, tokens, 5)


def empty(dtype, capacity=None, batch=2):
    return KVCache(batch, 3, 4, capacity, v_head_dim=5, dtype=dtype)


@pytest.fixture(params=[(24, 6), (24, 6, 3), (24, 6, 1)], ids=["MHA", "GQA", "MQA"])
def layer(request, dtype):
    torch.manual_seed(1)
    return MultiHeadAttention(AttentionConfig(*request.param, bias=True)).to(dtype)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("capacity", [7, 100, None])
def test_cached_equals_uncached_over_any_split_and_uncached_again_afterwards(
    numbers, close, layer, split, capacity
):
    x = numbers(2, 7, 24, std=1.0)
    c = layer.config
    before = layer(x, mask=causal_mask(7))
    for _ in range(2):  # a second text finds no trace of the first
        cache = KVCache(2, c.n_kv_head, c.head_dim, capacity, dtype=x.dtype)
        steps = [layer_step(layer, part, cache) for part in x.split(split, dim=1)]
        close(torch.cat(steps, dim=1), before)
        assert cache.lengths == [7, 7]
    assert torch.equal(layer(x, mask=causal_mask(7)), before)


def test_every_way_to_cut_six_tokens_into_steps_gives_the_same(numbers, close):
    layer = MultiHeadAttention(AttentionConfig(12, 4, 2)).to(numbers(1).dtype)
    x = numbers(2, 6, 12, std=1.0)
    whole = layer(x, mask=causal_mask(6))
    for cuts in itertools.product([False, True], repeat=5):
        borders = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), 6]
        cache = KVCache(2, 2, 3, 6, dtype=x.dtype)
        steps = [layer_step(layer, x[:, a:b], cache) for a, b in itertools.pairwise(borders)]
        close(torch.cat(steps, dim=1), whole)


def test_texts_of_different_lengths_get_what_each_alone_would_get(numbers, close, layer):
    x, c = numbers(3, 9, 24, std=1.0), layer.config
    cache = KVCache(3, c.n_kv_head, c.head_dim, dtype=x.dtype)
    rounds = [(5, [5, 2, 0]), (1, [1, 1, 1]), (3, [0, 3, 2])]
    got, seen = [[], [], []], [0, 0, 0]
    for new, counts in rounds:
        step = torch.full((3, new, 24), 9.0, dtype=x.dtype)  # what fills up a row must not matter
        for b, count in enumerate(counts):
            step[b, :count] = x[b, seen[b] : seen[b] + count]
        out = layer_step(layer, step, cache, counts)
        for b, count in enumerate(counts):
            got[b].append(out[b, :count])
            seen[b] += count
    assert cache.lengths == seen == [6, 6, 3]
    for b, n in enumerate(seen):
        alone = layer(x[b : b + 1, :n], mask=causal_mask(n))
        close(torch.cat(got[b]), alone[0])


def test_rows_that_fill_up_a_batch_get_no_answer_from_other_tokens(numbers, layer):
    x, c = numbers(2, 3, 24), layer.config
    cache = KVCache(2, c.n_kv_head, c.head_dim, dtype=x.dtype)
    out = layer_step(layer, x, cache, [3, 1])
    with torch.no_grad():
        bias = layer.b_O.expand(2, -1)
    assert torch.equal(out[1, 1:], bias)


def test_what_is_kept_is_a_copy(numbers, dtype):
    cache, (k, v) = empty(dtype, 4), pair(numbers, 2)
    kept_k, kept_v = k.clone(), v.clone()
    cache.append(k, v)
    k.zero_()
    v.zero_()
    assert torch.equal(cache.keys, kept_k) and torch.equal(cache.values, kept_v)


def test_a_preallocated_cache_never_moves(numbers, dtype):
    cache = empty(dtype, 40)
    places = {cache.append(*pair(numbers, 1))[0].data_ptr() for _ in range(40)}
    assert len(places) == 1
    assert cache.capacity == 40


def test_a_growing_cache_doubles_and_loses_nothing(numbers, dtype):
    cache, parts = empty(dtype), [pair(numbers, n) for n in (1, FIRST_CAPACITY, 30)]
    rooms = []
    for k, v in parts:
        keys, values = cache.append(k, v)
        rooms.append(cache.capacity)
    assert rooms == [FIRST_CAPACITY, 2 * FIRST_CAPACITY, 4 * FIRST_CAPACITY]
    assert torch.equal(keys, torch.cat([k for k, _ in parts], dim=2))
    assert torch.equal(values, torch.cat([v for _, v in parts], dim=2))


def test_two_caches_share_nothing(numbers, dtype):
    one, two = empty(dtype, 5), empty(dtype, 5)
    first = pair(numbers, 2)
    one.append(*first)
    two.append(*pair(numbers, 3))
    assert torch.equal(one.keys, first[0]) and (one.length, two.length) == (2, 3)


def test_a_cleared_cache_starts_a_new_text(numbers, dtype):
    cache = empty(dtype, 5)
    cache.append(*pair(numbers, 5))
    cache.clear()
    k, v = pair(numbers, 2)
    keys, values = cache.append(k, v)
    assert torch.equal(keys, k) and torch.equal(values, v)


def test_what_does_not_fit_is_refused_and_changes_nothing(numbers, dtype):
    cache = empty(dtype, 4)
    k, v = pair(numbers, 3)
    cache.append(k, v)
    with pytest.raises(ValueError, match=r"3 tokens are kept and 2 more make 5.*room for 4"):
        cache.append(*pair(numbers, 2))
    for bad in ((k[:1], v[:1]), (k[:, :2], v[:, :2]), (k[..., :3], v), (k, v[:, :, :2])):
        with pytest.raises(ValueError, match="this cache takes"):
            cache.append(*bad)
    with pytest.raises(TypeError, match="the cache holds"):
        cache.append(k.half(), v.half())
    for counts in ([1], [4, 0], [-1, 2]):
        with pytest.raises(ValueError, match="one a text"):
            cache.append(k, v, counts)
    assert torch.equal(cache.keys, k) and torch.equal(cache.values, v)
    cache.append(*pair(numbers, 1))
    assert cache.length == 4


@pytest.mark.parametrize("sizes", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (2, 3, 4, 0)])
def test_a_cache_of_no_size_is_refused(sizes):
    with pytest.raises(ValueError, match="at least 1"):
        KVCache(*sizes)
    with pytest.raises(ValueError, match="v_head_dim=0"):
        KVCache(2, 3, 4, v_head_dim=0)


def test_the_text_that_has_no_room_left_is_counted(numbers, dtype):
    cache = empty(dtype, 6)
    cache.append(*pair(numbers, 5), [3, 5])
    with pytest.raises(ValueError, match="3 tokens are kept and 4 more make 7"):
        cache.append(*pair(numbers, 4), [4, 1])


def test_bytes_are_those_of_the_kept_tokens(numbers, dtype):
    cache = empty(dtype, 64)
    cache.append(*pair(numbers, 3), [3, 1])
    assert cache.nbytes == 4 * 3 * (4 + 5) * dtype.itemsize


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("kv_width", [24, 12, 4])
def test_decode_step_with_positions_equals_one_pass(numbers, close, split, kv_width):
    x = numbers(2, 7, 24, std=1.0)
    W = [numbers(24, width, std=0.3) for width in (24, kv_width, kv_width, 24)]
    whole, (k, v) = decode_step(x, *W, 6, rotate)
    cache, outs = None, []
    for part in x.split(split, dim=1):
        out, cache = decode_step(part, *W, 6, rotate, cache)
        outs.append(out)
    close(torch.cat(outs, dim=1), whole)
    close(cache[0], k)
    close(cache[1], v)
    assert torch.equal(decode_step(x, *W, 6, rotate)[0], whole)


def test_turned_products_depend_on_the_distance_alone(numbers, close):
    q, k = numbers(1, 8), numbers(1, 8)
    products = [(rotate(q, i + 5) @ rotate(k, i).mT).item() for i in (0, 3, 100)]
    close(torch.tensor(products), torch.full((3,), products[0]), scale=1000)
    assert torch.equal(rotate(q, 0), q)
    turned = torch.cat([rotate(q, 4), rotate(q, 5)])
    close(rotate(q.expand(2, 8), torch.tensor([4, 5])), turned)
    close(turned.norm(dim=1), q.norm().expand(2))


def test_numbers_that_cannot_be_paired_are_refused():
    with pytest.raises(ValueError, match="head_dim=5 is odd"):
        rotate(torch.ones(2, 5))
