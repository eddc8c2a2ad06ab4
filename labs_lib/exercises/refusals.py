"""What must be refused: how a program did it, in plain words that can be compared."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from .kit import Case


def refusal(call: Callable[[], Any]) -> tuple[dict[str, str], Any]:
    """`refused with` the error's type or "no error", and what was returned (None after an error).

    Raises NotImplementedError where the call does: nothing was written yet.
    """
    try:
        value = call()
    except NotImplementedError:
        raise
    except Exception as error:
        return {"refused with": type(error).__name__}, None
    return {"refused with": "no error"}, value


def call_or_refused(program: Callable[..., Any], case: Case) -> Any:
    """Run the program; where the case's name begins with "refuse", tell how it did or didn't."""
    if not case.name.startswith("refuse"):
        return program(*case.args)
    return refusal(lambda: program(*case.args))[0]


def type_name(value: Any) -> str:
    """What a value is: "int" for every whole number that is no bool, "None", or its type's name."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return "int"
    return "None" if value is None else type(value).__name__
