"""How data/text/python_docs.txt was made: the documentation that ships inside CPython 3.11.

`python -m labs_lib.training.build_text OUT` writes it again from the interpreter that runs it;
another version of Python has other documentation, so the course keeps the file its records used.
"""

import ast
import inspect
import re
import sys
import sysconfig
import textwrap
from collections.abc import Iterator
from pathlib import Path

MOST_OF_LINE = 200
OTHER_FOLDERS = ("site-packages", "test", "tests", "idlelib", "lib2to3", "ensurepip", "turtledemo")
OWN_NOTICE = re.compile(r"copyright|licen[sc]e|permission", re.IGNORECASE)
ADDRESS = re.compile(r"://|www\.|@\w+\.\w|pypi", re.IGNORECASE)


def main(arguments: list[str]) -> int:
    """Write the text to the file named by the only argument."""
    if len(arguments) != 1:
        print("usage: python -m labs_lib.training.build_text OUT", file=sys.stderr)
        return 2
    text = build_text()
    Path(arguments[0]).write_bytes(text.encode("ascii"))
    print(f"{len(text):,} bytes of documentation of Python {sys.version.split()[0]}")
    return 0


def build_text() -> str:
    """Return the topics of `help()`, then docstrings in order of file, each paragraph once."""
    seen, kept = set(), []
    for document in (*topics(), *docstrings(Path(sysconfig.get_paths()["stdlib"]))):
        fresh = []
        for paragraph in re.split(r"\n\s*\n", document.expandtabs().strip("\n")):
            paragraph = "\n".join(line.rstrip() for line in paragraph.splitlines())
            if is_kept(paragraph) and paragraph not in seen:
                seen.add(paragraph)
                fresh.append(paragraph)
        if fresh:
            kept.append("\n\n".join(fresh) + "\n\n\n")
    return "".join(kept)


def is_kept(paragraph: str) -> bool:
    """Tell whether a paragraph is printable ASCII text without addresses of places or people."""
    readable = paragraph.isascii() and paragraph.replace("\n", "").isprintable()
    short_lines = all(len(line) <= MOST_OF_LINE for line in paragraph.splitlines())
    return bool(paragraph.strip()) and readable and short_lines and not ADDRESS.search(paragraph)


def topics() -> Iterator[str]:
    """Yield the chapters of the language reference that `help()` shows, by name."""
    from pydoc_data.topics import topics as chapters

    yield from (chapters[name] for name in sorted(chapters))


def docstrings(stdlib: Path) -> Iterator[str]:
    """Yield docstrings of the standard library; a file that bears its own notice is left out."""
    for path in sorted(stdlib.rglob("*.py")):
        parts = path.relative_to(stdlib).parts
        if any(part in OTHER_FOLDERS or part.startswith("__phello") for part in parts):
            continue
        source = path.read_text(encoding="utf-8", errors="replace")
        if OWN_NOTICE.search(source):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node, clean=False)
                if text:
                    # Twice, since a first line may be indented more than the others.
                    yield textwrap.dedent(inspect.cleandoc(text))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
