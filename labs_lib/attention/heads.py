"""One width split into heads and merged again, and where the numbers lie in memory."""

from torch import Tensor

from labs_lib.config import nearest_d_model


def split_heads(x: Tensor, n_head: int) -> Tensor:
    """Return x with its width cut into heads; a view, no number moves.

    x is [batch, seq, n_head * head_dim]; the result is [batch, n_head, seq, head_dim]. The width
    is cut first and the axes are swapped after: a direct reshape to the same shape would mix
    tokens. Raises ValueError when n_head does not divide the width.
    """
    batch, seq, width = x.shape
    if n_head < 1 or width % n_head:
        raise ValueError(_not_divisible(width, n_head))
    x = x.view(batch, seq, n_head, width // n_head)
    return x.transpose(1, 2)  # [batch, n_head, seq, head_dim]


def merge_heads(x: Tensor) -> Tensor:
    """Return the heads of each token side by side again: the inverse of split_heads.

    x is [batch, n_head, seq, head_dim]; the result is [batch, seq, n_head * head_dim]. It is a
    view where x still lies as split_heads left it and a copy otherwise.
    """
    return x.transpose(1, 2).flatten(2)  # [batch, seq, n_head * head_dim]


def strides_after_split(batch: int, seq: int, n_head: int, head_dim: int) -> tuple[int, ...]:
    """Return the strides, in elements, of split_heads of a contiguous [batch, seq, width] tensor.

    The next token of the same head lies a whole width away, the next head only head_dim away.
    """
    del batch  # how many sequences there are changes no distance
    width = n_head * head_dim
    return (seq * width, head_dim, width, 1)


def is_contiguous_per_head(x: Tensor) -> bool:
    """Return whether each head's [seq, head_dim] block of x lies in memory without gaps.

    x is [batch, n_head, seq, head_dim]. False right after split_heads (unless there is one head
    or one token), True after `.contiguous()`.
    """
    seq, head_dim = x.shape[-2:]
    stride_seq, stride_dim = x.stride()[-2:]
    if x.numel() == 0:
        return True
    rows_follow = seq == 1 or stride_seq == head_dim
    return rows_follow and (head_dim == 1 or stride_dim == 1)


def _not_divisible(width: int, n_head: int) -> str:
    if n_head < 1:
        return f"n_head={n_head} is not allowed; at least one head is needed"
    near = " or ".join(map(str, nearest_d_model(width, n_head)))
    return f"a width of {width} can't be shared out evenly among n_head={n_head} heads; {near} can"
