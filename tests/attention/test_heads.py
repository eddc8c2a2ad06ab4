import itertools

import pytest
import torch

from labs_lib.attention.heads import (
    is_contiguous_per_head,
    merge_heads,
    split_heads,
    strides_after_split,
)

SHAPES = list(itertools.product([1, 2], [1, 7], [1, 3], [1, 4]))


def test_head_h_gets_the_columns_of_head_h_of_each_token(numbers):
    x = numbers(2, 7, 12)
    heads = split_heads(x, 3)
    assert heads.shape == (2, 3, 7, 4)
    for h in range(3):
        assert torch.equal(heads[:, h], x[:, :, 4 * h : 4 * h + 4])


def test_split_is_not_the_direct_reshape_that_mixes_tokens(numbers):
    x = numbers(2, 10, 12 * 64)
    wrong = x.view(2, 12, 10, 64)
    equal = (split_heads(x, 12) == wrong).double().mean().item()
    assert equal == pytest.approx(1 / 60, abs=1e-3)


@pytest.mark.parametrize(("batch", "seq", "n_head", "head_dim"), SHAPES)
def test_merge_undoes_split_bit_for_bit(numbers, batch, seq, n_head, head_dim):
    x = numbers(batch, seq, n_head * head_dim)
    heads = split_heads(x, n_head)
    assert torch.equal(merge_heads(heads), x)
    assert torch.equal(merge_heads(heads.contiguous()), x)
    assert torch.equal(split_heads(merge_heads(heads.contiguous()), n_head), heads)


def test_split_moves_no_number(numbers):
    x = numbers(2, 7, 12)
    heads = split_heads(x, 3)
    assert heads.data_ptr() == x.data_ptr()
    starts = [heads[:, h].data_ptr() - x.data_ptr() for h in range(3)]
    assert starts == [h * 4 * x.element_size() for h in range(3)]
    assert merge_heads(heads).data_ptr() == x.data_ptr()
    assert merge_heads(heads.contiguous()).data_ptr() != x.data_ptr()


def test_split_is_a_view_of_a_strided_input_too(numbers):
    packed = numbers(2, 7, 36)
    k = packed[:, :, 12:24]
    heads = split_heads(k, 3)
    assert heads.data_ptr() == k.data_ptr()
    assert torch.equal(heads, split_heads(k.contiguous(), 3))
    every_other = numbers(2, 7, 24)[:, :, ::2]
    assert torch.equal(split_heads(every_other, 3), split_heads(every_other.clone(), 3))


@pytest.mark.parametrize(("batch", "seq", "n_head", "head_dim"), SHAPES)
def test_strides_by_arithmetic_are_those_of_the_tensor(batch, seq, n_head, head_dim):
    heads = split_heads(torch.empty(batch, seq, n_head * head_dim), n_head)
    assert strides_after_split(batch, seq, n_head, head_dim) == heads.stride()


def test_strides_of_the_lesson_example():
    assert strides_after_split(2, 10, 12, 64) == (7680, 64, 768, 1)
    heads = split_heads(torch.empty(2, 10, 768), 12)
    assert not is_contiguous_per_head(heads)
    assert heads.contiguous().stride() == (7680, 640, 64, 1)
    assert is_contiguous_per_head(heads.contiguous())


@pytest.mark.parametrize(("batch", "seq", "n_head", "head_dim"), SHAPES)
def test_contiguity_per_head_is_that_of_each_block(batch, seq, n_head, head_dim):
    split = split_heads(torch.empty(batch, seq, n_head * head_dim), n_head)
    packed = split.contiguous()
    views = [split, packed, split[:, :, ::2], packed[:, ::2], packed[..., :2], packed.mT]
    views += [split[..., ::2], packed[..., ::2]]
    for x in views:
        assert is_contiguous_per_head(x) == x[0, 0].is_contiguous()


def test_an_empty_tensor_has_no_gaps():
    assert is_contiguous_per_head(torch.empty(0, 3, 7, 4))
    assert is_contiguous_per_head(torch.empty(2, 3, 0, 4).transpose(2, 3))


@pytest.mark.parametrize(
    ("n_head", "words"),
    [(5, "width of 12 can't be shared out evenly among n_head=5 heads; 10 or 15"), (0, "n_head=0")],
)
def test_a_width_that_does_not_split_is_refused_with_the_nearest(n_head, words):
    with pytest.raises(ValueError, match=words):
        split_heads(torch.empty(2, 7, 12), n_head)
