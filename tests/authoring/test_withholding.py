"""What is withheld: every function that answers an exercise; the text around it stays."""

from __future__ import annotations

import textwrap

import pytest

from labs_lib.answers import answer
from labs_lib.authoring.withholding import WithholdingError, entries, withhold
from labs_lib.exercises import exercises


def test_every_function_of_the_library_that_answers_an_exercise_is_withheld():
    named = {entry for names in entries().values() for entry in names}
    for item in exercises():
        reference = answer(item.name).reference
        code = getattr(reference, "__code__", None)
        used = [reference.__globals__.get(name) for name in code.co_names] if code else []
        for function in [reference, *used]:
            module = getattr(function, "__module__", None) or ""
            public = not getattr(function, "__name__", "_").startswith("_")
            if isinstance(function, type) and issubclass(function, tuple):
                continue  # a state's named fields compute nothing
            if public and module.startswith(("labs_lib.attention", "labs_lib.arithmetic")):
                assert f"{module}:{function.__qualname__}" in named, item.name


def test_withholding_keeps_signature_docstring_and_line_numbers():
    source = textwrap.dedent('''
        import math

        @staticmethod
        def first(
            x: int = 3,
        ) -> int:
            """What it does."""
            # the trick: add one
            return x + 1  # indeed
            # and never two

        def second(x): return x + 2

        def third(x):
            # the trick: add three

            if x:
                return x + 3
            return 3

        class Fourth:
            """A class."""
            size = 4

            def __call__(self, x):
                """Call it."""
                return x + 4

            def bare(self): "Only words."

        def last(x):
            return math.sqrt(x)
    ''')
    names = dict.fromkeys(["first", "second", "third", "Fourth"], "lab01")
    made = withhold(source, names, "m")
    assert len(made.split("\n")) == len(source.split("\n"))
    for secret in ("x + 1", "x + 2", "x + 3", "x + 4", "trick", "indeed", "two", "return 3"):
        assert secret not in made
    for kept in ("What it does.", "x: int = 3", "size = 4", "Call it.", "math.sqrt(x)", "words"):
        assert kept in made
    space = {}
    exec(made, space)
    for name in ("first", "second", "third"):
        with pytest.raises(Exception, match="lab01"):
            space[name](1)
    with pytest.raises(Exception, match="lab01"):
        space["Fourth"]()(1)
    assert space["last"](4) == 2
    with pytest.raises(WithholdingError, match="nothing_of_that_name"):
        withhold(source, {"nothing_of_that_name": "lab01"}, "m")
