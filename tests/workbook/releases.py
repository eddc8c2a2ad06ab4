"""A student's copy, and releases of the course that arrive in it: as a folder, or by git."""

from __future__ import annotations

import shutil
import subprocess

import nbformat

from labs_lib.notebook.cells import cell_id, text_hash

NAME = "00_start_here.ipynb"
ANSWER = "def first(x):\n    return x + 1"


def notebook(*exercises, words="Welcome.", lab="lab00"):
    """A released notebook: prose, then a stub and a check for each exercise."""
    parts = [("markdown", words, "prose", "")]
    for name in exercises:
        parts.append(("code", f"def {name}(x):\n    raise NotImplementedError", "answer", name))
        parts.append(("code", f'check("{lab}.{name}", {name})', "check", name))
    cells = []
    for kind, source, role, short in parts:
        mark = {"role": role} | ({"exercise": f"{lab}.{short}"} if short else {})
        mark["stub" if role == "answer" else "text"] = text_hash(source)
        made = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
        cells.append(made(source, metadata={"labs": mark}))
        cells[-1]["id"] = cell_id(f"{lab}.{short}" if short else lab, role, 1)
    source = text_hash(words + " ".join(exercises))
    metadata = {"labs": {"lab": lab, "source": source}}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def put(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        else:
            nbformat.write(content, path)
    return folder


OLD = {
    f"notebooks/{NAME}": notebook("first", "second"),
    "notebooks/01_one_head.ipynb": notebook("head", lab="lab01"),
    "labs_lib/__init__.py": "version = 1\n",
    "labs_lib/old/room.py": "old = 1\n",
    "README.md": "one\n",
    "requirements.lock": "numpy==1\n",
    "solutions/00_start_here.md": "solved, one\n",
}
NEW = {
    f"notebooks/{NAME}": notebook("first", "second", "third", words="Welcome again."),
    "notebooks/01_one_head.ipynb": OLD["notebooks/01_one_head.ipynb"],
    "notebooks/02_splitting_the_width.ipynb": notebook("split", lab="lab02"),
    "labs_lib/__init__.py": "version = 2\n",
    "labs_lib/new/room.py": "new = 1\n",
    "README.md": "two\n",
    "requirements.lock": "numpy==2\n",
    "solutions/00_start_here.md": "solved, two\n",
}


def git(folder, *arguments):
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def work(folder):
    """Answer the first exercise, and add a cell below it."""
    path = folder / "notebooks" / NAME
    mine = nbformat.read(path, as_version=4)
    mine.cells[1].source = ANSWER
    mine.cells.insert(2, nbformat.v4.new_code_cell("first(1)  # my own"))
    nbformat.write(mine, path)


def sources(folder, name=NAME):
    return [c.source for c in nbformat.read(folder / "notebooks" / name, as_version=4).cells]


def arrived(folder):
    """What the half-done notebook has to be after any update to the new release."""
    wanted = [c.source for c in NEW[f"notebooks/{NAME}"].cells]
    wanted[1:2] = [ANSWER, "first(1)  # my own"]
    assert sources(folder) == wanted
    for name, content in NEW.items():
        if isinstance(content, str):
            assert (folder / name).read_text(encoding="utf-8") == content, name
    assert (folder / "notebooks" / "02_splitting_the_width.ipynb").is_file()
    return True


def state_of(folder):
    paths = [p for p in sorted(folder.rglob("*")) if p.is_file() and ".git" not in p.parts]
    return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in paths}


def commit(folder, files, message="a release"):
    for path in folder.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    put(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)
