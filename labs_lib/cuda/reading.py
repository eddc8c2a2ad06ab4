"""Reads a kernel's text as the compiler will: what is no device code is refused by name and line.

The CPU's compiler would take more than CUDA does: any header, the system's functions, attributes,
assembly. None of it is a kernel, and on a GPU it wouldn't compile. Comments, strings, macros and
joined lines hide nothing here; where text could be read in two ways, it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from labs_lib.cuda.errors import CompileError
from labs_lib.cuda.tokens import PATTERN, Token, closing, tokenize

HEADERS = {
    "cuda.h", "cuda_bf16.h", "cuda_fp16.h", "cuda_runtime.h", "cuda_runtime_api.h",
    "device_launch_parameters.h", "math_constants.h", "mma.h", "vector_types.h", "labs/mma.h",
    "assert.h", "float.h", "limits.h", "math.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
    "string.h", "algorithm", "cassert", "cfloat", "climits", "cmath", "cstddef", "cstdint",
    "cstdio", "cstdlib", "cstring", "limits", "type_traits", "utility",
}  # fmt: skip
DIRECTIVES = {
    "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "include", "pragma",
    "error", "warning",
}  # fmt: skip
# What the C library's headers declare beside CUDA's own functions.
HOST_FUNCTIONS = {
    "system", "getenv", "secure_getenv", "setenv", "putenv", "unsetenv", "clearenv", "exit",
    "_Exit", "abort", "atexit", "on_exit", "at_quick_exit", "quick_exit", "mkstemp", "mkstemps",
    "mkostemp", "mkostemps", "mkdtemp", "mktemp", "realpath", "posix_openpt", "grantpt",
    "unlockpt", "ptsname", "ptsname_r", "getpt", "calloc", "realloc", "aligned_alloc",
    "posix_memalign", "valloc", "reallocarray", "strdup", "strndup", "qsort", "qsort_r", "bsearch",
    "fopen", "freopen", "fdopen", "fmemopen", "open_memstream", "popen", "pclose", "fclose",
    "fread", "fwrite", "fputs", "fputc", "putc", "puts", "putchar", "fgets", "fgetc", "getc",
    "gets", "getchar", "getdelim", "scanf", "fscanf", "sscanf", "fprintf", "vprintf",
    "vfprintf", "dprintf", "vdprintf", "sprintf", "snprintf", "vsprintf", "vsnprintf", "asprintf",
    "fflush", "setbuf", "setvbuf", "perror", "renameat", "tmpfile", "tmpnam", "tempnam", "fileno",
    "stdin", "stdout", "stderr", "environ", "ctermid", "cuserid", "getloadavg", "rpmatch",
    "getsubopt", "explicit_bzero", "memmove", "memcmp", "memchr", "memrchr", "memccpy", "mempcpy",
    "memmem", "strlen", "strnlen", "strcmp", "strncmp", "strcpy", "strncpy", "strcat", "strncat",
    "strchr", "strrchr", "strchrnul", "strstr", "strtok", "strtok_r", "strspn", "strcspn",
    "strpbrk", "strcoll", "strxfrm", "strerror", "strsignal", "strsep", "stpcpy", "stpncpy",
    "strcasecmp", "strncasecmp", "strcasestr", "bcopy", "bzero", "bcmp", "atof", "atoi", "atol",
    "atoll", "strtod", "strtof", "strtold", "strtol", "strtoul", "strtoll", "strtoull", "strtoq",
    "mblen", "mbtowc", "wctomb", "mbstowcs", "wcstombs",
}  # fmt: skip
# Also good names for variables: refused where they are called.
CALLED = {"remove", "rename", "rand", "srand", "random", "getline", "index", "rindex"}
# Of the host's library only what costs no memory: a copy made there would not be counted.
STD = {
    "max", "min", "clamp", "swap", "exchange", "move", "forward", "declval", "numeric_limits",
    "memcpy", "memset", "integral_constant", "true_type", "false_type", "size_t", "ptrdiff_t",
    "nullptr_t", "byte",
}  # fmt: skip
_STD = re.compile(
    r"u?int\w*_t|is_\w+|enable_if\w*|conditional\w*|remove_\w+|decay\w*|add_\w+|make_\w*signed\w*"
    r"|common_type\w*|a?(?:sin|cos|tan)h?[fl]?|atan2[fl]?|exp[2fl]?|exp2f|expm1f?|log(?:2|10|1p|b)?[fl]?"
    r"|pow[fl]?|sqrt[fl]?|cbrtf?|hypotf?|f?abs[fl]?|floorf?|ceilf?|truncf?|l?l?roundf?|l?l?rintf?"
    r"|nearbyintf?|fmod[fl]?|remainderf?|fmaf?|f(?:max|min|dim)f?|erfc?f?|[lt]gammaf?|copysignf?"
    r"|is(?:nan|inf|finite|normal)|signbit"
)
BUILTINS = {"__builtin_assume", "__builtin_expect", "__builtin_unreachable"}
OURS = ("labs_", "LABS_", "__tsan", "__asan", "__ubsan", "__sanitizer")
OWN_NAMESPACES = {"lab", "host"}
# What the host's compiler alone understands in brackets: [[gnu::...]], however it is put together.
VENDORS = {"gnu", "__gnu__", "clang", "_Clang", "msvc"}
ATTRIBUTES = {"nodiscard", "maybe_unused", "likely", "unlikely", "fallthrough", "noreturn"}
ATTRIBUTES |= {"deprecated", "no_unique_address"}
# Words that are macros here: whoever undoes them reaches the host's own.
MACROS = {"memcpy", "memset", "printf"}
_JOIN = re.compile(r"\\[^\S\n]*\n")


def words_of(source: str) -> list[Token]:
    """Every token that the compiler may see, those of preprocessor lines too."""
    found: list[Token] = []
    for token in tokenize(source):
        found += _inside(token) if token.kind == "directive" else [token]
    return found


def refuse(source: str) -> None:
    """Raises CompileError at the first thing that is no device code, with the cell's own line."""
    for line, why in problems(source):
        raise CompileError(f"line {line}: {why}", line=line)


def problems(source: str) -> Iterator[tuple[int, str]]:
    """What is no device code: the line and a sentence for each."""
    tokens = tokenize(source)
    yield from _joined(source, [t for t in tokens if t.kind == "directive"])
    for token in tokens:
        if token.kind == "directive":
            yield from _directive(token)
        elif token.text in _STRAY:
            yield token.line, _STRAY[token.text]
    code = words_of(source)
    for i, token in enumerate(code):
        before = code[i - 1].text if i else ""
        if token.kind == "word" and before not in (".", "->"):
            why = _word(code, i)
            if why:
                yield token.line, f"`{token.text}` {why}"
        elif token.kind == "string" and re.match(r"(?:u8|[uUL])?R\"", token.text):
            yield token.line, "raw strings are not read here; write an ordinary string"
        elif token.text == "[" and before == "[" and i + 1 < len(code):
            after = code[i + 1]
            if after.kind == "word" and after.text not in ATTRIBUTES:
                yield token.line, f"`[[{after.text}` is the host compiler's, not CUDA's"
        elif i and before + token.text in _SPELLINGS and code[i - 1].end == token.start:
            yield token.line, _SPELLINGS[before + token.text]


_STRAY = {
    "\\": "a backslash joins this line with the next; only a #define may go on so",
    '"': "a string is opened here and not closed",
    "'": "a quote is opened here and not closed",
}
_SPELLINGS = {
    two: f"`{two}` is another spelling of {one}; write {one}"
    for two, one in {"%:": "#", "<%": "{", "%>": "}", "<:": "[", ":>": "]", "::>": ":]"}.items()
}


def _joined(source: str, directives: list[Token]) -> Iterator[tuple[int, str]]:
    """Joined lines outside of directives: in a comment or string they'd be read in two ways."""
    for found in _JOIN.finditer(source):
        if not any(t.start <= found.start() and found.end() <= t.end for t in directives):
            yield source.count("\n", 0, found.start()) + 1, _STRAY["\\"]


def _inside(directive: Token) -> list[Token]:
    """The tokens of a preprocessor line, its continued lines joined."""
    text = _JOIN.sub(" ", directive.text.replace("\\\n", "")).replace("#", " ", 1)
    return [replace(t, line=directive.line) for t in tokenize(text.replace("\n", " "))]


def _directive(token: Token) -> Iterator[tuple[int, str]]:
    line = token.line
    if re.search(r"\\[^\S\n]+\n", token.text):
        yield line, "there is white space behind the backslash that joins two lines"
    inside = _inside(token)
    name = inside[0].text if inside else ""
    if _opens_a_comment(token.text):
        yield line, "a comment begins here and does not end in this line; close it with */"
    if any(t.text in ("extern", "goto") for t in inside):
        yield line, "`extern` and `goto` stand where they are read, not in a macro"
    if name in ("define", "undef") and [t.text for t in inside[1:2] if t.text in MACROS]:
        yield line, f"`{inside[1].text}` is CUDA's own word here; choose another"
    if name and name not in DIRECTIVES:
        yield line, f"#{name} has no meaning in a kernel"
    elif name == "include":
        found = re.match(r"\s*#\s*include\s*[<\"]([^>\"]*)[>\"]", token.text)
        header = found[1] if found else " ".join(t.text for t in inside[1:])
        if header not in HEADERS:
            yield line, _foreign(header)
    elif name == "pragma" and [t.text for t in inside[1:2]] not in (["unroll"], ["once"], ["nv"]):
        yield line, f"#pragma {inside[1].text if inside[1:] else ''} is not one of CUDA's (unroll)"
    if name not in ("error", "warning") and any(t.text in ('"', "'") for t in inside):
        yield line, _STRAY["'"]


def _opens_a_comment(text: str) -> bool:
    """Whether a comment goes on below: what stands behind its end would belong to this line."""
    comments = (found["comment"] for found in PATTERN.finditer(text) if found["comment"])
    return any(c.startswith("/*") and (len(c) < 4 or not c.endswith("*/")) for c in comments)


def _foreign(header: str) -> str:
    return (
        f"#include <{header}> brings host code; a kernel includes CUDA's headers "
        "(cuda_fp16.h, cuda_bf16.h, mma.h) or C's math.h, stdint.h and their like"
    )


def _word(code: list[Token], at: int) -> str:
    """Why the word at `at` has no place in device code; empty where it has one."""
    text = code[at].text
    after = code[at + 1].text if at + 1 < len(code) else ""
    if text == "extern":
        return _extern(code, at)
    if text == "goto" and [t.text for t in code[at + 2 : at + 3]] != [";"]:
        return "goes to the name of a label and nowhere else"
    if text.startswith(("__has_include", "__has_embed")):
        return "asks which files the host has; a kernel is the same on every machine"
    if text in VENDORS:
        return "is a name for attributes of the host's compiler; choose another"
    if text.startswith(("__attribute", "__declspec", "_Pragma", "__pragma")):
        return "is the host compiler's, not CUDA's; __align__ and __launch_bounds__ are CUDA's"
    if text in ("__asm", "_asm"):
        return "is assembly, which only one kind of processor runs; write CUDA C++"
    if text.startswith("__builtin_") and text not in BUILTINS:
        return "is the host compiler's, not CUDA's"
    if text in HOST_FUNCTIONS or (text in CALLED and after == "("):
        return "is a function of the host, which no GPU has"
    if [t.text for t in code[max(0, at - 2) : at]] == ["std", "::"] and not _in_std(text):
        return "is a part of the host's library, which no GPU has"
    if text == "std" and at and code[at - 1].text == "namespace":
        return "brings the host's whole library; name what you take of it, as in std::max"
    if text.startswith(OURS):
        return "is a name of the machine that runs kernels here; choose another"
    named = after == "::" or (at and code[at - 1].text in ("namespace", "using"))
    if text == "lab" or (text in OWN_NAMESPACES and named):
        return "is a name of the machine that runs kernels here; choose another"
    return ""


def _in_std(text: str) -> bool:
    return text in STD or bool(_STD.fullmatch(text))


def _extern(code: list[Token], at: int) -> str:
    """`extern` may name dynamic shared memory, or give a kernel a plain C name."""
    texts = [t.text for t in code[at : at + 12]]
    end = texts.index(";") if ";" in texts else len(texts)
    if "__shared__" in [*texts[:end], *(t.text for t in code[max(0, at - 2) : at])]:
        return ""
    if texts[1:2] == ['"C"'] and texts[2:3] != ["{"]:
        opens = next((i for i in range(at, len(code)) if code[i].text in ("{", ";", "=")), at)
        if code[opens].text == "{" and code[closing(code, opens)].text == "}":
            return ""
    return "declares something that is defined elsewhere, and a cell stands for itself"
