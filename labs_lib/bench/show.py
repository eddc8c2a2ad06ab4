"""Prints what benches find as tables, and writes it as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from labs_lib.bench.registry import Bench, chosen
from labs_lib.bench.rows import Row, Unavailable, WrongResult, in_words
from labs_lib.errors import UsageError
from labs_lib.notebook.atomic import write_text


def bench(
    name: str | None = None,
    *,
    device: str | None = None,
    to: Path | None = None,
    console: Console | None = None,
) -> bool:
    """Runs benches and prints them; True if every bar is met.

    `to` names a file for the same as JSON. Raises: LookupError for a name that isn't there or a
    device that it doesn't measure, UsageError where no such file can be made; nothing is measured
    then.
    """
    console = console or Console(highlight=False, markup=False)
    if to is not None:  # before minutes of measuring, which a wrong path would lose
        _require_place(to)
    found, fine = [], True
    for item in chosen(name, device):
        data, met = _shown(item, console)
        found.append({"bench": item.name, "title": item.title, **data})
        fine = fine and met
    if to is not None:
        write_text(to, json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    return fine


def table(item: Bench, rows: Sequence[Row]) -> Table:
    """A bench's rows; a column that no row fills is left out."""
    extra = list(dict.fromkeys(name for row in rows for name, _ in row.more))
    columns = {
        "what": [row.what for row in rows],
        "time": [in_words(row.seconds) for row in rows],
        "beside": [row.peer for row in rows],
        "takes": [_time(row.peer_seconds) for row in rows],
        "times as fast": [_ratio(row.ratio) for row in rows],
        "GFLOP/s": [f"{row.work / row.seconds / 1e9:.3g}" if row.work else "" for row in rows],
        "of peak": [f"{row.share:.1%}" if row.share is not None else "" for row in rows],
        **{name: [dict(row.more).get(name, "") for row in rows] for name in extra},
        "asked": [row.verdict for row in rows],
    }
    made = Table(title=item.title, title_justify="left", title_style="bold", box=SIMPLE)
    kept = {name: cells for name, cells in columns.items() if any(cells)}
    for name in kept:
        made.add_column(name, justify="left" if name in ("what", "beside", "asked") else "right")
    for cells in zip(*kept.values(), strict=True):
        made.add_row(*cells)
    return made


def _require_place(to: Path) -> None:
    if to.is_dir():
        raise UsageError(f"--json {to} is a folder; name a file in it")
    if not to.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {to.parent}; make it first, or give another --json")


def _shown(item: Bench, console: Console) -> tuple[dict, bool]:
    """Measures one bench and prints it; its plain data, and whether its bars are met."""
    try:
        rows = item.rows()
    except (Unavailable, WrongResult) as why:
        console.print(f"{item.title}: {why}")
        here = isinstance(why, Unavailable)
        return {"unavailable" if here else "wrong": str(why)}, here
    figures = [row for row in rows if isinstance(row, Row)]
    notes = [row for row in rows if not isinstance(row, Row)]
    console.print(table(item, figures))
    for note in notes:
        console.print(note)
    data = {"rows": [row.to_dict() for row in figures], "notes": notes}
    return data, all(row.met is not False for row in figures)


def _time(seconds: float | None) -> str:
    return in_words(seconds) if seconds is not None else ""


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"
