"""Cuts CUDA C++ into tokens, so that comments and strings are never taken for code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

PATTERN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
  | (?P<string>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)"
              |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<word>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[eEpP][+-]|'[0-9a-zA-Z_]|[\w.])*)
  | (?P<mark>\#\#|<<<|>>>|::|->|\+\+|--|&&|\|\||[-+*/%&|^=!<>]=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
OPENS, CLOSES = "([{", ")]}"


@dataclass(frozen=True)
class Token:
    """One token: its kind (word, number, string, mark, directive), text, place and line."""

    kind: str
    text: str
    start: int
    end: int
    line: int


def tokenize(source: str) -> list[Token]:
    """The tokens of a source without spaces and comments; a directive is one token."""
    tokens: list[Token] = []
    at, line, line_start = 0, 1, True
    while at < len(source):
        if line_start and source[at] == "#":
            end = _directive_end(source, at)
            tokens.append(Token("directive", source[at:end], at, end, line))
        else:
            match = PATTERN.match(source, at)
            assert match and match.lastgroup  # the last of its choices takes any one letter
            kind, end = match.lastgroup, match.end()
            if kind not in ("space", "comment"):
                tokens.append(Token(kind, match.group(), at, end, line))
                line_start = False
        text = source[at:end]
        line += text.count("\n")
        if "\n" in text and (not tokens or tokens[-1].start != at or text[0] == "#"):
            line_start = True
        at = end
    return tokens


def _directive_end(source: str, at: int) -> int:
    """Where a preprocessor line ends, continued lines and their comments included."""
    while True:
        end = source.find("\n", at)
        if end < 0:
            return len(source)
        if not source[:end].rstrip("\r").endswith("\\"):
            return end
        at = end + 1


def closing(tokens: Sequence[Token], at: int) -> int:
    """The index of the bracket that closes the one at `at`, or the last index."""
    depth = 0
    for i in range(at, len(tokens)):
        if tokens[i].kind == "mark":
            depth += (tokens[i].text in OPENS) - (tokens[i].text in CLOSES)
            if depth == 0:
                return i
    return len(tokens) - 1


def closing_angle(tokens: Sequence[Token], at: int) -> int:
    """The index of the `>` that closes the `<` at `at`."""
    depth, i = 0, at
    while i < len(tokens):
        text = tokens[i].text
        if text in OPENS and tokens[i].kind == "mark":
            i = closing(tokens, i)
        depth += (text == "<") - (text == ">") - 3 * (text == ">>>")
        if depth <= 0:
            return i
        i += 1
    return len(tokens) - 1


def split(
    tokens: Sequence[Token], separator: str = ",", *, angles: bool = True
) -> list[list[Token]]:
    """Pieces between separators that stand outside of all brackets; with `angles`, of < > too."""
    opens, closes = ([*OPENS, "<"], [*CLOSES, ">"]) if angles else ([*OPENS], [*CLOSES])
    pieces, piece, depth = [], [], 0
    for token in tokens:
        if token.kind == "mark":
            depth += (token.text in opens) - (token.text in closes)
        if token.text == separator and depth == 0:
            pieces.append(piece)
            piece = []
        else:
            piece.append(token)
    return [*pieces, piece] if piece or pieces else []


def join(tokens: list[Token]) -> str:
    """The tokens as text, one space between."""
    return " ".join(token.text for token in tokens)
