"""Matrices out of a model's file in lab 12: reference, right programs and wrong programs."""

from __future__ import annotations

import torch

from ..kit import Answer, Right, Wrong

NAMES = {"W_Q": "attn_q", "W_K": "attn_k", "W_V": "attn_v", "W_O": "attn_output"}


class Loaded:
    """The right program in parts, so that a variant replaces one of them."""

    def __call__(self, tensors, layer, n_head, n_kv_head):
        heads = {"W_Q": n_head, "W_K": n_kv_head, "W_V": n_kv_head, "W_O": n_head}
        found = {}
        for name, kind in self.names.items():
            rows = self.take(tensors, layer, kind)
            if name in self.paired:
                rows = self.apart(rows, heads[name])
            found[name] = self.turned(rows, name)
        return found

    names = NAMES
    paired = ("W_Q", "W_K")

    def take(self, tensors, layer, kind):
        return tensors[f"blk.{layer}.{kind}.weight"]

    def apart(self, rows, heads):
        pairs = rows.unflatten(0, (heads, -1, 2))  # [heads, head_dim / 2, 2, d_in]
        return pairs.transpose(1, 2).flatten(0, 2)

    def turned(self, rows, name):
        return rows.T


def variant(**parts):
    """The right program with some of its parts replaced."""
    return type("Variant", (Loaded,), parts)()


def load_real_weights(tensors, layer, n_head, n_kv_head):
    """The reference under the exercise's name and signature."""
    return Loaded()(tensors, layer, n_head, n_kv_head)


def _by_slices(self, rows, heads):
    """Every second row, head by head."""
    parts = []
    for head in rows.chunk(heads):
        parts += [head[0::2], head[1::2]]
    return torch.cat(parts)


def _by_index(self, rows, heads):
    size = rows.shape[0] // heads
    order = [
        h * size + place for h in range(heads) for place in (*range(0, size, 2), *range(1, size, 2))
    ]
    return rows[torch.tensor(order)]


def _on_columns(tensors, layer, n_head, n_kv_head):
    """Transposed first, then the columns put apart."""
    W = {name: tensors[f"blk.{layer}.{kind}.weight"].t() for name, kind in NAMES.items()}
    for name, heads in (("W_Q", n_head), ("W_K", n_kv_head)):
        pairs = W[name].reshape(W[name].shape[0], heads, -1, 2)
        W[name] = torch.cat([pairs[..., 0], pairs[..., 1]], dim=-1).reshape(W[name].shape)
    return W


RIGHT = (
    Right("parts", Loaded()),
    Right("by_slices", variant(apart=_by_slices)),
    Right("by_index", variant(apart=_by_index)),
    Right("on_columns", _on_columns),
    Right("contiguous", variant(turned=lambda self, rows, name: rows.T.contiguous())),
    Right("a_lambda", lambda *given: Loaded()(*given)),
)


def _reshaped(self, rows, name):
    return rows.reshape(rows.shape[::-1])


def _other_way(self, rows, heads):
    """Halves made into pairs: the file's own step, once more."""
    return rows.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)


def _over_the_width(self, rows, heads):
    return Loaded.apart(self, rows, 1)


def _second_first(self, rows, heads):
    return rows.unflatten(0, (heads, -1, 2)).flip(2).transpose(1, 2).flatten(0, 2)


def _heads_inside(self, rows, heads):
    """Rows taken as [head_dim, heads]."""
    return rows.unflatten(0, (-1, heads)).transpose(0, 1).flatten(0, 1)


def _always_n_head(tensors, layer, n_head, n_kv_head):
    loaded = Loaded()
    found = loaded(tensors, layer, n_head, n_kv_head)
    rows = tensors[f"blk.{layer}.attn_k.weight"]
    if rows.shape[0] % (2 * n_head):
        found["W_K"] = rows.T
    else:
        found["W_K"] = loaded.apart(rows, n_head).T
    return found


def _group_size(tensors, layer, n_head, n_kv_head):
    found = Loaded()(tensors, layer, n_head, n_kv_head)
    rows = tensors[f"blk.{layer}.attn_k.weight"]
    found["W_K"] = Loaded().apart(rows, n_head // n_kv_head).T
    return found


def _columns_of_the_file(self, rows, heads):
    """The input's numbers are put apart, not the outputs of the heads."""
    return torch.cat([rows[:, 0::2], rows[:, 1::2]], dim=1)


def _another_layer(by):
    def take(self, tensors, layer, kind):
        return tensors.get(f"blk.{layer + by}.{kind}.weight", tensors[f"blk.0.{kind}.weight"])

    return take


def _first_layer(self, tensors, layer, kind):
    return tensors[f"blk.0.{kind}.weight"]


def _exchanged(*pair):
    kinds = dict(NAMES)
    kinds[pair[0]], kinds[pair[1]] = kinds[pair[1]], kinds[pair[0]]
    return kinds


def _not_turned(*which):
    def turned(self, rows, name):
        return rows if name in which else rows.T

    return turned


def _k_as_q(tensors, layer, n_head, n_kv_head):
    return Loaded()(tensors, layer, n_head, n_head)


def _d_model_rows(tensors, layer, n_head, n_kv_head):
    """Cuts the rows of attn_output, of which there are d_model, into heads."""
    found = Loaded()(tensors, layer, n_head, n_kv_head)
    found["W_O"] = Loaded().apart(tensors[f"blk.{layer}.attn_output.weight"], n_head).T
    return found


def _inputs_of_w_o(tensors, layer, n_head, n_kv_head):
    found = Loaded()(tensors, layer, n_head, n_kv_head)
    found["W_O"] = Loaded().apart(found["W_O"], n_head)
    return found


def _columns_as_rows(tensors, layer, n_head, n_kv_head):
    """Transposed first, and then reshaped as if outputs were rows still."""
    found = variant(paired=())(tensors, layer, n_head, n_kv_head)
    for name, heads in (("W_Q", n_head), ("W_K", n_kv_head)):
        W = found[name]
        pairs = W.reshape(heads, W.shape[1] // heads // 2, 2, -1)
        found[name] = pairs.transpose(1, 2).reshape(W.shape)
    return found


def _k_cut_by(cut):
    """All as q: the rows of k, too, are cut into n_head heads, where they are too few."""

    def program(tensors, layer, n_head, n_kv_head):
        found = {}
        for name, kind in NAMES.items():
            rows = tensors[f"blk.{layer}.{kind}.weight"]
            if name in ("W_Q", "W_K"):
                size = tensors[f"blk.{layer}.attn_q.weight"].shape[0] // n_head
                heads = rows.reshape(cut(rows, n_head, size))
                rows = heads.transpose(1, 2).reshape(rows.shape)
            found[name] = rows.T
        return found

    return program


K_HEADS = "k's rows are cut into n_head blocks. k has n_kv_head heads of the same head_dim."
K_CUTS = {
    "by_its_rows": lambda rows, n, size: (n, len(rows) // n // 2, 2, rows.shape[1]),
    "by_its_rows_and_the_rest": lambda rows, n, size: (n, len(rows) // n // 2, 2, -1),
    "without_a_size": lambda rows, n, size: (n, -1, 2, rows.shape[1]),
    "by_head_dim": lambda rows, n, size: (n, size // 2, 2, rows.shape[1]),
    "by_head_dim_and_the_rest": lambda rows, n, size: (n, size // 2, 2, -1),
}

PAIRS_APART = (
    "What a file keeps side by side has to be put apart in q and k: wanted are all first ones\n"
    "of a head, then all second ones."
)

CUT_ALONG_D_MODEL = (
    "A matrix is cut into heads along an axis of d_model numbers: attn_output, which is in plain\n"
    "order, or one that you turned round before. In the file a head is rows of attn_q or attn_k."
)

WRONG = (
    Wrong("nothing_transposed", variant(turned=lambda self, rows, name: rows),
        "The matrices are as they stand in the file, [d_out, d_in]. assemble computes x @ W, so\n"
        "turn each round."),
    Wrong("w_o_not_transposed", variant(turned=_not_turned("W_O")),
        "W_O is as it stands in the file, [d_out, d_in]. Where n_head * head_dim is d_model it is\n"
        "square, so no shape tells it; turn it round like the others."),
    Wrong("only_w_o_transposed", variant(turned=_not_turned("W_Q", "W_K", "W_V")),
        "W_O is turned round and the other three are not. All four are [d_out, d_in] in the file."),
    Wrong("reshaped", variant(turned=_reshaped),
        "The matrices are reshaped to [d_in, d_out]: the shape is right and the numbers are\n"
        "mixed. Rows have to become columns."),
    Wrong("pairs_left", variant(paired=()), PAIRS_APART),
    Wrong("only_q_apart", variant(paired=("W_Q",)),
        "q's outputs are put in order and k's are not: number 1 of a query meets another number\n"
        "of a key. Both come in pairs."),
    Wrong("only_k_apart", variant(paired=("W_K",)),
        "k's outputs are put in order and q's are not: number 1 of a query meets another number\n"
        "of a key. Both come in pairs."),
    Wrong("v_apart_too", variant(paired=("W_Q", "W_K", "W_V")),
        "v's outputs are reordered as well. Values are never turned, and in the file they are in\n"
        "plain order."),
    Wrong("all_apart", variant(paired=tuple(NAMES)),
        CUT_ALONG_D_MODEL),
    Wrong("paired_again", variant(apart=_other_way),
        "This is the way from halves to pairs, once more. Wanted is the way back: unflatten the\n"
        "rows as the file has them, pairs of two neighbours."),
    Wrong("apart_over_all_heads", variant(apart=_over_the_width),
        "The rows are put apart over the whole width, so that the first half of the heads get\n"
        "everybody's first numbers. Do it head by head."),
    Wrong("second_ones_first", variant(apart=_second_first),
        "The second ones of the pairs stand before the first ones. A pair is then turned the\n"
        "other way."),
    Wrong("heads_inside", variant(apart=_heads_inside),
        "The rows are taken as [head_dim, heads]. A head's rows stand together in the file."),
    Wrong("n_head_for_k", _always_n_head,
        "k's rows are cut into n_head blocks (or left as they are, where that is impossible). k\n"
        "has n_kv_head heads of the same head_dim."),
    Wrong("group_size_for_k", _group_size,
        "k's rows are cut into n_head // n_kv_head blocks. k has n_kv_head heads."),
    Wrong("k_cut_like_q", _k_as_q, K_HEADS),
    *(Wrong(f"k_cut_like_q_{how}", _k_cut_by(cut), K_HEADS) for how, cut in K_CUTS.items()),
    Wrong("d_model_rows_cut", _d_model_rows,
        CUT_ALONG_D_MODEL),
    Wrong("inputs_of_w_o_apart", _inputs_of_w_o,
        "W_O is reordered as well. It reads values, which are never turned, so it is in plain\n"
        "order."),
    Wrong("columns_taken_for_rows", _columns_as_rows,
        "The matrix is turned round first and then reshaped as if its outputs were rows still.\n"
        "Put the rows of the file apart, then turn."),
    Wrong("inputs_apart", variant(apart=_columns_of_the_file),
        "The inputs are reordered, not the outputs: in the file an output is a row."),
    Wrong("layer_0_always", variant(take=_first_layer),
        "Whatever layer is asked for, layer 0 comes. The number belongs in the name."),
    Wrong("next_layer", variant(take=_another_layer(1)),
        "These are the matrices of the next layer. Layers count from 0, in the file too."),
    Wrong("k_and_v_exchanged", variant(names=_exchanged("W_K", "W_V")),
        "W_K and W_V are exchanged. They have the same shape; only the names tell them apart."),
    Wrong("q_and_k_exchanged", variant(names=_exchanged("W_Q", "W_K"), apart=lambda self, r, h:
        Loaded.apart(self, r, h) if r.shape[0] % (2 * h) == 0 else r),
        "W_Q and W_K are exchanged. With shared heads even their shapes differ."),
    Wrong("q_and_o_exchanged", variant(names=_exchanged("W_Q", "W_O"), apart=lambda self, r, h:
        Loaded.apart(self, r, h) if r.shape[0] % (2 * h) == 0 else r),
        "W_Q and W_O are exchanged."),
)  # fmt: skip

LOAD = Answer(reference=load_real_weights, wrong=WRONG, right=RIGHT)
