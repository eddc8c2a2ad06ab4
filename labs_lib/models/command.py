"""`labs models`: what there is, fetch, compare, remove; on a terminal with progress."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from labs_lib import paths
from labs_lib.models import fetch, on_disk
from labs_lib.models.catalog import MODELS, Entry, entry

WITHOUT = "every lab goes on without it, on recorded figures, and `labs models get` tries again"
COLOURS = {
    on_disk.OK: "green",
    on_disk.UNFINISHED: "green",
    on_disk.MISSING: "yellow",
    on_disk.BROKEN: "bold red",
}


def show(
    names: Sequence[str] = (), cache: Path | None = None, console: Console | None = None
) -> None:
    """Print what models there are, and whether they are on this machine."""
    console = console or _console()
    table = Table(box=None, pad_edge=False)
    for title in ("model", "state", "on disk", "to fetch", "what"):
        table.add_column(title, no_wrap=title != "what")
    found = [on_disk.status(what.name, cache) for what in _chosen(names)]
    for one in found:
        what = one.entry
        size, to_fetch = on_disk.megabytes(one.bytes), on_disk.megabytes(what.size)
        state = f"[{COLOURS[one.state]}]{one.state}[/]"
        about = f"{what.title}: {what.about}; {what.licence}"
        table.add_row(what.name, state, size, to_fetch, escape(about))
    console.print(table)
    for one in found:
        if one.problem and one.state == on_disk.BROKEN:
            command = on_disk.command_to_get(one.entry.name, cache)
            console.print(escape(f"{one.problem}; {command} mends it"), soft_wrap=True)
    console.print(escape(f"folder: {_root(cache)} (LABS_MODELS or --cache names another)"))
    if any(one.state == on_disk.MISSING for one in found):
        console.print("`labs models get` fetches what is missing.")


def get(names: Sequence[str], cache: Path | None = None, console: Console | None = None) -> None:
    """Fetch models, or mend them; what is there and whole stays.

    Raises FetchError where that can't be; models that were finished before stay.
    """
    console = console or _console()
    for what in _chosen(names):
        try:
            with _progress(console, what) as tell:
                done = fetch.get(what.name, cache, tell)
        except fetch.FetchError as error:
            raise fetch.FetchError(f"{error}; {WITHOUT}") from error
        found = on_disk.status(what.name, cache)
        words = "is ready" if done else "was here already"
        size = on_disk.megabytes(found.bytes)
        console.print(escape(f"{what.title} {words} ({size} in {found.folder})"), soft_wrap=True)


def verify(names: Sequence[str], cache: Path | None = None, console: Console | None = None) -> bool:
    """Compare every byte on disk with what it should be; return whether all models are whole."""
    console = console or _console()
    whole = True
    for what in _chosen(names):
        found = on_disk.status(what.name, cache, thorough=True)
        command = on_disk.command_to_get(what.name, cache)
        words = {
            on_disk.OK: "whole",
            on_disk.UNFINISHED: f"whole as fetched; {found.problem}, at its first use",
            on_disk.MISSING: f"not on this machine; {command} fetches it",
            on_disk.BROKEN: f"broken: {found.problem}; {command} mends it",
        }[found.state]
        console.print(escape(f"{what.title}: {words}"), soft_wrap=True)
        whole = whole and found.state in (on_disk.OK, on_disk.UNFINISHED)
    return whole


def remove(names: Sequence[str], cache: Path | None = None, console: Console | None = None) -> None:
    """Delete models from the cache."""
    console = console or _console()
    for what in _chosen(names):
        freed = on_disk.remove(what.name, cache)
        words = f"removed, {on_disk.megabytes(freed)} freed" if freed else "is not here"
        console.print(escape(f"{what.title}: {words}"))


def _chosen(names: Sequence[str]) -> list[Entry]:
    return [entry(name) for name in names or MODELS]


def _root(cache: Path | None) -> Path:
    return paths.models() if cache is None else Path(cache)


def _console() -> Console:
    return Console(highlight=False)


@contextmanager
def _progress(console: Console, what: Entry) -> Generator[fetch.Tell]:
    """A bar with megabytes and time left, gone when the fetch ends; one line where it can't be."""
    if not console.is_terminal:
        yield _Once(console, what)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(what.title, total=None, visible=False)

        def tell(done: int, total: int) -> None:
            words = f"{what.title}: fetching" if done < total else f"{what.title}: unpacking"
            bar.update(task, completed=done, total=total, description=words, visible=True)

        yield tell


class _Once:
    """Tells once that a fetch begins, for a log."""

    def __init__(self, console: Console, what: Entry):
        self.console, self.what, self.told = console, what, False

    def __call__(self, done: int, total: int) -> None:
        if not self.told:
            words = f"{self.what.title}: fetching {on_disk.megabytes(total)}"
            self.console.print(words, soft_wrap=True)
        self.told = True
