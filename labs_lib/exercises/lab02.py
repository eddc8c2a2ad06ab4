"""Lab 02, splitting the width: what is asked."""

from __future__ import annotations

from . import lab02_cases as cases
from .kit import Exercise, Lab, Rule, quiz

LAB = Lab(
    number=2,
    slug="splitting_the_width",
    title="Splitting the width",
    minutes=80,
    question="How do the 768 numbers of a query become twelve heads of 64 without moving a byte, "
    "and which reshape looks right and isn't?",
)

COPIED = (
    "The values are right, but they were copied. stack, cat and clone always copy, contiguous\n"
    "and reshape where they must; view, unflatten, transpose and permute never do, and they\n"
    "are enough to cut an axis and to swap two."
)
NOT_OWN = (
    "The sizes are right, but they come from the library's configuration; write the checks\n"
    "yourself."
)

_HEADS = ("batch", "n_head", "seq", "head_dim")

EXERCISES = (
    Exercise(
        name="lab02.head_dim",
        title="the width of one head, as a whole number or not at all",
        stub='''
def head_dim(d_model, n_head):
    """The width of one head, an int; ValueError where n_head leaves a remainder.

    head_dim(96, 8)  ->  12          head_dim(98, 8)  ->  ValueError
    """
    raise NotImplementedError
''',
        cases=cases.head_dim_cases,
        call=cases.call_head_dim,
        hints=(
            "Two things are asked: a whole number, and a refusal where there is none.",
            "In Python 96 / 8 is 12.0, a float, and no shape takes a float. 96 // 8 is 12.",
            "98 // 8 is 12 as well, and 2 numbers are lost in silence. The operator % gives what "
            "is left over: look at it first, and raise ValueError(...) if it isn't 0.",
        ),
        forbidden=("labs_lib.config.AttentionConfig",),
        minutes=5,
    ),
    Exercise(
        name="lab02.HeadConfig",
        title="sizes that are refused when they are made, with the nearest legal ones",
        stub='''
class HeadConfig:
    """The sizes of an attention layer: d_model, n_head and head_dim, three ints.

    The object keeps all three as attributes of these names.
    Without head_dim, n_head must divide d_model. With head_dim, any d_model will do.
    Raises ValueError when made: for a size that isn't an int of at least 1 (for what isn't an
    int a TypeError will do too), and for a d_model that doesn't divide. That message names the
    nearest legal d_model above, and the nearest one below, if there is one.

    HeadConfig(96, 8).head_dim                 ->  12
    HeadConfig(98, 8)                          ->  ValueError, its message names 96 and 104
    HeadConfig(5, 8)                           ->  ValueError, its message names 8
    HeadConfig(98, 8, head_dim=16).head_dim    ->  16
    """

    def __init__(self, d_model, n_head, head_dim=None):
        raise NotImplementedError
''',
        cases=cases.head_config_cases,
        call=cases.call_head_config,
        rules=(
            Rule(
                "own_class",
                "the checks are your own, not those of the library's AttentionConfig",
                cases.is_own_class,
                NOT_OWN,
            ),
        ),
        hints=(
            "Sort the settings first: is each size an int of at least 1? Was a head_dim given? "
            "Only where none was given does d_model have to divide.",
            "d_model % n_head is what is left over. Take it away from d_model and you have the "
            "legal d_model below, if that isn't 0; the one above is n_head further.",
            "Put both numbers into the message with an f-string. isinstance(n, int) tells an int "
            "from 12.0; test it before you divide by anything.",
        ),
        forbidden=("labs_lib.config.AttentionConfig",),
        minutes=12,
    ),
    quiz(
        "lab02.quiz_palm",
        "heads that are not d_model wide together",
        {
            "a": "The residual addition fails: 12,288 numbers can't be added to 18,432.",
            "b": "W_O is 12,288 by 18,432, so the sum fits and nothing else has to change.",
            "c": "The missing 6,144 numbers are filled with zeros before the addition.",
            "d": "Neighbouring heads share columns, so that together they cover the width.",
        },
    ),
    Exercise(
        name="lab02.split_heads",
        title="cut the width into heads, as a view",
        stub='''
def split_heads(x, n_head):
    """Cut the width into heads: [batch, seq, n_head * head_dim] -> [batch, n_head, seq, head_dim].

    A view: no number is copied. Head 0 has the first head_dim numbers of each token's row.
    x[0] = [[0, 1, 2, 3], [4, 5, 6, 7]], n_head = 2  ->  head 0 = [[0, 1], [4, 5]],
                                                         head 1 = [[2, 3], [6, 7]]
    """
    raise NotImplementedError
''',
        cases=cases.split_cases,
        axes=_HEADS,
        rules=(
            Rule(
                "view",
                "no number was copied",
                cases.is_a_view,
                COPIED,
            ),
        ),
        hints=(
            "Two steps. First cut the last axis in two; then put the axes in order.",
            "Cutting gives [batch, seq, n_head, head_dim]: the numbers of a token stay together, "
            "head after head. x.view(...) or x.unflatten(-1, ...) does it.",
            "Now head and token stand in the wrong order: x.transpose(a, b) swaps two axes and "
            "copies nothing. Asking view for the final shape in one step would cut elsewhere.",
        ),
        minutes=8,
    ),
    quiz(
        "lab02.quiz_wrong_reshape",
        "which test sees a wrong reshape",
        {
            "a": "The shape of the result is [2, 12, 10, 64].",
            "b": "The sum over all elements is the same before and after.",
            "c": "On an input of all ones the result equals the right one.",
            "d": "With all numbers different, token 3 of head 5 is x[:, 3, 320:384].",
        },
    ),
    Exercise(
        name="lab02.merge_heads",
        title="put the heads of each token side by side again",
        stub='''
def merge_heads(x):
    """Put heads side by side: [batch, n_head, seq, head_dim] -> [batch, seq, n_head * head_dim].

    head 0 = [[0, 1], [4, 5]], head 1 = [[2, 3], [6, 7]]  ->  [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    raise NotImplementedError
''',
        cases=cases.merge_cases,
        axes=("batch", "seq", "width"),
        hints=(
            "The same two steps as a split, backwards: first the order of the axes, then the join.",
            "After the swap the shape is [batch, seq, n_head, head_dim]; the last two axes become "
            "one.",
            "view can't join axes that don't lie next to each other in memory. reshape and flatten "
            "can: they copy where they must.",
        ),
        minutes=6,
    ),
    Exercise(
        name="lab02.strides_after_split",
        title="how far apart the neighbours lie after a split",
        stub='''
def strides_after_split(batch, seq, n_head, head_dim):
    """The four strides, in elements, of a new [batch, seq, width] tensor after split_heads.

    In the order of the axes [batch, n_head, seq, head_dim]; width = n_head * head_dim.
    strides_after_split(1, 2, 2, 2)  ->  (8, 2, 4, 1)
    """
    raise NotImplementedError
''',
        cases=cases.strides_cases,
        call=cases.call_strides,
        hints=(
            "A stride says how many elements to walk in memory to reach the next index of an axis. "
            "Nothing moved, so think of the tensor as it was: token after token.",
            "The next number of a head is the next in memory. How long is a token? Where in it "
            "does the next head begin?",
            "Write the strides of [batch, seq, n_head, head_dim] first, each the product of the "
            "sizes to its right. Then swap the two that the transpose swaps.",
        ),
        minutes=8,
    ),
    quiz(
        "lab02.quiz_bytes_moved",
        "what a transpose costs",
        {
            "a": "3 MiB: every number is written to its new place.",
            "b": "6 MiB: every number is read once and written once.",
            "c": "None: only the order of the sizes and strides changes.",
            "d": "256 bytes: one head_dim of numbers is swapped at a time.",
        },
    ),
    Exercise(
        name="lab02.is_contiguous_per_head",
        title="does each head lie in memory in one piece",
        stub='''
def is_contiguous_per_head(x):
    """True if each head's [seq, head_dim] block lies in memory row after row, without gaps.

    x is [batch, n_head, seq, head_dim]; where the heads lie does not matter. Right also where an
    axis has length 1 and so no next index.
    torch.zeros(1, 2, 3, 4)                  ->  True
    torch.zeros(1, 3, 2, 4).transpose(1, 2)  ->  False
    """
    raise NotImplementedError
''',
        cases=cases.layout_cases,
        hints=(
            "x.stride() has four numbers; only the last two say how one head lies.",
            "Without gaps: the next number is one further, the next row head_dim further. "
            "x.is_contiguous() asks more than that: it also wants head after head.",
            "An axis of length 1 has no next index, so its stride says nothing. One token is one "
            "row, and a row of neighbours is always in one piece.",
        ),
        minutes=8,
    ),
    quiz(
        "lab02.quiz_strided_heads",
        "must a head lie in one piece",
        {
            "a": "Copy the heads first: without that the product gives wrong numbers.",
            "b": "Copy the heads first: without that torch refuses the product.",
            "c": "Multiply as they lie: the product is told that rows are 768 numbers apart.",
            "d": "Multiply as they lie: the transpose has already put each head in one piece.",
        },
    ),
)
