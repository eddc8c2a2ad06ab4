"""Lab 01, one head: what is asked."""

from __future__ import annotations

from .kit import TOLERANCES, Exercise, Lab, Tolerance, quiz
from .lab01_cases import attention_cases, budget_cases, mask_cases, score_cases, std_cases

LAB = Lab(
    number=1,
    slug="one_head",
    title="One head",
    minutes=90,
    question="A head gives each token one row of 100 percent. What can it do with that, what not?",
)

READY_MADE = ("torch.nn.functional.scaled_dot_product_attention", "torch.nn.MultiheadAttention")

# A scale made as a float32 tensor is right too; a wrong scale is off by far more than this.
SCALED = {**TOLERANCES, "float64": Tolerance(1e-6, 1e-6)}

_FUNCTIONS = (
    Exercise(
        name="lab01.attention_scores",
        title="how well each query matches each key: q kᵀ / √head_dim",
        stub='''
def attention_scores(q, k):
    """Scaled scores: q [..., seq_q, head_dim], k [..., seq_k, head_dim] -> [..., seq_q, seq_k].

    head_dim is no argument; it is the length of q's last axis.
    q = torch.tensor([[2., 0., 0., 0.]]);  k = torch.tensor([[3., 9., 9., 9.], [1., 0., 0., 0.]])
    attention_scores(q, k)  ->  tensor([[3., 1.]])
    """
    raise NotImplementedError
''',
        cases=score_cases,
        tolerances=SCALED,
        axes=("batch", "n_head", "seq_q", "seq_k"),
        forbidden=READY_MADE,
        hints=(
            "Row i of the result belongs to query i, column j to key j. Which product of two "
            "matrices has the dot product of row i and row j at [i, j]?",
            "The keys stand in rows; the product needs them in columns. k.T turns all axes round, "
            "so it is right for two axes only; transpose takes the two that are to change places, "
            "and here those are the last two.",
            "Divide by the square root of the number of products in one sum. That number is the "
            "last axis of q.",
        ),
        minutes=6,
    ),
    Exercise(
        name="lab01.causal_mask",
        title="who may look at whom: nobody looks ahead",
        stub='''
def causal_mask(seq_q, seq_k=None):
    """Bool mask [seq_q, seq_k], True = may attend; seq_k is seq_q where it is not given.

    The last query is the newest token and sees every key; each query before it sees one key less.
    causal_mask(2, 3)  ->  tensor([[ True,  True, False],
                                   [ True,  True,  True]])
    """
    raise NotImplementedError
''',
        cases=mask_cases,
        axes=("seq_q", "seq_k"),
        hints=(
            "Begin with the square case: query i sees the keys 0 to i. As a picture that is a "
            "triangle; which one, lower or upper?",
            "With fewer queries than keys the queries are the last tokens. Query 0 is then not "
            "token 0: how many keys came before it?",
            "Compare two aranges, one as a column and one as a row; or look up what the `diagonal` "
            "argument of torch.tril moves.",
        ),
        minutes=8,
    ),
    Exercise(
        name="lab01.scaled_dot_product_attention",
        title="a whole head: scores, mask, softmax, weighted mean of the values",
        stub='''
def scaled_dot_product_attention(q, k, v, mask=None):
    """q [..., seq_q, head_dim], k [..., seq_k, head_dim], v [..., seq_k, d_v] -> [..., seq_q, d_v].

    mask: None, or bool that broadcasts to [..., seq_q, seq_k], True = may attend.
    A query that may attend to nothing gets zeros: no NaN, also not in the gradient.

    With k all zeros every score is 0, so each query gets the plain mean of the values:
    v = torch.tensor([[1., 5.], [3., 7.]])  ->  each row of the result is [2., 6.]
    """
    raise NotImplementedError
''',
        cases=attention_cases,
        tolerances=SCALED,
        axes=("batch", "n_head", "seq_q", "d_v"),
        forbidden=READY_MADE,
        hints=(
            "Four steps in this order: scores, mask, softmax, product with v. The softmax runs "
            "along the keys, so that the weights of one query add up to 1.",
            "A key that may not be seen needs weight 0 after the softmax. What must its score be "
            "before it, when the weight is e to the power of the score? (masked_fill and "
            "torch.where let one mask serve all heads; indexing by a mask doesn't.)",
            "A row of -inf alone is 0/0. mask.any(dim=-1, keepdim=True) says which rows have a key "
            "at all; give the others harmless scores before the softmax and zero weights after it.",
        ),
        minutes=12,
    ),
    Exercise(
        name="lab01.dot_product_std",
        title="why scale: how widely q·k spreads",
        stub='''
def dot_product_std(head_dim, q_std, k_std):
    """The standard deviation of q·k, a float, by a formula.

    q and k hold head_dim independent numbers each, all of mean 0; those of q have standard
    deviation q_std, those of k have k_std.
    dot_product_std(4, 1.0, 3.0)  ->  6.0
    """
    raise NotImplementedError
''',
        cases=std_cases,
        hints=(
            "Take the worked example apart: 4 numbers each, of spread 1 and 3. What is the "
            "variance of a number of q there, of a number of k, and of one product of the two?",
            "In the example one product has variance 9. There are 4 products; the variance of "
            "their sum is 36, and 6 is its root. Now with letters.",
            "A variance is the square of a standard deviation. Multiply the two variances, take as "
            "many of that as there are products, and come back from the variance to the standard "
            "deviation.",
        ),
        minutes=6,
    ),
    Exercise(
        name="lab01.budget",
        title="one row is 100 percent: what each of several wanted keys can get",
        stub='''
def budget(n_key, n_wanted, gap):
    """The weight, from 0 to 1, that softmax gives to each wanted key, a float.

    There are n_key keys. The scores of n_wanted of them are all equal and lie `gap` above the
    score of all others.
    budget(10, 5, 0.0)  ->  0.1
    """
    raise NotImplementedError
''',
        cases=budget_cases,
        hints=(
            "Softmax doesn't change when the same number is added to every score, so let the "
            "others score 0. What does a wanted key score then?",
            "Write the row of e to the power of the score: some numbers e^gap, the others e^0. How "
            "many of each?",
            "A weight is one of these numbers divided by the sum of all n_key of them.",
        ),
        minutes=6,
    ),
)


_QUIZ = (
    quiz(
        "lab01.quiz_scale",
        "d_model = 768, 12 heads of 64, a text of 1,024 tokens: what do you divide a score by?",
        {"a": "√768", "b": "√64", "c": "64", "d": "√1024"},
    ),
    quiz(
        "lab01.quiz_no_scale",
        "the scale is left out and head_dim grows from 4 to 256: what becomes of the weights?",
        {
            "a": "they become more even",
            "b": "nothing: softmax makes every row add up to 1",
            "c": "nearly all weight goes to one key",
            "d": "they add up to more than 1",
        },
    ),
    quiz(
        "lab01.quiz_mask_place",
        "where does the causal mask go?",
        {
            "a": "into the scores before the softmax, as -inf",
            "b": "onto the weights after the softmax, as a factor 0",
            "c": "into the scores before the softmax, as a factor 0",
            "d": "onto the values, as zeros",
        },
    ),
    quiz(
        "lab01.quiz_two_targets",
        "a query needs the values of two keys: what can't one head give?",
        {
            "a": "weight on both keys at once",
            "b": "the information which value belongs to which key, in a linear read-out",
            "c": "the sum of the two values",
            "d": "both values: it must drop one of the keys",
        },
    ),
)

EXERCISES = (*_FUNCTIONS, *_QUIZ)
