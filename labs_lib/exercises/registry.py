"""Find labs and exercises by name; unknown names are answered with the nearest known ones."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
from functools import cache
from types import ModuleType

from .kit import Exercise, Lab


class UnknownExercise(LookupError):
    """No exercise has the given name; the message offers the nearest."""


class UnknownLab(LookupError):
    """No lab has the given name or number; the message lists what there is."""


@cache
def _modules() -> dict[str, ModuleType]:
    room = __name__.rpartition(".")[0]
    package = importlib.import_module(room)
    names = sorted(
        m.name for m in pkgutil.iter_modules(package.__path__) if re.fullmatch(r"lab\d\d", m.name)
    )
    return {name: importlib.import_module(f"{room}.{name}") for name in names}


def labs() -> list[Lab]:
    """Every lab, in order."""
    return [module.LAB for module in _modules().values()]


def lab(which: str | int) -> Lab:
    """The lab named by its number or name: `2`, `"2"`, `"02"`, `"lab02"` or its file's stem.

    Raises:
        UnknownLab: if there is none.
    """
    digits = re.fullmatch(r"(?:lab)?_?(\d{1,2})(?:_\w*)?", str(which).strip())
    known = {item.number: item for item in labs()}
    if digits and int(digits[1]) in known:
        return known[int(digits[1])]
    listing = ", ".join(f"{n:02d}" for n in known)
    raise UnknownLab(f"there is no lab {str(which)!r}; the course has the labs {listing}")


def exercises(which: str | int | None = None) -> list[Exercise]:
    """The exercises of one lab, or of the whole course, in the order of the notebooks."""
    if which is None:
        return [item for module in _modules().values() for item in module.EXERCISES]
    return list(_modules()[lab(which).name].EXERCISES)


def exercise(name: str) -> Exercise:
    """The exercise called `name`, such as `lab02.split_heads`.

    Raises:
        UnknownExercise: if there is none; the message offers the nearest names.
    """
    known = {item.name: item for item in exercises()}
    if name in known:
        return known[name]
    whole = re.fullmatch(r"(?:lab)?(\d{1,2})\.?", str(name))
    asked = [item.name for item in known.values() if whole and int(whole[1]) == int(item.lab[3:])]
    if asked:
        raise UnknownExercise(f"{name} is a lab; give one of its exercises: {', '.join(asked)}")
    near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
    near += [n for n in known if n.endswith("." + str(name)) and n not in near]
    way_out = f"did you mean {' or '.join(near)}?" if near else "`labs progress` lists them all"
    raise UnknownExercise(f"there is no exercise {name!r}; {way_out}")
