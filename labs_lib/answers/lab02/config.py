"""Lab 02: sizes that are checked when they are made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace

from labs_lib.config import AttentionConfig

from ...exercises.lab02 import NOT_OWN
from ..kit import Answer, Right, Wrong


class HeadConfig:
    """The sizes of an attention layer: d_model, n_head and head_dim, three ints."""

    def __init__(self, d_model, n_head, head_dim=None):
        for size in (d_model, n_head, 1 if head_dim is None else head_dim):
            if not isinstance(size, int) or size < 1:
                raise ValueError(f"{size!r} is not allowed as a size; take an int of at least 1")
        if head_dim is None:
            head_dim, over = divmod(d_model, n_head)
            if over:
                below, above = d_model - over, d_model - over + n_head
                nearest = f"{below} and {above} do" if below else f"{above} does"
                raise ValueError(f"d_model={d_model} does not divide into {n_head}; {nearest}")
        self.d_model, self.n_head, self.head_dim = d_model, n_head, head_dim


def _variant(change, checked=True):
    """A maker of sizes: `change` of the two sizes gives head_dim or raises."""

    def make(d_model, n_head, head_dim=None):
        if checked:
            HeadConfig(1, n_head, 1)
            HeadConfig(d_model, 1, 1 if head_dim is None else head_dim)
        return SimpleNamespace(
            d_model=d_model,
            n_head=n_head,
            head_dim=change(d_model, n_head) if head_dim is None else head_dim,
        )

    return make


def _refuse(d_model, n_head, text="{d_model} does not divide into {n_head}: {below}, {above} do"):
    over = d_model % n_head
    if over:
        below, above = d_model - over, d_model - over + n_head
        raise ValueError(text.format(d_model=d_model, n_head=n_head, below=below, above=above))
    return d_model // n_head


def _must_leave_0(d_model, n_head):
    over = d_model % n_head
    if over:
        near = [width for width in (d_model - over, d_model - over + n_head) if width]
        raise ValueError(
            f"d_model % n_head is {over} and not 0: take {' or '.join(map(str, near))}"
        )
    return d_model // n_head


def _tells_the_sum(d_model, n_head):
    over, below = d_model % n_head, d_model - d_model % n_head
    if over:
        near = " and ".join(str(width) for width in (below, below + n_head) if width)
        text = f"{d_model} = {d_model // n_head} * {n_head} + {over}; it could be {near}"
        raise ValueError(text)
    return d_model // n_head


def _asserted(d_model, n_head):
    below = d_model - d_model % n_head
    assert d_model % n_head == 0, f"{below} {below + n_head}"
    return d_model // n_head


def _always_divides(d_model, n_head, head_dim=None):
    made = HeadConfig(d_model, n_head)
    made.head_dim = made.head_dim if head_dim is None else head_dim
    return made


def _always_divides_and_tests_all(d_model, n_head, head_dim=None):
    HeadConfig(d_model, n_head, head_dim)
    return _always_divides(d_model, n_head, head_dim)


def _refuses_none(d_model, n_head, head_dim=None):
    return HeadConfig(d_model, n_head, 0 if head_dim is None else head_dim)


def _compares_none(d_model, n_head, head_dim=None):
    if d_model < 1 or n_head < 1 or head_dim < 1:
        raise ValueError("sizes begin at 1")
    return HeadConfig(d_model, n_head, head_dim)


def _calls_its_argument(d_model, n_head, head_dim=None):
    if head_dim is None:
        head_dim = head_dim(d_model, n_head)
    return HeadConfig(d_model, n_head, head_dim)


def _asserts_everything(message):
    """A maker that refuses by assert, with the text `message` of what was refused."""

    def make(d_model, n_head, head_dim=None):
        try:
            return HeadConfig(d_model, n_head, head_dim)
        except ValueError as error:
            raise AssertionError(message(str(error))) from None

    return make


def _asserts_types(d_model, n_head, head_dim=None):
    assert all(isinstance(size, int) for size in (d_model, n_head))
    return HeadConfig(d_model, n_head, head_dim)


def _must_fill(d_model, n_head, head_dim=None):
    made = HeadConfig(d_model, n_head, head_dim)
    if made.n_head * made.head_dim != d_model:
        raise ValueError(f"{n_head} heads of {made.head_dim} are not {d_model} numbers")
    return made


def _mended(d_model, n_head, head_dim=None):
    if head_dim is None and isinstance(n_head, int) and 0 < n_head < d_model:
        d_model -= d_model % n_head
    return HeadConfig(d_model, n_head, head_dim)


def _unchecked_head_dim(d_model, n_head, head_dim=None):
    made = HeadConfig(d_model, n_head, None if head_dim is None else 1)
    return made if head_dim is None else SimpleNamespace(**(vars(made) | {"head_dim": head_dim}))


def _keeps(*names):
    """A maker whose object has only the sizes of these names."""

    def make(d_model, n_head, head_dim=None):
        sizes = vars(HeadConfig(d_model, n_head, head_dim))
        return SimpleNamespace(**{name: sizes[name] for name in names})

    return make


class _Lazy:
    """Sizes that are looked at when head_dim is asked for."""

    def __init__(self, d_model, n_head, head_dim=None):
        self.d_model, self.n_head, self._head_dim = d_model, n_head, head_dim

    @property
    def head_dim(self):
        return HeadConfig(self.d_model, self.n_head, self._head_dim).head_dim


@dataclass(frozen=True)
class _Frozen:
    d_model: int
    n_head: int
    head_dim: int | None = None
    bias: bool = False

    def __post_init__(self):
        made = HeadConfig(self.d_model, self.n_head, self.head_dim)
        object.__setattr__(self, "head_dim", made.head_dim)


class _Typed(HeadConfig):
    def __init__(self, d_model: int, n_head: int, head_dim: int | None = None) -> None:
        if type(n_head) is not int:
            raise TypeError(f"n_head={n_head!r} is no int")
        super().__init__(d_model, n_head, head_dim)


def _nearest_first(d_model, n_head):
    steps = (k for distance in range(n_head) for k in (d_model - distance, d_model + distance))
    near = [width for width in steps if width > 0 and width % n_head == 0]
    if near[0] != d_model:
        text = ", ".join(f"{width:,}" for width in near[:2])
        raise ValueError(f"n_head={n_head} and d_model={d_model}: take one of {text}")
    return d_model // n_head


_ASSERTED = (
    "The test is right, but it is an assert, and `python -O` leaves asserts out.\n"
    "Raise a ValueError, which is always there."
)
_ZERO_OFFERED = (
    "With more heads than numbers the message offers a d_model of 0. That is the multiple\n"
    "of n_head below, but no legal d_model: leave it out, as in HeadConfig(5, 8)."
)
_DIVIDED_ALWAYS = (
    "The remainder is refused here even when head_dim was given. Then nothing is\n"
    "divided, and d_model may be anything."
)

HEAD_CONFIG = Answer(
    reference=HeadConfig,
    wrong=(
        Wrong(
            "checked_when_used",
            _Lazy,
            "Illegal sizes can be made here; they are only found out when head_dim is asked for.\n"
            "By then the object has travelled, and the error points at the wrong place. Test in\n"
            "__init__.",
        ),
        Wrong(
            "keeps_only_head_dim",
            _keeps("head_dim"),
            "The object has a head_dim and neither of the sizes that it was made from. Whoever\n"
            "gets it asks for all three: put d_model and n_head on self as well.",
        ),
        Wrong(
            "keeps_nothing",
            _keeps(),
            "The object has none of the three sizes under its name. What is only a variable in\n"
            "__init__ is gone when it ends: put d_model, n_head and head_dim on self.",
        ),
        Wrong(
            "keeps_no_head_dim",
            _keeps("d_model", "n_head"),
            "The object has d_model and n_head, but no head_dim: put that on self as well.",
        ),
        Wrong(
            "rounds_down",
            _variant(lambda d_model, n_head: d_model // n_head),
            "A remainder is dropped in silence here: nothing is refused, and some numbers of each\n"
            "query belong to no head. Test the remainder before you divide.",
        ),
        Wrong(
            "rounds_up",
            _variant(lambda d_model, n_head: math.ceil(d_model / n_head)),
            "A remainder is rounded up here, so that the heads together want more than d_model\n"
            "numbers. Test the remainder and refuse.",
        ),
        Wrong(
            "asserts",
            _variant(_asserted),
            _ASSERTED,
        ),
        Wrong("asserts_everything", _asserts_everything(str), _ASSERTED),
        Wrong("asserts_everything_and_names_nothing", _asserts_everything(lambda _: ""), _ASSERTED),
        Wrong("asserts_types", _asserts_types, _ASSERTED),
        Wrong(
            "none_refused",
            _refuses_none,
            "Sizes without a head_dim are all refused here. head_dim is None then, and None is\n"
            "no int: test it only where it was given.",
        ),
        Wrong(
            "none_compared",
            _compares_none,
            "head_dim is None where it was not given, and None can't be compared with a number.\n"
            "Ask `head_dim is None` first.",
        ),
        Wrong(
            "argument_called",
            _calls_its_argument,
            "Within __init__ the name head_dim is the argument, which is None here, and no longer\n"
            "the function that you wrote above: the argument hides it. Divide here once more.",
        ),
        Wrong(
            "names_nothing",
            _variant(lambda d_model, n_head: _refuse(
                d_model, n_head, "{d_model} must be divisible by {n_head}")),
            "Refused at the right moment, but the nearest legal d_model isn't in the message.\n"
            "Whoever reads it has to do the arithmetic alone: name the nearest multiple of n_head\n"
            "on each side of d_model.",
        ),
        Wrong(
            "names_one_side",
            _variant(lambda d_model, n_head: _refuse(
                d_model, n_head, "{d_model} over {n_head}: take {below}")),
            "The message names the legal d_model below, but not the one above.",
        ),
        Wrong(
            "names_only_the_upper_side",
            _variant(lambda d_model, n_head: _refuse(
                d_model, n_head, "{d_model} over {n_head}: take {above}")),
            "The message names the legal d_model above, but not the one below.",
        ),
        Wrong(
            "offers_zero",
            _variant(_refuse),
            _ZERO_OFFERED,
        ),
        Wrong(
            "offers_zero_last",
            _variant(lambda d_model, n_head: _refuse(
                d_model, n_head, "{d_model} % {n_head} must be 0: {above} or {below} is")),
            _ZERO_OFFERED,
        ),
        Wrong(
            "head_dim_must_divide_too",
            _always_divides,
            _DIVIDED_ALWAYS,
        ),
        Wrong(
            "head_dim_tested_and_must_divide_too",
            _always_divides_and_tests_all,
            _DIVIDED_ALWAYS,
        ),
        Wrong(
            "heads_must_be_as_wide_as_d_model",
            _must_fill,
            "Every head_dim is refused here that doesn't make n_head * head_dim equal to d_model.\n"
            "The two may differ where head_dim is given: d_model is how many numbers a token has,\n"
            "n_head * head_dim how many numbers q has.",
        ),
        Wrong(
            "ignores_head_dim",
            lambda d_model, n_head, head_dim=None: (
                HeadConfig(d_model, n_head, d_model // n_head if head_dim else None)),
            "The head_dim that was given is not used: the object holds d_model // n_head.",
        ),
        Wrong(
            "d_model_made_to_fit",
            lambda d_model, n_head, head_dim=None: HeadConfig(
                n_head * head_dim if head_dim else d_model, n_head, head_dim),
            "d_model became n_head * head_dim. The two may differ: d_model is how many numbers a\n"
            "token has, n_head * head_dim how many numbers q has.",
        ),
        Wrong(
            "head_dim_stays_none",
            lambda d_model, n_head, head_dim=None: SimpleNamespace(
                d_model=d_model, n_head=n_head, head_dim=head_dim),
            "Without a head_dim the object keeps None. It has to work out the width of a\n"
            "head from the other two sizes.",
        ),
        Wrong(
            "head_dim_is_a_float",
            _variant(lambda d_model, n_head: float(_refuse(d_model, n_head))),
            "head_dim is a float here, such as 64.0; the operator / always makes one.",
        ),
        Wrong(
            "zero_heads_divide",
            _variant(_must_leave_0, checked=False),
            "No heads, a negative number of heads and 12.0 heads are not all refused here: a\n"
            "remainder alone doesn't show them. Test each size before you divide.",
        ),
        Wrong(
            "zero_heads_divide_and_zero_is_offered",
            _variant(_refuse, checked=False),
            "Two things are missing. With more heads than numbers the message offers a d_model of\n"
            "0, which is no legal one. And no heads, a negative number of heads and 12.0 heads\n"
            "are not all refused: a remainder alone doesn't show them. Test each size first.",
        ),
        Wrong(
            "zero_taken_for_not_given",
            lambda d_model, n_head, head_dim=None: HeadConfig(d_model, n_head, head_dim or None),
            "A head_dim of 0 is taken for no head_dim here, since 0 counts as False in a\n"
            "condition. Ask whether it is None.",
        ),
        Wrong(
            "head_dim_unchecked",
            _unchecked_head_dim,
            "d_model and n_head are tested, but a head_dim that was given isn't: it is a size too.",
        ),
        Wrong(
            "takes_floats",
            lambda d_model, n_head, head_dim=None: HeadConfig(d_model, _whole(n_head), head_dim),
            "12.0 heads go through. It looks like 12, but it is a float; refuse what isn't an int.",
        ),
        Wrong(
            "mends_in_silence",
            _mended,
            "An illegal d_model is changed to a legal one and nobody is told. The model that is\n"
            "then trained isn't the one that was asked for: refuse it.",
        ),
        Wrong(
            "the_library_class",
            AttentionConfig,
            NOT_OWN,
        ),
    ),
    right=(
        Right("a_quotient_of_0_in_the_message", _variant(_tells_the_sum)),
        Right("frozen_dataclass", _Frozen),
        Right("type_error_for_types", _Typed),
        Right("a_function_that_makes", _variant(_nearest_first)),
        Right("speaks_of_a_remainder_of_0", _variant(_must_leave_0)),
        Right("kept_arguments", lambda *sizes, **named: HeadConfig(*sizes, **named)),
    ),
)  # fmt: skip


def _whole(n_head):
    return int(n_head) if isinstance(n_head, float) else n_head
