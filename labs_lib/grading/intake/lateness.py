"""Deadlines and what handing in late costs: times are kept in UTC and shown in the class's zone.

The policy is a TOML file:

    zone = "Europe/Berlin"          # a name of the IANA time zone database
    attempts = "last-on-time"       # or "last": which of several attempts counts
    grace_minutes = 15
    percent_per_day = 10            # of the points earned; or points_per_day = 1
    days = 5                        # handed in later than that, a lab counts nothing

    [deadlines]                     # without an offset: by the clock on the wall of the zone
    lab01 = 2026-10-25T23:59:00
    other_labs = 2026-12-18T23:59:00

    [extensions."ada"]
    lab01 = 2026-10-27T23:59:00

A day late ends when the clock on the wall shows the deadline's time again, so it has 23 or 25 hours
when clocks change. An hour that a zone has twice is taken in the student's favour.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from ...errors import UsageError
from ...exercises import UnknownLab
from ...exercises import lab as find_lab

ATTEMPTS = ("last-on-time", "last")
OTHERS = "other_labs"
_KEYS = {"zone", "attempts", "grace_minutes", "percent_per_day", "points_per_day", "days"}
_TABLES = {"deadlines", "extensions"}


@dataclass(frozen=True)
class Late:
    """How late a lab was handed in: times in UTC (None where unknown), whole days, points lost."""

    submitted: datetime | None
    deadline: datetime
    days: int
    points: float
    told: str


@dataclass(frozen=True)
class LatePolicy:
    """Deadlines by lab, all in UTC, and what each begun day after them costs."""

    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))
    deadlines: Mapping[str, datetime] = field(default_factory=dict)
    extensions: Mapping[str, Mapping[str, datetime]] = field(default_factory=dict)
    attempts: str = ATTEMPTS[0]
    grace: timedelta = timedelta()
    percent_per_day: Fraction = Fraction(0)
    points_per_day: Fraction = Fraction(0)
    last_day: int | None = None

    def deadline(self, lab: str, student: str = "") -> datetime | None:
        """The deadline of a lab in UTC, the student's own where there is an extension."""
        own = self.extensions.get(student, {})
        for table in (own, self.deadlines):
            found = table.get(lab) or table.get(OTHERS)
            if found:
                return found
        return None

    def days_late(self, deadline: datetime, submitted: datetime) -> int:
        """How many days have begun since the deadline; 0 on time and within the grace."""
        if submitted <= deadline + self.grace:
            return 0
        wall = deadline.astimezone(self.zone).replace(tzinfo=None)
        days = max(1, (submitted - deadline).days - 1)
        while submitted > utc(wall + timedelta(days=days), self.zone) + self.grace:
            days += 1
        return days

    def judge(
        self, lab: str, student: str, submitted: datetime | None, earned: float, *, marked: bool
    ) -> Late | None:
        """What a lab's lateness costs of the points earned in it; None without a deadline.

        `marked` says that the platform called it late without telling when it came.
        """
        deadline = self.deadline(lab, student)
        if deadline is None:
            return None
        if submitted is None:
            told = "The platform marked it as late and the time isn't known: a person decides."
            if not marked:
                told = "When it was handed in is not known; it counts as on time."
            return Late(None, deadline, 0, 0.0, told)
        days = self.days_late(deadline, submitted)
        lost = self._lost(days, Fraction(earned))
        told = f"Handed in on {self.show(submitted)}; due was {self.show(deadline)}"
        if days:
            told += f": {days} day{'s' if days > 1 else ''} late, {number(lost)} points less"
        return Late(submitted, deadline, days, float(lost), f"{told}.")

    def show(self, moment: datetime) -> str:
        """A moment by the zone's clock, with the offset of that day."""
        return moment.astimezone(self.zone).strftime(f"%Y-%m-%d %H:%M:%S %z ({self.zone.key})")

    def _lost(self, days: int, earned: Fraction) -> Fraction:
        if self.last_day is not None and days > self.last_day:
            return earned
        each = self.points_per_day + earned * self.percent_per_day / 100
        return min(earned, round(days * each, 2))


def read_policy(path: Path) -> LatePolicy:
    """Read a late policy.

    Raises:
        UsageError: if the file can't be read, or holds something that isn't understood.
    """
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"the late policy {path} can't be read: {why}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"the late policy {path} can't be read as TOML: {error}") from error
    strange = sorted(set(found) - _KEYS - _TABLES)
    if strange:
        known = ", ".join(sorted(_KEYS | _TABLES))
        raise UsageError(f"the late policy {path} has {strange[0]!r}; known are {known}")
    try:
        return _policy(found)
    except (ValueError, TypeError, OverflowError, UnknownLab) as error:
        raise UsageError(f"the late policy {path} can't be used: {error}") from error


def utc(wall: datetime, zone: ZoneInfo) -> datetime:
    """A time on the zone's wall clock in UTC; the later one where the clock shows it twice."""
    return max(wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))


def moment(text: str, zone: ZoneInfo) -> datetime:
    """A time as tables write it, in UTC: ISO 8601, or with `UTC` behind it; without an offset it is
    the zone's, the earlier one where the clock shows it twice.

    Raises:
        ValueError: if it is no such time.
    """
    plain = text.strip()
    if plain.upper().endswith((" UTC", " GMT")):
        plain = plain[:-4].rstrip() + "+00:00"
    found = datetime.fromisoformat(plain)
    if found.tzinfo is not None:
        return found.astimezone(UTC)
    return min(found.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))


def number(value: float | Fraction) -> str:
    """A number of points as short as it is exact to two decimals."""
    return f"{float(value):.2f}".rstrip("0").rstrip(".")


def _policy(found: Mapping[str, Any]) -> LatePolicy:
    zone = _zone(found.get("zone", "UTC"))
    attempts = found.get("attempts", ATTEMPTS[0])
    if attempts not in ATTEMPTS:
        raise ValueError(f"attempts = {attempts!r} is not one of {', '.join(ATTEMPTS)}")
    days = found.get("days")
    if days is not None and (type(days) is not int or days < 0):  # true is an int too
        raise ValueError(f"days = {days!r} is not a whole number from 0 on")
    extensions = found.get("extensions", {})
    if not isinstance(extensions, Mapping):
        raise ValueError(f"extensions = {extensions!r} is no table of students")
    return LatePolicy(
        zone=zone,
        deadlines=_deadlines(found.get("deadlines", {}), zone),
        extensions={name: _deadlines(table, zone) for name, table in extensions.items()},
        attempts=attempts,
        grace=timedelta(minutes=float(_amount(found, "grace_minutes"))),
        percent_per_day=_amount(found, "percent_per_day"),
        points_per_day=_amount(found, "points_per_day"),
        last_day=days,
    )


def _zone(name: Any) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):  # ZoneInfoNotFoundError is a KeyError
        raise ValueError(
            f"zone = {name!r} is no time zone of this machine; one is 'Europe/Berlin'"
        ) from None


def _amount(found: Mapping[str, Any], key: str) -> Fraction:
    value = found.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e6:
        raise ValueError(f"{key} = {value!r} is not a number from 0 on")
    return Fraction(str(value))


def _deadlines(table: Any, zone: ZoneInfo) -> dict[str, datetime]:
    if not isinstance(table, Mapping):
        raise ValueError(f"{table!r} is no table of labs and times")
    made = {}
    for lab, value in table.items():
        if not isinstance(value, datetime):
            raise ValueError(f"{lab} = {value!r} is no time; write 2026-10-25T23:59:00")
        name = lab if lab == OTHERS else find_lab(lab).name
        made[name] = value.astimezone(UTC) if value.tzinfo else utc(value, zone)
    return made
