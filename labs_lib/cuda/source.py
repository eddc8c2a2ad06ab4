"""Finds the kernels of a source, and what each of them takes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from labs_lib.cuda.errors import CompileError
from labs_lib.cuda.tokens import Token, closing, closing_angle, join, split, tokenize

QUALIFIERS = {"const", "volatile", "__restrict__", "__restrict", "restrict", "struct", "register"}
QUALIFIERS |= {"__grid_constant__"}
WITH_ARGUMENTS = {"__launch_bounds__", "__attribute__", "alignas", "__cluster_dims__"}
BUILT_IN = {"int", "float", "double", "char", "short", "long", "unsigned", "signed", "bool"}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel: `type` is what it is or points to, without qualifiers."""

    name: str
    type: str
    pointer: bool
    const: bool

    def __str__(self) -> str:
        if not self.pointer:
            return f"{self.type} {self.name}"
        return f"{'const ' if self.const else ''}{self.type}* {self.name}"


@dataclass(frozen=True)
class Signature:
    """A kernel's name, parameters and template parameters (name, default or None)."""

    name: str
    parameters: tuple[Parameter, ...]
    template: tuple[tuple[str, str | None], ...] = ()
    line: int = 1
    arguments: tuple[str, ...] = ()  # what a template was made with

    @property
    def spelled(self) -> str:
        """The kernel as C++ names it, template arguments included."""
        return f"{self.name}<{', '.join(self.arguments)}>" if self.template else self.name

    @property
    def ready(self) -> bool:
        """Whether it can be launched as it is: no template argument is open."""
        return len(self.arguments) == len(self.template)

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.parameters))
        return f"{self.spelled if self.ready else self.name}({shown})"


def find_kernels(source: str) -> dict[str, Signature]:
    """The `__global__` functions that a source defines, by name.

    Raises: CompileError when there is none, or when one can't be read.
    """
    tokens = tokenize(source)
    aliases = _aliases(tokens)
    found: dict[str, Signature] = {}
    for i, token in enumerate(tokens):
        if token.text == "__global__" and token.kind == "word":
            signature = _signature(tokens, i, aliases)
            if signature:
                found[signature.name] = signature
    if not found:
        raise CompileError(
            "There is no kernel here: a kernel is a function marked __global__, as in "
            "`__global__ void scale(float* x, int n) { ... }`."
        )
    return found


def instantiate(signature: Signature, arguments: list[str]) -> Signature:
    """A template kernel with its arguments put in; defaults fill what is left."""
    names = [name for name, _ in signature.template]
    if len(arguments) > len(names):
        raise CompileError(
            f"{signature.name} has {len(names)} template parameters ({', '.join(names)}), "
            f"{len(arguments)} arguments were given."
        )
    filled = list(arguments)
    for name, default in signature.template[len(arguments) :]:
        if default is None:
            shown = ", ".join(names)
            raise CompileError(
                f"{signature.name} is a template over <{shown}> and {name} is not given; "
                f'choose it: module["{signature.name}<...>"].'
            )
        filled.append(default)
    values = dict(zip(names, filled, strict=True))
    parameters = tuple(replace(p, type=values.get(p.type, p.type)) for p in signature.parameters)
    return replace(signature, parameters=parameters, arguments=tuple(filled))


def _signature(tokens: list[Token], at: int, aliases: dict[str, str]) -> Signature | None:
    """The kernel whose `__global__` stands at `at`; None for a mere declaration."""
    i = at + 1
    while i < len(tokens) and tokens[i].text != "(":
        i += 1
        if i < len(tokens) and tokens[i].text == "(" and tokens[i - 1].text in WITH_ARGUMENTS:
            i = closing(tokens, i) + 1
    if i >= len(tokens):
        line = tokens[at].line
        raise CompileError(f"line {line}: a __global__ function has no parameter list", line=line)
    end = closing(tokens, i)
    if end + 1 >= len(tokens) or tokens[end + 1].text != "{":
        return None
    name = tokens[i - 1].text
    pieces = [p for p in split(tokens[i + 1 : end]) if join(p) != "void"]
    parameters = tuple(_parameter(piece, n, aliases) for n, piece in enumerate(pieces))
    signature = Signature(name, parameters, _template(tokens, at), tokens[at].line)
    if all(default is not None for _, default in signature.template):
        signature = instantiate(signature, [])
    return signature


def _template(tokens: list[Token], at: int) -> tuple[tuple[str, str | None], ...]:
    """Names and defaults of the template parameters before the token at `at`."""
    for i in range(at - 1, -1, -1):
        if tokens[i].text in (";", "}", "{"):
            break
        if tokens[i].text == "template":
            end = closing_angle(tokens, i + 1)
            found = []
            for piece in split(tokens[i + 2 : end]):
                words = [t.text for t in piece]
                cut = words.index("=") if "=" in words else len(words)
                default = " ".join(words[cut + 1 :]) or None
                found.append((words[cut - 1], default))
            return tuple(found)
    return ()


def _parameter(piece: list[Token], number: int, aliases: dict[str, str]) -> Parameter:
    words = [t.text for t in piece]
    if "=" in words:
        words = words[: words.index("=")]
    brackets = "[" in words
    if brackets:
        words = words[: words.index("[")]
    stars = words.count("*") + brackets
    plain = [w for w in words if w not in QUALIFIERS and w != "*"]
    named = len(plain) > 1 and re.match(r"[A-Za-z_]", plain[-1]) and plain[-1] not in BUILT_IN
    name = plain.pop() if named else f"argument {number}"
    kind = " ".join(plain).replace(" < ", "<").replace(" >", ">").replace(" :: ", "::")
    kind = kind.removeprefix("std::")
    for _ in range(8):
        if kind not in aliases:
            break
        target = aliases[kind]
        stars += target.count("*")
        kind = target.replace("*", "").replace("const ", "").strip()
    first_star = words.index("*") if "*" in words else len(words)
    const = "const" in words[:first_star] or (not stars)
    if stars > 1:
        line = piece[0].line
        raise CompileError(
            f"line {line}: {name} is a pointer to pointers; a kernel takes tensors and scalars.",
            line=line,
        )
    return Parameter(name, kind, bool(stars), const)


def _aliases(tokens: list[Token]) -> dict[str, str]:
    """Types that the source names anew: `using`, `typedef`, and simple `#define`s."""
    found: dict[str, str] = {}
    for i, token in enumerate(tokens):
        if token.kind == "directive":
            match = re.match(r"#\s*define\s+(\w+)\s+([A-Za-z_][\w ]*?)\s*(?://.*)?$", token.text)
            if match:
                found[match[1]] = match[2]
        elif token.text in ("using", "typedef"):
            end = next((j for j in range(i, len(tokens)) if tokens[j].text == ";"), i)
            words = [t.text for t in tokens[i + 1 : end]]
            if token.text == "using" and len(words) > 2 and words[1] == "=":
                found[words[0]] = " ".join(words[2:])
            elif token.text == "typedef" and len(words) > 1:
                found[words[-1]] = " ".join(words[:-1])
    return found
