"""Indices into arrays whose length is written down: which of them a trace checks, and their names.

Compilers check them (-fsanitize=bounds) row by row. That is right for a thread's own arrays, whose
neighbours are variables that the write would change. In shared memory one row follows the other,
on every GPU: an index may run on into the next row, and what lies outside of the whole array is
seen by the trace.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from labs_lib.cuda.tokens import Token, closing, tokenize

_BEFORE_A_NAME = (".", "->", "::")


def free_rows(tokens: Sequence[Token]) -> list[tuple[int, int, str]]:
    """Edits after which only the first index into each `__shared__` array is checked.

    `tile[y][x]` becomes `(&tile[y][0])[x]`, which is the same number.
    """
    edits = []
    shared = _shared_names(tokens)
    for i, token in enumerate(tokens[:-1]):
        if token.text not in shared or token.kind != "word" or tokens[i + 1].text != "[":
            continue
        if tokens[i - 1].text in _BEFORE_A_NAME or _declares(tokens, i):
            continue
        at = closing(tokens, i + 1) + 1
        while at < len(tokens) and tokens[at].text == "[":
            edits.append((token.start, token.start, "(&"))
            edits.append((tokens[at].start, tokens[at].start, "[0])"))
            at = closing(tokens, at) + 1
    return edits


def array_at(rewritten: str, line: int, column: int, dimensions: int) -> str:
    """The array that the index at a compiler's line and column goes into, as the cell writes it.

    g++ names the closing bracket, in a template the opening one; clang where the whole name
    begins, so that the array's number of dimensions tells which bracket is meant. Empty where none
    of them stands there.
    """
    lines = rewritten.split("\n")
    if not 0 < line <= len(lines):
        return ""
    before = len("\n".join(lines[: line - 1])) + (line > 1)
    own = lines[line - 1].encode()[: max(column - 1, 0)].decode(errors="replace")
    place = before + len(own)
    tokens = [t for t in tokenize(rewritten) if t.kind != "directive"]
    at = next((i for i, token in enumerate(tokens) if token.start == place), None)
    if at is None:
        return ""
    if tokens[at].text == "[":
        opens = at
    elif tokens[at].text == "]":
        opens = next((i for i in range(at, -1, -1) if _closes(tokens, i, at)), 0)
    elif tokens[at].kind == "word":
        found = _brackets_after(tokens, at)
        opens = found[max(len(found) - dimensions, 0)] if found else 0
    else:
        return ""
    start = _name_start(tokens, opens)
    return rewritten[tokens[start].start : tokens[opens].start].strip() if start < opens else ""


def _shared_names(tokens: Sequence[Token]) -> set[str]:
    """Names of `__shared__` arrays: those before a bracket in their declarations."""
    found = set()
    for i, token in enumerate(tokens):
        if token.text != "__shared__":
            continue
        at = i + 1
        while at < len(tokens) and tokens[at].text != ";":
            if tokens[at].text == "[" and tokens[at - 1].kind == "word":
                found.add(tokens[at - 1].text)
            at = closing(tokens, at) + 1 if tokens[at].text in "([{" else at + 1
    return found


def _declares(tokens: Sequence[Token], at: int) -> bool:
    """Whether the name at `at` stands in a declaration of shared memory."""
    while at and tokens[at].text not in (";", "{", "}"):
        if tokens[at].text == "__shared__":
            return True
        at -= 1
    return False


def _closes(tokens: Sequence[Token], at: int, end: int) -> bool:
    return tokens[at].text == "[" and closing(tokens, at) == end


def _brackets_after(tokens: Sequence[Token], at: int) -> list[int]:
    """Where the brackets open that follow a name and its members."""
    found, i = [], at + 1
    while i < len(tokens):
        if tokens[i].text == "[":
            found.append(i)
            i = closing(tokens, i) + 1
        elif tokens[i].text in _BEFORE_A_NAME:
            found, i = [], i + 2
        else:
            break
    return found


def _name_start(tokens: Sequence[Token], opens: int) -> int:
    """Where the name begins that ends before a bracket: `s.rows`, `two[i]`."""
    at = opens
    while at:
        if tokens[at - 1].text == "]":
            end = at - 1
            at = next((i for i in range(end, -1, -1) if _closes(tokens, i, end)), 0)
        elif tokens[at - 1].kind == "word" and not re.fullmatch("return|else", tokens[at - 1].text):
            at -= 1
            if not at or tokens[at - 1].text not in _BEFORE_A_NAME:
                break
            at -= 1
        else:
            break
    return at
