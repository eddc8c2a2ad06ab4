"""`make site`: the course as static pages, with the explorers that a browser runs by itself.

Made from the same sources as the notebooks: their prose, stubs in place of answers, and what the
demonstrations of the solutions showed. Pages open from a disk: no server, and nothing is fetched.
"""

from __future__ import annotations

import html
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from string import Template

import nbformat

from ..errors import UsageError
from ..exercises import exercises, labs
from ..exercises.kit import Lab
from ..notebook.cells import KEY
from ..paths import home
from ..widgets import front
from .pages import Page, document, lab_page
from .release import plan, solution_file
from .source import source_hash

ASSETS = Path(__file__).parent / "reading"
DOCS = ("glossary", "install", "kernels", "models", "benchmarks")
_INTRO = """
<h1>Attention Labs</h1>
<p>A workbook in which you build multi-head attention: one head first, then many, and each piece is
checked the moment you have written it. These pages are for reading and for playing with the
explorers, which run in this page. The labs themselves are notebooks; <code>make lab</code> in the
course's folder opens them.</p>
"""


def build(folder: Path) -> list[Path]:
    """Write the site into a folder, anew; the pages written.

    Raises:
        UsageError: if a lab's solution notebook isn't there or isn't that of its source, or the
            folder is a file or holds something else than a site.
    """
    if folder.is_file():
        raise UsageError(f"{folder} is a file; name an empty folder.")
    if folder.exists() and any(folder.iterdir()) and not (folder / "assets/site.js").exists():
        raise UsageError(f"{folder} holds something else than a site; name an empty folder.")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "assets").mkdir(parents=True)
    for name in ("site.css", "site.js"):
        shutil.copy(ASSETS / name, folder / "assets" / name)
    (folder / "assets/explorer.css").write_text(front.style(), encoding="utf-8")
    chosen = labs()
    known = {f"{lab.stem}.ipynb": f"{lab.stem}.html" for lab in chosen}
    known |= {f"{name}.md": f"{name}.html" for name in DOCS}
    pages = [_lab(lab, folder, known) for lab in chosen]
    pages += [document(home() / "docs" / f"{name}.md", folder, known) for name in DOCS]
    for script in sorted({script for page in pages for script in page.scripts}):
        _write_script(script, folder)
    written = [_write(page, folder, chosen) for page in pages]
    return [_write(_index(chosen), folder, chosen), *written]


def _lab(lab: Lab, folder: Path, known: dict[str, str]) -> Page:
    _, student = plan(lab)
    if not solution_file(lab).exists():
        raise UsageError(f"solutions/{lab.stem}.ipynb is missing: run `labs release`.")
    solved = nbformat.read(solution_file(lab), as_version=4)
    if solved.metadata.get(KEY, {}).get("source") != source_hash(lab):
        raise UsageError(
            f"solutions/{lab.stem}.md was edited: run `labs release {lab.number:02d}`."
        )
    return lab_page(lab, student, solved, folder, known)


def _index(chosen: Iterable[Lab]) -> Page:
    rows = []
    for lab in chosen:
        count = sum(item.points > 0 for item in exercises(lab.number))
        link = f'<a href="{lab.stem}.html">{html.escape(lab.title)}</a>'
        rows.append(
            f"<tr><td>{lab.number:02d}</td><td>{link}<br>{html.escape(lab.question)}</td>"
            f"<td>{lab.minutes}</td><td>{count}</td></tr>"
        )
    names = ("", "Lab and its question", "Minutes", "Exercises")
    head = "".join(f'<th scope="col">{name or "Number"}</th>' for name in names)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    docs = "".join(f'<li><a href="{name}.html">{name.capitalize()}</a></li>' for name in DOCS)
    return Page("index", "Attention Labs", f"{_INTRO}{table}<h2>More</h2><ul>{docs}</ul>")


def _write_script(name: str, folder: Path) -> None:
    """The explorer's module as a plain script, since a page on a disk may load no modules."""
    source = front.source(name)
    start = "export default explorer("
    if source.count(start) != 1:
        raise ValueError(f"front/{name}.mjs has to say `{start}...)` once")
    text = source.replace(start, "return explorer(")
    script = f'labsExplorer("{name}", (() => {{\n"use strict";\n{text}\n}})());\n'
    (folder / "assets" / f"{name}.js").write_text(script, encoding="utf-8")


def _write(page: Page, folder: Path, chosen: list[Lab]) -> Path:
    order = ["index", *(lab.stem for lab in chosen)]
    titles = {lab.stem: f"{lab.number:02d} {lab.title}" for lab in chosen} | {"index": "All labs"}
    here = ' aria-current="page"'
    links = [
        f'<a href="{lab.stem}.html" title="{html.escape(lab.title)}"'
        f"{here if lab.stem == page.name else ''}>{lab.number:02d}</a>"
        for lab in chosen
    ]
    at = order.index(page.name) if page.name in order else 0
    near = [order[at - 1]] * (at > 0) + order[at + 1 : at + 2]
    around = [f'<a href="{stem}.html">{html.escape(titles[stem])}</a>' for stem in near]
    scripts = [f'<script src="assets/{name}.js"></script>' for name in ("site", *page.scripts)]
    made = Template((ASSETS / "page.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(page.title if page.name == "index" else f"{page.title} · Attention Labs"),
        links="".join(links),
        body=page.body,
        around="".join(around),
        scripts="\n".join([*page.states, *scripts]),
    )
    target = folder / f"{page.name}.html"
    target.write_text(made, encoding="utf-8")
    return target


def main(given: list[str]) -> int:
    """`python -m labs_lib.authoring.site [FOLDER]`; build/site unless told otherwise."""
    folder = Path(given[0]) if given else home() / "build" / "site"
    try:
        written = build(folder)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(written)} pages; open {folder / 'index.html'} in a browser")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
