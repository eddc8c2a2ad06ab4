"""The walks in the documents are walked: every edit is made and every command is run, in order."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
LATER = re.compile(r"(?:lab)?(?:0[3-9]|1\d)[_.]?.*")  # all labs but the first three

STEP = re.compile(
    r"(?:Into|into)\s+`(?P<into>[^`]+)`,\s+above\s+`(?P<above>[^`]+)`:\n"
    r"|In\s+`(?P<file>[^`]+)`,\s+for\s+`(?P<old>[^`]+)`\s+write\s+`(?P<new>[^`]+)`"
    r"|answers\s+`(?P<exercise>lab[^`]+)`\s+with\n"
    r"|^(?P<fence>`{3,})(?P<kind>\w*)\n(?P<block>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


class Walk:
    """A copy of the course's first labs beside which the documents' folders come to stand."""

    def __init__(self, top):
        self.top, self.here = top, top / "course"
        self.said = ""
        names = subprocess.run(
            ["git", "ls-files", "-coz", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        for name in filter(None, names.stdout.split("\0")):
            parts = Path(name).parts
            folder = parts[:2] if parts[0] == "labs_lib" else parts[:1]
            lab = parts[len(folder)] if len(parts) > len(folder) else ""
            kept = folder[-1] not in ("exercises", "answers", "notebooks", "solutions")
            if (kept or not LATER.fullmatch(lab)) and (ROOT / name).is_file():
                (self.here / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, self.here / name)
        self.run("git init -q -b main; git add -A; git commit -qm course")

    def follow(self, page):
        """Do what a page says, from its first line to its last."""
        waiting = None
        for step in STEP.finditer(page):
            if step["into"] or step["exercise"]:
                waiting = step
            elif step["file"]:
                self.replace(step["file"], step["old"], step["new"])
            elif step["kind"] == "sh":
                self.run(step["block"])
            elif waiting is not None and waiting["into"]:
                above = waiting["above"]
                self.replace(waiting["into"], f"\n{above}", f"\n{step['block']}{above}")
                waiting = None
            elif waiting is not None:
                self.answer(waiting["exercise"], step["block"])
                waiting = None
        assert waiting is None, "a sentence that promises a block is followed by none"

    def replace(self, name, old, new):
        text = (self.here / name).read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old!r}"
        (self.here / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    def answer(self, exercise, source):
        (path,) = (self.here / "notebooks").glob(f"{exercise[3:5]}_*.ipynb")
        notebook = nbformat.read(path, as_version=4)
        wanted = {"exercise": exercise, "role": "answer"}
        for cell in notebook.cells:
            if wanted.items() <= cell.metadata.labs.items():
                cell.source = source.rstrip("\n")
        nbformat.write(notebook, path)

    def run(self, commands):
        own = ("PYTHON", "LABS_", "GIT_")
        env = {k: v for k, v in os.environ.items() if not k.startswith(own)}
        who = {
            f"GIT_{w}_{k}": "ada@example.org"
            for w in ("AUTHOR", "COMMITTER")
            for k in ("NAME", "EMAIL")
        }
        script = (
            "set -e\n"
            f'python() {{ PYTHONPATH="$PWD" PYTHONDONTWRITEBYTECODE=1 "{sys.executable}" "$@"; }}\n'
            'labs() { python -m labs_lib.cli "$@"; }\n'
            f"{commands}\npwd -P"
        )
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.here,
            env=env | who | {"GIT_CONFIG_GLOBAL": os.devnull, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        self.said = done.stdout
        self.here = Path(done.stdout.splitlines()[-1])


def page(name, begin=None, end=None):
    text = (ROOT / name).read_text(encoding="utf-8")
    text = text[text.index(begin) :] if begin else text
    return text[: text.index(end)] if end else text


@pytest.mark.slow
def test_contributor_adds_an_exercise_and_a_term_is_taught_as_the_documents_say(tmp_path):
    walk = Walk(tmp_path)
    walk.follow(page("CONTRIBUTING.md", "## Add an exercise", "## Change a lab's text"))
    assert "12 passed" in walk.said  # reference, stub, cases, types, names; three wrong, one right
    assert "largest_of_rows" in (walk.here / "notebooks/00_start_here.ipynb").read_text("utf-8")
    walk.follow(page("docs/teaching.md"))
    with open(tmp_path / "grades" / "grades.csv", encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["student"], row["lab00.first_tensor"], row["lab00.largest_of_rows"]) == (
        *("ada", "1", "0"),
    )
    named = re.findall(r"`([\w/]+\.(?:csv|html|xml|json))`", page("docs/teaching.md"))
    assert {"grades.csv", "canvas.csv", "feedback/ada.html"} <= set(named)
    for name in named:
        assert (tmp_path / "grades" / name).is_file(), name
    _solutions_are_open(tmp_path)


def _solutions_are_open(top):
    solution = "solutions/00_start_here.ipynb"
    assert not (top / "class" / solution).exists() and (top / "class-01" / solution).exists()
    ada = top / "ada"
    mine = (ada / "notebooks/00_start_here.ipynb").read_text(encoding="utf-8")
    assert "return x.mean(dim=-1)" in mine
    assert (ada / solution).is_file() and (ada / "labs_lib/answers/lab00.py").is_file()
    assert not (ada / "labs_lib/checking/stored_outputs/lab00.json").exists()
    assert not list(ada.glob("solutions/01*")) and not list(ada.glob("labs_lib/answers/lab01*"))
    assert all((ada / name).exists() for name in ("CITATION.cff", ".binder", ".devcontainer"))
    opened = sorted(p.stem for p in (top / "class-open" / "solutions").glob("*.md"))
    assert [stem[:2] for stem in opened] == ["00", "01", "02"]
