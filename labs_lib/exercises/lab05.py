"""Lab 05, merging with W_O: what is asked."""

from __future__ import annotations

from . import lab05_cases as cases
from . import lab05_rules as rules
from .kit import Exercise, Lab, Rule
from .lab05_quiz import QUIZ

LAB = Lab(
    number=5,
    slug="merging_with_w_o",
    title="Merging with W_O",
    minutes=90,
    question=(
        "Twelve heads have written twelve short vectors for each token. How do they become one, "
        "and do the heads talk to each other on the way?"
    ),
)

COMPUTES = (
    "The numbers are right, but some were computed: a product or a sum ran. To put heads side\n"
    "by side is to move numbers; swap axes and join two of them, nothing else."
)

MULTIPLIES_TOO_OFTEN = (
    "Right values, but n_head times the arithmetic: each head meets all of W_O, most of it\n"
    "multiplied by zeros. Which rows of W_O does a head's head_dim numbers need?"
)

FUNCTIONS = (
    Exercise(
        name="lab05.concat_heads",
        title="the heads of each token side by side: numbers move, none is computed",
        stub='''
def concat_heads(heads):
    """The heads side by side: [batch, n_head, seq, head_dim] -> [batch, seq, n_head * head_dim].

    Two heads of two numbers that saw two tokens:
    [[[[1., 2.], [5., 6.]],  [[3., 4.], [7., 8.]]]]  ->  [[[1., 2., 3., 4.], [5., 6., 7., 8.]]]
    """
    raise NotImplementedError
''',
        cases=cases.concat_cases,
        rules=(
            Rule(
                name="computes_nothing",
                text="numbers move, none is computed",
                kept=rules.computes_nothing,
                broken=COMPUTES,
                by_torch=True,
            ),
        ),
        axes=("batch", "seq", "n_head * head_dim"),
        hints=(
            "In the result a token comes before its heads. In what order do the axes stand now?",
            "Only axes that are neighbours can be joined. Bring n_head next to head_dim first.",
            "Swap n_head and seq, then join the last two axes. After the swap the numbers lie\n"
            "elsewhere than the shape says, so .view refuses; .reshape and .flatten copy.",
        ),
        minutes=5,
    ),
    Exercise(
        name="lab05.apply_w_o",
        title="the heads side by side, mixed into the width of the model",
        stub='''
def apply_w_o(concat, W_O):
    """Each token's heads mixed by W_O into the width of the model: [batch, seq, d_model].

    concat is [batch, seq, n_head * head_dim], W_O [n_head * head_dim, d_model], without a bias.

    One token, [[[1., 10.]]], and W_O = [[2., 0., 1.], [0., 3., 1.]]  ->  [[[2., 30., 11.]]]
    """
    raise NotImplementedError
''',
        cases=cases.w_o_cases,
        axes=("batch", "seq", "d_model"),
        hints=(
            "Output number d is a sum over all numbers of concat, each times a weight of its own.",
            "The sum runs over the last axis of concat and the first of W_O, as in x @ W_Q.",
            "nn.Linear keeps its matrix the other way round, [out, in]. Ours needs no turning.",
        ),
        minutes=4,
    ),
    Exercise(
        name="lab05.per_head_contributions",
        title="what each head alone adds to the output",
        stub='''
def per_head_contributions(heads, W_O):
    """What each head adds to the output: [batch, n_head, seq, d_model]; the sum is the output.

    heads is [batch, n_head, seq, head_dim], W_O [n_head * head_dim, d_model]. It takes no more
    multiplications than one product of the heads side by side with W_O.

    One token, two heads of one number, heads = [[[[1.]], [[10.]]]]
    with W_O = [[2., 0., 1.], [0., 3., 1.]]  ->  [[[[2., 0., 1.]], [[0., 30., 10.]]]]
    """
    raise NotImplementedError
''',
        cases=cases.contribution_cases,
        rules=(
            Rule(
                name="multiplies_once",
                text="no more multiplications than one product with W_O",
                kept=rules.multiplies_once,
                broken=MULTIPLIES_TOO_OFTEN,
                by_torch=True,
            ),
        ),
        axes=("batch", "n_head", "seq", "d_model"),
        hints=(
            "Set all heads but one to zero and multiply by W_O. Which part of W_O meets numbers\n"
            "other than zero?",
            "The heads stand side by side in the order of their numbers: head 0 has the first\n"
            "head_dim places. Places of concat are rows of W_O.",
            "Cut the rows of W_O into n_head blocks of head_dim, with an axis of their own:\n"
            "[n_head, head_dim, d_model]. Then think of a product in which the head is carried\n"
            "along as a batch axis.",
        ),
        minutes=10,
    ),
    Exercise(
        name="lab05.multi_head_attention",
        symbol="MultiHeadAttention",
        title="the whole layer in forty lines: MHA, GQA and MQA in one class",
        stub='''
class MultiHeadAttention(torch.nn.Module):
    """Attention of n_head query heads that share n_kv_head key/value heads, n_head by default.

    head_dim is d_model // n_head. The parameters are four matrices without a bias, small random
    numbers at first: W_Q [d_model, n_head * head_dim], W_K and W_V [d_model, n_kv_head * head_dim],
    W_O [n_head * head_dim, d_model]. Query head h uses key/value head h // (n_head // n_kv_head).
    ValueError when it is made with an n_head that does not divide d_model, or with an n_kv_head
    below 1 or that does not divide n_head.

    Keys and values come from context [batch, seq_k, d_model], by default x itself. mask is bool,
    [seq_q, seq_k] or [batch, 1, seq_q, seq_k], True = may attend. x [batch, seq_q, d_model] gives
    [batch, seq_q, d_model].

    MultiHeadAttention(768, 12, 4).W_K.shape  ->  [768, 256]
    MultiHeadAttention(768, 12, 0)            ->  ValueError
    """

    def __init__(self, d_model, n_head, n_kv_head=None):
        raise NotImplementedError

    def forward(self, x, context=None, mask=None):
        raise NotImplementedError
''',
        cases=cases.layer_cases,
        call=cases.call_layer,
        axes=("batch", "seq_q", "d_model"),
        forbidden=(
            "torch.nn.MultiheadAttention",
            "torch.nn.functional.multi_head_attention_forward",
            "labs_lib.attention.multi_head.MultiHeadAttention",
            "labs_lib.training.layers.AttentionLayer",
        ),
        hints=(
            "__init__ first: call super().__init__(), test the sizes and raise ValueError, then\n"
            "make four torch.nn.Parameter. `n_kv_head or n_head` takes 0 for not given; ask\n"
            "whether it is None.",
            "forward has five steps: three projections, cut into heads, attend, side by side,\n"
            "times W_O. q comes from x; k and v come from context and have n_kv_head heads.\n"
            'given("lab02.split_heads") and given("lab01.scaled_dot_product_attention") help.',
            "Before they meet q, the key/value heads have to be n_head again, neighbours\n"
            "sharing: heads 0, 0, 1, 1, 2, 2 and never 0, 1, 2, 0, 1, 2. One of repeat and\n"
            "repeat_interleave does that; look at what they do to torch.arange(3).",
        ),
        minutes=25,
    ),
    Exercise(
        name="lab05.without_w_o",
        title="the layer with W_O left out, and the widths that it then refuses",
        stub='''
def without_w_o(x, W_Q, W_K, W_V, n_head, mask=None):
    """What a layer without W_O adds to x: the heads side by side, [batch, seq, d_model].

    x is [batch, seq, d_model], each W [d_model, n_head * head_dim]; mask is bool, True = may
    attend. ValueError if the heads together are not d_model wide: then they don't fit x.

    A single token can only attend to itself, so it gets its own value:
    x = [[[1., 2.]]], W_V = [[1., 0.], [0., 10.]], n_head = 2  ->  [[[1., 20.]]]
    """
    raise NotImplementedError
''',
        cases=cases.without_cases,
        call=cases.call_without,
        axes=("batch", "seq", "d_model"),
        forbidden=(
            "torch.nn.MultiheadAttention",
            "torch.nn.functional.multi_head_attention_forward",
        ),
        hints=(
            "Lab 03 wrote the heads side by side: given(\"lab03.fused_multi_head\") fetches it.\n"
            "What is left to do is to refuse.",
            "Which two widths have to be equal for x + answer to make sense? One is x.shape[-1].",
            "W_V says how wide the heads are together: its columns. Compare before you compute,\n"
            "and raise ValueError(...) with both numbers in the message.",
        ),
        minutes=6,
    ),
)  # fmt: skip

EXERCISES = (*FUNCTIONS, *QUIZ)
