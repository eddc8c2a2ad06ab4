"""Read any notebook leniently: bytes in, a canonical nbformat 4.5 notebook without outputs out.

Editors, mail programs and version control leave notebooks that a strict reader refuses. What can
be read is read, with a note of what was mended; the rest is `Unreadable`, and no other exception
ever comes out, whatever the bytes are.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode, from_dict

MAX_BYTES = 64 << 20
MAX_CELLS = 5_000
_DEEPEST = 16
_CONFLICT = re.compile(r"^\s*(<{7}|>{7})( .*)?$", re.MULTILINE)
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TYPES = ("code", "markdown", "raw")


class Unreadable(Exception):
    """Bytes that are no notebook; the message says what they are and what to do."""


@dataclass(frozen=True)
class Reading:
    """A canonical notebook, and a sentence for each thing that had to be mended."""

    notebook: NotebookNode
    notes: tuple[str, ...] = ()


def read(content: bytes, *, max_bytes: int = MAX_BYTES) -> Reading:
    """Read a notebook's bytes.

    Outputs are dropped, ids are made unique, versions 3 and 4 become 4.5.

    Raises:
        Unreadable: with the reason; nothing else, whatever the bytes are.
    """
    if len(content) > max_bytes:
        raise Unreadable(
            f"the file has {len(content) / 1e6:.0f} MB; at most {max_bytes / 1e6:.0f} MB are read. "
            "Clear its outputs and save it again"
        )
    notes: list[str] = []
    try:
        return Reading(_canonical(_parse(_decode(content, notes.append)), notes.append), (*notes,))
    except (RecursionError, MemoryError):
        raise Unreadable("its JSON is nested too deeply to be a notebook") from None


def _decode(content: bytes, note: Callable[[str], None]) -> str:
    _refuse_known_kinds(content)
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if content.startswith(mark):
            note("The file began with a byte order mark, which was left out.")
            return _text(content[len(mark) :], encoding, note)
    return _text(content, "utf-8", note)


def _refuse_known_kinds(content: bytes) -> None:
    head = content[:512].lstrip()
    if not head.strip(b"\x00"):
        raise Unreadable("the file is empty: was it saved, and was the upload complete?")
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        raise Unreadable(
            "this is a Git LFS pointer, not the notebook itself: push the object, or hand in "
            "the notebook from your own machine"
        )
    for start, kind in (
        (b"PK\x03\x04", "a zip archive"),
        (b"%PDF", "a PDF"),
        (b"<!doctype html", "a web page"),
        (b"<html", "a web page"),
    ):
        if head[: len(start)].lower() == start.lower():
            raise Unreadable(f"this is {kind} under the name of a notebook")


def _text(content: bytes, encoding: str, note: Callable[[str], None]) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        if encoding == "utf-8":
            note("Some bytes are not UTF-8; they were read as Windows-1252.")
        return content.decode(encoding, errors="labs-windows" if encoding == "utf-8" else "replace")


def _windows(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return wrong.decode("cp1252", errors="replace"), error.end


codecs.register_error("labs-windows", _windows)


def _parse(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        raise Unreadable(_why_no_json(text, error)) from None
    except ValueError:
        raise Unreadable("it holds a number of thousands of digits") from None
    if not isinstance(found, Mapping):
        raise Unreadable(f"its JSON is a {type(found).__name__}; a notebook is an object")
    return found


def _why_no_json(text: str, error: json.JSONDecodeError) -> str:
    conflict = _CONFLICT.search(text)
    if conflict:
        line = text.count("\n", 0, conflict.start(1)) + 1
        return (
            f"line {line} is the mark of a merge conflict, “{conflict[0].strip()[:60]}”: "
            "choose one side, save, and try again"
        )
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"its JSON ends in the middle (line {error.lineno}): was the upload cut off?"
    return f"it is not JSON: {error.msg} in line {error.lineno}, column {error.colno}"


def _canonical(found: Mapping[str, Any], note: Callable[[str], None]) -> NotebookNode:
    cells = _raw_cells(found, note)
    if len(cells) > MAX_CELLS:
        raise Unreadable(f"it has {len(cells)} cells; at most {MAX_CELLS} are read")
    taken: set[str] = set()
    return from_dict(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": _notebook_metadata(found.get("metadata")),
            "cells": [_cell(cell, n, taken, note) for n, cell in enumerate(cells, 1)],
        }
    )


def _raw_cells(found: Mapping[str, Any], note: Callable[[str], None]) -> list[Any]:
    major = found.get("nbformat")
    if major is None:
        note("The file doesn't say its format; it was read as version 4.")
        major = 3 if "worksheets" in found else 4
    if type(major) is not int or major not in (3, 4):
        raise Unreadable(f"its format is version {str(major)[:20]!r}; versions 3 and 4 can be read")
    if major == 3:
        note("The notebook had format version 3; it was upgraded.")
        sheets = found.get("worksheets")
        lists = [s.get("cells") for s in _list(sheets) if isinstance(s, Mapping)]
        cells = [cell for one in lists for cell in _list(one)]
    else:
        cells = found.get("cells")
    if not isinstance(cells, list):
        raise Unreadable("it has no list of cells")
    return cells


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _cell(raw: Any, number: int, taken: set[str], note: Callable[[str], None]) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        note(f"Cell {number} is no cell but a {type(raw).__name__}; its text was kept.")
        raw = {"cell_type": "raw", "source": raw if isinstance(raw, str) else ""}
    kind = raw.get("cell_type")
    if kind == "heading":
        kind = "markdown"
    if not isinstance(kind, str) or kind not in _TYPES:
        note(f"Cell {number} has the unknown type {str(kind)[:20]!r}; it was read as raw text.")
        kind = "raw"
    cell: dict[str, Any] = {
        "cell_type": kind,
        "id": _fresh_id(raw.get("id"), number, taken, note),
        "metadata": _cell_metadata(raw.get("metadata")),
        "source": _source(raw.get("source", raw.get("input"))),
    }
    return cell | {"outputs": [], "execution_count": None} if kind == "code" else cell


def _fresh_id(given: Any, number: int, taken: set[str], note: Callable[[str], None]) -> str:
    usable = isinstance(given, str) and _ID.fullmatch(given) is not None
    if usable and given in taken:
        note(f"Cell {number} has the id of an earlier cell; it got one of its own.")
        usable = False
    name, counter = (given if usable else f"cell-{number}"), 1
    while name in taken:
        counter += 1
        name = f"cell-{number}-{counter}"
    taken.add(name)
    return name


def _source(raw: Any) -> str:
    if isinstance(raw, list):
        raw = "".join(part for part in raw if isinstance(part, str))
    if not isinstance(raw, str):
        return ""
    return _plain(raw).replace("\r\n", "\n").replace("\r", "\n")


def _plain(text: str) -> str:
    """Text that can be written as UTF-8: lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _notebook_metadata(raw: Any) -> dict[str, Any]:
    kept = _clean(raw, _DEEPEST) if isinstance(raw, Mapping) else {}
    kept.pop("widgets", None)
    return {name: value for name, value in kept.items() if _fits(_OF_NOTEBOOK, name, value)}


def _fits(known: Mapping[str, Callable[[Any], bool]], name: str, value: Any) -> bool:
    """Whether nbformat's schema takes a value of metadata; it leaves other names alone."""
    return name not in known or known[name](value)


def _has_texts(value: Any, *names: str) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name), str) for name in names)


def _is_language(value: Any) -> bool:
    given = set(value) & _OF_LANGUAGE if isinstance(value, dict) else set()
    mode = value.get("codemirror_mode", "") if isinstance(value, dict) else None
    return _has_texts(value, "name", *given) and isinstance(mode, (str, dict))


_OF_LANGUAGE = {"file_extension", "mimetype", "pygments_lexer"}
_OF_NOTEBOOK: dict[str, Callable[[Any], bool]] = {
    "kernelspec": lambda value: _has_texts(value, "name", "display_name"),
    "language_info": _is_language,
    "title": lambda value: isinstance(value, str),
    "authors": lambda value: isinstance(value, list),
    "orig_nbformat": lambda value: type(value) is int and value >= 1,
}
_OF_CELL: dict[str, Callable[[Any], bool]] = {
    "name": lambda value: isinstance(value, str) and bool(value) and "\n" not in value,
    "collapsed": lambda value: isinstance(value, bool),
    "scrolled": lambda value: isinstance(value, bool) or value == "auto",
    "jupyter": lambda value: isinstance(value, dict),
    "execution": lambda value: isinstance(value, dict) and _has_texts(value, *value),
    "format": lambda value: isinstance(value, str),
}


def _cell_metadata(raw: Any) -> dict[str, Any]:
    kept = _clean(raw, _DEEPEST) if isinstance(raw, Mapping) else {}
    tags = kept.pop("tags", None)
    if isinstance(tags, list):
        kept["tags"] = list(dict.fromkeys(t for t in tags if isinstance(t, str) and _is_tag(t)))
    if not isinstance(kept.get("labs", {}), dict):
        del kept["labs"]
    return {name: value for name, value in kept.items() if _fits(_OF_CELL, name, value)}


def _is_tag(text: str) -> bool:
    """Whether nbformat takes it for a tag: not empty, without a comma."""
    return bool(text) and "," not in text


def _clean(value: Any, depth: int) -> Any:
    """Plain JSON whose text can be written; what lies deeper than `depth` is left out."""
    if isinstance(value, str):
        return _plain(value)
    if isinstance(value, Mapping):
        items = value.items() if depth else ()
        return {_plain(str(key)): _clean(item, depth - 1) for key, item in items}
    if isinstance(value, list):
        return [_clean(item, depth - 1) for item in value] if depth else []
    return value
