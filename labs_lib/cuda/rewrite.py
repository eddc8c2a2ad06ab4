"""Turns CUDA C++ into C++ for the host compiler: the same lines, with a few words exchanged.

No newline is added or removed, so the compiler's line numbers are the student's own.
"""

from __future__ import annotations

from labs_lib.cuda.errors import CompileError
from labs_lib.cuda.indices import free_rows
from labs_lib.cuda.refused import refuse
from labs_lib.cuda.structs import watched_structs
from labs_lib.cuda.tokens import Token, closing, join, split, tokenize

BEFORE = {"static", "volatile", "const", "extern", "alignas", "__align__"}


def rewrite(source: str, *, trace: bool = False) -> str:
    """The source as the host compiler takes it; `trace` adds the counting of loop turns.

    Raises: CompileError that names what can't be run on a CPU.
    """
    tokens = tokenize(source)
    refuse(tokens)
    edits: list[tuple[int, int, str]] = []
    for i, token in enumerate(tokens):
        if token.kind != "word":
            continue
        if token.text == "__shared__":
            edits.append(_shared(source, tokens, i))
        elif token.text == "__noinline__":
            edits.append((token.start, token.end, "__attribute__((noinline))"))
    if trace:
        edits += _loops(source, tokens) + watched_structs(tokens) + free_rows(tokens)
    return apply(source, edits)


def apply(source: str, edits: list[tuple[int, int, str]]) -> str:
    """The source with pieces replaced; an insertion has start equal to end."""
    out, at = [], 0
    for start, end, text in sorted(edits, key=lambda e: (e[0], e[1])):
        out += [source[at:start], text]
        at = max(at, end)
    return "".join([*out, source[at:]])


def _shared(source: str, tokens: list[Token], at: int) -> tuple[int, int, str]:
    """The edit that takes one `__shared__` declaration to the block's arena."""
    first, end = _backwards(tokens, at), at
    while end < len(tokens) and tokens[end].text != ";":
        end = closing(tokens, end) if tokens[end].text in "([{" else end
        end += 1
    line = tokens[at].line
    if end >= len(tokens):
        raise CompileError(f"line {line}: a __shared__ declaration has no `;`", line=line)
    words = [t for t in tokens[first:end] if t.text not in ("__shared__", "static")]
    dynamic = any(t.text == "extern" for t in words)
    words = [t for t in words if t.text != "extern"]
    if any(t.text == "=" for t in words):
        raise CompileError(
            f"line {line}: a __shared__ variable can't have an initial value; let one thread "
            "write it and follow with __syncthreads()",
            line=line,
        )
    inside = _inside_function(tokens, at)
    if not inside and not dynamic:
        raise CompileError(
            f"line {line}: a __shared__ variable outside of a function is not emulated; "
            "declare it in the kernel",
            line=line,
        )
    new = _dynamic(words, inside) if dynamic else _static(words, tokens[at].start)
    newlines = source[tokens[first].start : tokens[end].end].count("\n")
    return tokens[first].start, tokens[end].end, new + "\n" * newlines


def _backwards(tokens: list[Token], at: int) -> int:
    """Where the declaration starts: qualifiers may stand before `__shared__`."""
    while at > 0:
        before = tokens[at - 1]
        if before.kind == "word" and before.text in BEFORE:
            at -= 1
        elif before.text == ")":
            opens = next((j for j in range(at - 2, -1, -1) if tokens[j].text == "("), 0)
            if opens == 0 or tokens[opens - 1].text not in ("alignas", "__align__"):
                return at
            at = opens - 1
        else:
            return at
    return at


def _inside_function(tokens: list[Token], at: int) -> bool:
    """Whether some brace that is open at `at` is not a namespace's or an extern "C"."""
    open_braces: list[bool] = []
    for i in range(at):
        if tokens[i].kind != "mark":
            continue
        if tokens[i].text == "{":
            before = [t.text for t in tokens[max(0, i - 2) : i]]
            open_braces.append("namespace" not in before and '"C"' not in before)
        elif tokens[i].text == "}" and open_braces:
            open_braces.pop()
    return any(open_braces)


def _name_of(piece: list[Token]) -> int:
    """The index of a declarator's name: before its first bracket, or last."""
    depth = 0
    for i, token in enumerate(piece):
        depth += (token.text in ("(", "<")) - (token.text in (")", ">"))
        if token.text == "[" and depth == 0:
            return i - 1
    return len(piece) - 1


def _static(words: list[Token], number: int) -> str:
    pieces = split(words)
    name_at = _name_of(pieces[0])
    kind = join(pieces[0][:name_at])
    declarators = [pieces[0][name_at:], *pieces[1:]]
    out = []
    for i, piece in enumerate(declarators):
        name, struct = piece[_name_of(piece)].text, f"labs_s{number}_{i}"
        out.append(f"struct {struct} {{ {kind} {join(piece)}; }};")
        out.append(f'auto& {name} = lab::shared<{struct}>("{name}").{name};')
    return " ".join(out)


def _dynamic(words: list[Token], inside: bool) -> str:
    name_at = _name_of(words)
    kept, i = [], 0
    while i < name_at:
        if words[i].text in ("alignas", "__align__"):
            i = closing(words, i + 1) + 1
            continue
        kept.append(words[i])
        i += 1
    kind, name, rest = join(kept), words[name_at].text, join(words[name_at + 1 :])
    if not inside:
        return f"static const lab::Dynamic<{kind}> {name};"
    return f"{kind} (&{name}){rest} = *reinterpret_cast<{kind} (*){rest}>(labs_dynamic_shared());"


def _loops(source: str, tokens: list[Token]) -> list[tuple[int, int, str]]:
    """Edits that count the turns of each loop, so that lanes can be compared turn by turn."""
    edits, of_do, constant = [], set(), _constexpr(tokens)
    for i, token in enumerate(tokens[:-1]):
        if token.kind != "word" or any(i in span for span in constant):
            continue
        loop = f"for (lab::Loop labs_l{token.start}({token.start}u); labs_l{token.start}.once(); ) "
        turn = f"labs_l{token.start}.next()"
        if token.text == "for" and tokens[i + 1].text == "(":
            end = closing(tokens, i + 1)
            parts = split(tokens[i + 2 : end], ";", angles=False)
            edits.append((token.start, token.start, loop))
            if len(parts) == 3:
                comma = ", " if parts[2] else ""
                edits.append((tokens[end].start, tokens[end].start, comma + turn))
        elif token.text == "while" and i not in of_do and tokens[i + 1].text == "(":
            edits.append((token.start, token.start, loop))
            edits += _condition(tokens, i + 1, turn)
        elif token.text == "do" and tokens[i + 1].text == "{":
            end = closing(tokens, i + 1)
            if end + 2 < len(tokens) and tokens[end + 1].text == "while":
                of_do.add(end + 1)
                edits.append((token.start, token.start, loop))
                edits += _condition(tokens, end + 2, turn)
    return edits


def _constexpr(tokens: list[Token]) -> list[range]:
    """Where the bodies of constexpr functions are: nothing may be counted there."""
    found = []
    for i, token in enumerate(tokens):
        if token.text == "constexpr" and tokens[i - 1].text != "if":
            at = next((j for j in range(i, len(tokens)) if tokens[j].text in (";", "=", "{")), i)
            if tokens[at].text == "{":
                found.append(range(at, closing(tokens, at)))
    return found


def _condition(tokens: list[Token], opens: int, turn: str) -> list[tuple[int, int, str]]:
    end = closing(tokens, opens)
    at, to = tokens[opens].end, tokens[end].start
    return [(at, at, f"{turn}, ("), (to, to, ")")]
