"""Lab 04: the parameters of a model, and which part of them is whose."""

from __future__ import annotations

import torch
from torch import nn

from labs_lib.arithmetic import ModelShape
from labs_lib.arithmetic import model_params as counted_params
from labs_lib.arithmetic import param_share as counted_share
from labs_lib.config import AttentionConfig

from ..kit import Answer, Right, Wrong


def model_params(n_layer, d_model, d_ff, vocab, n_position=0, tied=True, gated=False):
    """How many parameters a whole model has, an int; no biases and no norms."""
    return counted_params(_shape(n_layer, d_model, d_ff, vocab, n_position, tied, gated))


def param_share(n_layer, d_model, d_ff, vocab, n_position=0, tied=True):
    """The shares of attention, MLP and embeddings in all parameters."""
    shares = counted_share(_shape(n_layer, d_model, d_ff, vocab, n_position, tied))
    return shares["attention"], shares["mlp"], shares["embeddings"]


def _shape(n_layer, d_model, d_ff, vocab, n_position=0, tied=True, gated=False):
    return ModelShape(
        AttentionConfig(d_model, 1), n_layer, vocab, d_ff, gated, tied, n_position, norm="none"
    )


def _parts(n_layer, d_model, d_ff, vocab, n_position=0, tied=True, gated=False):
    """Attention, MLP, table of tokens, table of places, table of the output."""
    tokens = vocab * d_model
    mlp = n_layer * (3 if gated else 2) * d_model * d_ff
    return n_layer * 4 * d_model**2, mlp, tokens, n_position * d_model, (not tied) * tokens


def _summed(change):
    """A model's total in which `change(parts, arguments)` has got the parts wrong."""

    def program(n_layer, d_model, d_ff, vocab, n_position=0, tied=True, gated=False):
        given = (n_layer, d_model, d_ff, vocab, n_position, tied, gated)
        return sum(change(_parts(*given), given))

    return program


def _shared(change):
    """Shares made by `change` of the three counts and the layers."""

    def program(n_layer, d_model, d_ff, vocab, n_position=0, tied=True):
        attention, mlp, *tables = _parts(n_layer, d_model, d_ff, vocab, n_position, tied)
        return change(attention, mlp, sum(tables), n_layer)

    return program


def _divided(*parts):
    return tuple(part / sum(parts) for part in parts)


def _real_model(n_layer, d_model, d_ff, vocab, n_position=0, tied=True, gated=False):
    def linear(d_in, d_out):
        return nn.Linear(d_in, d_out, bias=False, device="meta")

    model = nn.ModuleList([nn.Embedding(vocab, d_model, device="meta")])
    for _ in range(n_layer):
        model += [linear(d_model, d_model) for _ in range(4)]
        model += [linear(d_model, d_ff) for _ in range(1 + gated)] + [linear(d_ff, d_model)]
    if n_position:
        model.append(nn.Embedding(n_position, d_model, device="meta"))
    if not tied:
        model.append(linear(d_model, vocab))
    return sum(p.numel() for p in model.parameters())


def _layer_by_layer(n_layer, d_model, d_ff, vocab, n_position=0, tied=True, gated=False):
    total = (vocab + n_position) * d_model
    for _ in range(n_layer):
        total += 4 * d_model * d_model
        total += 2 * d_model * d_ff
        if gated:
            total += d_model * d_ff
    if not tied:
        total += vocab * d_model
    return total


MODEL_PARAMS = Answer(
    reference=model_params,
    wrong=(
        Wrong(
            "one_layer",
            _summed(lambda p, a: (p[0] // a[0], p[1] // a[0], *p[2:])),
            "This model has one layer. Attention and MLP stand in every layer, n_layer times.",
        ),
        Wrong(
            "tables_in_every_layer",
            _summed(lambda p, a: (*p[:2], *(a[0] * table for table in p[2:]))),
            "The tables are counted once for each layer. A token is looked up once, before the\n"
            "first layer.",
        ),
        Wrong(
            "attention_forgotten",
            _summed(lambda p, a: p[1:]),
            "The attention is missing: this is the MLP and the tables.",
        ),
        Wrong(
            "mlp_forgotten",
            _summed(lambda p, a: (p[0], *p[2:])),
            "The MLP is missing: this is attention and the tables.",
        ),
        Wrong(
            "tables_forgotten",
            _summed(lambda p, a: p[:2]),
            "These are the layers alone. The tables of tokens and places belong to the model too.",
        ),
        Wrong(
            "places_forgotten",
            _summed(lambda p, a: (*p[:3], p[4])),
            "The table of places is missing: n_position vectors of d_model.",
        ),
        Wrong(
            "places_without_width",
            _summed(lambda p, a: (*p[:3], a[4], p[4])),
            "A place is one number here. It is a vector of d_model, as a token is.",
        ),
        Wrong(
            "three_matrices_of_attention",
            _summed(lambda p, a: (3 * p[0] // 4, *p[1:])),
            "Attention has three matrices here: W_O is missing.",
        ),
        Wrong(
            "one_matrix_of_the_mlp",
            _summed(lambda p, a: (p[0], p[1] - a[0] * a[1] * a[2], *p[2:])),
            "One matrix of the MLP is missing. One goes up to d_ff, one comes down again, and a\n"
            "gated MLP has a third.",
        ),
        Wrong(
            "mlp_always_four_times",
            _summed(lambda p, a: (p[0], a[0] * (3 if a[6] else 2) * 4 * a[1] ** 2, *p[2:])),
            "The MLP is 4 * d_model wide here. Its width is given: d_ff.",
        ),
        Wrong(
            "mlp_square_of_d_ff",
            _summed(lambda p, a: (p[0], a[0] * (3 if a[6] else 2) * a[2] ** 2, *p[2:])),
            "The MLP has squares of d_ff here. Its matrices lie between d_model and d_ff.",
        ),
        Wrong(
            "gate_forgotten",
            _summed(lambda p, a: (p[0], a[0] * 2 * a[1] * a[2], *p[2:])),
            "A gated MLP has three matrices; here it has two.",
        ),
        Wrong(
            "always_gated",
            _summed(lambda p, a: (p[0], a[0] * 3 * a[1] * a[2], *p[2:])),
            "The MLP has three matrices here even where it isn't gated.",
        ),
        Wrong(
            "tied_counted_twice",
            _summed(lambda p, a: (*p[:4], p[2])),
            "The output has a table of its own here in every model. Tied means that it uses the\n"
            "table of tokens again.",
        ),
        Wrong(
            "always_tied",
            _summed(lambda p, a: p[:4]),
            "With tied=False the output has a table of its own, as large as that of the tokens.",
        ),
        Wrong(
            "tied_upside_down",
            _summed(lambda p, a: (*p[:4], a[5] * p[2])),
            "The second table is counted where the two are tied, and left out where they aren't.",
        ),
        Wrong(
            "places_at_the_output",
            _summed(lambda p, a: (*p, (not a[5]) * p[3])),
            "Untied, the output has a table of tokens of its own; it needs none of places.",
        ),
        Wrong(
            "norms_counted",
            _summed(lambda p, a: (*p, 2 * a[0] * a[1])),
            "Two vectors of d_model are counted in each layer, as norms have. Norms are left out\n"
            "here.",
        ),
        Wrong(
            "biases_counted",
            _summed(lambda p, a: (*p, a[0] * (5 * a[1] + (2 if a[6] else 1) * a[2]))),
            "Each matrix has a bias here. Biases are left out.",
        ),
        Wrong(
            "in_millions",
            lambda *sizes, **more: model_params(*sizes, **more) / 1e6,
            "These are millions. Give the number itself.",
        ),
        Wrong(
            "only_the_tokens_in_every_layer",
            lambda n, d, f, v, places=0, tied=True, gated=False: n * (
                4 * d * d + 2 * d * f + v * d),
            "The table of tokens is counted in every layer, and n_position, tied and gated change\n"
            "nothing. A model looks its tokens up once.",
        ),
        Wrong(
            "places_tied_and_gated_change_nothing",
            _summed(lambda p, a: (p[0], a[0] * 2 * a[1] * a[2], p[2])),
            "n_position, tied and gated change nothing here. Places have a table, an output that\n"
            "isn't tied has one of its own, and a gated MLP has a third matrix.",
        ),
        Wrong(
            "one_table_only",
            _summed(lambda p, a: p[:3]),
            "The table of tokens is the only one here. Two are missing: that of the places, and\n"
            "with tied=False the output's own.",
        ),
        Wrong(
            "places_in_every_layer",
            _summed(lambda p, a: (*p[:3], a[0] * p[3], p[4])),
            "The table of places is counted in every layer. It is added once, before the first.",
        ),
        Wrong(
            "a_token_is_one_number",
            _summed(lambda p, a: (*p[:2], *(table // a[1] for table in p[2:]))),
            "A token and a place are one number each here. Each has a vector of d_model.",
        ),
        Wrong(
            "gate_is_a_vector",
            _summed(lambda p, a: (p[0], a[0] * (2 * a[1] * a[2] + a[6] * a[2]), *p[2:])),
            "The gate is d_ff numbers here. It is a third matrix, as large as the first.",
        ),
    ),
    right=(
        Right("real_model_without_memory", _real_model),
        Right("layer_by_layer", _layer_by_layer),
        Right("kept_arguments", lambda *sizes, **more: _layer_by_layer(*sizes, **more)),
        Right("a_sum_of_parts", _summed(lambda p, a: p)),
    ),
)  # fmt: skip


PARAM_SHARE = Answer(
    reference=param_share,
    wrong=(
        Wrong(
            "percent",
            _shared(lambda a, m, e, n: tuple(100 * s for s in _divided(a, m, e))),
            "These are percentages. A share lies between 0 and 1.",
        ),
        Wrong(
            "counts",
            _shared(lambda a, m, e, n: (a, m, e)),
            "These are counts. Divide each by the sum of all three.",
        ),
        Wrong(
            "rounded",
            _shared(lambda a, m, e, n: tuple(round(s, 2) for s in _divided(a, m, e))),
            "The shares are rounded. Return them as they are, and round where you print.",
        ),
        Wrong(
            "layers_only",
            _shared(lambda a, m, e, n: (a / (a + m), m / (a + m), e / (a + m))),
            "You divide by attention and MLP alone. The embeddings belong to the whole as well.",
        ),
        Wrong(
            "one_layer",
            _shared(lambda a, m, e, n: _divided(a / n, m / n, e)),
            "Attention and MLP count as often as the tables here. They stand in each of n_layer,\n"
            "and the tables stand once.",
        ),
        Wrong(
            "mlp_before_attention",
            _shared(lambda a, m, e, n: _divided(m, a, e)),
            "Attention and MLP have changed places. First attention, then MLP, then embeddings.",
        ),
        Wrong(
            "embeddings_first",
            _shared(lambda a, m, e, n: _divided(e, a, m)),
            "The embeddings come last: attention, MLP, embeddings.",
        ),
        Wrong(
            "attention_without_w_o",
            _shared(lambda a, m, e, n: _divided(3 * a / 4, m, e)),
            "Attention has three matrices here: W_O is missing.",
        ),
        Wrong(
            "one_matrix_of_the_mlp",
            _shared(lambda a, m, e, n: _divided(a, m / 2, e)),
            "The MLP has one matrix here. One goes up to d_ff and one comes down again.",
        ),
        Wrong(
            "parts_of_each_other",
            _shared(lambda a, m, e, n: (a / (m + e), m / (a + e), e / (a + m))),
            "Each part is divided by the two others. Divide by the sum of all three.",
        ),
        Wrong(
            "always_tied",
            lambda n, d, f, v, places=0, tied=True: param_share(n, d, f, v, places),
            "With tied=False the output has a table of its own, as large as that of the tokens.",
        ),
        Wrong(
            "always_untied",
            lambda n, d, f, v, places=0, tied=True: param_share(n, d, f, v, places, False),
            "The output has a table of its own here in every model. Tied means that it uses the\n"
            "table of tokens again.",
        ),
        Wrong(
            "places_forgotten",
            lambda n, d, f, v, places=0, tied=True: param_share(n, d, f, v, 0, tied),
            "The table of places is missing: n_position vectors of d_model.",
        ),
        Wrong(
            "mlp_always_four_times",
            lambda n, d, f, v, places=0, tied=True: param_share(n, d, 4 * d, v, places, tied),
            "The MLP is 4 * d_model wide here. Its width is given: d_ff.",
        ),
        Wrong(
            "rounded_to_three",
            _shared(lambda a, m, e, n: tuple(round(s, 3) for s in _divided(a, m, e))),
            "The shares are rounded. Return them as they are, and round where you print.",
        ),
        Wrong(
            "whole_division",
            _shared(lambda a, m, e, n: (a // (a + m + e), m // (a + m + e), e // (a + m + e))),
            "All shares are 0: // drops what is behind the point. Divide with /.",
        ),
        Wrong(
            "places_at_the_output",
            lambda n, d, f, v, places=0, tied=True: _divided(
                4 * n * d * d, 2 * n * d * f, (v + places) * d * (1 if tied else 2)),
            "Untied, the output has a table of tokens of its own; it needs none of places.",
        ),
        Wrong(
            "one_table_only",
            lambda n, d, f, v, places=0, tied=True: param_share(n, d, f, v),
            "The table of tokens is the only one here. Two are missing: that of the places, and\n"
            "with tied=False the output's own.",
        ),
        Wrong(
            "mlp_of_one_layer",
            _shared(lambda a, m, e, n: _divided(a, m / n, e)),
            "The MLP of one layer is counted here, and the attention of all. Both stand in every\n"
            "layer, n_layer times.",
        ),
        Wrong(
            "attention_of_one_layer",
            _shared(lambda a, m, e, n: _divided(a / n, m, e)),
            "The attention of one layer is counted here, and the MLP of all. Both stand in every\n"
            "layer, n_layer times.",
        ),
        Wrong(
            "attention_alone",
            _shared(lambda a, m, e, n: a / (a + m + e)),
            "This is attention's share alone. Wanted are three: attention, MLP, embeddings.",
        ),
        Wrong(
            "by_name",
            _shared(lambda a, m, e, n: dict(
                zip(("attention", "mlp", "embeddings"), _divided(a, m, e), strict=True))),
            "The shares have names here. Wanted is a plain tuple: attention, MLP, embeddings.",
        ),
    ),
    right=(
        Right("list", _shared(lambda a, m, e, n: list(_divided(a, m, e)))),
        Right("tensors", _shared(lambda a, m, e, n: tuple(
            torch.tensor([a, m, e], dtype=torch.float64) / (a + m + e)))),
        Right("the_rest_is_embeddings", _shared(lambda a, m, e, n: (
            a / (a + m + e), m / (a + m + e), 1 - (a + m) / (a + m + e)))),
    ),
)  # fmt: skip
