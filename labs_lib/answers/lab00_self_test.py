"""Lab 00's self-test: the right choices, and what each wrong one mixes up."""

from __future__ import annotations

from .kit import Answer, Wrong

SELF_TEST = {
    "lab00.quiz_product_shape": Answer(
        reference="a",
        wrong=(
            Wrong(
                "b",
                "b",
                "The two sixes are the axis that is summed over, and it goes. What is left are\n"
                "the rows of A and the columns of B.",
            ),
            Wrong(
                "c",
                "c",
                "A product of two matrices is a matrix: the axis that both share is summed over\n"
                "and goes.",
            ),
            Wrong(
                "d",
                "d",
                "They can: A has as many columns as B has rows, and that is all that is needed.",
            ),
        ),
        because="[4, 6] @ [6, 3]: the inner numbers are equal and go, the outer ones stay.",
    ),
    "lab00.quiz_product_entry": Answer(
        reference="c",
        wrong=(
            Wrong(
                "a",
                "a",
                "A row of A with a row of B is what A @ B.T gives, of matrices whose rows are\n"
                "equally long. (Scores of attention are such a product; here it is A @ B.)",
            ),
            Wrong(
                "b",
                "b",
                "That is A * B, element by element, for matrices of one shape. @ sums over a\n"
                "whole row and a whole column.",
            ),
            Wrong(
                "d",
                "d",
                "It is the other way round: the row is A's, the column is B's.",
            ),
        ),
        because="It is their dot product: multiply number by number, then sum.",
    ),
    "lab00.quiz_comprehension": Answer(
        reference="b",
        wrong=(
            Wrong(
                "a",
                "a",
                "n % 2 is the remainder, 1 for odd numbers, and 1 counts as true: the odd ones\n"
                "are kept.",
            ),
            Wrong(
                "c", "c", "range(4) is 0, 1, 2, 3; the 4 isn't in it, and neither is its square."
            ),
            Wrong("d", "d", "The if keeps some of the numbers only, those whose n % 2 isn't 0."),
        ),
        because="1 and 3 are the odd numbers of 0, 1, 2, 3; their squares are 1 and 9.",
    ),
    "lab00.quiz_class": Answer(
        reference="d",
        wrong=(
            Wrong(
                "a",
                "a",
                "The class is shared by all counters. A method works on the one object that it\n"
                "was called on.",
            ),
            Wrong("b", "b", "5 went to __init__, which kept it in self.value."),
            Wrong("c", "c", "2 arrives as the parameter after self, which is n here."),
        ),
        because="c.add(2) is Counter.add(c, 2): the object before the dot comes first.",
    ),
    "lab00.quiz_index": Answer(
        reference="c",
        wrong=(
            Wrong(
                "a",
                "a",
                "Here the last axis is gone. The -1 stands in the second place, so it picks from\n"
                "the second axis: the last of 3.",
            ),
            Wrong("b", "b", "A single number as an index takes its axis away; -1: would keep it."),
            Wrong("d", "d", "The colon in the first place keeps the first axis whole."),
        ),
        because="The colon keeps an axis, a number takes it away, and axes not named stay.",
    ),
    "lab00.quiz_broadcast": Answer(
        reference="b",
        wrong=(
            Wrong(
                "a",
                "a",
                "Shapes are compared from the back: 4 and 4 fit, and the axes that b lacks are\n"
                "made up by repeating it.",
            ),
            Wrong("c", "c", "+ adds numbers. To hang tensors on one another is torch.cat."),
            Wrong("d", "d", "Nothing is summed away: + works number by number."),
        ),
        because="This is called broadcasting: b is used again for each of the 2 × 3 rows.",
    ),
}
