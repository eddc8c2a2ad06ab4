"""Read a student's kernel for what a trace can't see: ways to reach what counts it.

Host code is refused before it is compiled (`labs_lib.cuda.reading`). What is left here are things
that device code may hold and hardly ever needs: pointers made of numbers, calls of functions that
are none of CUDA's, names pasted together. Each is a doubt, and a person looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from .. import cuda
from ..cuda.reading import HOST, problems, words_of
from ..cuda.tokens import Token, closing

MAX_CHARS = 30_000
_KEYWORDS = {
    "if", "for", "while", "switch", "return", "sizeof", "alignof", "alignas", "decltype",
    "static_assert", "noexcept", "catch", "defined", "else", "do", "case", "throw", "goto",
    "static_cast", "reinterpret_cast", "const_cast", "operator", "and", "or", "not",
}  # fmt: skip
_TYPES = {
    "void", "bool", "char", "short", "int", "long", "float", "double", "signed", "unsigned",
    "size_t", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t",
    "uint64_t", "half", "__half", "nv_bfloat16", "__nv_bfloat16", "auto",
}  # fmt: skip
_WORDS_OF_TYPES = _TYPES | {"const", "volatile", "struct"}
_VECTOR = re.compile(r"(?:float|double|int|uint|short|ushort|char|uchar|long|ulong|longlong)[1-4]")
_PLAIN = {"float", "double", "int", "unsigned", "half", "__half", "half2", "__half2"}
_PLAIN |= {"nv_bfloat16", "__nv_bfloat16", "nv_bfloat162", "__nv_bfloat162", "uint32_t", "uint4"}
_ADDRESSES = {"uintptr_t", "intptr_t", "thread_local", "typeid", "dynamic_cast", "setjmp"}


def doubts(source: str) -> list[str]:
    """What a person has to look at in a kernel's text; empty for ordinary kernels."""
    if len(source) > MAX_CHARS:
        return [f"its text is longer than {MAX_CHARS} characters"]
    found = [f"line {line}: {why}" for line, why in problems(source)]
    code = words_of(source)
    if any(t.text == "##" for t in code):
        found.append("it pastes names together (##)")
    found += [f"it uses {t.text}" for t in code if t.kind == "word" and t.text in _ADDRESSES]
    found += [f"it calls {name}, which is none of CUDA's" for name in _strange_calls(code)]
    found += [f"it makes a pointer by {text}" for text in _casts(code)]
    found += [f"it has {text}" for text in _odd_pointers(code)]
    return list(dict.fromkeys(found))


@cache
def known() -> frozenset[str]:
    """Every name that CUDA's words for the host compiler give to a kernel."""
    host = Path(cuda.__file__).parent / "host"
    files = [*host.glob("*.h"), *(host / "include").rglob("*.h")]
    words = {w for f in files for w in re.findall(r"[A-Za-z_]\w*", f.read_text(encoding="utf-8"))}
    return frozenset(words - HOST)


def _strange_calls(code: Sequence[Token]) -> Iterator[str]:
    own = _own(code)
    for i, token in enumerate(code[:-1]):
        if token.kind != "word" or code[i + 1].text != "(" or token.text in _KEYWORDS:
            continue
        before = code[i - 1].text if i else ""
        member = before in (".", "->")
        made = token.text.startswith("make_") and _VECTOR.fullmatch(token.text[5:])
        if not (member or made or token.text in own or token.text in known() | _TYPES):
            yield token.text


def _own(code: Sequence[Token]) -> set[str]:
    """Names that the text itself defines: functions with a body, macros, types, objects."""
    own = {"__shared__", "__global__", "__launch_bounds__", "__align__"}
    for i, token in enumerate(code[:-1]):
        if token.kind != "word":
            continue
        after, before = code[i + 1].text, code[i - 1].text if i else ""
        defined = before in ("define", "struct", "class", "typename", "enum", "using", "union")
        if defined or (after == "(" and _has_body(code, i + 1)):
            own.add(token.text)
        elif after == "=" and before in ("auto", "&"):
            own.add(token.text)  # a lambda
        elif after == "(" and (_VECTOR.fullmatch(before) or before in ("dim3", "fragment", ">")):
            own.add(token.text)  # an object with a constructor
    return own


def _has_body(code: Sequence[Token], opens: int) -> bool:
    end = closing(code, opens)
    after = [t.text for t in code[end + 1 : end + 3]]
    return after[:1] == ["{"] or after in (["const", "{"], ["noexcept", "{"])


def _casts(code: Sequence[Token]) -> Iterator[str]:
    for i, token in enumerate(code):
        if token.text == "reinterpret_cast" and i + 1 < len(code) and code[i + 1].text == "<":
            end = next((j for j in range(i, len(code)) if code[j].text == ">"), len(code))
            inside = [t.text for t in code[i + 2 : end]]
        elif token.text == "(" and i + 1 < len(code) and code[i + 1].text in _WORDS_OF_TYPES:
            end = closing(code, i)
            inside = [t.text for t in code[i + 1 : end]]
            if any(t not in _WORDS_OF_TYPES and t not in "*&" for t in inside):
                continue
        else:
            continue
        if "*" in inside and not (_plain_pointer(inside) and not _of_number(code, end)):
            yield f"({' '.join(inside)})"


def _of_number(code: Sequence[Token], end: int) -> bool:
    """Whether what is cast is written as a number."""
    after = [t for t in code[end + 1 : end + 3] if t.text != "("][:1]
    return bool(after) and (after[0].kind == "number" or after[0].text in _TYPES - {"auto"})


def _plain_pointer(inside: Sequence[str]) -> bool:
    words = [t for t in inside if t not in ("const", "volatile", "*", "__restrict__")]
    kind = " ".join(words)
    plain = kind in _PLAIN or bool(_VECTOR.fullmatch(kind))
    return plain and list(inside).count("*") == 1


def _odd_pointers(code: Sequence[Token]) -> Iterator[str]:
    for a, b, c in zip(code, code[1:], code[2:], strict=False):
        if a.text in _TYPES and b.text == c.text == "*":
            yield "a pointer to pointers"
        if a.text == "(" and b.text == "*" and c.kind == "word":
            at = code.index(c)
            if [t.text for t in code[at + 1 : at + 3]] == [")", "("]:
                yield "a pointer to a function"
