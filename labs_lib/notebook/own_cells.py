"""The student's own cells in a merged notebook: copies, marks of the last section, ids."""

from __future__ import annotations

from typing import Any

from .aligning import KEPT, OURS, StudentCell
from .cells import KEY, info


def copy_of(one: StudentCell) -> dict[str, Any]:
    """A cell as the student's own, without our metadata."""
    made = own_cell(one.cell_type, one.source, one.id)
    made["metadata"] = {k: v for k, v in one.metadata.items() if k != KEY}
    return made


def own_cell(kind: str, source: str, cell_id: str) -> dict[str, Any]:
    """A fresh cell that is none of ours."""
    made = {"cell_type": kind, "id": cell_id[:64], "metadata": {}, "source": source}
    return made | {"outputs": [], "execution_count": None} if kind == "code" else made


def kept(cell: dict[str, Any]) -> dict[str, Any]:
    """The cell with the mark of the section at the end, where it stays from now on."""
    return {**cell, "metadata": {**cell["metadata"], KEY: {"role": KEPT}}}


def with_own_ids(cells: list[dict[str, Any]], ours: set[str]) -> list[dict[str, Any]]:
    """No two cells share an id, and none of the student's has one of ours."""
    taken = set(ours)
    done = []
    for cell in cells:
        name, number = cell["id"], 1
        while info(cell).get("role") not in OURS and name in taken:
            number += 1
            name = f"{cell['id'][:48]}-own-{number}"
        taken.add(name)
        done.append({**cell, "id": name})
    return done
