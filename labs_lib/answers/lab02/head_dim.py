"""Lab 02: the width of one head."""

from __future__ import annotations

from fractions import Fraction

from ..kit import Answer, Right, Wrong


def head_dim(d_model, n_head):
    """The width of one head, an int; ValueError where n_head leaves a remainder."""
    if d_model % n_head:
        raise ValueError(f"d_model={d_model} does not divide into n_head={n_head}")
    return d_model // n_head


def _with_divmod(d_model, n_head):
    width, over = divmod(d_model, n_head)
    if over != 0:
        raise ValueError(f"{over} of {d_model} numbers are left over")
    return width


def _asserted(d_model, n_head):
    assert d_model % n_head == 0, "a remainder"
    return d_model // n_head


def _raises(kind):
    def program(d_model, n_head):
        if d_model % n_head:
            raise kind("a remainder")
        return d_model // n_head

    return program


def _refuses(when):
    def program(d_model, n_head):
        if when(d_model, n_head):
            raise ValueError("a remainder")
        return d_model // n_head

    return program


def _from_fraction(d_model, n_head):
    width = Fraction(d_model, n_head)
    if width.denominator != 1:
        raise ValueError(f"{width} is not whole")
    return int(width)


HEAD_DIM = Answer(
    reference=head_dim,
    wrong=(
        Wrong(
            "a_float",
            lambda d_model, n_head: (
                d_model / n_head if d_model % n_head == 0 else head_dim(d_model, n_head)
            ),
            "This is a float, such as 64.0: the operator / always makes one. A shape wants an int.",
        ),
        Wrong(
            "a_float_unchecked",
            lambda d_model, n_head: d_model / n_head,
            "This is d_model / n_head, a float, and sizes that leave a remainder go through.\n"
            "Half a number can't be stored: look at the remainder, then divide to an int.",
        ),
        Wrong(
            "rounds_down",
            lambda d_model, n_head: d_model // n_head,
            "Where there is a remainder, this drops it in silence: 2048 over 24 gives 85, and 8\n"
            "numbers of each query belong to no head. Such a pair has to be refused.",
        ),
        Wrong(
            "rounds_up",
            lambda d_model, n_head: -(-d_model // n_head),
            "Where there is a remainder, this rounds up: 24 heads of 86 want 2,064 numbers, and\n"
            "there are 2,048. Such a pair has to be refused.",
        ),
        Wrong(
            "rounds_to_the_nearest",
            lambda d_model, n_head: round(d_model / n_head),
            "This rounds to the nearest whole number, so that some pairs want more numbers than\n"
            "there are and some leave numbers over. Such pairs have to be refused.",
        ),
        Wrong(
            "refuses_the_wrong_ones",
            _refuses(lambda d_model, n_head: d_model % n_head == 0),
            "This refuses the pairs that go together. `%` gives what is left over, and that is 0\n"
            "where nothing is.",
        ),
        Wrong(
            "remainder_upside_down",
            _refuses(lambda d_model, n_head: n_head % d_model != 0),
            "A pair that goes together is refused here. n_head % d_model divides the heads by\n"
            "d_model; d_model is what is shared out.",
        ),
        Wrong(
            "quotient_and_remainder",
            divmod,
            "These are two numbers, the width and what is left over. One number is wanted, and an\n"
            "error where something is left over.",
        ),
        Wrong(
            "returns_a_text",
            lambda d_model, n_head: "ValueError" if d_model % n_head else d_model // n_head,
            "With a remainder this returns a text, and the caller goes on with it. An error stops\n"
            "the program where it is raised: the word for that is raise.",
        ),
        Wrong(
            "upside_down",
            lambda d_model, n_head: n_head // d_model,
            "This divides n_head by d_model. d_model is what is shared out among the heads.",
        ),
        Wrong(
            "the_remainder",
            lambda d_model, n_head: d_model % n_head,
            "This is what is left over after the division, not the result of it.",
        ),
        Wrong(
            "always_64",
            lambda d_model, n_head: 64 if d_model % n_head == 0 else head_dim(d_model, n_head),
            "This is 64 whatever comes in. 64 belongs to one pair of sizes; use the arguments.",
        ),
        Wrong(
            "returns_none",
            lambda d_model, n_head: None if d_model % n_head else d_model // n_head,
            "With a remainder this returns None, and the caller goes on with it. Raise an error,\n"
            "so that the mistake is seen where it is made.",
        ),
        Wrong(
            "returns_the_error",
            lambda d_model, n_head: (
                ValueError("a remainder") if d_model % n_head else d_model // n_head
            ),
            "The error is returned here, as if it were a width, and the caller goes on with it.\n"
            "An error stops the program where it is raised: the word for that is raise.",
        ),
        Wrong(
            "a_type_error",
            _raises(TypeError),
            "Such a pair is refused, but as a TypeError. That is for an argument of the wrong\n"
            "type; both are ints here, and their values don't go together: a ValueError.",
        ),
        Wrong(
            "a_bare_exception",
            _raises(Exception),
            "Such a pair is refused, but with a plain Exception. Whoever wants to catch it would\n"
            "have to catch every error there is; ValueError says which kind it was.",
        ),
        Wrong(
            "prints_and_goes_on",
            lambda d_model, n_head: None,
            "Your function returns None. A result that is only printed can't be used; return it.",
        ),
        Wrong(
            "asserts",
            _asserted,
            "The test is right, but it is an assert, and `python -O` leaves asserts out.\n"
            "Raise a ValueError, which is always there.",
        ),
    ),
    right=(
        Right("divmod", _with_divmod),
        Right("fraction", lambda d_model, n_head: _from_fraction(d_model, n_head)),
        Right("extra_default", lambda d_model, n_head, strict=True: head_dim(d_model, n_head)),
        Right("counts_up", lambda d_model, n_head: list(range(d_model + 1)).index(
            head_dim(d_model, n_head))),
    ),
)  # fmt: skip
