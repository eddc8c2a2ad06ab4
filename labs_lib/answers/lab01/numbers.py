"""Lab 01: dot_product_std and budget."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..kit import Answer, Right, Wrong


def dot_product_std(head_dim, q_std, k_std):
    """The standard deviation of q·k for independent entries of mean 0."""
    return math.sqrt(head_dim) * q_std * k_std


def budget(n_key, n_wanted, gap):
    """The softmax weight of each wanted key, whose score lies `gap` above all others."""
    wanted = math.exp(gap)
    return wanted / (n_wanted * wanted + (n_key - n_wanted))


def _std_by_sum(head_dim, q_std, k_std):
    variance = 0.0
    for _ in range(head_dim):
        variance += q_std**2 * k_std**2
    return variance**0.5


STD = Answer(
    reference=dot_product_std,
    wrong=(
        Wrong(
            "variance",
            lambda d, a, b: d * a**2 * b**2,
            "This is the variance of q·k. The standard deviation is its root.",
        ),
        Wrong(
            "linear_in_width",
            lambda d, a, b: d * a * b,
            "This adds up standard deviations. Independent summands cancel one another in part,\n"
            "so it is their variances that add up.",
        ),
        Wrong(
            "already_scaled",
            lambda d, a, b: a * b,
            "This is the spread of one product, or of q·k once it has been scaled. Here nothing\n"
            "is scaled yet: how many products are there?",
        ),
        Wrong(
            "stds_as_variances",
            lambda d, a, b: math.sqrt(d * a * b),
            "The root covers too much: q_std and k_std are standard deviations already, and here\n"
            "they were taken for variances.",
        ),
        Wrong(
            "width_only",
            lambda d, a, b: math.sqrt(d),
            "This is right only where all entries have standard deviation 1.",
        ),
        Wrong(
            "one_std",
            lambda d, a, b: math.sqrt(d) * a,
            "The spread of the keys takes no part. Doubling all of k doubles every dot product.",
        ),
        Wrong(
            "other_std",
            lambda d, a, b: math.sqrt(d) * b,
            "The spread of the queries takes no part. Doubling all of q doubles every dot product.",
        ),
        Wrong(
            "stds_summed",
            lambda d, a, b: math.sqrt(d) * (a + b),
            "The two spreads are added. A dot product multiplies a number of q by a number of k.",
        ),
        Wrong(
            "squares_left",
            lambda d, a, b: math.sqrt(d) * a**2 * b**2,
            "Under the root stands head_dim alone, and the variances stand outside it. Take the\n"
            "root of all of the variance.",
        ),
        Wrong(
            "stds_added",
            lambda d, a, b: math.sqrt(d * (a**2 + b**2)),
            "This is the spread of the sum of all entries, as if q and k were added. They are\n"
            "multiplied.",
        ),
        Wrong(
            "inverse",
            lambda d, a, b: a * b / math.sqrt(d),
            "This gets smaller as the head gets wider. It is the scores that grow, and the scale\n"
            "that takes it back.",
        ),
        Wrong(
            "torch_root_of_the_width",
            lambda d, a, b: torch.sqrt(d) * a * b,
            "torch.sqrt takes tensors, and these are plain numbers. Python's math has a root for\n"
            "numbers.",
        ),
        Wrong(
            "torch_root_of_a_number",
            lambda d, a, b: torch.sqrt(d * a**2 * b**2),
            "torch.sqrt takes tensors, and these are plain numbers. Python's math has a root for\n"
            "numbers.",
        ),
        Wrong(
            "one_product_less",
            lambda d, a, b: math.sqrt(d - 1) * a * b,
            "This counts one product too few. The -1 belongs to estimating a variance from a\n"
            "sample; here the spread is known.",
        ),
    ),
    right=(
        Right("sum_of_variances", _std_by_sum),
        Right("numpy", lambda head_dim, q_std, k_std: np.sqrt(head_dim) * q_std * k_std),
        Right(
            "zero_dim_tensor",
            lambda d, a, b: torch.tensor(float(d), dtype=torch.float64).sqrt() * a * b,
        ),
        Right("root_of_all", lambda d, a, b: (d * (a * b) ** 2) ** 0.5),
        Right("norm", lambda d, a, b: math.hypot(*[a * b] * d)),
    ),
)


def _softmax_of_scores(n_key, n_wanted, gap):
    scores = torch.zeros(n_key, dtype=torch.float64)
    scores[:n_wanted] = gap
    return scores.softmax(0)[0]


BUDGET = Answer(
    reference=budget,
    wrong=(
        Wrong(
            "no_rivals",
            lambda n, m, gap: math.exp(gap) / (math.exp(gap) + n - 1),
            "This is right for one wanted key. Several wanted keys compete with one another too:\n"
            "each of their e^gap stands in the sum.",
        ),
        Wrong(
            "each_on_its_own",
            lambda n, m, gap: math.exp(gap) / (math.exp(gap) + max(n - m, 0)),
            "Here the wanted keys don't compete with one another, so together they can pass 100\n"
            "percent. Add up all of the row.",
        ),
        Wrong(
            "all_together",
            lambda n, m, gap: m * math.exp(gap) / (m * math.exp(gap) + n - m),
            "This is what all wanted keys get together; wanted is what each of them gets.",
        ),
        Wrong(
            "even_share",
            lambda n, m, gap: 1 / m,
            "This is 1 / n_wanted, as if the wanted keys shared out everything. The other keys\n"
            "keep something: they stand in the sum of the row too, each number in it e to the\n"
            "power of a score.",
        ),
        Wrong(
            "ignores_the_gap",
            lambda n, m, gap: 1 / n,
            "This is the even row, which you get when all scores are equal.",
        ),
        Wrong(
            "others_counted_wrongly",
            lambda n, m, gap: math.exp(gap) / (m * math.exp(gap) + n),
            "The sum has more keys than there are: the wanted ones are counted twice, once with\n"
            "e^gap and once with e⁰.",
        ),
        Wrong(
            "weight_of_another",
            lambda n, m, gap: 1 / (m * math.exp(gap) + n - m),
            "This is what a key gets that is not wanted.",
        ),
        Wrong(
            "scores_as_weights",
            lambda n, m, gap: (1 + gap) / (m * (1 + gap) + n - m),
            "The scores are shared out as they are, without the exponential. Softmax raises e to\n"
            "their power first.",
        ),
        Wrong(
            "gap_without_exponential",
            lambda n, m, gap: gap / (m * gap + n - m),
            "The gap itself stands where e to the power of the gap belongs: the exponential is\n"
            "missing. Softmax raises e to the power of every score before it shares out.",
        ),
        Wrong(
            "one_against_one",
            lambda n, m, gap: math.exp(gap) / (1 + math.exp(gap)),
            "All the other keys together count as one here. Each of them stands in the sum of the\n"
            "row; so does each wanted key.",
        ),
        Wrong(
            "powers_of_two",
            lambda n, m, gap: 2**gap / (m * 2**gap + n - m),
            "These are powers of 2. Softmax takes powers of e.",
        ),
        Wrong(
            "e_times_gap",
            lambda n, m, gap: math.e * gap / (m * math.e * gap + n - m),
            "This multiplies e by the gap. Softmax raises e to the power of the score.",
        ),
        Wrong(
            "gap_reversed",
            lambda n, m, gap: math.exp(-gap) / (m * math.exp(-gap) + n - m),
            "The gap has the wrong sign: this is for wanted keys that lie below the others.",
        ),
        Wrong(
            "torch_power_of_a_number",
            lambda n, m, gap: torch.exp(gap) / (m * torch.exp(gap) + n - m),
            "torch.exp takes tensors, and gap is a plain number. Python's math has an exponential\n"
            "for numbers.",
        ),
        Wrong(
            "divided_by_the_number",
            lambda n, m, gap: math.exp(gap) / n,
            "This is divided by how many keys there are. Softmax divides by the sum of the row,\n"
            "in which each key stands with e to the power of its score.",
        ),
        Wrong(
            "counts_swapped",
            lambda n, m, gap: math.exp(gap) / ((n - m) * math.exp(gap) + m),
            "In the sum the counts have changed places: n_wanted keys stand there with e^gap, and\n"
            "all others with e⁰.",
        ),
        Wrong(
            "percent",
            lambda n, m, gap: 100 * budget(n, m, gap),
            "This is in percent; wanted is a weight from 0 to 1.",
        ),
    ),
    right=(
        Right("softmax_of_scores", _softmax_of_scores),
        Right("one_division", lambda n, m, gap: 1 / (m + (n - m) * math.exp(-gap))),
        Right("numpy", lambda n, m, gap: np.exp(gap) / (m * np.exp(gap) + n - m)),
        Right(
            "list_of_exponentials",
            lambda n_key, n_wanted, gap: (
                math.exp(gap) / sum(math.exp(gap) if i < n_wanted else 1.0 for i in range(n_key))
            ),
        ),
    ),
)

ANSWERS = {"lab01.dot_product_std": STD, "lab01.budget": BUDGET}
