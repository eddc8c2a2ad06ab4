"""Lab 04, counting: what is asked."""

from __future__ import annotations

from . import lab04_cases as cases
from .kit import TOLERANCES, Exercise, Lab, Tolerance
from .lab04_values import QUIZ, VALUES

LAB = Lab(
    number=4,
    slug="counting",
    title="Counting",
    minutes=95,
    question="Twelve heads or one: what does a head cost in parameters, in operations and in "
    "time, and how large a part of a model is attention?",
)

EXACT = {**TOLERANCES, "number": Tolerance(0.0, 0.0)}
"""A count is a whole number: one too many is wrong, however large it is."""

_COUNTED_ELSEWHERE = ("labs_lib.arithmetic",)

FUNCTIONS = (
    Exercise(
        name="lab04.attention_params",
        title="the parameters of one attention layer",
        stub='''
def attention_params(d_model, n_head, n_kv_head, head_dim, bias=False):
    """How many parameters W_Q, W_K, W_V and W_O have together, an int.

    W_Q makes n_head queries of head_dim numbers, W_K and W_V make n_kv_head keys and values;
    W_O brings all heads back to d_model. A bias is one number for each column of a matrix.

    attention_params(4, 2, 2, 2)  ->  64          attention_params(4, 2, 1, 2)  ->  48
    """
    raise NotImplementedError
''',
        cases=cases.attention_cases,
        tolerances=EXACT,
        forbidden=_COUNTED_ELSEWHERE,
        hints=(
            "Write the shape of each of the four matrices down first, [rows, columns]. How many "
            "columns does W_Q have if there are n_head heads of head_dim numbers?",
            "W_Q and W_O see all heads, W_K and W_V only n_kv_head of them. W_O has its rows where "
            "W_Q has its columns.",
            "Don't take d_model for the width of all heads: n_head * head_dim may be another "
            "number. And the biases are as many as the matrices have columns, W_O's too.",
        ),
        minutes=8,
    ),
    Exercise(
        name="lab04.read_config",
        title="n_head, n_kv_head and head_dim from a published configuration",
        stub='''
def read_config(config):
    """The heads of a published model: (n_head, n_kv_head, head_dim), three ints.

    config is a dict as in the model's config.json. Its keys, by family:
      heads             "num_attention_heads" or "n_head"
      width of a token  "hidden_size" or "n_embd"
      key/value heads   "num_key_value_heads"; absent or None: as many as there are heads
      width of a head   "head_dim"; absent or None: the width of a token, divided by the heads
    Raises ValueError for heads or key/value heads that aren't an int of at least 1, for
    key/value heads that don't divide the heads, and for a division that leaves a remainder.

    read_config({"n_embd": 768, "n_head": 12})  ->  (12, 12, 64)
    """
    raise NotImplementedError
''',
        cases=cases.config_cases,
        call=cases.call_read_config,
        tolerances=EXACT,
        forbidden=("labs_lib.config.AttentionConfig",),
        hints=(
            "config.get(key) gives None for a key that is absent, and also where None is written. "
            "So one test, `is None`, sees both.",
            "Refuse before you divide: isinstance(n, int) and n >= 1 for the heads and for the "
            "key/value heads. 0 is a number and not the same as absent, so `or` is no help here.",
            "Where head_dim is given, it stands as it is, and the width needn't divide by the "
            "heads. Only where it is missing look at the remainder.",
        ),
        minutes=10,
    ),
    Exercise(
        name="lab04.model_params",
        title="the parameters of a whole model",
        stub='''
def model_params(n_layer, d_model, d_ff, vocab, n_position=0, tied=True, gated=False):
    """How many parameters a whole model has, an int; no biases and no norms.

    Each layer: four attention matrices [d_model, d_model], and an MLP of two matrices between
    d_model and d_ff (three where it is gated). Once: a vector of d_model for each of vocab tokens
    and of n_position places, and a second table for the output unless it is tied to the first.

    model_params(1, 4, 16, 10)  ->  232
    """
    raise NotImplementedError
''',
        cases=cases.model_cases,
        tolerances=EXACT,
        forbidden=_COUNTED_ELSEWHERE,
        hints=(
            "Two kinds of things: what every layer has, and what the model has once.",
            "A layer is four squares of d_model and two or three oblongs of d_model by d_ff.",
            "The tables have one row of d_model for each token of the vocabulary and for each "
            "place. tied=False adds another table of the vocabulary, not of the places.",
        ),
        minutes=8,
    ),
    Exercise(
        name="lab04.param_share",
        title="which part of a model's parameters is attention, MLP, embedding",
        stub='''
def param_share(n_layer, d_model, d_ff, vocab, n_position=0, tied=True):
    """The shares of attention, MLP and embeddings in all parameters: three numbers that sum to 1.

    Attention has four matrices [d_model, d_model] in each layer, the MLP two between d_model and
    d_ff. Embeddings are the tables of vocab tokens and n_position places, and the output's own
    table where it isn't tied. No biases, no norms.

    param_share(1, 2, 8, 4)  ->  (16 / 56, 32 / 56, 8 / 56), that is 0.2857..., 0.5714..., 0.1428...
    """
    raise NotImplementedError
''',
        cases=cases.share_cases,
        call=cases.call_share,
        forbidden=_COUNTED_ELSEWHERE,
        hints=(
            "Count the three parts first, each for the whole model. Then divide.",
            "What you divide by is the sum of the three, so that the shares add up to 1.",
            "Attention and MLP stand in every layer; the tables stand once. A share is a number "
            "between 0 and 1, not a percentage.",
        ),
        minutes=6,
    ),
    Exercise(
        name="lab04.attention_flops",
        title="the operations of each of the six products",
        stub='''
def attention_flops(batch, seq_q, seq_k, d_model, n_head, head_dim):
    """The FLOPs of each product of an attention layer: a dict of six ints.

    seq_q tokens ask and seq_k tokens are asked, all of width d_model, in batch sequences. The keys
    are "Q", "K", "V", "QK^T", "AV" and "W_O". A multiplication and an addition are two FLOPs, so
    [n, m] @ [m, p] takes 2 * n * m * p. No mask saves anything.

    attention_flops(1, 2, 3, 4, 2, 2)
      ->  {"Q": 64, "K": 96, "V": 96, "QK^T": 48, "AV": 48, "W_O": 64}
    """
    raise NotImplementedError
''',
        cases=cases.flops_cases,
        tolerances=EXACT,
        forbidden=("labs_lib.arithmetic", "torch.utils.flop_counter.FlopCounterMode"),
        hints=(
            "Write the two shapes of each product down, [n, m] @ [m, p]. Which of the six know "
            "of heads at all?",
            "Q and W_O run over the tokens that ask, K and V over those that are asked. Each of "
            "these four is one wide product, n_head * head_dim on one side.",
            "QK^T and AV run once for each head of each sequence: [seq_q, head_dim] @ [head_dim, "
            "seq_k], and back again. Multiply by how many of these there are.",
        ),
        minutes=8,
    ),
    Exercise(
        name="lab04.softmax_work",
        title="the operations of the softmax, which grow with the heads",
        stub='''
def softmax_work(batch, seq_q, seq_k, n_head, head_dim):
    """How many operations the softmax of one attention layer takes, an int.

    Five for each score: compare it for the maximum, subtract that, exponentiate, add to the row's
    sum, divide by the sum.

    softmax_work(1, 2, 3, 1, 4)  ->  30
    """
    raise NotImplementedError
''',
        cases=cases.softmax_cases,
        tolerances=EXACT,
        forbidden=_COUNTED_ELSEWHERE,
        hints=(
            "Count the scores first. What is the shape of the tensor of scores?",
            "Scores are [batch, n_head, seq_q, seq_k]: each head has scores of its own.",
            "Not everything that is given has to be used. Does the number of scores depend on how "
            "long the vectors were that made them?",
        ),
        minutes=5,
    ),
)

EXERCISES = (
    FUNCTIONS[0],
    QUIZ["reading"],
    *FUNCTIONS[1:4],
    VALUES["quarter_vocab"],
    QUIZ["bound"],
    VALUES["weights_gib"],
    *FUNCTIONS[4:],
    QUIZ["grows"],
    QUIZ["twice_as_long"],
    QUIZ["narrow"],
)
