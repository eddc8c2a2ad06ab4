"""The ledger of claims: what lessons on attention say, what we found, and where it is measured."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from labs_lib import paths
from labs_lib.errors import UsageError

VERDICTS = ("true", "within-limits", "wrong", "unverifiable")
STATUSES = ("measured", "planned", "not-measurable")


@dataclass(frozen=True)
class Claim:
    """One claim: `verdict` is one of VERDICTS, `status` one of STATUSES, `lab` two digits.

    `why` says why a claim cannot be measured here and is empty otherwise.
    Raises ValueError for a word that is not known or a reason that is missing or out of place.
    """

    id: str
    lab: str
    claim: str
    verdict: str
    right_value: str
    source: str
    status: str
    why: str = ""

    def __post_init__(self) -> None:
        for name, allowed in (("verdict", VERDICTS), ("status", STATUSES)):
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{self.id}: {name} {value!r}; {', '.join(allowed)} are allowed")
        if bool(self.why) != (self.status == "not-measurable"):
            raise ValueError(f"{self.id}: exactly the claims that are not-measurable need a why")


def load(path: Path | None = None) -> list[Claim]:
    """Return all claims of data/claims.json, or of another file of the same form."""
    with open(path or paths.data() / "claims.json", encoding="utf-8") as file:
        return [Claim(**row) for row in json.load(file)["claims"]]


def table(claims: Iterable[Claim]) -> Table:
    """Return the ledger as a table that rich prints."""
    claims = list(claims)
    out = Table(title=_summary(claims), show_lines=True)
    out.add_column("claim", no_wrap=True)
    out.add_column("verdict", no_wrap=True)
    out.add_column("what is said", ratio=2)
    out.add_column("what is right", ratio=3)
    for c in claims:
        right = c.right_value + (f" Not measured: {c.why}" if c.why else "")
        where, state = f"{c.id}\nlab {c.lab}", f"{c.verdict}\n{c.status}"
        out.add_row(where, state, escape(c.claim), escape(right))
    return out


def print_claims(
    lab: str | None = None, verdict: str | None = None, console: Console | None = None
) -> None:
    """Print the ledger, or only the claims of one lab ("04", "4" or "lab04") or of one verdict.

    Raises UsageError for a lab that no claim belongs to, or a verdict that there isn't.
    """
    claims = load()
    if verdict is not None and verdict not in VERDICTS:
        raise UsageError(f"there is no verdict {verdict!r}; there are {', '.join(VERDICTS)}")
    if lab is not None:
        known, number = sorted({claim.lab for claim in claims}), lab.removeprefix("lab").zfill(2)
        if number not in known:
            raise UsageError(f"no claim belongs to lab {lab}; they belong to {', '.join(known)}")
        claims = [claim for claim in claims if claim.lab == number]
    if verdict is not None:
        claims = [claim for claim in claims if claim.verdict == verdict]
    (console or Console()).print(table(claims))


def _summary(claims: list[Claim]) -> str:
    verdicts = [claim.verdict for claim in claims]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts)
    measured = sum(claim.status == "measured" for claim in claims)
    return f"{len(claims)} claims: {counts}; {measured} measured in the labs"
