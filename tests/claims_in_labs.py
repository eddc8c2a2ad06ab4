"""Where the labs measure the claims of the ledger, and where the two disagree."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import jupytext

from labs_lib.claims import Claim

TAG = re.compile(r"claim-(C\d+)")


def measured_cells(solutions: Path) -> dict[str, list[str]]:
    """Return for each claim id the solutions (`NN_name.md`) with a code cell tagged `claim-ID`."""
    found: dict[str, list[str]] = {}
    for path in sorted(solutions.glob("*.md")):
        notebook = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst")
        for cell in notebook.cells:
            tags = cell.metadata.get("tags", []) if cell.cell_type == "code" else []
            for match in filter(None, map(TAG.fullmatch, tags)):
                found.setdefault(match[1], []).append(path.stem)
    return found


def unaccounted(claims: Iterable[Claim], cells: dict[str, list[str]]) -> list[str]:
    """Return a sentence for each claim whose status and notebooks disagree.

    A measured claim needs a tagged cell in its own lab; a tagged cell needs a measured claim.
    """
    known = {claim.id: claim for claim in claims}
    wrong = []
    for claim in known.values():
        labs = {stem[:2] for stem in cells.get(claim.id, [])}
        if claim.status == "measured" and claim.lab not in labs:
            where = f"only in lab {', '.join(sorted(labs))}" if labs else "in no notebook"
            wrong.append(
                f"{claim.id} is marked measured in lab {claim.lab}, but a cell tagged "
                f"claim-{claim.id} is {where}"
            )
    for id_, stems in cells.items():
        status = known[id_].status if id_ in known else "not in the ledger"
        if status != "measured":
            wrong.append(f"{', '.join(stems)} measures claim-{id_}, which is {status}")
    return wrong
