"""Lab 04: the parameters of an attention layer."""

from __future__ import annotations

import numpy as np
from torch import nn

from labs_lib.arithmetic import attention_params as counted_params
from labs_lib.config import AttentionConfig

from ..kit import Answer, Right, Wrong


def attention_params(d_model, n_head, n_kv_head, head_dim, bias=False):
    """How many parameters W_Q, W_K, W_V and W_O have together, an int."""
    return counted_params(AttentionConfig(d_model, n_head, n_kv_head, head_dim, bias=bias))


def _from_shapes(shapes):
    """A program that counts the matrices [rows, columns] that `shapes` gives, with their biases."""

    def program(d_model, n_head, n_kv_head, head_dim, bias=False):
        matrices = shapes(d_model, n_head * head_dim, n_kv_head * head_dim)
        return sum(rows * columns + bias * columns for rows, columns in matrices)

    return program


def _four(d, width, kv):
    return [(d, width), (d, kv), (d, kv), (width, d)]


def _without_bias(d_model, n_head, n_kv_head, head_dim, bias=False):
    return attention_params(d_model, n_head, n_kv_head, head_dim)


def _with_bias(d_model, n_head, n_kv_head, head_dim, bias=True):
    return attention_params(d_model, n_head, n_kv_head, head_dim, True)


def _square(d_model, n_head, n_kv_head, head_dim, bias=False):
    return 4 * d_model**2 + bias * 4 * d_model


def _biases(count):
    def program(d_model, n_head, n_kv_head, head_dim, bias=False):
        numbers = count(d_model, n_head * head_dim, n_kv_head * head_dim)
        return attention_params(d_model, n_head, n_kv_head, head_dim) + bias * numbers

    return program


def _real_layers(d_model, n_head, n_kv_head, head_dim, bias=False):
    shapes = _four(d_model, n_head * head_dim, n_kv_head * head_dim)
    layers = nn.ModuleList(nn.Linear(i, o, bias=bias, device="meta") for i, o in shapes)
    return sum(p.numel() for p in layers.parameters())


def _head_by_head(d_model, n_head, n_kv_head, head_dim, bias=False):
    total = 0
    for _ in range(n_head):
        total += d_model * head_dim + head_dim * d_model + bias * head_dim
    for _ in range(n_kv_head):
        total += 2 * (d_model * head_dim + bias * head_dim)
    return total + (d_model if bias else 0)


def _with_numpy(d_model, n_head, n_kv_head, head_dim, bias=False):
    columns = np.array([n_head * head_dim, n_kv_head * head_dim, n_kv_head * head_dim, d_model])
    rows = np.array([d_model, d_model, d_model, n_head * head_dim])
    return (columns * (rows + int(bias))).sum()


ATTENTION_PARAMS = Answer(
    reference=attention_params,
    wrong=(
        Wrong(
            "w_o_forgotten",
            _from_shapes(lambda d, width, kv: _four(d, width, kv)[:3]),
            "W_O is missing: these are queries, keys and values only. The heads' answers have to\n"
            "come back to d_model.",
        ),
        Wrong(
            "always_four_squares",
            _square,
            "This is four squares of d_model. That is so where every head has keys of its own and\n"
            "n_head * head_dim is d_model; some models are different on both counts.",
        ),
        Wrong(
            "each_head_a_square",
            lambda d, h, kv, hd, bias=False: h * _square(d, h, kv, hd, bias),
            "Here every head has matrices [d_model, d_model]. A head makes only head_dim numbers\n"
            "of a token, so its matrices are narrow.",
        ),
        Wrong(
            "kv_heads_not_shared",
            lambda d, h, kv, hd, bias=False: attention_params(d, h, h, hd, bias),
            "Here every head has keys and values of its own. W_K and W_V make only n_kv_head.",
        ),
        Wrong(
            "groups_for_kv_heads",
            lambda d, h, kv, hd, bias=False: attention_params(d, h, h // kv, hd, bias),
            "You use n_head / n_kv_head, which is how many query heads share one key/value head.\n"
            "How many key/value heads there are is n_kv_head itself.",
        ),
        Wrong(
            "head_dim_not_used",
            lambda d, h, kv, hd, bias=False: attention_params(d, h, kv, d // h, bias),
            "The width of a head is d_model / n_head here. It is given as head_dim, and some\n"
            "models choose another width.",
        ),
        Wrong(
            "w_o_square",
            _from_shapes(lambda d, width, kv: [*_four(d, width, kv)[:3], (d, d)]),
            "W_O is [d_model, d_model] here. It reads all heads side by side, so how many rows\n"
            "does it have?",
        ),
        Wrong(
            "w_o_shrinks_with_the_keys",
            _from_shapes(lambda d, width, kv: [*_four(d, width, kv)[:3], (kv, d)]),
            "W_O has a row for each number of the keys here. It reads the answers, and there are\n"
            "as many answers as queries: n_head of them.",
        ),
        Wrong(
            "queries_shared_too",
            lambda d, h, kv, hd, bias=False: attention_params(d, kv, kv, hd, bias),
            "W_Q and W_O have n_kv_head heads here. Only keys and values are shared: there are\n"
            "n_head queries of a token, and as many answers.",
        ),
        Wrong(
            "keys_and_values_once",
            _from_shapes(lambda d, width, kv: [(d, width), (d, kv), (width, d)]),
            "Keys and values have one matrix together here. Each has one of its own.",
        ),
        Wrong(
            "one_head_only",
            lambda d, h, kv, hd, bias=False: attention_params(d, 1, 1, hd, bias),
            "These are the matrices of one head. A layer has n_head of them.",
        ),
        Wrong(
            "biases_forgotten",
            _without_bias,
            "The matrices are right. With bias=True each of them has one number more for each of\n"
            "its columns.",
        ),
        Wrong(
            "biases_always",
            _with_bias,
            "The biases are counted even where there are none: look at the argument bias.",
        ),
        Wrong(
            "one_number_for_a_bias",
            _biases(lambda d, width, kv: 4),
            "A bias is one number here. It is a vector: one number for each column of its matrix.",
        ),
        Wrong(
            "the_flag_is_added",
            _biases(lambda d, width, kv: 1),
            "bias itself is added, and True counts as 1. It says whether there are biases: a\n"
            "vector behind each of the four matrices.",
        ),
        Wrong(
            "four_counts",
            lambda d, h, kv, hd, bias=False: (d * h * hd, d * kv * hd, d * kv * hd, d * h * hd),
            "These are the counts of the four matrices, one by one. Wanted is their sum.",
        ),
        Wrong(
            "biases_of_d_model",
            _biases(lambda d, width, kv: 4 * d),
            "All four biases have d_model numbers here. A bias is as long as what comes out of\n"
            "its matrix, and queries, keys and values may be longer or shorter.",
        ),
        Wrong(
            "bias_of_w_o_forgotten",
            _biases(lambda d, width, kv: width + 2 * kv),
            "The bias of W_O is missing.",
        ),
        Wrong(
            "bias_of_rows",
            _biases(lambda d, width, kv: 3 * d + width),
            "These biases are as long as the rows of the matrices: what goes in. A bias is added\n"
            "to what comes out.",
        ),
        Wrong(
            "in_millions",
            lambda *sizes: attention_params(*sizes) / 1e6,
            "These are millions. Give the number itself.",
        ),
        Wrong(
            "in_bytes",
            lambda *sizes: 4 * attention_params(*sizes),
            "These are bytes in float32. A parameter counts once, whatever it weighs.",
        ),
        Wrong(
            "bias_of_w_o_as_wide_as_heads",
            _biases(lambda d, width, kv: 2 * width + 2 * kv),
            "W_O's bias is as long as the heads together here. It is added to what W_O gives,\n"
            "which has d_model numbers.",
        ),
        Wrong(
            "queries_twice",
            _from_shapes(lambda d, width, kv: [(d, width), *_four(d, width, kv)]),
            "There is one matrix [d_model, n_head * head_dim] too many: did you count W_Q twice?\n"
            "There are four matrices, W_Q, W_K, W_V and W_O.",
        ),
        Wrong(
            "biases_all_as_wide_as_queries",
            _biases(lambda d, width, kv: 4 * width),
            "All four biases are as long as the queries here. A bias is as long as what comes out\n"
            "of its matrix: fewer numbers for shared keys and values, and d_model behind W_O.",
        ),
        Wrong(
            "biases_of_keys_as_wide_as_queries",
            _biases(lambda d, width, kv: 3 * width + d),
            "The biases of keys and values are as long as that of the queries here. W_K and W_V\n"
            "have fewer columns where heads are shared.",
        ),
        Wrong(
            "own_keys_no_biases",
            lambda d, h, kv, hd, bias=False: attention_params(d, h, h, hd),
            "Here every head has keys and values of its own; W_K and W_V make only n_kv_head.\n"
            "And with bias=True each matrix has one number more for each column.",
        ),
    ),
    right=(
        Right("real_layers_without_memory", _real_layers),
        Right("head_by_head", _head_by_head),
        Right("numpy", _with_numpy),
        Right("shapes", _from_shapes(_four)),
        Right("a_lambda", lambda d, h, kv, hd, bias=0: 2 * (d + bool(bias)) * (h + kv) * hd + (
            (d - h * hd) if bias else 0)),
        Right("extra_default", lambda d, h, kv, hd, bias=False, n_layer=1: n_layer * (
            attention_params(d, h, kv, hd, bias))),
    ),
)  # fmt: skip
