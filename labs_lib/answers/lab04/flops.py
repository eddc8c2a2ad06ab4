"""Lab 04: the operations of the six products, and of the softmax."""

from __future__ import annotations

import torch

from labs_lib.arithmetic import attention_flops as counted_flops
from labs_lib.arithmetic import softmax_work as counted_work
from labs_lib.config import AttentionConfig

from ..kit import Answer, Right, Wrong

PROJECTIONS, WITH_SCORES = ("Q", "K", "V", "W_O"), ("QK^T", "AV")


def attention_flops(batch, seq_q, seq_k, d_model, n_head, head_dim):
    """The FLOPs of each product of an attention layer: a dict of six ints."""
    config = AttentionConfig(d_model, n_head, head_dim=head_dim)
    return counted_flops(config, batch, seq_q, seq_k)


def softmax_work(batch, seq_q, seq_k, n_head, head_dim):
    """How many operations the softmax of one attention layer takes, an int."""
    config = AttentionConfig(n_head * head_dim, n_head)
    return counted_work(config, batch, seq_q, seq_k)


def _times(factor, names=(*PROJECTIONS, *WITH_SCORES)):
    """The right counts, those of `names` multiplied by `factor` of the six arguments."""

    def program(*sizes):
        right = attention_flops(*sizes)
        return {
            name: flops * factor(*sizes) if name in names else flops
            for name, flops in right.items()
        }

    return program


def _instead(change):
    """The right counts with some replaced by those that `change` of the arguments gives."""
    return lambda *sizes: attention_flops(*sizes) | change(*sizes)


def _half(*sizes):
    return {name: n // 2 for name, n in attention_flops(*sizes).items()}


def _causal(b, tq, tk, d, h, hd):
    return attention_flops(b, tq, tk, d, h, hd) | dict.fromkeys(
        WITH_SCORES, 2 * b * h * hd * (tk * (tk + 1) // 2)
    )


def _two_for_each_score(batch, seq_q, seq_k, d_model, n_head, head_dim):
    """Read the number of scores, and of numbers that are projected, from tensors' shapes."""
    scores = torch.empty(batch, n_head, seq_q, seq_k, device="meta").numel()
    q, k = (torch.empty(batch, n_head, seq, head_dim, device="meta") for seq in (seq_q, seq_k))
    flops = dict.fromkeys(WITH_SCORES, 2 * head_dim * scores)
    flops |= dict.fromkeys("KV", 2 * d_model * k.numel())
    return flops | dict.fromkeys(("Q", "W_O"), 2 * d_model * q.numel())


def _head_by_head(batch, seq_q, seq_k, d_model, n_head, head_dim):
    flops = dict.fromkeys(("W_O", "AV", "QK^T", "V", "K", "Q"), 0)
    for _ in range(batch):
        for _ in range(n_head):
            flops["Q"] += 2 * seq_q * d_model * head_dim
            flops["K"] += 2 * seq_k * d_model * head_dim
            flops["QK^T"] += 2 * seq_q * head_dim * seq_k
    return flops | {"V": flops["K"], "W_O": flops["Q"], "AV": flops["QK^T"]}


def _as_floats(*sizes):
    return {name: float(n) for name, n in attention_flops(*sizes).items()}


ATTENTION_FLOPS = Answer(
    reference=attention_flops,
    wrong=(
        Wrong(
            "multiplications_only",
            _half,
            "These are the multiplications. Each comes with an addition, and both count.",
        ),
        Wrong(
            "one_addition_less",
            lambda b, tq, tk, d, h, hd: {
                "Q": b * tq * h * hd * (2 * d - 1), "K": b * tk * h * hd * (2 * d - 1),
                "V": b * tk * h * hd * (2 * d - 1), "QK^T": b * h * tq * tk * (2 * hd - 1),
                "AV": b * h * tq * hd * (2 * tk - 1), "W_O": b * tq * d * (2 * h * hd - 1)},
            "A sum of m products has m - 1 additions, and so you count: that is exact. By custom\n"
            "each multiplication comes with one addition: 2 * n * m * p.",
        ),
        Wrong(
            "projections_once_per_head",
            _times(lambda b, tq, tk, d, h, hd: h, PROJECTIONS),
            "The four projections are counted n_head times too often. n_head * head_dim columns\n"
            "are the columns of all heads together.",
        ),
        Wrong(
            "one_head_of_scores",
            _instead(lambda b, tq, tk, d, h, hd: dict.fromkeys(WITH_SCORES, 2 * b * tq * tk * hd)),
            "QK^T and AV are those of one head. Every head has scores of its own.",
        ),
        Wrong(
            "every_head_of_full_width",
            _times(lambda b, tq, tk, d, h, hd: h, WITH_SCORES),
            "QK^T and AV are n_head times too many: each head compares head_dim numbers, not all\n"
            "of them.",
        ),
        Wrong(
            "scores_over_d_model",
            _instead(lambda b, tq, tk, d, h, hd: dict.fromkeys(WITH_SCORES, 2 * b * tq * tk * d)),
            "You compare d_model numbers. The heads compare n_head * head_dim together, and in\n"
            "some models that is another number.",
        ),
        Wrong(
            "projections_are_squares",
            _instead(lambda b, tq, tk, d, h, hd: {
                "Q": 2 * b * tq * d * d, "K": 2 * b * tk * d * d,
                "V": 2 * b * tk * d * d, "W_O": 2 * b * tq * d * d}),
            "The projections are [d_model, d_model] here. One side of them is n_head * head_dim.",
        ),
        Wrong(
            "one_head_projected",
            _instead(lambda b, tq, tk, d, h, hd: {
                "Q": 2 * b * tq * d * hd, "K": 2 * b * tk * d * hd,
                "V": 2 * b * tk * d * hd, "W_O": 2 * b * tq * d * hd}),
            "The projections make one head here. There are n_head.",
        ),
        Wrong(
            "keys_from_the_queries_tokens",
            _instead(lambda b, tq, tk, d, h, hd: dict.fromkeys("KV", 2 * b * tq * d * h * hd)),
            "Keys and values are made of seq_q tokens here. They come from those that are asked.",
        ),
        Wrong(
            "as_many_keys_as_queries",
            lambda b, tq, tk, d, h, hd: attention_flops(b, tq, tq, d, h, hd),
            "You use seq_q everywhere. The tokens that are asked may be more or fewer.",
        ),
        Wrong(
            "as_many_queries_as_keys",
            lambda b, tq, tk, d, h, hd: attention_flops(b, tk, tk, d, h, hd),
            "You use seq_k everywhere. The tokens that ask may be more or fewer.",
        ),
        Wrong(
            "the_other_way_round",
            lambda b, tq, tk, d, h, hd: attention_flops(b, tk, tq, d, h, hd),
            "seq_q and seq_k have changed places.",
        ),
        Wrong(
            "answers_for_the_keys",
            _instead(lambda b, tq, tk, d, h, hd: {"W_O": 2 * b * tk * d * h * hd}),
            "W_O runs over seq_k tokens here. Only the tokens that ask get an answer.",
        ),
        Wrong(
            "all_tokens_among_themselves",
            _instead(lambda b, tq, tk, d, h, hd: dict.fromkeys(WITH_SCORES, 2 * b * h * hd * (
                tq + tk) ** 2)),
            "QK^T and AV are those of seq_q + seq_k tokens among themselves. There is one score\n"
            "for each pair of a query and a key.",
        ),
        Wrong(
            "batch_forgotten",
            lambda b, *sizes: attention_flops(1, *sizes),
            "This is one sequence. There are batch of them.",
        ),
        Wrong(
            "batch_squared",
            _times(lambda b, tq, tk, d, h, hd: b, WITH_SCORES),
            "The sequences attend to one another in QK^T and AV. Each attends to its own tokens.",
        ),
        Wrong(
            "causal_half",
            _causal,
            "You leave out what a causal mask hides. Here nothing is masked, and a plain product\n"
            "computes the hidden scores as well.",
        ),
        Wrong(
            "softmax_counted_in",
            _instead(lambda b, tq, tk, d, h, hd: {"AV": 2 * b * h * tq * tk * hd + 5 * b * h * (
                tq * tk)}),
            "AV has the softmax in it. Only the product is wanted here.",
        ),
        Wrong(
            "keys_and_values_together",
            _times(lambda b, tq, tk, d, h, hd: 2, ("K", "V")),
            "K and V have twice their operations each. Each is one product.",
        ),
        Wrong(
            "in_billions",
            lambda *sizes: {k: n / 1e9 for k, n in attention_flops(*sizes).items()},
            "These are billions. Give the numbers themselves.",
        ),
        Wrong(
            "d_model_for_the_heads",
            lambda b, tq, tk, d, h, hd: dict.fromkeys(("Q", "W_O"), 2 * b * tq * d * d)
            | dict.fromkeys("KV", 2 * b * tk * d * d)
            | dict.fromkeys(WITH_SCORES, 2 * b * tq * tk * d),
            "d_model stands everywhere for the width of the heads. Together they are\n"
            "n_head * head_dim wide, and in some models that is another number.",
        ),
        Wrong(
            "w_o_is_square",
            _instead(lambda b, tq, tk, d, h, hd: {"W_O": 2 * b * tq * d * d}),
            "W_O is [d_model, d_model] here. It reads n_head * head_dim numbers of each token.",
        ),
        Wrong(
            "keys_are_the_queries",
            _instead(lambda b, tq, tk, d, h, hd: dict.fromkeys(
                WITH_SCORES, 2 * b * h * hd * tq**2)),
            "QK^T and AV compare the asking tokens with one another. They ask seq_k tokens.",
        ),
        Wrong(
            "one_head_projected_and_all_answered",
            _instead(lambda b, tq, tk, d, h, hd: {
                "Q": 2 * b * tq * d * hd, "K": 2 * b * tk * d * hd, "V": 2 * b * tk * d * hd}),
            "Q, K and V make one head here. There are n_head.",
        ),
        Wrong(
            "head_dim_twice",
            _times(lambda b, tq, tk, d, h, hd: hd, ("QK^T",)),
            "QK^T has head_dim as a factor twice. [seq_q, head_dim] @ [head_dim, seq_k] takes it\n"
            "once: it is the side that disappears.",
        ),
        Wrong(
            "head_dim_forgotten",
            _instead(lambda b, tq, tk, d, h, hd: dict.fromkeys(WITH_SCORES, 2 * b * h * tq * tk)),
            "QK^T and AV count one step for each score. A score is a sum over head_dim numbers.",
        ),
        Wrong(
            "weights_forgotten_in_av",
            _instead(lambda b, tq, tk, d, h, hd: {"AV": 2 * b * h * tq * hd}),
            "AV takes as many operations as its result has numbers here. Each of these numbers is\n"
            "a sum over seq_k values.",
        ),
        Wrong(
            "all_in_one",
            lambda *sizes: sum(attention_flops(*sizes).values()),
            "This is the sum. Wanted is each product by its name.",
        ),
        Wrong(
            "without_names",
            lambda *sizes: tuple(attention_flops(*sizes).values()),
            "The six numbers have no names here. A dict is wanted, with the keys of the example.",
        ),
        Wrong(
            "qk_without_the_t",
            lambda *sizes: {k.replace("^T", ""): n for k, n in attention_flops(*sizes).items()},
            "One key has another name than asked: the product of queries and keys is \"QK^T\".",
        ),
    ),
    right=(
        Right("two_for_each_score", _two_for_each_score),
        Right("head_by_head", _head_by_head),
        Right("floats", _as_floats),
        Right("extra_default", lambda b, tq, tk, d, h, hd, causal=False: attention_flops(
            b, tq, tk, d, h, hd)),
    ),
)  # fmt: skip


SOFTMAX_WORK = Answer(
    reference=softmax_work,
    wrong=(
        Wrong(
            "heads_forgotten",
            lambda b, tq, tk, h, hd: 5 * b * tq * tk,
            "This is one head. Each head has scores of its own, and a softmax over them.",
        ),
        Wrong(
            "five_forgotten",
            lambda b, tq, tk, h, hd: b * h * tq * tk,
            "This is the number of scores. Each of them takes five operations.",
        ),
        Wrong(
            "times_head_dim",
            lambda b, tq, tk, h, hd: 5 * b * h * hd * tq * tk,
            "You multiply by head_dim. A score is one number, however long the vectors were that\n"
            "made it.",
        ),
        Wrong(
            "width_for_heads",
            lambda b, tq, tk, h, hd: 5 * b * hd * tq * tk,
            "You count head_dim where the heads should stand.",
        ),
        Wrong(
            "rows_only",
            lambda b, tq, tk, h, hd: 5 * b * h * tq,
            "These are five operations for each row. A row has seq_k scores.",
        ),
        Wrong(
            "queries_squared",
            lambda b, tq, tk, h, hd: 5 * b * h * tq**2,
            "You take seq_q for both sides. A row has a score for each key, seq_k of them.",
        ),
        Wrong(
            "keys_squared",
            lambda b, tq, tk, h, hd: 5 * b * h * tk**2,
            "You take seq_k for both sides. There is a row for each query, seq_q of them.",
        ),
        Wrong(
            "batch_forgotten",
            lambda b, tq, tk, h, hd: 5 * h * tq * tk,
            "This is one sequence. There are batch of them.",
        ),
        Wrong(
            "batch_squared",
            lambda b, tq, tk, h, hd: 5 * b * b * h * tq * tk,
            "The sequences attend to one another here. Each attends to its own tokens.",
        ),
        Wrong(
            "heads_squared",
            lambda b, tq, tk, h, hd: 5 * b * h * h * tq * tk,
            "The heads attend to one another here. Each has its own scores and nothing else.",
        ),
        Wrong(
            "causal_half",
            lambda b, tq, tk, h, hd: 5 * b * h * tk * (tk + 1) // 2,
            "You leave out what a causal mask hides. Here nothing is masked.",
        ),
        Wrong(
            "values_for_keys",
            lambda b, tq, tk, h, hd: 5 * b * h * tq * hd,
            "You count what the heads answer, head_dim numbers for each query. The softmax runs\n"
            "over the scores.",
        ),
        Wrong(
            "sum_and_division_per_row",
            lambda b, tq, tk, h, hd: b * h * tq * (4 * tk + 1),
            "The division is counted once for each row. Every score of a row is divided.",
        ),
        Wrong(
            "one_less_for_maximum_and_sum",
            lambda b, tq, tk, h, hd: b * h * tq * (5 * tk - 2),
            "You count one comparison and one addition less than there are scores. That is exact;\n"
            "here each takes one for each score, the first too.",
        ),
        Wrong(
            "one_less_a_row",
            lambda b, tq, tk, h, hd: b * h * tq * (5 * tk - 1),
            "You count one operation less in each row. Here every score takes five, the first too.",
        ),
        *(
            Wrong(
                f"{word}_a_score",
                lambda b, tq, tk, h, hd, each=each: each * b * h * tq * tk,
                f"You count {word} for each score. There are five: compare, subtract,\n"
                "exponentiate, add, divide.",
            )
            for word, each in (("three", 3), ("four", 4))
        ),
        Wrong(
            "ten_a_score",
            lambda b, tq, tk, h, hd: 10 * b * h * tq * tk,
            "These are ten for each score. Nothing is multiplied and added here, so an operation\n"
            "counts once.",
        ),
    ),
    right=(
        Right("counts_a_tensor", lambda b, tq, tk, h, hd: 5 * torch.empty(
            b, h, tq, tk, device="meta").numel()),
        Right("row_by_row", lambda b, tq, tk, h, hd: sum(5 * tk for _ in range(b * h * tq))),
        Right("a_0d_tensor", lambda b, tq, tk, h, hd: torch.tensor([b, h, tq, tk, 5]).prod()),
    ),
)  # fmt: skip
