"""Lab 06, what heads learn: what is asked."""

from __future__ import annotations

from . import lab06_cases as cases
from .kit import Exercise, Lab
from .lab06_quiz import QUIZ

LAB = Lab(
    number=6,
    slug="what_heads_learn",
    title="What heads learn",
    minutes=135,
    question=(
        "Nobody tells a head what to look for. What do the heads of two trained models do, and "
        "how many of them can go before anyone notices?"
    ),
)

FUNCTIONS = (
    Exercise(
        name="lab06.attention_entropy",
        title="how widely a row of weights is spread, in nats",
        stub='''
def attention_entropy(weights):
    """How widely each row is spread, in nats: [..., seq_q, seq_k] -> [..., seq_q].

    The entropy, -sum of w * log(w) over the keys; a key with weight 0 adds nothing.

    [[1., 0.], [0.5, 0.5]]  ->  [0., 0.6931]
    """
    raise NotImplementedError
''',
        cases=cases.entropy_cases,
        axes=("batch", "n_head", "seq_q"),
        hints=(
            "Which axis disappears? Each query has its own number.",
            "log(0) is -inf, and 0 * -inf is NaN. A causal mask makes many zeros.",
            "torch has functions that know that w * log(w) is 0 at w = 0: look at torch.xlogy,\n"
            "or keep the zeros away from the logarithm with torch.where.",
        ),
        minutes=6,
    ),
    Exercise(
        name="lab06.previous_token_score",
        title="how much a head looks one token back",
        stub='''
def previous_token_score(weights, real=None):
    """Each head's mean weight on the token before: [n_head].

    weights is [batch, n_head, seq, seq]. The mean goes over all queries that have a token
    before them, of all texts together. real is bool [batch, seq], False where a text is padded
    at its end: padded queries don't count. None means that all are real.

    One text, one head: [[[[1., 0., 0.], [0.8, 0.2, 0.], [0.1, 0.6, 0.3]]]]  ->  [0.7]
    """
    raise NotImplementedError
''',
        cases=cases.previous_cases,
        axes=("n_head",),
        hints=(
            "In the example 0.7 is the mean of two numbers. Which two, and why not three?",
            "Row i is the query, column j the key. The numbers with j = i - 1 are a diagonal;\n"
            "torch.diagonal takes an offset and two axes.",
            "With padding, add up what counts and divide by how many counted. The first query of\n"
            "a text has nothing before it, so real[:, 0] is never looked at.",
        ),
        minutes=10,
    ),
    Exercise(
        name="lab06.sink_score",
        title="how much a head gives to the first token",
        stub='''
def sink_score(weights):
    """Each head's mean weight on key 0: [n_head].

    weights is [batch, n_head, seq, seq] of a causal model. Query 0 sees nothing but key 0, so it
    says nothing about the head: leave it out.

    One text, one head: [[[[1., 0., 0.], [0.8, 0.2, 0.], [0.1, 0.6, 0.3]]]]  ->  [0.45]
    """
    raise NotImplementedError
''',
        cases=cases.sink_cases,
        axes=("n_head",),
        hints=(
            "In the example 0.45 is the mean of two numbers. Which two?",
            "Key 0 is a column, not a row: every query has a weight for it.",
            "Of the four axes of weights one is looked at in one place, one is cut at its front,\n"
            "two are averaged over, and one stays. Which is which?",
        ),
        minutes=4,
    ),
    Exercise(
        name="lab06.ablate_head",
        title="a layer's output with one head silent",
        stub='''
def ablate_head(q, k, v, W_O, head, mask=None):
    """The layer's output when one head says nothing: [batch, seq_q, d_model].

    q, k, v are [batch, n_head, seq, head_dim], W_O is [n_head * head_dim, d_model]; mask is bool,
    True = may attend. What the silent head adds to the output is zero; the others go on as before.

    One token, two heads with v = [[[[1.]], [[10.]]]] and W_O = [[2., 0.], [0., 3.]]:
    head 1 silent  ->  [[[2., 0.]]]
    """
    raise NotImplementedError
''',
        cases=cases.ablate_cases,
        axes=("batch", "seq_q", "d_model"),
        hints=(
            "Attend as usual first. What does each head hand to W_O, and what must the silent\n"
            "one hand over?",
            "Setting the scores to 0 doesn't silence a head: softmax of equal scores looks at\n"
            "everything. Change what comes out of the head, not what goes into the softmax.",
            "After attention the heads are [batch, n_head, seq_q, head_dim]. Put zeros at one\n"
            "place of axis 1 of a copy, then merge and multiply by W_O.",
        ),
        minutes=8,
    ),
    Exercise(
        name="lab06.head_importance",
        title="what the loss would feel if a head spoke a little softer",
        stub='''
def head_importance(loss_of, examples, n_head):
    """How much the loss hangs on each head: the mean over examples of |d loss / d gate|, [n_head].

    loss_of(gate, example) is the loss of one example, a scalar, when each head is multiplied by
    its number of gate [n_head]; the slopes are those at a gate of ones, float32.

    With two examples whose slopes are [0.3, -0.1] and [-0.3, -0.1]  ->  [0.3, 0.1]
    """
    raise NotImplementedError
''',
        cases=cases.importance_cases,
        call=cases.call_importance,
        axes=("n_head",),
        hints=(
            "No gate is moved: make a gate of ones with requires_grad=True, ask for the loss of\n"
            "one example, and let autograd say how it depends on the gate.",
            "In the example the plain mean of 0.3 and -0.3 is 0. Where does the absolute value\n"
            "have to stand?",
            "torch.autograd.grad(loss, gate) returns a tuple with one slope and adds nothing up.\n"
            "If you use .backward(), gate.grad adds up: take a new gate for each example.",
        ),
        minutes=10,
    ),
    Exercise(
        name="lab06.prune",
        title="a layer without some heads: smaller matrices, same answer as silence",
        stub='''
def prune(W_Q, W_K, W_V, W_O, n_head, gone):
    """The matrices W_Q, W_K, W_V, W_O of a layer without the heads in the list gone, as a tuple.

    W_Q, W_K, W_V are [d_model, n_head * head_dim], W_O is [n_head * head_dim, d_model]. The heads
    that stay keep their order. The smaller layer answers as the whole one does with these heads
    silent.

    n_head = 3 with head_dim 2: W_Q = [[1., 2., 3., 4., 5., 6.]]
    without head 1  ->  [[1., 2., 5., 6.]]
    """
    raise NotImplementedError
''',
        cases=cases.prune_cases,
        hints=(
            "Which columns of W_Q belong to head h? Which rows of W_O? Lab 05 knows.",
            "Give the heads an axis of their own: W_Q is [d_model, n_head, head_dim] then. Which\n"
            "axis of W_O has to be cut up so?",
            "Make the list of heads that stay, in order, and take these along the new axis by\n"
            "indexing with a list. Then flatten the two axes again.",
        ),
        minutes=8,
    ),
    Exercise(
        name="lab06.quantise_int8",
        title="numbers as 8-bit integers, with one scale or many",
        stub='''
def quantise_int8(x, axis=None):
    """x [tokens, channels] as int8 and a scale, so that x is about q * scale: the tuple (q, scale).

    The largest size that a scale covers becomes 127 (or -127); q is rounded to the nearest whole
    number. axis None: one scale for all, a scalar. axis names the axis that stays: 0 for a scale
    of each token, [tokens, 1]; 1 for a scale of each channel, [1, channels]. Where all numbers are
    0 the scale is 1.

    [[1.2, -254.], [100., 3.]]  ->  q = [[1, -127], [50, 2]], scale = 2.
    """
    raise NotImplementedError
''',
        cases=cases.int8_cases,
        hints=(
            "Sizes are absolute values. If the largest size becomes 127, what is one step worth?",
            "A scale for each channel covers all tokens: the axis of the tokens goes, and axis=1\n"
            "stays. amax(..., keepdim=True) keeps a 1 in its place, so that it broadcasts.",
            "Round first, then .to(torch.int8): the conversion alone cuts decimals off. For the\n"
            "zeros, put 1 where the scale is 0 before you divide.",
        ),
        minutes=10,
    ),
)  # fmt: skip

EXERCISES = (*FUNCTIONS, *QUIZ)
