"""CSV files that an instructor gives: rosters, times, marks. What can't be meant is refused."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from ...errors import UsageError

_SEPARATORS = ",;\t"


def table_of(
    path: Path, what: str, key: Sequence[str], once: Collection[str] = ()
) -> tuple[list[dict[str, str]], str]:
    """The rows of a CSV file by column, titles in lower case, and the first key column it has.

    Cells are parted by the comma, semicolon or tab by which the first line has a key column.

    Raises:
        UsageError: if it can't be read as CSV in UTF-8, has none of the key columns, has the key or
            a column of `once` twice, or a line with more cells than there are columns.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        titles, rows = _lines(text, key)
    except OSError as error:
        raise UsageError(f"the {what} {path} can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        way_out = 'save it anew, in Excel as "CSV UTF-8"'
        raise UsageError(
            f"the {what} {path} can't be read as UTF-8 ({error}); {way_out}"
        ) from error
    except csv.Error as error:
        raise UsageError(f"the {what} {path} can't be read as CSV: {error}") from error
    found = next((title for title in key if title in titles), None)
    if found is None:
        raise UsageError(
            f"the {what} {path} has no column `{key[0]}`; its columns are "
            f"{', '.join(titles) or 'none'}"
        )
    twice = [title for title in (found, *once) if titles.count(title) > 1]
    if twice:
        raise UsageError(f"the {what} {path} has the column `{twice[0]}` twice")
    for number, row in enumerate(rows, 2):
        if any(cell.strip() for cell in row[len(titles) :]):
            raise UsageError(
                f"line {number} of the {what} {path} has more cells than the first line names; "
                'a cell with a comma in it needs quotes, such as "0,5"'
            )
    return [dict(zip(titles, row, strict=False)) for row in rows if row], found


def _lines(text: str, key: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """The titles, and all lines below; raises csv.Error."""
    separator = next((one for one in _SEPARATORS if set(key) & set(_titles(text, one))), ",")
    return _titles(text, separator), list(_reader(text, separator))[1:]


def _titles(text: str, separator: str) -> list[str]:
    first = next(_reader(text, separator), [])
    return [title.strip().casefold() for title in first]


def _reader(text: str, separator: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
