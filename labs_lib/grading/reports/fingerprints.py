"""Fingerprints of a program's tokens: what is left of it when names, spacing and comments go.

Winnowing keeps of each run of tokens' hashes the smallest in every window, so that any passage of
`K + WINDOW - 1` tokens that two texts share leaves a common mark (Schleimer, Wilkerson, Aiken 2003,
"Winnowing: local algorithms for document fingerprinting", section 3).
"""

from __future__ import annotations

import builtins
import io
import keyword
import re
import tokenize
import zlib
from collections.abc import Iterator, Sequence

from ...cuda.tokens import tokenize as cuda_tokens
from ...notebook.bindings import MAX_CHARS, cuda_text, is_cuda

K = 9  # tokens of a hash: shorter runs are everybody's
WINDOW = 6
_KEPT = {*dir(builtins), "torch", "np", "numpy", "math", "F", "self"}
_DROPPED = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
_CUDA_WORDS = re.compile(
    r"__\w+__|__\w+|(?:thread|block)(?:Idx|Dim)|gridDim|warpSize|for|if|else|while|return|float4?"
    r"|int|const|unsigned|void|half|bool|extern|x|y|z|f?(?:max|min|abs)f?|expf?|rsqrtf?"
)


def hashes(source: str) -> list[int]:
    """A hash of every run of K tokens, in order; empty for texts shorter than that."""
    words = tokens(source)
    joined = ("\0".join(words[at : at + K]) for at in range(len(words) - K + 1))
    return [zlib.crc32(run.encode("utf-8", "replace")) for run in joined]


def winnowed(marks: Sequence[int]) -> set[int]:
    """The smallest hash of each window."""
    if len(marks) <= WINDOW:
        return {min(marks)} if marks else set()
    return {min(marks[at : at + WINDOW]) for at in range(len(marks) - WINDOW + 1)}


def tokens(source: str) -> list[str]:
    """The tokens of a cell of Python or CUDA: names a student chose are one word, docstrings,
    comments and layout are left out."""
    if len(source) > MAX_CHARS:
        return []
    if is_cuda(source):
        return [_cuda_word(t.kind, t.text) for t in cuda_tokens(cuda_text(source))]
    try:
        return list(_python(source))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return [_word(w, "") for w in re.findall(r"\w+|[^\w\s]", source)]


def _python(source: str) -> Iterator[str]:
    before, at_start = "", True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _DROPPED:
            at_start |= token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
            continue
        docstring = token.type == tokenize.STRING and at_start
        at_start = False
        if token.type == tokenize.NAME:
            yield _word(token.string, before)
        elif not docstring:
            yield "s" if token.type == tokenize.STRING else token.string
        before = token.string


def _word(text: str, before: str) -> str:
    plain = keyword.iskeyword(text) or text in _KEPT or before == "." or not text.isidentifier()
    return text if plain else "n"


def _cuda_word(kind: str, text: str) -> str:
    return "n" if kind == "word" and not _CUDA_WORDS.fullmatch(text) else text
