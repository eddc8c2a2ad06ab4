"""Lab 00's self-test: what the course takes for granted, as questions without points."""

from __future__ import annotations

from .kit import quiz

SELF_TEST = (
    quiz(
        "lab00.quiz_product_shape",
        "A has shape [4, 6] and B has shape [6, 3]: what is the shape of A @ B?",
        {"a": "[4, 3]", "b": "[6, 6]", "c": "[4, 6, 3]", "d": "they can't be multiplied"},
    ),
    quiz(
        "lab00.quiz_product_entry",
        "which numbers make row 2, column 0 of A @ B?",
        {
            "a": "row 2 of A and row 0 of B",
            "b": "A[2, 0] and B[2, 0] alone",
            "c": "row 2 of A and column 0 of B",
            "d": "column 2 of A and row 0 of B",
        },
    ),
    quiz(
        "lab00.quiz_comprehension",
        "what is [n * n for n in range(4) if n % 2]?",
        {"a": "[0, 4]", "b": "[1, 9]", "c": "[1, 9, 16]", "d": "[0, 1, 4, 9]"},
    ),
    quiz(
        "lab00.quiz_class",
        "c = Counter(5), then c.add(2): what does self stand for inside of add?",
        {"a": "the class Counter", "b": "the number 5", "c": "the number 2", "d": "the object c"},
    ),
    quiz(
        "lab00.quiz_index",
        "x has shape [2, 3, 4]: what is the shape of x[:, -1]?",
        {"a": "[2, 3]", "b": "[2, 1, 4]", "c": "[2, 4]", "d": "[3, 4]"},
    ),
    quiz(
        "lab00.quiz_broadcast",
        "x has shape [2, 3, 4] and b has shape [4]: what is x + b?",
        {
            "a": "an error: the shapes differ",
            "b": "shape [2, 3, 4], with b added to each row of 4",
            "c": "shape [2, 3, 8], with b hung on to each row",
            "d": "shape [4], with all of x summed into it",
        },
    ),
)
