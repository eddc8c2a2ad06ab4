"""Makes a student's message from a compiler's log: the first error, at the cell's own line."""

from __future__ import annotations

import re

from labs_lib.cuda.errors import CompileError
from labs_lib.cuda.tokens import tokenize

HINTS = [
    (r"expected [‘'].?;.?[’'].*before|expected a .;.|expected ';'",
     "A `;` is missing, often a line above."),
    (r"'?threadidx|blockidx|blockdim", "CUDA's names are threadIdx, blockIdx, blockDim, gridDim."),
    (r"no matching function for call to .*atomic", "Both arguments of an atomic are of one type."),
    (r"discards qualifiers|assignment of read-only|must be a modifiable|read-only variable",
     "The parameter is `const`: it may be read only. Drop `const` from what the kernel writes."),
    (r"was not declared in this scope|is undefined|undeclared identifier",
     "The name is misspelled, declared further down, or declared inside another pair of braces."),
    (r"expected [‘'].?\}.?[’'] at end of input|expected a .\}.|expected '\}'",
     "A closing brace `}` is missing."),
    (r"invalid conversion|cannot convert|incompatible with parameter",
     "The two types differ; look for a missing `*`, `&` or index."),
    (r"invalid types .* for array subscript", "More indices than the array has dimensions."),
    (r"variable length array|integral constant-expression|must have a constant value",
     "An array's size has to be known when the kernel is compiled: a number, not a parameter."),
    (r"ambiguous overload", "half with float: convert first, as in `__half2float(h) * x`."),
    (r"redefinition|redeclared|already been declared", "The name is declared twice."),
    (r"stray", "A character that is no C++, often a quote or dash pasted from a document."),
    (r"unsupported GNU version", "The host compiler is newer than this CUDA toolkit allows."),
]  # fmt: skip


def explain(log: str, source: str, rewritten: str, filename: str) -> CompileError:
    """The CompileError for a log; columns are moved back to the student's own text."""
    place = re.escape(filename)
    gcc = re.search(rf"^{place}:(\d+):(?:(\d+):)? (?:fatal )?error: (.*)$", log, re.MULTILINE)
    nvcc = re.search(rf"^{place}\((\d+)\)()(?:: fatal)?: (?:catastrophic )?error(?: #\S+)?: (.*)$",
                     log, re.MULTILINE)  # fmt: skip
    found = gcc or nvcc
    lines = source.split("\n")
    twice = re.search(r"no matches converting function [‘'](\w+)", log)
    if twice:
        return _declared_otherwise(twice[1], source, log)
    if not found or int(found[1]) > len(lines):
        return _unclosed(source, log) or CompileError(_unknown(log), log=log)
    line, message = int(found[1]), found[3].strip()
    out = [f"line {line}: {message}", f"  {lines[line - 1]}"]
    column = _column(lines[line - 1], _line(rewritten, line), int(found[2] or 0), message)
    if column is not None:
        out.append("  " + re.sub(r"[^\t]", " ", lines[line - 1][:column]) + "^")
    hint = next((text for pattern, text in HINTS if re.search(pattern, message, re.I)), None)
    if hint:
        out.append(hint)
    more = len(re.findall(rf"^{place}[:(]\d+.*error", log, re.MULTILINE)) - 1
    if more > 0:
        out.append(f"({more} more after it; the first is the one to mend.)")
    return CompileError("\n".join(out), line=line, log=log)


def _declared_otherwise(name: str, source: str, log: str) -> CompileError:
    """The error for a kernel whose declaration and definition don't agree."""
    at = re.search(rf"\b{re.escape(name)}\b", source)
    line = source.count("\n", 0, at.start()) + 1 if at else None
    where = f"line {line}: " if line else ""
    return CompileError(
        f"{where}`{name}` is declared with other parameters than it is defined with; make them "
        "equal, or drop the declaration.",
        line=line,
        log=log,
    )


def _unclosed(source: str, log: str) -> CompileError | None:
    """The error for a brace that the cell leaves open; the compiler only notices after its end."""
    opened: list[int] = []
    for token in tokenize(source):
        if token.kind == "mark" and token.text == "{":
            opened.append(token.line)
        elif token.kind == "mark" and token.text == "}" and opened:
            opened.pop()
    if not opened:
        return None
    line, text = opened[-1], source.split("\n")[opened[-1] - 1]
    message = (
        f"line {line}: the {{ opened here is never closed\n  {text}\nA closing brace is missing."
    )
    return CompileError(message, line=line, log=log)


def _line(text: str, number: int) -> str:
    lines = text.split("\n")
    return lines[number - 1] if number <= len(lines) else ""


def _column(own: str, compiled: str, column: int, message: str) -> int | None:
    """Where the caret stands in the student's line; None where it can't be told."""
    if own == compiled and 0 < column <= len(own) + 1:
        return column - 1
    words = re.findall(r"[‘'\"]([A-Za-z_]\w*)", message)
    if 0 < column <= len(compiled):
        words[:0] = re.findall(r"\A\w*", compiled[column - 1 :])
    for word in words:
        at = re.search(rf"\b{re.escape(word)}\b", own) if word else None
        if at:
            return at.start()
    return None


def _unknown(log: str) -> str:
    """The first line of a log that names an error, when it names none of the cell's lines."""
    first = next((li for li in log.splitlines() if "error" in li.lower()), log.strip()[:400])
    if "undefined" in log and "multiple definition" not in log:
        first += "\nA function is declared but nowhere defined."
    return f"The kernel could not be built: {first.strip()}"
