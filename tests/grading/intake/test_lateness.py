"""What lateness costs: by the clock on the wall of the class's zone, also when clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from labs_lib.errors import UsageError
from labs_lib.grading.extras import Extras
from labs_lib.grading.intake.lateness import moment, read_policy

BERLIN = 'zone = "Europe/Berlin"\n'


@pytest.fixture
def policy(tmp_path):
    def made(text):
        (tmp_path / "late.toml").write_text(text, encoding="utf-8")
        return read_policy(tmp_path / "late.toml")

    return made


def at(text):
    return datetime.fromisoformat(text).astimezone(UTC)


def due(policy, deadline, more=""):
    found = policy(f"{BERLIN}{more}\n[deadlines]\nlab01 = {deadline}\n")
    return found, found.deadline("lab01")


def test_times_are_kept_in_utc_and_shown_with_the_zone(policy):
    found, deadline = due(policy, "2026-10-20T23:59:00", "points_per_day = 1")
    assert deadline == datetime(2026, 10, 20, 21, 59, tzinfo=UTC)
    late = found.judge("lab01", "ada", at("2026-10-21T05:00:00Z"), 4.0, marked=False)
    assert late.submitted.tzinfo is UTC
    assert "2026-10-21 07:00:00 +0200 (Europe/Berlin)" in late.told and "1 day late" in late.told
    assert late.points == 1


@pytest.mark.parametrize(
    ("submitted", "days"),
    [
        ("2026-10-24T23:59:00+02:00", 0),  # to the second
        ("2026-10-24T23:59:01+02:00", 1),
        ("2026-10-25T02:30:00+02:00", 1),  # the hour that comes twice, first
        ("2026-10-25T02:30:00+01:00", 1),  # and again
        ("2026-10-25T23:59:00+01:00", 1),  # a day of 25 hours
        ("2026-10-25T23:59:01+01:00", 2),
    ],
)
def test_the_day_that_has_25_hours_is_one_day(policy, submitted, days):
    found, deadline = due(policy, "2026-10-24T23:59:00")
    assert found.days_late(deadline, at(submitted)) == days


@pytest.mark.parametrize(
    ("submitted", "days"),
    [("2027-03-28T23:59:00+02:00", 1), ("2027-03-28T23:59:01+02:00", 2)],
)
def test_the_day_that_has_23_hours_is_one_day_too(policy, submitted, days):
    found, deadline = due(policy, "2027-03-27T23:59:00")
    assert found.days_late(deadline, at(submitted)) == days


def test_a_deadline_in_the_hour_that_comes_twice_or_never_is_the_later_one(policy):
    assert due(policy, "2026-10-25T02:30:00")[1] == at("2026-10-25T02:30:00+01:00")
    assert due(policy, "2027-03-28T02:30:00")[1] == at("2027-03-28T03:30:00+02:00")
    assert due(policy, "2026-10-25T02:30:00+02:00")[1] == at("2026-10-25T02:30:00+02:00")


def test_the_repeated_hour_is_told_apart_by_its_offset_and_else_in_the_students_favour(policy):
    found, deadline = due(policy, "2026-10-25T02:15:00+02:00")
    assert found.days_late(deadline, moment("2026-10-25T02:10:00+01:00", found.zone)) == 1
    assert found.days_late(deadline, moment("2026-10-25T02:10:00", found.zone)) == 0
    assert moment("2026-10-25 00:30:00 UTC", found.zone) == at("2026-10-25T00:30:00Z")


def test_grace_points_percent_and_the_last_day(policy):
    found, deadline = due(
        policy, "2026-11-02T12:00:00", "grace_minutes = 15\npercent_per_day = 10\ndays = 3"
    )

    def lost(after, earned=8.0):
        return found.judge("lab01", "x", deadline + after, earned, marked=False).points

    assert lost(timedelta(minutes=15)) == 0 and lost(timedelta(minutes=15, seconds=1)) == 0.8
    assert lost(timedelta(days=1, minutes=15)) == 0.8 and lost(timedelta(days=1, minutes=16)) == 1.6
    assert lost(timedelta(days=3)) == 2.4 and lost(timedelta(days=3, hours=1)) == 8
    found, deadline = due(policy, "2026-11-02T12:00:00", "points_per_day = 3")
    assert lost(timedelta(days=40)) == 8, "never below nothing"
    assert lost(timedelta(hours=1), earned=1.0) == 1


def test_an_unknown_time_costs_nothing_and_says_so(policy):
    found, _ = due(policy, "2026-11-02T12:00:00", "points_per_day = 1")
    unknown = found.judge("lab01", "x", None, 3.0, marked=False)
    assert unknown.points == 0 and "not known" in unknown.told
    assert "a person decides" in found.judge("lab01", "x", None, 3.0, marked=True).told
    assert found.judge("lab02", "x", None, 3.0, marked=False) is None


def test_extensions_and_a_deadline_for_all_other_labs(policy):
    found = policy(
        f"{BERLIN}[deadlines]\n'01' = 2026-11-02T12:00:00\nother_labs = 2026-12-01T12:00:00\n"
        "[extensions.ada]\nlab01 = 2026-11-05T12:00:00\n"
    )
    assert found.deadline("lab01", "bob") == at("2026-11-02T11:00:00Z")
    assert found.deadline("lab01", "ada") == at("2026-11-05T11:00:00Z")
    assert found.deadline("lab05", "ada") == at("2026-12-01T11:00:00Z")


def test_an_extension_finds_a_student_by_any_name_and_says_when_it_finds_nobody(tmp_path):
    (tmp_path / "class.csv").write_text("student,email\nada,ada@x.org\n", encoding="utf-8")
    (tmp_path / "late.toml").write_text(
        '[extensions."ADA@x.org"]\nlab01 = 2026-11-05T12:00:00\n'
        "[extensions.bbo]\nlab01 = 2026-11-05T12:00:00\n",
        encoding="utf-8",
    )
    (tmp_path / "in" / "ada").mkdir(parents=True)
    (tmp_path / "in" / "ada" / "lab01.ipynb").write_text("{}", encoding="utf-8")
    extras = Extras(roster=tmp_path / "class.csv", late=tmp_path / "late.toml")
    _, left_out = extras.collect(tmp_path / "in", tmp_path / "out", [])
    assert extras._policy.deadline("lab01", "ada") == datetime(2026, 11, 5, 12, tzinfo=UTC)
    assert [one for one in left_out if "bbo" in one] and not any("ADA" in one for one in left_out)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('zone = "Berlin"', "time zone"),
        ('attempts = "best"', "last-on-time"),
        ("percent_per_day = -1", "percent_per_day"),
        ("days = 1.5", "days"),
        ("days = true", "days"),
        ("extensions = 3", "extensions = 3 is no table"),
        ("grace = 3", "grace"),
        ("[deadlines]\nlab77 = 2026-11-02T12:00:00", "lab"),
        ('[deadlines]\nlab01 = "soon"', "lab01"),
        ("[deadlines", "TOML"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_by_name(policy, text, word):
    with pytest.raises(UsageError, match=word):
        policy(text)
