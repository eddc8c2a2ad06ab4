"""Bytes, and their decimal (GB) and binary (GiB) units, which never compare equal or add.

10 GiB are 10.74 GB. A number whose unit is only assumed is the commonest slip in published
cache sizes, so here a quantity carries its unit.
"""

from __future__ import annotations

import math
import numbers
from typing import NoReturn

DECIMAL = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
SCALES = DECIMAL | BINARY
ROUNDED = 0.005  # how far a number may lie from the right one, as a share of it


class Quantity:
    """A number of bytes read in one unit: `Quantity.of(10.5, "GB")` or `Bytes(...).GB`.

    Quantities of one family (decimal or binary) add, subtract and compare; those of different
    families are never equal, and adding or ordering them raises TypeError with the way out.
    """

    __slots__ = ("n_bytes", "unit")

    def __init__(self, n_bytes: int, unit: str):
        if unit not in SCALES:
            raise ValueError(f"unit {unit!r} is not known; {', '.join(SCALES)} are")
        object.__setattr__(self, "n_bytes", int(n_bytes))
        object.__setattr__(self, "unit", unit)

    @classmethod
    def of(cls, value: float, unit: str) -> Quantity:
        """Return value units, to the nearest whole byte."""
        probe = cls(0, unit)
        return cls(round(value * probe.scale), unit)

    @property
    def scale(self) -> int:
        """How many bytes one unit has."""
        return SCALES[self.unit]

    @property
    def value(self) -> float:
        """The number in front of the unit."""
        return self.n_bytes / self.scale

    @property
    def bytes(self) -> Bytes:
        """The same amount without a unit to mistake."""
        return Bytes(self.n_bytes)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Quantity cannot be changed")

    def __float__(self) -> float:
        return self.value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return (self.unit in DECIMAL, self.n_bytes) == (other.unit in DECIMAL, other.n_bytes)

    def __hash__(self) -> int:
        return hash((self.unit in DECIMAL, self.n_bytes))

    def __lt__(self, other: Quantity) -> bool:
        return self.n_bytes < self._same_family(other, "ordered against").n_bytes

    def __le__(self, other: Quantity) -> bool:
        return self.n_bytes <= self._same_family(other, "ordered against").n_bytes

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.n_bytes + self._same_family(other, "added to").n_bytes, self.unit)

    def __sub__(self, other: Quantity) -> Quantity:
        other = self._same_family(other, "subtracted from")
        return Quantity(self.n_bytes - other.n_bytes, self.unit)

    __radd__ = __add__

    def __format__(self, spec: str) -> str:
        return f"{format(self.value, spec or '.2f')} {self.unit}"

    def __str__(self) -> str:
        return format(self)

    def __repr__(self) -> str:
        return f"Quantity({self.n_bytes}, {self.unit!r})"

    def _same_family(self, other: object, verb: str) -> Quantity:
        if isinstance(other, Quantity) and (self.unit in DECIMAL) == (other.unit in DECIMAL):
            return other
        what = other.unit if isinstance(other, Quantity) else type(other).__name__
        raise TypeError(
            f"{what} cannot be {verb} {self.unit}: convert first, with .bytes.{self.unit} of a "
            f"quantity, .{self.unit} of Bytes or Quantity.of(number, {self.unit!r})"
        )


class Bytes(int):
    """A whole number of bytes; `.GB` reads it in powers of ten, `.GiB` in powers of two.

    Sums, differences and whole multiples stay Bytes. Raises TypeError for a fraction of a byte.
    """

    def __new__(cls, value: int = 0) -> Bytes:
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise TypeError(f"{value!r} is not a whole number of bytes")
        return super().__new__(cls, value)

    kB = property(lambda self: Quantity(self, "kB"), doc="in units of 10^3 bytes")
    MB = property(lambda self: Quantity(self, "MB"), doc="in units of 10^6 bytes")
    GB = property(lambda self: Quantity(self, "GB"), doc="in units of 10^9 bytes")
    TB = property(lambda self: Quantity(self, "TB"), doc="in units of 10^12 bytes")
    KiB = property(lambda self: Quantity(self, "KiB"), doc="in units of 2^10 bytes")
    MiB = property(lambda self: Quantity(self, "MiB"), doc="in units of 2^20 bytes")
    GiB = property(lambda self: Quantity(self, "GiB"), doc="in units of 2^30 bytes")
    TiB = property(lambda self: Quantity(self, "TiB"), doc="in units of 2^40 bytes")

    def __add__(self, other: object) -> Bytes:
        return Bytes(int.__add__(self, other)) if isinstance(other, int) else NotImplemented

    def __sub__(self, other: object) -> Bytes:
        return Bytes(int.__sub__(self, other)) if isinstance(other, int) else NotImplemented

    def __mul__(self, other: object) -> Bytes:
        return Bytes(int.__mul__(self, other)) if isinstance(other, int) else NotImplemented

    __radd__ = __add__
    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"Bytes({int(self)})"

    def __str__(self) -> str:
        return f"{int(self):,} B"

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec else str(self)


def is_about(given: float, size: Bytes, unit: str) -> bool:
    """Return whether given is the number that size has in unit, but for its rounding."""
    return math.isclose(given, Quantity(size, unit).value, rel_tol=ROUNDED)


def right_number_wrong_unit(given: float, size: Bytes, unit: str) -> str | None:
    """Return the sentence for a number that would be right in another unit than the one asked.

    None when given is right as it stands, or not right in any unit. Also recognised: a binary
    unit turned into the next one by a factor of 1000, which is neither GB nor GiB.
    """
    if is_about(given, size, unit):
        return None
    wanted = Quantity(size, unit)
    for other in SCALES:
        if is_about(given, size, other):
            there = Quantity(size, other)
            return f"right number, wrong unit: that is {there}; in {unit} it is {wanted}"
    for smaller, larger in (("KiB", "MiB"), ("MiB", "GiB"), ("GiB", "TiB")):
        if math.isclose(given, size / SCALES[smaller] / 1000, rel_tol=ROUNDED):
            return (
                f"two units mixed: that is {Quantity(size, smaller)} divided by 1000, which is "
                f"neither {larger} nor its decimal cousin; in {unit} it is {wanted}"
            )
    return None
