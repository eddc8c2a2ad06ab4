import math

import pytest
import torch
from scores_rows import exact, hard_rows
from torch.nn import functional as F

from labs_lib.attention.flash import Tiling, flash_attention, flash_backward
from labs_lib.attention.online_softmax import finish, merge_softmax_states
from labs_lib.attention.single_head import causal_mask
from labs_lib.attention.single_head import scaled_dot_product_attention as sdpa
from labs_lib.exercises.measure import largest_allocation, operators, peak_memory

SIZES = [(1, 1), (17, 17), (31, 33), (33, 31), (64, 65), (65, 64), (97, 97), (16, 48), (48, 16)]
WIDTHS = [8, 16, 64, 72, 128, 5]
LIMIT = {torch.float32: 4e-6, torch.float64: 1e-13}


def repeated(q, *shared):
    return (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in shared)


@pytest.mark.parametrize(("seq_q", "seq_k"), SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("blocks", [(16, 16), (16, 24), (24, 7), (128, 128)])
def test_tiles_of_any_size_give_attention(numbers, dtype, seq_q, seq_k, causal, blocks):
    head_dim = WIDTHS[(seq_q + seq_k) % len(WIDTHS)]
    q, k = numbers(2, 2, seq_q, head_dim, std=1.0), numbers(2, 2, seq_k, head_dim, std=1.0)
    v = numbers(2, 2, seq_k, head_dim, std=1.0)
    mask = causal_mask(seq_q, seq_k) if causal else None
    out, lse = flash_attention(
        q, k, v, causal=causal, block_q=blocks[0], block_k=blocks[1], return_lse=True
    )
    wanted = sdpa(q.double(), k.double(), v.double(), mask)
    torch.testing.assert_close(out.double(), wanted, rtol=LIMIT[dtype], atol=LIMIT[dtype])
    scores = q.double() @ k.double().mT / math.sqrt(head_dim)
    hidden = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    torch.testing.assert_close(
        lse.double(), hidden.logsumexp(-1), rtol=LIMIT[dtype], atol=LIMIT[dtype]
    )


@pytest.mark.parametrize("head_dim", WIDTHS)
def test_the_scale_is_that_of_the_true_head_dim(numbers, dtype, head_dim):
    q, k, v = (numbers(1, 2, 33, head_dim, std=1.0) for _ in range(3))
    plain = flash_attention(q, k, v)
    torch.testing.assert_close(plain, F.scaled_dot_product_attention(q, k, v), rtol=0, atol=1e-5)
    own = flash_attention(q, k, v, scale=0.3)
    torch.testing.assert_close(
        own, F.scaled_dot_product_attention(q, k, v, scale=0.3), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("name", list(hard_rows()))
@pytest.mark.parametrize("n", [17, 64, 65])
def test_hard_rows_come_out_right_beside_easy_ones(name, n, dtype):
    """head_dim n and unit keys make the scores what the row says; -inf is said by the mask."""
    row = hard_rows(n)[name]
    visible = row > -math.inf
    q = torch.stack([row.masked_fill(~visible, 0.0), -row.masked_fill(~visible, 0.0) / 100])
    k = torch.eye(n, dtype=dtype)
    v = torch.linspace(-1, 1, n * 4, dtype=dtype).view(n, 4).sin() + 0.5
    mask = torch.stack([visible, torch.ones_like(visible)])
    out, lse = flash_attention(
        q.to(dtype)[None, None], k[None, None], v[None, None],
        mask=mask, scale=1.0, block_q=16, block_k=16, return_lse=True,
    )  # fmt: skip
    scores = q.to(dtype).double().masked_fill(~mask, -math.inf)
    for i in range(2):
        weights, wanted = exact(scores[i])
        want = torch.tensor(weights, dtype=torch.float64) @ v.double()
        torch.testing.assert_close(out[0, 0, i].double(), want, rtol=0, atol=LIMIT[dtype])
        assert float(lse[0, 0, i]) == pytest.approx(wanted, rel=LIMIT[dtype])


def test_keys_that_pad_a_tile_are_not_counted(dtype):
    q, k = torch.full((1, 1, 17, 4), -2.0, dtype=dtype), torch.full((1, 1, 17, 4), 2.0, dtype=dtype)
    v = torch.rand(1, 1, 17, 4, dtype=dtype) + 1  # logits all -8: a padded 0 would weigh most
    out = flash_attention(q, k, v, block_q=16, block_k=16)
    torch.testing.assert_close(out, v.mean(2, keepdim=True).expand_as(out))


@pytest.mark.parametrize(("n_head", "n_kv_head"), [(6, 3), (4, 1), (4, 4), (6, 2)])
@pytest.mark.parametrize("causal", [False, True])
def test_shared_heads_are_read_by_their_neighbours(numbers, close, n_head, n_kv_head, causal):
    q, k, v = numbers(2, n_head, 19, 8), numbers(2, n_kv_head, 33, 8), numbers(2, n_kv_head, 33, 6)
    got = flash_attention(q, k, v, causal=causal, block_q=8, block_k=8)
    mask = causal_mask(19, 33) if causal else None
    close(got, sdpa(q, *repeated(q, k, v), mask), scale=10)


def test_shared_heads_are_never_copied():
    q, k = torch.rand(1, 8, 16, 8), torch.rand(1, 1, 1024, 8)
    made = largest_allocation(flash_attention, q, k, k, block_q=16, block_k=16)
    assert made <= 8 * 16 * 16  # one tile for all heads; K for eight heads would be 65,536


def padding_left(batch, seq, hidden):
    return (torch.arange(seq) >= hidden)[None, None, None].expand(batch, 1, 1, seq)


@pytest.mark.parametrize(
    "mask",
    [
        padding_left(2, 49, 20),
        torch.arange(49)[None] < torch.tensor([[30], [1]])[:, None, None],
        torch.rand(40, 49, generator=torch.Generator().manual_seed(1)) < 0.3,
        torch.rand(2, 4, 40, 49, generator=torch.Generator().manual_seed(2)) < 0.1,
        torch.zeros(1, 1, 1, 1, dtype=torch.bool),
        torch.ones(49, dtype=torch.bool),
    ],
    ids=["left padding", "lengths", "one for all", "one for each head", "nothing", "everything"],
)
@pytest.mark.parametrize("causal", [False, True])
def test_masks_of_every_shape_mean_what_they_say(numbers, dtype, mask, causal):
    q, k, v = numbers(2, 4, 40, 8, std=1.0), numbers(2, 2, 49, 8, std=1.0), numbers(2, 2, 49, 8)
    whole = mask & causal_mask(40, 49) if causal else mask
    got = flash_attention(q, k, v, mask=mask, causal=causal, block_q=16, block_k=16)
    want = sdpa(q.double(), *(t.double() for t in repeated(q, k, v)), whole)
    torch.testing.assert_close(got.double(), want, rtol=0, atol=10 * LIMIT[dtype])
    assert got.isfinite().all()


def test_hidden_keys_cannot_leak_even_when_they_are_huge(numbers):
    q, k, v = (numbers(1, 2, 40, 8) for _ in range(3))
    before = flash_attention(q, k, v, causal=True, block_q=16, block_k=16)
    k[:, :, 30:], v[:, :, 30:] = 1e30, 1e30
    after = flash_attention(q, k, v, causal=True, block_q=16, block_k=16)
    assert torch.equal(before[:, :, :30], after[:, :, :30])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("n_kv_head", "seq_q", "seq_k"), [(4, 5, 5), (2, 4, 7), (1, 7, 4)])
def test_recomputed_gradients_are_those_of_numerical_differences(
    causal, masked, n_kv_head, seq_q, seq_k
):
    torch.manual_seed(seq_q)
    shapes = ((1, 4, seq_q, 3), (1, n_kv_head, seq_k, 3), (1, n_kv_head, seq_k, 2))
    inputs = [torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in shapes]
    mask = torch.rand(1, 1, seq_q, seq_k) < 0.6 if masked else None
    visible = torch.ones(1, 4, seq_q, seq_k, dtype=torch.bool)
    visible = visible & (causal_mask(seq_q, seq_k) if causal else True)
    some = (visible if mask is None else visible & mask).any(-1)

    def program(q, k, v):
        out, lse = flash_attention(
            q, k, v, causal=causal, mask=mask, block_q=3, block_k=2, return_lse=True
        )
        return out, lse[some]

    assert torch.autograd.gradcheck(program, inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_equal_torchs_own(dtype):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 70, 16, dtype=dtype, requires_grad=True) for _ in range(3))
    upstream = torch.randn(2, 4, 70, 16, dtype=dtype)
    wide = [t.detach().double().requires_grad_() for t in (q, k, v)]
    ours = torch.autograd.grad(flash_attention(q, k, v, block_q=32), (q, k, v), upstream)
    exactly = torch.autograd.grad(F.scaled_dot_product_attention(*wide), wide, upstream.double())
    theirs = torch.autograd.grad(F.scaled_dot_product_attention(q, k, v), (q, k, v), upstream)
    for got, torchs, want in zip(ours, theirs, exactly, strict=True):
        assert got.dtype == dtype
        error, allowed = (got - want).abs().max(), (torchs - want).abs().max()
        assert error <= 2 * allowed + 1e-6  # FlashAttention's own tests ask for the same


def test_a_query_that_sees_nothing_has_no_gradient_and_makes_no_nan(numbers):
    q, k, v = (numbers(1, 2, n, 4, grad=True) for n in (7, 3, 3))
    out = flash_attention(q, k, v, causal=True, block_q=2, block_k=2)
    out.square().sum().backward()
    assert q.grad[:, :, :4].count_nonzero() == 0
    assert all(t.grad.isfinite().all() and t.grad.any() for t in (q, k, v))


@pytest.mark.parametrize(
    ("dtype", "limit"),
    [(torch.float64, 1e-13), (torch.float32, 4e-6), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)],
)
def test_every_dtype_keeps_its_tolerance_and_its_dtype(dtype, limit):
    torch.manual_seed(1)
    q, k, v = (torch.randn(1, 2, 300, 64).to(dtype) for _ in range(3))
    out, lse = flash_attention(q, k, v, block_q=64, block_k=64, return_lse=True)
    assert out.dtype == dtype
    assert lse.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    torch.testing.assert_close(
        out.double(), sdpa(q.double(), k.double(), v.double()), rtol=limit, atol=limit
    )


def test_float16_scores_beyond_its_range_and_long_sums_survive():
    q = torch.full((1, 1, 4, 128), 30.0, dtype=torch.float16)  # 115,200 before the scale
    k = torch.full((1, 1, 4096, 128), 30.0, dtype=torch.float16)
    v = torch.rand(1, 1, 4096, 128).half() + 0.5
    out, lse = flash_attention(q, k, v, return_lse=True)
    wanted = v.double().mean(2, keepdim=True).expand(-1, -1, 4, -1)
    torch.testing.assert_close(out.double(), wanted, rtol=2e-3, atol=0)
    assert lse[0, 0, 0] == pytest.approx(115200 / math.sqrt(128) + math.log(4096), rel=1e-6)


@pytest.mark.parametrize("sizes", [(0, 5, 5), (2, 0, 5), (2, 5, 0), (2, 0, 0)])
def test_empty_in_is_empty_out_and_no_key_gives_zeros(sizes):
    batch, seq_q, seq_k = sizes
    q, k = torch.rand(batch, 2, seq_q, 4, requires_grad=True), torch.rand(batch, 2, seq_k, 4)
    for causal in (False, True):
        out, lse = flash_attention(q, k, k, causal=causal, return_lse=True)
        assert out.shape == (batch, 2, seq_q, 4)
        assert out.count_nonzero() == 0
        assert (lse == -math.inf).all()
        assert torch.autograd.grad(out.sum(), q)[0].count_nonzero() == 0


def test_views_are_read_by_their_strides_and_inputs_left_alone(numbers, close):
    packed = numbers(2, 40, 3, 2, 8)
    q, k, v = packed.permute(2, 0, 3, 1, 4)
    before = packed.clone()
    for index in range(3):
        mixed = [t if i == index else t.contiguous() for i, t in enumerate((q, k, v))]
        close(flash_attention(*mixed, block_q=16, block_k=16), sdpa(q, k, v), scale=10)
    assert torch.equal(packed, before)
    twice = [flash_attention(q, k, v, causal=True, block_q=16) for _ in range(2)]
    assert torch.equal(*twice)


def test_tiles_above_the_causal_limit_are_skipped():
    tiling = Tiling(64, 64, 16, 16, causal=True)
    tiles = [tile for rows in tiling.rows() for tile in tiling.tiles(rows)]
    assert len(tiles) == 4 * 5 // 2
    assert sum(tile.cut for tile in tiles) == 4
    q = torch.rand(1, 1, 64, 8)
    ran = {c: operators(flash_attention, q, q, q, causal=c, block_q=16, block_k=16)["bmm"]
           for c in (False, True)}  # fmt: skip
    assert ran == {False: 2 * 16, True: 2 * 10}


@pytest.mark.parametrize(("seq_q", "seq_k"), [(1, 64), (16, 48), (48, 16), (33, 65), (65, 33)])
@pytest.mark.parametrize("blocks", [(16, 16), (7, 11)])
def test_tiles_cover_each_visible_pair_once_and_cut_where_they_must(seq_q, seq_k, blocks):
    mask = causal_mask(seq_q, seq_k)
    covered = torch.zeros(seq_q, seq_k, dtype=torch.int)
    tiling = Tiling(seq_q, seq_k, *blocks, True)
    for rows in tiling.rows():
        for tile in tiling.tiles(rows):
            covered[tile.rows, tile.columns] += 1
            assert tile.cut == (not mask[tile.rows, tile.columns].all())
    assert covered.max() == 1
    assert (covered.bool() | ~mask).all()


def test_tiles_that_a_mask_hides_altogether_are_not_computed():
    q = torch.rand(1, 1, 64, 8)
    mask = torch.arange(64) >= 32
    ran = operators(flash_attention, q, q, q, mask=mask, block_q=16, block_k=16)
    assert ran["bmm"] == 2 * 4 * 2


@pytest.mark.parametrize("causal", [False, True])
def test_no_n_by_n_tensor_is_made_forth_or_back(causal):
    n, block = 512, 32
    q, k, v = (torch.rand(1, 2, n, 8, requires_grad=True) for _ in range(3))

    def there_and_back():
        flash_attention(q, k, v, causal=causal, block_q=block, block_k=block).sum().backward()

    assert largest_allocation(there_and_back) <= 2 * n * 8
    assert largest_allocation(lambda: sdpa(q, k, v)) == 2 * n * n


def test_extra_memory_grows_with_n_and_that_of_the_naive_with_its_square():
    def growth(program):
        small, large = (
            peak_memory(program, *(torch.rand(1, 1, n, 64) for _ in range(3))) for n in (512, 2048)
        )
        return math.log(large / small) / math.log(4)

    assert growth(lambda q, k, v: flash_attention(q, k, v, block_q=64, block_k=64)) < 1.0
    assert 1.9 < growth(sdpa) < 2.1


def test_keys_split_over_workers_merge_to_the_whole(numbers, close):
    """Split-k: each part gives out and lse; lse and 1 are m and l of a state."""
    q, k, v = (numbers(1, 2, 33, 8) for _ in range(3))
    parts = []
    for columns in (slice(0, 5), slice(5, 20), slice(20, 33)):
        out, lse = flash_attention(q, k[:, :, columns], v[:, :, columns], return_lse=True)
        parts.append((lse, torch.ones_like(lse), out))
    merged = merge_softmax_states(merge_softmax_states(parts[2], parts[0]), parts[1])
    for got, want in zip(finish(merged), flash_attention(q, k, v, return_lse=True), strict=True):
        close(got, want, scale=10)


def shapes(q=(1, 4, 5, 8), k=(1, 2, 6, 8), v=(1, 2, 6, 8)):
    return (torch.rand(*q), torch.rand(*k), torch.rand(*v))


@pytest.mark.parametrize(
    ("inputs", "options", "error", "said"),
    [
        (shapes(q=(4, 5, 8)), {}, ValueError, "each is"),
        (shapes(k=(1, 2, 6, 7)), {}, ValueError, "same head_dim"),
        (shapes(v=(1, 2, 7, 8)), {}, ValueError, "seq_k for k and v"),
        (shapes(k=(2, 2, 6, 8)), {}, ValueError, "batch is the same"),
        (
            shapes(q=(1, 3, 5, 8)),
            {},
            ValueError,
            "n_kv_head=2 does not divide n_head=3; 1 and 3",
        ),
        (shapes(), {"block_k": 0}, ValueError, "at least one row"),
        (shapes(), {"block_q": -4}, ValueError, "at least one row"),
        (shapes(), {"mask": torch.zeros(5, 6)}, TypeError, r"torch\.bool"),
        (shapes(), {"mask": torch.ones(6, 5).bool()}, ValueError, r"broadcast to \[1, 4, 5, 6\]"),
        (shapes(), {"mask": torch.ones(1, 1, 1, 5, 6).bool()}, ValueError, "has to broadcast"),
        ((*shapes()[:2], torch.rand(1, 2, 6, 8).double()), {}, TypeError, "one floating dtype"),
        (tuple(t.int() for t in shapes()), {}, TypeError, "one floating dtype"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(inputs, options, error, said):
    with pytest.raises(error, match=said):
        flash_attention(*inputs, **options)


@pytest.mark.parametrize("blocks", [{"block_q": 0}, {"block_q": -4}, {"block_k": -1}])
def test_gradients_of_a_tile_without_a_row_are_refused(numbers, blocks):
    q = numbers(1, 1, 3, 4)
    out, lse = flash_attention(q, q, q, return_lse=True)
    with pytest.raises(ValueError, match="at least one row"):
        flash_backward(q, q, q, out, lse, out, **blocks)
