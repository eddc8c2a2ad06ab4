"""Variables that a kernel may read before they are set: found in its text, proved by two runs.

Whatever the memory of a variable holds is chance: a sum that begins there is right on one machine
and wrong on the next. The text alone can't say which path a thread takes, so `suspects` only names
where to look, and a trace runs the kernel once more with other numbers in all such memory.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from labs_lib.cuda import build, child
from labs_lib.cuda.errors import CompileError
from labs_lib.cuda.findings import Finding
from labs_lib.cuda.rewrite import apply
from labs_lib.cuda.tokens import CLOSES, OPENS, Token, closing, split, tokenize

KIND = "unset"
FILLS = 0x00, 0xFF  # zeros, which a largest number shows; NaN, which shows in whatever takes it
MOST_ALONE = 4  # so many suspects are tried one by one, to name the guilty ones
# Faults whose second run would take as long, or which have nothing to do with a variable.
_TELL_NOTHING = {"timeout", "killed", "start"}
# What starts a statement that declares nothing, or something that a thread doesn't hold alone.
_NO_TYPES = (
    "return goto else case default break continue using typedef template namespace throw new "
    "delete extern static constexpr struct class union enum asm public private protected friend "
    "if for while do switch __shared__ __constant__ operator"
)
_NO_TYPE = set(_NO_TYPES.split())
_UNREAD = {"sizeof", "decltype", "alignof"}


@dataclass(frozen=True)
class Suspect:
    """A variable that seems to be read, in `line`, before anything was put into it.

    `begins` is where its declaration ends in the text; `kernel` is whose it is, empty where it
    belongs to a function that any kernel may call.
    """

    name: str
    line: int
    begins: int
    kernel: str = ""


@lru_cache(maxsize=64)
def suspects(source: str) -> tuple[Suspect, ...]:
    """The local variables whose first use, as the text goes, reads them or may be left out."""
    tokens = [t for t in tokenize(source) if t.kind != "directive"]
    found = []
    for name, at, end in _declared(tokens):
        use = _first_read(tokens, name, at, end)
        if use is not None:
            begins, kernel = tokens[at].end, _kernel_around(tokens, at)
            found.append(Suspect(name, tokens[use].line, begins, kernel))
    return tuple(found)


def before(kernel, args: Sequence) -> list | None:
    """Copies of a launch's arguments, as `proved` needs them; None where nothing is suspected."""
    if not _suspects_of(kernel):
        return None
    # One copy of all: tensors that share memory share it afterwards, too.
    return copy.deepcopy([a.detach() if isinstance(a, torch.Tensor) else a for a in args])


def proved(launcher, args: Sequence, fault, again: list, arch: str) -> list[Finding]:
    """What to say if a traced launch ends otherwise when other numbers lie in what is suspected.

    `args` and `fault` are what the launch left; `again` are copies of its arguments from before it.
    """
    if fault is not None and fault.kind in _TELL_NOTHING:
        return []
    kernel = launcher.kernel

    def end_otherwise(some: Sequence[Suspect]) -> bool:
        return any(_ends_otherwise(launcher, args, fault, again, arch, some, b) for b in FILLS)

    found = _suspects_of(kernel)
    try:
        if not end_otherwise(found):
            return []
        alone = [s for s in found if end_otherwise([s])] if 1 < len(found) <= MOST_ALONE else []
    except CompileError:
        return []
    stopped = fault is not None
    return [_finding([s], stopped) for s in alone] or [_finding(found, stopped)]


def _ends_otherwise(launcher, args, fault, again, arch, some: Sequence[Suspect], byte: int) -> bool:
    """Whether a launch with this byte in some variables has another fault, or other outputs.

    Raises: CompileError where a variable can't be filled.
    """
    kernel, given = launcher.kernel, copy.deepcopy(again)
    text = _filled_with(byte, kernel.source, some)
    filename = kernel.module.filename
    library = build.host_library(text, kernel.together, trace=True, filename=filename)
    _, _, other = child.run(
        library, kernel.signature, given, launcher.grid, launcher.block, launcher.shared,
        arch, source=text, trace=True, watched=(),
    )  # fmt: skip
    if fault is not None or other is not None:
        return _place(fault) != _place(other)
    left = zip(kernel.signature.parameters, args, given, strict=True)
    outputs = ((a, b) for p, a, b in left if p.pointer and not p.const)
    return not all(torch.equal(_bits(a), _bits(b)) for a, b in outputs)


def _place(fault) -> tuple | None:
    """What tells two faults apart; their addresses differ from run to run."""
    return fault and (fault.kind, fault.thread, fault.block, fault.line)


def _filled_with(byte: int, source: str, found: Sequence[Suspect]) -> str:
    """The source with a byte in all of the memory of these variables, right after they begin."""
    fill = [
        (s.begins, s.begins, f" __builtin_memset((void*)&{s.name}, {byte}, sizeof({s.name}));")
        for s in found
    ]
    return apply(source, fill)


def _suspects_of(kernel) -> list[Suspect]:
    found = [s for s in suspects(kernel.source) if s.kernel in ("", kernel.name)]
    return sorted(found, key=lambda s: s.kernel == "")  # its own before those of what it may call


def _finding(found: Sequence[Suspect], stopped: bool) -> Finding:
    first = found[0]
    goes = "goes into the result: with other contents it comes out different"
    if stopped:
        goes = "decides how the launch ends: with other contents it ends otherwise"
    others = [f"line {s.line} `{s.name}`" for s in found[1:4] if s.name != first.name]
    them = f" (or {' or '.join(others)})" if others else ""
    message = (
        f"Line {first.line} reads `{first.name}`{them} before anything was put into it. What its "
        f"memory happens to hold {goes}. Give `{first.name}` its first value before that line."
    )
    return Finding(KIND, message, line=first.line, where=first.name)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().flatten().view(torch.uint8)


def _declared(tokens: Sequence[Token]) -> Iterator[tuple[str, int, int]]:
    """Locals without a value: name, where its declaration ends, where its block ends."""
    blocks: list[tuple[int, bool]] = []  # where each open brace closes; whether code is in it
    header = 0  # where the round brackets that are open close: a for's parts are no statements
    for i, token in enumerate(tokens):
        while blocks and i >= blocks[-1][0]:
            blocks.pop()
        if token.text == "{" and token.kind == "mark":
            blocks.append((closing(tokens, i), _holds_code(tokens, i, blocks)))
        if token.text == "(" and i > header:
            header = closing(tokens, i)
        before = tokens[i - 1].text if i else ";"
        starts = token.kind == "word" and before in ("{", "}", ";") and i > header
        if starts and token.text not in _NO_TYPE and blocks and blocks[-1][1]:
            end = _statement_end(tokens, i)
            for name in _without_value(tokens[i:end]):
                yield name, end, blocks[-1][0]


def _kernel_around(tokens: Sequence[Token], at: int) -> str:
    """The name of the kernel whose body holds a token; empty where it is another function's."""
    marks = [i for i in range(at) if tokens[i].text == "__global__"]
    for i in range(marks[-1] if marks else at, at):
        if tokens[i].text == "(" and tokens[closing(tokens, i) + 1].text == "{":
            body = closing(tokens, i) + 1
            return tokens[i - 1].text if body < at < closing(tokens, body) else ""
    return ""


def _holds_code(tokens: Sequence[Token], at: int, blocks: list[tuple[int, bool]]) -> bool:
    """Whether a brace opens a function's body, or a block within one; not a struct's fields."""
    before, start = tokens[at - 1], at
    while start and tokens[start - 1].text not in (";", "{", "}"):
        start -= 1
    fields = any(t.text in ("struct", "class", "union", "enum") for t in tokens[start:at])
    inside = bool(blocks) and blocks[-1][1] and not fields
    return before.text in (")", "const") or (inside and (before.kind == "word" or start == at))


def _statement_end(tokens: Sequence[Token], at: int, ends: tuple[str, ...] = (";",)) -> int:
    """The index of the `;` that ends the statement around `at`."""
    while at < len(tokens) and tokens[at].text not in ends:
        at = closing(tokens, at) + 1 if tokens[at].text in OPENS else at + 1
    return at


def _without_value(statement: Sequence[Token]) -> list[str]:
    """The names that a declaration leaves unset; none for a statement of another kind."""
    if any(t.text in ("__shared__", "static", "extern", "constexpr") for t in statement):
        return []
    pieces = split(statement)
    head = _head(pieces[0])
    kind = head[:-1]
    plain = all(t.kind in ("word", "number") or t.text in ("::", "<", ">", "*", ",") for t in kind)
    if len(head) < 2 or not plain or head[-1].kind != "word" or kind[-1].text == "::":
        return []
    named = [(head[-1], pieces[0][len(head) :])]
    for piece in pieces[1:]:
        bare = [t for t in piece if t.text != "*"]
        if bare and bare[0].kind == "word":
            named.append((bare[0], bare[1:]))
    return [name.text for name, rest in named if not _filled(rest)]


def _head(piece: Sequence[Token]) -> Sequence[Token]:
    """A declarator's type and name: what stands before its brackets and its value."""
    cut = next((i for i, t in enumerate(piece) if t.text in ("[", "=", "{", "(")), len(piece))
    return piece[:cut]


def _filled(rest: Sequence[Token]) -> bool:
    """Whether a value follows a name and its brackets."""
    at = 0
    while at < len(rest) and rest[at].text == "[":
        at = closing(rest, at) + 1
    return at < len(rest)


def _first_read(tokens: Sequence[Token], name: str, at: int, end: int) -> int | None:
    """Where a variable is read, or set on some paths only, before it is set; None where not."""
    set_parts: set[str] = set()  # of a struct or an array: `.m`, `[0]`
    for i in range(at, end):
        token = tokens[i]
        before = tokens[i - 1].text
        if token.text != name or token.kind != "word" or before in (".", "->", "::"):
            continue
        part, after = _part(tokens, i)
        if part in set_parts or (not part and set_parts):
            continue
        how = _use(tokens, name, i, after, at)
        if how == "read":
            return i
        if how == "other" or (how == "set" and not re.fullmatch(r"\.\w+|\[\d+\]", part)):
            return None
        if how == "set":
            set_parts.add(part)
    return None


def _part(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """The part of a variable that is used (`.m`, `[0]`, `[]` where it varies), and what follows."""
    text, i = "", at + 1
    while i < len(tokens):
        if tokens[i].text == "[":
            end = closing(tokens, i)
            inside = tokens[i + 1 : end]
            fixed = len(inside) == 1 and inside[0].kind == "number"
            text, i = text + (f"[{inside[0].text}]" if fixed else "[]"), end + 1
        elif tokens[i].text in (".", "->"):
            text, i = f"{text}.{tokens[i + 1].text}", i + 2
        else:
            break
    return text, i


def _use(tokens: Sequence[Token], name: str, at: int, after: int, declared: int) -> str:
    """What a use does: `set`, `read`, `other` (it is handed on to be set), or `nothing`."""
    before, following, two_before = tokens[at - 1], tokens[after].text, tokens[at - 2]
    if following == "=":
        value = tokens[after + 1 : _statement_end(tokens, after, (";", ","))]
        again = any(t.text == name and t.kind == "word" for t in value)
        return "read" if again or _may_be_left_out(tokens, declared, at) else "set"
    if before.text == "(" and two_before.text in _UNREAD:
        return "nothing"
    address = before.text == "&" and two_before.kind == "mark" and two_before.text not in ")]"
    written = before.text == "(" and two_before.kind == "string"  # asm("..." : "=f"(x))
    return "other" if address or written or _handed_on(tokens, at) else "read"


def _handed_on(tokens: Sequence[Token], at: int) -> bool:
    """Whether it is an argument of a call that is a statement of its own, and may set it."""
    depth, opens = 1, at
    while opens and depth:
        opens -= 1
        if tokens[opens].kind == "mark":
            depth += (tokens[opens].text in CLOSES) - (tokens[opens].text in OPENS)
    start = opens
    while start and (
        tokens[start - 1].kind == "word" or tokens[start - 1].text in ("::", "<", ">")
    ):
        start -= 1
    called = tokens[start].text not in _NO_TYPE and start < opens
    return called and tokens[opens].text == "(" and tokens[start - 1].text in (";", "{", "}", ")")


def _may_be_left_out(tokens: Sequence[Token], declared: int, at: int) -> bool:
    """Whether the statement at `at` hangs on an `if`, `else` or `switch` after the declaration."""
    for i in range(declared, at):
        if tokens[i].text in ("if", "else", "switch"):
            body = i + 1 if tokens[i].text == "else" else closing(tokens, i + 1) + 1
            braced = tokens[body].text == "{"
            end = closing(tokens, body) if braced else _statement_end(tokens, body)
            if body <= at <= end:
                return True
    return False
