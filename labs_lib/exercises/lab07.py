"""Lab 07, induction heads: what is asked."""

from __future__ import annotations

from . import lab07_cases as cases
from .kit import Exercise, Lab
from .lab07_quiz import QUIZ

LAB = Lab(
    number=7,
    slug="induction_heads",
    title="Induction heads",
    minutes=90,
    question=(
        "A model reads a name that it has never seen, and a line later it can spell it. Which "
        "heads do that, how do they grow, and what can they not do?"
    ),
)

FUNCTIONS = (
    Exercise(
        name="lab07.repeated_sequence",
        title="a block of tokens again and again, and what of it can be copied",
        stub='''
def repeated_sequence(block, times):
    """Each block again and again, and which places copying gives: the tuple (tokens, copied).

    block is [batch, period] whole numbers, all different within a block. tokens is
    [batch, times * period]; copied is bool [times * period], True at a place whose token can be
    copied: the token before it has stood earlier, and what came next then is what stands here.

    [[7, 3, 5]] twice  ->  [[7, 3, 5, 7, 3, 5]], [False, False, False, False, True, True]
    """
    raise NotImplementedError
''',
        cases=cases.block_cases,
        hints=(
            "In the example place 3 holds the 7 again, and copied is False there. What stands\n"
            "before it, and where did that stand earlier?",
            "tensor.repeat takes a number for each axis. Which axis grows?",
            "Which is the first place that counts? Is there any behind it that doesn't?\n"
            "torch.arange gives you the places, to compare them with a number.",
        ),
        minutes=6,
    ),
    Exercise(
        name="lab07.induction_score",
        title="how much a head looks at what came after the last time",
        stub='''
def induction_score(weights, tokens, real=None):
    """Each head's mean weight on the token after the last earlier copy of the query's: [n_head].

    weights is [batch, n_head, seq, seq], causal; tokens [batch, seq] are whole numbers. For query
    i, let j be the last place before i that holds the same token; what counts is the weight of i
    on j + 1. Queries whose token hasn't stood before don't count. real is bool [batch, seq], False
    where a text is padded at its end: such queries don't count either. The mean goes over all
    queries that count, of all texts together.

    One text [[5, 8, 5]], one head [[[[1., 0., 0.], [0.5, 0.5, 0.], [0.1, 0.7, 0.2]]]]  ->  [0.7]
    """
    raise NotImplementedError
''',
        cases=cases.score_cases,
        axes=("n_head",),
        hints=(
            "Which queries count in [5, 8, 5, 9, 8]? To which key does each of them look?",
            "Write it as a loop first: for each text and each i, go back from i - 1 until you\n"
            "meet the same token. Speed isn't asked for.",
            "Padding is filled with equal tokens, so padded places find each other as copies.\n"
            "Leave them out of the sum and out of the number that you divide by.",
        ),
        minutes=12,
    ),
    Exercise(
        name="lab07.smear_keys",
        title="keys that know the token before",
        stub='''
def smear_keys(k, own):
    """Keys mixed with the key before: [batch, n_head, seq, head_dim], as k.

    own [n_head] is the share of a head's own key, between 0 and 1; the rest of 1 goes to the key of
    the token before. The first token has none before it and keeps its key.

    One head with three keys [[[[1.], [2.], [10.]]]], own = [0.25]  ->  [[[[1.], [1.25], [4.]]]]
    """
    raise NotImplementedError
''',
        cases=cases.smear_cases,
        axes=("batch", "n_head", "seq", "head_dim"),
        hints=(
            "In the example 4 is 0.25 of one key and 0.75 of another. Which two?",
            "The keys before are the same tensor, one place along. Slices of the token axis give\n"
            "you the pairs; roll would bring the last key to the front.",
            "own has one number for each head, and heads are axis 1 of k. How many axes stand\n"
            "behind that one? And the first key is in no pair: where does it have to go?",
        ),
        minutes=8,
    ),
    Exercise(
        name="lab07.composition_score",
        title="which later head reads what which earlier head writes",
        stub='''
def composition_score(W_Q, W_K, W_V, W_O, n_head):
    """How strongly each later head's keys read what each earlier head writes: [n_head, n_head].

    W_Q, W_K [d_model, n_head * head_dim] belong to the later layer, W_V (the same shape) and W_O
    [n_head * head_dim, d_model] to the earlier one. For later head a and earlier head b let
    A = W_Q^a (W_K^a)^T, B = W_V^b W_O^b, both [d_model, d_model]. Row a, column b holds
    ||A B^T|| / (||A|| ||B||), where || || is the Frobenius norm: the root of the sum of squares.

    n_head = 1, d_model = 2: W_Q = [[1.], [1.]], W_K = [[0.], [2.]], W_V = [[1.], [0.]],
    W_O = [[3., 4.]]  ->  [[0.8]]
    """
    raise NotImplementedError
''',
        cases=cases.composition_cases,
        axes=("later head", "earlier head"),
        hints=(
            "Cut the matrices up as in lab 06: head h has its own columns of W_Q, W_K and W_V,\n"
            "and its own rows of W_O. Two plain loops over heads are fine.",
            "An earlier head turns x into x B. A later one compares queries y with keys z by\n"
            "y A z^T. Put x B in the place of z: that is where B^T comes from.",
            "In the example A is [[0, 2], [0, 2]] and B is [[3, 4], [0, 0]]: get those first.\n"
            "torch.linalg.matrix_norm gives the Frobenius norm of a matrix.",
        ),
        minutes=12,
    ),
    Exercise(
        name="lab07.ablate_and_copy",
        title="how badly a model copies with some heads silent",
        stub='''
def ablate_and_copy(q, k, v, logits_of, tokens, silent):
    """The loss in nats on the second copy with some heads silent: a scalar.

    q, k, v are [batch, n_head, seq, head_dim]; attention is causal. Heads whose numbers are in the
    list silent answer zeros. logits_of(heads) is the rest of the model, from the heads' answers
    [batch, n_head, seq, head_dim] to logits [batch, seq, vocab]: those at place i predict the token
    at i + 1. tokens [batch, seq] are a block and the same block again. The mean goes over the
    predictions that are made in the second copy and whose token is there to compare.

    Blocks of 4 tokens, seq = 8: the predictions made at places 4, 5 and 6 count.
    """
    raise NotImplementedError
''',
        cases=cases.copy_cases,
        call=cases.call_copy,
        hints=(
            "Attend first, causal, then silence: zeros where the head's answers were. (Scores of\n"
            "zero are no silence, see lab 06.)",
            "Which prediction has its token where? Logits at place i belong to the token at i +\n"
            "1, so both are cut, at different ends.",
            "In the example predictions made at 4, 5 and 6 meet the tokens at 5, 6 and 7: write\n"
            "both slices with seq in the place of 8. F.cross_entropy wants [predictions, vocab]\n"
            "and [predictions], so texts and places become one axis.",
        ),
        minutes=12,
    ),
)  # fmt: skip

EXERCISES = (*FUNCTIONS, *QUIZ)
