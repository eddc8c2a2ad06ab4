"""Gives the structs of a kernel copies and assignments that a trace sees (see host/touch.h)."""

from __future__ import annotations

from itertools import pairwise

from labs_lib.cuda.tokens import Token, closing, join, split

NOT_A_FIELD = {"static", "using", "typedef", "friend", "template", "public", "private", "const"}
NOT_A_FIELD |= {"struct", "class", "union", "enum", "volatile", "protected", "operator"}
SCALARS = {"float", "double", "int", "unsigned", "long", "short", "char", "bool", "signed", "*"}


def watched_structs(tokens: list[Token]) -> list[tuple[int, int, str]]:
    """Edits that give each struct an assignment that is watched (see host/touch.h)."""
    edits = []
    for i, token in enumerate(tokens[:-2]):
        kind, before = token.text, tokens[i - 1].text
        if kind not in ("struct", "class", "union") or before in ("enum", "<", ","):
            continue
        at = i + 1
        while tokens[at].text in ("alignas", "__align__", "__attribute__") and at < len(tokens) - 2:
            at = closing(tokens, at + 1) + 1
        if at + 1 >= len(tokens) or tokens[at].kind != "word" or tokens[at + 1].text != "{":
            continue
        end = closing(tokens, at + 1)
        body = join(tokens[at + 1 : end])
        if "operator =" not in body:
            name = tokens[at].text
            store = f" public: LABS_STORE({name}) "
            if kind == "struct" and not _by_name(tokens):
                store += _copies(name, tokens[at + 2 : end], _braced(name, tokens))
            edits.append((tokens[end].start, tokens[end].start, store))
    return edits


def _by_name(tokens: list[Token]) -> bool:
    """Whether some braces name their fields (`{.m = 1}`), which only an aggregate bears."""
    return any(a.text in ("{", ",") and b.text == "." for a, b in pairwise(tokens))


def _braced(name: str, tokens: list[Token]) -> bool:
    """Whether some braces may hold the fields of this struct: `S s = {1}`, `S{1}`, `return {1}`."""
    texts = [t.text for t in tokens] + [""] * 6
    for i in (i for i, text in enumerate(texts) if text == name):
        if texts[i - 1] in ("struct", "class"):
            continue
        at = i + 1 if texts[i + 1] == "{" else i + 2
        while texts[at] == "[":
            at = closing(tokens, at) + 1
        at += texts[at] == "="
        if texts[at] == "{" and texts[at + 1] != "}":
            return True
        if texts[i + 2] == "(":  # a function that returns one
            opens = closing(tokens, i + 2) + 1
            inside = texts[opens : closing(tokens, opens)] if texts[opens] == "{" else []
            if any(pair == ("return", "{") for pair in pairwise(inside)):
                return True
    return False


def _copies(name: str, body: list[Token], braced: bool) -> str:
    """A copy that is watched, and a constructor from the fields; none where a field is not plain.

    A struct with functions or constructors of its own is copied as before; one with arrays too,
    where braces may fill it.
    """
    fields: list[tuple[str, str]] = []
    if any(t.text == "[" for t in body):
        plain = all(t.kind in ("word", "number") or t.text in ";,*::<>[]+-" for t in body)
        odd = braced or any(t.text in NOT_A_FIELD for t in body)
        return f"LABS_COPIES({name}, ) " if plain and not odd else ""
    if not all(t.kind == "word" or t.text in (";", ",", "*", "::", "<", ">") for t in body):
        return ""
    for statement in split(body, ";", angles=False)[:-1]:
        pieces = split(statement)
        if not statement or any(t.text in NOT_A_FIELD for t in statement):
            return ""
        stars = next((i for i, t in enumerate(pieces[0]) if t.text == "*"), len(pieces[0]) - 1)
        kind = join(pieces[0][:stars])
        for piece in [pieces[0][stars:], *pieces[1:]]:
            fields.append((f"{kind} {join(piece[:-1])}", piece[-1].text))
    if not fields or any(not kind.strip() for kind, _ in fields):
        return ""
    plain = all(set(kind.split()) <= SCALARS for kind, _ in fields)
    taken = ", ".join(
        f"lab::Field<{kind}> labs_{i}{' = {}' if i else ''}" for i, (kind, _) in enumerate(fields)
    )
    made = ", ".join(f"{field}(labs_{i})" for i, (_, field) in enumerate(fields))
    start = "LABS_FIELDS constexpr" if plain else "LABS_FIELDS"
    return f"LABS_COPIES({name}, {start} {name}({taken}) : {made} {{}}) "
