"""Cells and documents as pages of the reading site."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nbconvert.filters import Highlight2HTML, ansi2html, markdown2html
from nbformat import NotebookNode

from ..exercises import exercise
from ..exercises.kit import Lab
from ..notebook.bindings import is_cuda
from ..notebook.cells import exercise_name, role
from .live import Live, live

NO_PICTURE = "A picture that the code above draws"


@dataclass(frozen=True)
class Page:
    """One page: its file's stem, its title, its body, and what its explorers need."""

    name: str
    title: str
    body: str
    scripts: tuple[str, ...] = ()
    states: tuple[str, ...] = ()


def lab_page(
    lab: Lab, student: NotebookNode, solved: NotebookNode, folder: Path, known: Mapping[str, str]
) -> Page:
    """A lab's page: prose and stubs of the student's notebook, outputs of the solved one.

    What checks and answers printed is left out. Pictures are written into the folder's assets.
    """
    outputs = {cell["id"]: cell.get("outputs", []) for cell in solved.cells}
    explorers = live(student.cells)
    pictures = _Pictures(folder, lab.stem)
    parts = []
    for cell in student.cells:
        if cell.cell_type != "code":
            parts.append(relinked(_by_keys(markdown2html(cell.source)), known))
            continue
        parts.append(_code(cell))
        if cell["id"] in explorers:
            parts.append(_explorer(cell["id"], explorers[cell["id"]], pictures))
        elif role(cell) in ("demo", "setup"):
            parts += [_output(output, pictures) for output in outputs.get(cell["id"], [])]
    scripts = tuple(dict.fromkeys(one.script for one in explorers.values()))
    states = tuple(_state(name, one) for name, one in explorers.items())
    return Page(lab.stem, f"{lab.number:02d} {lab.title}", "\n".join(parts), scripts, states)


def document(file: Path, folder: Path, known: Mapping[str, str]) -> Page:
    """A page of docs/; its pictures are copied."""
    text = file.read_text(encoding="utf-8")
    pictures = _Pictures(folder, file.stem)

    def copied(match: re.Match) -> str:
        source = file.parent / match[2]
        return f"{match[1]}{pictures.kept(source.read_bytes(), source.suffix)}{match[3]}"

    body = relinked(_by_keys(markdown2html(text)), known)
    body = re.sub(r'(<img[^>]* src=")(?!data:|https?:)([^"]+)(")', copied, body)
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    return Page(file.stem, title[1] if title else file.stem.capitalize(), body)


def relinked(body: str, known: Mapping[str, str]) -> str:
    """HTML whose links lead to pages of this site; a link to another file of the course is text."""

    def linked(match: re.Match) -> str:
        target, words = html.unescape(match[1]), match[2]
        if re.match(r"https?://|#", target):
            return match[0]
        file, _, place = target.partition("#")
        page = known.get(file.rpartition("/")[2])
        return f'<a href="{page}{"#" * bool(place)}{place}">{words}</a>' if page else words

    return re.sub(r'<a href="([^"]*)"[^>]*>(.*?)</a>', linked, body, flags=re.DOTALL)


def _by_keys(body: str) -> str:
    """HTML whose blocks of code can be reached by keys, which read a long line to its end."""
    return body.replace("<pre>", '<pre tabindex="0">')


class _Pictures:
    """Puts a page's pictures into the folder's assets."""

    def __init__(self, folder: Path, stem: str) -> None:
        self.folder, self.stem, self.count = folder, stem, 0

    def kept(self, data: bytes, suffix: str = ".png") -> str:
        """The address of a picture, from the page."""
        self.count += 1
        name = f"assets/{self.stem}_{self.count:02d}{suffix}"
        (self.folder / name).write_bytes(data)
        return name


def _code(cell: NotebookNode) -> str:
    language = "c++" if is_cuda(cell.source) else "ipython3"
    shown = Highlight2HTML(pygments_lexer=language)(cell.source)
    shown = _by_keys(shown)
    kind = role(cell)
    said = ""
    if kind == "answer":
        asked = exercise(exercise_name(cell))
        said = f'<p class="role">Yours to write: {html.escape(asked.title)}</p>'
    return f'<div class="cell {kind}">{said}{shown}</div>'


def _output(output: NotebookNode, pictures: _Pictures) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        address = pictures.kept(base64.b64decode(data["image/png"]))
        said = str(data.get("text/plain", ""))
        alt = NO_PICTURE if said.startswith("<") or not said else said
        shown = f'<img src="{address}" alt="{html.escape(alt)}">'
    elif "text/html" in data:
        shown = data["text/html"]
    else:
        text = output.get("text") or data.get("text/plain", "")
        shown = f'<pre tabindex="0">{ansi2html(str(text).rstrip())}</pre>'
    return f'<div class="output">{shown}</div>'


def _explorer(name: str, one: Live, pictures: _Pictures) -> str:
    """The still picture and its sentence; where scripts run, the explorer takes their place."""
    address = pictures.kept(one.picture)
    alt, said = html.escape(f"{one.title}. {one.message}"), html.escape(one.message)
    return (
        f'<div class="fixed" data-explorer="{one.script}" data-state="state-{name}"><figure>'
        f'<img src="{address}" alt="{alt}"><figcaption>{said}</figcaption></figure></div>'
    )


def _state(name: str, one: Live) -> str:
    state = one.state.replace("<", "\\u003c")
    return f'<script type="application/json" id="state-{name}">{state}</script>'
