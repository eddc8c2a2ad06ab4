"""Lab 03, one big matrix: what is asked."""

from __future__ import annotations

from .kit import Exercise, Lab, Rule, quiz
from .lab03_cases import (
    fused_cases,
    has_no_loop_over_heads,
    per_head_cases,
    stack_cases,
    unstack_cases,
)

LAB = Lab(
    number=3,
    slug="one_big_matrix",
    title="One big matrix",
    minutes=75,
    question=(
        "A paper gives twelve heads 36 small matrices, a program holds one big one. Is it the same "
        "layer? What is gained, and when?"
    ),
)

LOOP_REMAINS = (
    "Right values, but six heads take more products than two: a loop over heads remains.\n"
    "Let the heads be an axis; @ works on all of it at once."
)

NO_LOOP = Rule(
    name="no_loop_over_heads",
    text="as many products and softmaxes for six heads as for two",
    kept=has_no_loop_over_heads,
    broken=LOOP_REMAINS,
    by_torch=True,
)

FUNCTIONS = (
    Exercise(
        name="lab03.per_head_qkv",
        title="q, k and v of every head from one small matrix each",
        stub='''
def per_head_qkv(x, W_Q, W_K, W_V):
    """The queries, keys and values of all heads: three tensors [batch, n_head, seq, head_dim].

    x is [batch, seq, d_in]; W_Q, W_K, W_V are [n_head, d_in, head_dim], a small matrix per head.

    One token x = [[[1., 2.]]] and two heads W_Q = [[[3.], [1.]], [[0.], [4.]]]
    give q of shape [1, 2, 1, 1]: head 0 gets 1*3 + 2*1 = 5, head 1 gets 1*0 + 2*4 = 8.
    """
    raise NotImplementedError
''',
        cases=per_head_cases,
        axes=("batch", "n_head", "seq", "head_dim"),
        hints=(
            "W_Q[h] is the matrix of head h. What is its shape, and what does x @ W_Q[h] give?",
            "A list of one result per head becomes a tensor by torch.stack; its dim= says where "
            "the new axis stands.",
            "The head axis comes right after the batch axis, so before seq. Do the same with W_K "
            "and with W_V, and return all three.",
        ),
        minutes=8,
    ),
    Exercise(
        name="lab03.stack_projections",
        title="the small matrices side by side as one wide matrix",
        stub='''
def stack_projections(W):
    """The per-head matrices as one: [n_head, d_in, head_dim] -> [d_in, n_head * head_dim].

    Column block h of the result is the matrix of head h.

    Two heads that read two numbers and have one column each,
    W = [[[1.], [2.]], [[3.], [4.]]]  ->  [[1., 3.], [2., 4.]]
    """
    raise NotImplementedError
''',
        cases=stack_cases,
        axes=("d_in", "n_head * head_dim"),
        hints=(
            "The rows of the wide matrix are the inputs: d_in has to become the first axis.",
            "Two neighbouring axes can be joined into one, never two that have a third between "
            "them. Which order of the three axes do you need before you join?",
            "Put the axes in the order (d_in, n_head, head_dim), then join the last two. Or think "
            "of the small matrices as sheets of paper laid side by side.",
        ),
        minutes=8,
    ),
    Exercise(
        name="lab03.fused_multi_head",
        title="all heads at once: no loop, and the number of products does not depend on n_head",
        stub='''
def fused_multi_head(x, W_Q, W_K, W_V, n_head, mask=None):
    """The answers of all heads side by side, without a loop over heads.

    x is [batch, seq, d_in], each W [d_in, n_head * head_dim]; the result is
    [batch, seq, n_head * head_dim]. Scores are divided by sqrt(head_dim). mask is bool,
    True = may attend, and broadcasts to [batch, n_head, seq, seq].

    A single token can only attend to itself, so it gets its own value back:
    x = [[[1., 2.]]], W_V = [[1., 0.], [0., 10.]], n_head = 2  ->  [[[1., 20.]]]
    """
    raise NotImplementedError
''',
        cases=fused_cases,
        rules=(NO_LOOP,),
        axes=("batch", "seq", "n_head * head_dim"),
        forbidden=(
            "torch.nn.MultiheadAttention",
            "torch.nn.functional.multi_head_attention_forward",
        ),
        hints=(
            "Three wide products first: x @ W_Q, x @ W_K, x @ W_V. Everything after them you have "
            "built in labs 01 and 02.",
            "Cut the width of q, k and v into heads, so that they are "
            "[batch, n_head, seq, head_dim]. A product with @ works on the last two axes and "
            "carries all others along.",
            "After softmax(scores) @ v the heads are still an axis of their own. Bring seq back "
            'in front of n_head before you join n_head and head_dim. given("lab02.split_heads") '
            'and given("lab02.merge_heads") do the two moves.',
        ),
        minutes=15,
    ),
    Exercise(
        name="lab03.unstack_from_fused_qkv",
        title="the per-head matrices out of one fused W_QKV, in either of its two layouts",
        stub='''
def unstack_from_fused_qkv(W_QKV, n_head, interleaved=False):
    """W_Q, W_K and W_V, each [n_head, d_in, head_dim], out of [d_in, 3 * n_head * head_dim].

    The columns of W_QKV are blocks of head_dim. They stand
      stacked:       q of every head, then k of every head, then v of every head
      interleaved:   q, k, v of head 0, then q, k, v of head 1, ...

    With W_QKV = [[1., 2., 3., 4., 5., 6.]] and n_head = 2 the matrices W_Q[0] and W_Q[1] are
    [[1.]] and [[2.]] when stacked, [[1.]] and [[4.]] when interleaved.
    """
    raise NotImplementedError
''',
        cases=unstack_cases,
        axes=("n_head", "d_in", "head_dim"),
        hints=(
            "How wide is one block of head_dim columns? The width is 3 * n_head * head_dim.",
            "Cut the columns into three axes: which of the three letters, which head, which "
            "column of the head. The two layouts differ in which of the first two comes first.",
            "unflatten(1, (...)) cuts an axis into several. Then movedim or permute brings the "
            "axis of length 3 to the front and n_head after it; what is left is [d_in, head_dim].",
        ),
        minutes=12,
    ),
)

QUIZ = (
    quiz(
        "lab03.quiz_inputs",
        "which of the token's numbers a head reads",
        {
            "a": "numbers 320 to 383, its own slice of the token",
            "b": "all 768",
            "c": "64 numbers that it picks itself while training",
            "d": "none: it reads only what the other heads wrote",
        },
    ),
    quiz(
        "lab03.quiz_columns",
        "where the small matrix of head 5 stands in the big one",
        {
            "a": "in rows 320 to 383",
            "b": "in columns 5, 17, 29, ...: every twelfth",
            "c": "in columns 320 to 383",
            "d": "in rows 320 to 383 of columns 320 to 383",
        },
    ),
    quiz(
        "lab03.quiz_products",
        "how many projection products a layer needs",
        {
            "a": "36, 3 and 1, and the multiplications fall in the same way",
            "b": "36, 36 and 36: each head needs its own product",
            "c": "12, 3 and 1, with equally many multiplications",
            "d": "36, 3 and 1, with equally many multiplications",
        },
    ),
    quiz(
        "lab03.quiz_speed",
        "when the loop over heads is slow",
        {
            "a": "always: twelve products take twelve times as long as one",
            "b": "where each product is small, as with one token or narrow heads",
            "c": "where each product is large, as with long sequences",
        },
    ),
    quiz(
        "lab03.quiz_layout",
        "what happens when the layout of a fused matrix is mistaken",
        {
            "a": "an error: the shapes of the two layouts differ",
            "b": "nothing: the heads are only numbered differently",
            "c": "no error, and the outputs are wrong",
            "d": "the same, and such a program can't train a model from scratch either",
        },
    ),
)

EXERCISES = (*FUNCTIONS, *QUIZ)
