"""Read a student's kernel for what a trace can't see: ways to reach what counts it.

Host code is refused before it is compiled (`labs_lib.cuda.reading`). What is left here are things
that device code may hold and hardly ever needs: pointers made of numbers, calls of functions that
are none of CUDA's, names pasted together. Each is a doubt, and a person looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from ... import cuda
from ...cuda.reading import HOST_FUNCTIONS, problems, words_of
from ...cuda.tokens import Token, closing, closing_angle

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
_CASTS = ("reinterpret_cast", "static_cast", "const_cast")
_VECTOR = re.compile(r"(?:float|double|int|uint|short|ushort|char|uchar|long|ulong|longlong)[1-4]")
_PLAIN = {"float", "double", "int", "unsigned", "half", "__half", "half2", "__half2"}
_PLAIN |= {"nv_bfloat16", "__nv_bfloat16", "nv_bfloat162", "__nv_bfloat162", "uint32_t", "uint4"}
_ADDRESSES = {"uintptr_t", "intptr_t", "thread_local", "typeid", "dynamic_cast", "setjmp"}
_ADDRESSES |= {"goto"}  # turns of such a loop are not told apart


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
    return frozenset(words - HOST_FUNCTIONS)


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
    for i, token in enumerate(code[:-1]):
        after = code[i + 1].text
        if token.text in _CASTS and after == "<":
            end = closing_angle(code, i + 1)
            inside = [t.text for t in code[i + 2 : end]]
        elif token.text == "(" and code[i + 1].kind == "word":
            end = closing(code, i)
            inside = [t.text for t in code[i + 1 : end]]
            if not (_is_type(inside) or (inside[-1:] == ["&"] and _casts_something(code, end))):
                continue
        else:
            continue
        made = "*" in inside or "&" in inside or "decltype" in inside
        if made and not (_plain_pointer(inside) and not _of_number(code, end)):
            yield f"({' '.join(inside)})"


def _casts_something(code: Sequence[Token], end: int) -> bool:
    """Whether brackets are followed by what they may cast, and are no list of parameters."""
    after = code[end + 1] if end + 1 < len(code) else code[end]
    word = after.kind == "word" and after.text not in ("const", "noexcept", "override")
    return word or after.kind == "number" or after.text in ("(", "*", "&", "-", "~", "!")


def _is_type(inside: Sequence[str]) -> bool:
    """Whether what stands in brackets is the type of a pointer: its last word is a star."""
    rest = [t for t in inside if t not in ("const", "volatile", "__restrict__", "restrict")]
    marks = {"*", "&", "::", "<", ">", ",", "(", ")"}
    plain = all(t in marks or re.fullmatch(r"\w+", t) for t in rest)
    return (plain and rest[-1:] == ["*"]) or inside[:1] == ["decltype"]


def _of_number(code: Sequence[Token], end: int) -> bool:
    """Whether what is cast is written as a number."""
    after = [t for t in code[end + 1 : end + 3] if t.text != "("][:1]
    return bool(after) and (after[0].kind == "number" or after[0].text in _TYPES - {"auto"})


def _plain_pointer(inside: Sequence[str]) -> bool:
    words = [t for t in inside if t not in ("const", "volatile", "*", "&", "__restrict__")]
    kind = " ".join(words)
    plain = kind in _PLAIN or bool(_VECTOR.fullmatch(kind))
    return plain and list(inside).count("*") + list(inside).count("&") == 1


def _odd_pointers(code: Sequence[Token]) -> Iterator[str]:
    for i, (a, b, c) in enumerate(zip(code, code[1:], code[2:], strict=False)):
        if a.text in _TYPES and b.text == c.text == "*":
            yield "a pointer to pointers"
        if a.text == "void" and b.text in ("*", "const") and "*" in (b.text, c.text):
            yield "a pointer to void"
        if a.text == "(" and b.text in "*&" and [t.text for t in code[i + 3 : i + 5]] == [")", "("]:
            yield "a pointer to a function"
        if a.text == "(" and b.text == "*" and c.text == ")":
            yield "a pointer to a function"
        if a.text == "define" and _stars(code, i):
            yield f"a macro for a pointer, {b.text}"
    yield from _odd_types(code)


def _stars(code: Sequence[Token], at: int) -> bool:
    """Whether the macro that is defined here ends with a star."""
    line = code[at].line
    rest = [t.text for t in code[at : at + 40] if t.line == line]
    return rest[-1] == "*"


def _odd_types(code: Sequence[Token]) -> Iterator[str]:
    """Types that make one thing out of another: a pointer, or a function, of a number."""
    texts = [t.text for t in code]
    pointers = set(_pointers(code))
    functions = {t.text for i, t in enumerate(code[:-1]) if _defines(code, i)}
    for i, text in enumerate(texts):
        before, after = texts[i - 1] if i else "", texts[i + 1] if i + 1 < len(texts) else ""
        if text in ("using", "typedef") and (named := _alias(texts, i)):
            yield named
        elif text == "union" and _odd_union(code, i):
            yield "a union with more than numbers in it"
        elif text in ("virtual", "add_pointer", "add_pointer_t"):
            yield text
        elif text in ("memcpy", "memset") and texts[i + 1 : i + 3] == ["(", "&"]:
            if texts[i + 3] in pointers:
                yield f"bytes copied into the pointer {texts[i + 3]}"
        elif text == "::" and after == "*":
            yield "a pointer to a member"
        elif text in functions and after not in ("(", "<", "::") and before not in (".", "->"):
            yield f"the function {text} as a value"
        elif text == "&" and before in ("=", "(", ",", "return") and after in functions:
            yield f"the address of {after}"


def _defines(code: Sequence[Token], at: int) -> bool:
    """Whether a function with a body of its own is called so here."""
    one = code[at]
    typed = at > 0 and (code[at - 1].kind == "word" or code[at - 1].text in "*&>")
    control = one.text in _KEYWORDS or (
        at > 0 and code[at - 1].text in ("else", "return", "define")
    )
    return (
        one.kind == "word" and typed and not control and code[at + 1].text == "("
        and _has_body(code, at + 1)
    )  # fmt: skip


def _pointers(code: Sequence[Token]) -> Iterator[str]:
    own = {b.text for a, b in pairwise(code) if a.text in ("struct", "class", "union")}
    for i, token in enumerate(code):
        if not (token.text in _TYPES | own or _VECTOR.fullmatch(token.text)):
            continue
        at = i + 1
        while at < len(code) and code[at].text in ("*", "const", "__restrict__", "volatile"):
            at += 1
        if at < len(code) and any(t.text == "*" for t in code[i:at]) and code[at].kind == "word":
            yield code[at].text


def _alias(texts: Sequence[str], at: int) -> str:
    end = texts.index(";", at) if ";" in texts[at:] else len(texts)
    rest = texts[at + 1 : end]
    if "struct" in rest or "union" in rest or "namespace" in rest:
        return ""
    if "*" in rest:
        return "a name for a pointer type"
    return "a name for a type of functions" if "(" in rest and "decltype" not in rest else ""


def _odd_union(code: Sequence[Token], at: int) -> bool:
    opens = next((i for i in range(at, min(at + 6, len(code))) if code[i].text == "{"), None)
    if opens is None:
        return False
    fields: list[list[str]] = [[]]
    for token in code[opens + 1 : closing(code, opens)]:
        fields = [*fields, []] if token.text == ";" else [*fields[:-1], [*fields[-1], token.text]]
    plain = _TYPES - {"auto", "void"} | _PLAIN
    return any(
        "*" in field or not (field[0] in plain or _VECTOR.fullmatch(field[0]))
        for field in ([t for t in one if t not in ("const", "volatile")] for one in fields)
        if field
    )
