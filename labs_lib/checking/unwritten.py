"""Whose stub raised NotImplementedError: the program's own, or that of another that it calls."""

from __future__ import annotations

import dis
from pathlib import Path
from types import CodeType, TracebackType

import torch

_COURSE = Path(__file__).parents[1]
_INSTALLED = Path(torch.__file__).parents[1]
_RAISE = dis.opmap["RAISE_VARARGS"]
_NOBODY = "__create_fn__"  # where a dataclass keeps the __init__ that it makes


def calls_unwritten(error: BaseException, called: str = "") -> str:
    """The name of another function than the program's own whose stub raised; "" for all else.

    The program's own is what the course called first, or, by its name, `called`.
    """
    chain = _students(error)
    if not chain or not is_stub(error):
        return ""
    first, last = (_root(code) for code, _ in (chain[0], chain[-1]))
    return "" if last in (first, called) else last


def is_stub(error: BaseException) -> bool:
    """Whether a student's own line `raise NotImplementedError` ended the call.

    torch raises NotImplementedError too, as for a softmax of whole numbers.
    """
    if not isinstance(error, NotImplementedError):
        return False
    chain, steps = _students(error), list(_steps(error.__traceback__))
    if not steps or not chain or chain[-1] != steps[-1]:
        return not steps  # made and never raised, as far as is known
    code, place = chain[-1]
    return code.co_code[place] == _RAISE


def _students(error: BaseException) -> list[tuple[CodeType, int]]:
    """The steps of a traceback that are neither the course's nor an installed library's."""
    return [
        (code, place)
        for code, place in _steps(error.__traceback__)
        if not _is_elsewhere(code) and _root(code) != _NOBODY
    ]


def _steps(step: TracebackType | None):
    while step is not None:
        yield step.tb_frame.f_code, step.tb_lasti
        step = step.tb_next


def _is_elsewhere(code: CodeType) -> bool:
    path = Path(code.co_filename)
    return path.is_relative_to(_COURSE) or path.is_relative_to(_INSTALLED)


def _root(code: CodeType) -> str:
    """The function or class, at the top of its cell, that a piece of code belongs to."""
    return code.co_qualname.partition(".")[0]
