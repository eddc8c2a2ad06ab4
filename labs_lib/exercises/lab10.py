"""Lab 10, online softmax: what is asked."""

from __future__ import annotations

from . import lab10_cases as cases
from . import lab10_rules as rules
from .kit import TOLERANCES, Exercise, Lab, Rule, Tolerance
from .lab10_quiz import QUIZ

LAB = Lab(
    number=10,
    slug="online_softmax",
    title="Online softmax",
    minutes=90,
    question=(
        "A softmax divides by a sum over the whole row. How can a program that only ever holds a "
        "few scores get it right, and is it right to the last digit?"
    ),
)

# Scores of some hundred carry a rounding error of their own: float32 has 7 digits in all. And in
# float64 a sum that is guarded by 1e-9 or 1e-8, which is at least 1, passes at every seed.
WITHIN_ROUNDING = {
    **TOLERANCES,
    "float32": Tolerance(1e-4, 1e-4),
    "float64": Tolerance(5e-8, 5e-8),
}

KEEPS_THE_ROW = (
    "The numbers are right, but the row was kept: at one time your function held about as many\n"
    "numbers as there are scores. What of the earlier blocks does the result still need?"
)

MAKES_THE_ROW = (
    "The numbers are right, but for each query a whole row of scores existed at one time. Take\n"
    "the keys a block at a time, and let go of a block's scores before the next."
)

SOFTMAXES = (
    "torch.softmax",
    "torch.log_softmax",
    "torch.logsumexp",
    "torch.nn.functional.softmin",
    "torch.nn.Softmax",
    "torch.nn.LogSoftmax",
)

FUNCTIONS = (
    Exercise(
        name="lab10.safe_softmax",
        title="the softmax in three passes: maximum, sum, quotient",
        stub='''
def safe_softmax(scores):
    """Softmax of each row of scores: [..., n] -> [..., n], for scores of any size.

    A score of -inf gets weight 0; a row in which every score is -inf gets all zeros.

    [[0., 0.], [1000., 1000.], [-inf, -inf]]  ->  [[0.5, 0.5], [0.5, 0.5], [0., 0.]]
    """
    raise NotImplementedError
''',
        cases=cases.row_cases,
        tolerances=WITHIN_ROUNDING,
        axes=("batch", "row", "score"),
        forbidden=SOFTMAXES,
        hints=(
            "exp(89) is too large for float32, and exp(-200) is 0. But a softmax stays the same\n"
            "if one number is added to all scores of a row. Which number keeps exp in range?",
            "Each row has a maximum of its own. amax gives it (max(dim=...) gives its position as\n"
            "well); keepdim=True keeps its axis, so that it can be subtracted from the row.",
            "In a row of -inf the maximum is -inf as well, and (-inf) - (-inf) is NaN. Put\n"
            "another number, such as 0, in the place of that maximum before you subtract. Then\n"
            "the sum is 0, and there is one more place to take care of.",
        ),
        minutes=8,
    ),
    Exercise(
        name="lab10.log_sum_exp",
        title="the logarithm of the sum that a softmax divides by",
        stub='''
def log_sum_exp(scores):
    """log(sum(exp(scores))) of each row: [..., n] -> [...], for scores of any size.

    A row in which every score is -inf gets -inf.

    [[0., 0.], [1000., 1000.]]  ->  [0.6931, 1000.6931]
    """
    raise NotImplementedError
''',
        cases=cases.row_cases,
        tolerances=WITHIN_ROUNDING,
        axes=("batch", "row"),
        forbidden=SOFTMAXES,
        hints=(
            "The sum itself is out of range for scores of 1000, its logarithm isn't. Take the\n"
            "largest exp out of the sum as a factor. What does a factor become in a logarithm?",
            "log(exp(m) * l) = m + log(l). What are m and l?",
            "As in safe_softmax, a row of -inf needs a stand-in in the exponent, and only there.\n"
            "log(0) is -inf already.",
        ),
        minutes=5,
    ),
    Exercise(
        name="lab10.rescale",
        title="what was collected under one maximum, as it is under a larger one",
        stub='''
def rescale(m_old, m_new, l, o):
    """l [...] and o [..., d], sums of exp(score - m_old), as they are under m_new: (l, o).

    m_old and m_new are [...], and m_new is never smaller. An m_old of -inf means that no score
    has come yet: l and o are 0, and they stay 0. Then m_new may be -inf as well.

    m_old [0.], m_new [0.6931] (the logarithm of 2), l [6.], o [[8., 10.]]  ->  [3.], [[4., 5.]]
    """
    raise NotImplementedError
''',
        cases=cases.rescale_cases,
        tolerances=WITHIN_ROUNDING,
        axes=("batch", "row", "d"),
        hints=(
            "Every term of the sums is exp(score - m_old), perhaps times a value. By what must it\n"
            "be multiplied to become exp(score - m_new)?",
            "The factor is one number for each row, and it is never larger than 1. o has an axis\n"
            "more than the factor.",
            "Where both are -inf, the difference is NaN. torch.where, or a stand-in for m_new in\n"
            "the exponent, gives 0 there.",
        ),
        minutes=6,
    ),
    Exercise(
        name="lab10.online_softmax",
        title="maximum and sum in one pass over blocks of scores",
        stub='''
def online_softmax(blocks):
    """Each row's maximum m and sum l of exp(score - m), in one pass: (m [...], l [...]).

    blocks yields tensors [..., n_b], one after the other and each only once; n_b may differ. A
    row in which every score is -inf has m = -inf and l = 0.

    blocks that yield [[0., 1.]] and then [[3.]]  ->  [3.], [1.1851]
    """
    raise NotImplementedError
''',
        cases=cases.stream_cases,
        call=cases.call_on_stream,
        tolerances=WITHIN_ROUNDING,
        rules=(
            Rule(
                name="forgets_blocks",
                text="no more than a few blocks were held at a time",
                kept=rules.forgets_blocks,
                broken=KEEPS_THE_ROW,
                by_torch=True,
            ),
        ),
        axes=("batch", "row"),
        forbidden=SOFTMAXES,
        hints=(
            "Begin with m = -inf and l = 0. For a new block: what is the maximum now, and what\n"
            "has to happen to l before the new terms are added?",
            "l is a sum of exp(score - m) with the old m. Each term has to become\n"
            "exp(score - m_new): multiply l by one factor. Make it before you overwrite m.",
            "Three cases of -inf: the first block of all, a block that is all -inf, a row that is\n"
            "all -inf. In each a difference (-inf) - (-inf) can arise. Use a stand-in in the\n"
            "exponent, and keep -inf in m.",
        ),
        minutes=10,
    ),
    Exercise(
        name="lab10.merge_softmax_states",
        title="two states of a softmax become one, whatever came first",
        stub='''
def merge_softmax_states(a, b):
    """The state (m, l, o) of all scores of a and b together.

    A state is a tuple: the maximum m [...] of the scores seen, l [...] the sum of
    exp(score - m), o [..., d] the sum of exp(score - m) * value. A state that has seen nothing
    has m = -inf, l = 0 and o = 0.

    ([0.], [1.], [[4.]]) and ([0.6931], [1.], [[4.]])  ->  ([0.6931], [1.5], [[6.]])
    """
    raise NotImplementedError
''',
        cases=cases.merge_cases,
        call=cases.call_merge,
        tolerances=WITHIN_ROUNDING,
        axes=("batch", "row", "d"),
        forbidden=SOFTMAXES,
        hints=(
            "Sums can be added when they are sums of the same thing. Under which m can both be\n"
            "written?",
            "The new maximum is the larger one, row by row. Both states are brought to it: one\n"
            "of them by a factor of 1, but which of the two differs from row to row.",
            "The two factors are exp(m_a - m) and exp(m_b - m); o needs an axis more. Where\n"
            "neither state has seen a score, both differences are NaN.",
        ),
        minutes=10,
    ),
    Exercise(
        name="lab10.attention_one_pass",
        title="attention that reads each key once and never holds a row of scores",
        stub='''
def attention_one_pass(q, k, v, mask=None, block=16):
    """Attention's output [..., seq_q, d_v] and log-sum-exp [..., seq_q], reading the keys once.

    q is [..., seq_q, head_dim], k [..., seq_k, head_dim], v [..., seq_k, d_v]; scores are divided
    by sqrt(head_dim). mask is bool, True = may attend: [..., seq_q, seq_k] or [..., 1, seq_k]. The
    keys are taken `block` at a time. A query that may attend to nothing gets zeros and -inf.

    q = [[1.]], k = [[0.], [0.]], v = [[2.], [4.]], block = 1  ->  [[3.]], [0.6931]
    """
    raise NotImplementedError
''',
        cases=cases.attention_cases,
        tolerances=WITHIN_ROUNDING,
        rules=(
            Rule(
                name="never_a_row",
                text="no whole row of scores existed at any time",
                kept=rules.never_a_row,
                broken=MAKES_THE_ROW,
                by_torch=True,
            ),
        ),
        axes=("batch", "n_head", "seq_q", "d_v"),
        forbidden=(
            "torch.nn.functional.scaled_dot_product_attention",
            "torch.nn.MultiheadAttention",
            "labs_lib.attention.flash.flash_attention",
        ),
        hints=(
            "Begin with m = -inf, l = 0, o = 0 for each query. For each block of keys: scores,\n"
            "mask, new maximum, factor, and then l and o move on. At the end: one division.",
            "k[..., start:start + block, :] are the keys of a block, and the same for v;\n"
            "mask[..., start:start + block] is the mask's part, whatever axes it has in front.\n"
            "Slices beyond the end are short, and no error.",
            "o is multiplied by the same factor as l, then the block's exp(scores - m) @ v is\n"
            "added. lse is m + log(l). Queries without any key: l is 0, m is -inf.",
        ),
        minutes=20,
    ),
)  # fmt: skip

EXERCISES = (*FUNCTIONS, *QUIZ)
