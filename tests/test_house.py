"""The house: imports point one way, rooms stay small, and nothing speaks of one machine."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pieces
import pytest

from labs_lib.authoring import house
from labs_lib.authoring.house import FLOORS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "labs_lib"

FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms.split()}

TOP_LEVEL = {
    *("notebooks", "labs_lib", "solutions", "data", "tests", "environment.yml", "README.md"),
    *("pyproject.toml", "requirements.lock", "Makefile", ".ci", "docs", "LICENSE", "CHANGELOG.md"),
    *("CONTRIBUTING.md", ".gitignore", ".gitattributes"),
    *("CITATION.cff", ".binder", ".devcontainer"),
}
TEXT = {".py", ".md", ".toml", ".yml", ".json", ".ipynb", ".cu", ".mjs", ".lock"}
MAY_BE_ABSENT = {".gitattributes"}


def modules():
    """Every Python file of the package."""
    return sorted(p for p in PACKAGE.rglob("*.py") if "__pycache__" not in p.parts)


def dotted(file):
    """The name that a file of the package is imported by."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(name):
    """The room of a dotted name: `attention` for `labs_lib.attention.heads`."""
    return [*name.split("."), "__init__"][1]


@cache
def imports(file):
    """Dotted names of our own modules that a file imports anywhere in its text."""
    package = dotted(file).split(".")
    if file.name != "__init__.py":
        package = package[:-1]
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{stem}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "labs_lib"}


@cache
def tracked():
    """Files that git tracks and that are there."""
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, encoding="utf-8"
    )
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("file", modules(), ids=dotted)
def test_imports_point_one_way(file):
    own = room(dotted(file))
    assert own in FLOOR_OF, f"{own} has no floor; give it one in FLOORS"
    for name in imports(file):
        other = room(name) if room(name) in FLOOR_OF else "__init__"
        fine = other == own or FLOOR_OF[other] < FLOOR_OF[own] or FLOOR_OF[other] == 0
        assert fine, f"{dotted(file)} imports {name}, which stands on floor {FLOOR_OF[other]}"


GRADERS = ["sandbox", "run", "intake", "reading", "expected", "judge", "reports", "batch"]


@pytest.mark.parametrize("file", [f for f in modules() if room(dotted(f)) == "grading"], ids=dotted)
def test_rooms_of_the_grader_point_one_way(file):
    def place(name):
        return GRADERS.index(part) if (part := [*name.split("."), ""][2]) in GRADERS else None

    own = place(dotted(file))
    if own is None:  # the door and what it composes
        return
    for name in imports(file):
        other = place(name) if name.startswith("labs_lib.grading.") else None
        assert other is None or other <= own, f"{dotted(file)} imports {name}"


def test_picture_of_the_house_shows_the_rooms_that_there_are():
    rooms = {room(dotted(file)) for file in modules()}
    assert set(FLOOR_OF) == rooms == set(house.WORDS)
    drawn = (ROOT / "docs" / "images" / "house.svg").read_text(encoding="utf-8")
    assert drawn == house.picture(), "run python -m labs_lib.authoring.house"
    assert set(re.findall(r'class="n"[^>]*>(\w+)<', drawn)) == rooms
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert "(images/house.svg)" in page
    named = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert named <= rooms and len(named) > 6


@pytest.mark.parametrize(
    ("rooms", "never"),
    [
        ("models training", "attention"),
        ("exercises", "attention"),
        ("exercises", "cuda"),
        ("checking widgets workbook plots", "answers"),
        ("exercises attention training models arithmetic config", "answers"),
    ],
)
def test_who_never_imports_whom(rooms, never):
    for file in modules():
        if room(dotted(file)) in rooms.split():
            assert not [n for n in imports(file) if room(n) == never], dotted(file)


@pytest.mark.parametrize("file", modules(), ids=dotted)
def test_every_module_imports_and_says_what_it_is_for(file):
    assert (importlib.import_module(dotted(file)).__doc__ or "").strip()


@pytest.mark.parametrize("file", modules(), ids=dotted)
def test_no_module_outgrows_a_room(file):
    lines = file.read_text(encoding="utf-8").count("\n")
    assert lines <= 400, f"{dotted(file)} has {lines} lines: it holds a second subject"


@pytest.mark.parametrize("rooms", ["attention", "arithmetic config", "cuda"])
def test_attention_arithmetic_and_cuda_import_without_jupyter(rooms):
    names = [dotted(f) for f in modules() if room(dotted(f)) in rooms.split()]
    blocked = "IPython ipykernel ipywidgets jupyter_client jupyter_core nbformat nbval notebook"
    script = f"""
import importlib, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked.split()!r}:
            raise ImportError(name + " is not installed here")
sys.meta_path.insert(0, Blocked())
for name in {names!r}:
    importlib.import_module(name)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, cwd=ROOT, text=True)
    assert done.returncode == 0, done.stderr


def test_top_level_is_as_the_courses_owner_fixed_it():
    found = {file.relative_to(ROOT).parts[0] for file in tracked()}
    assert found - TOP_LEVEL == set(), "a new name at the top level"
    assert TOP_LEVEL - found - MAY_BE_ABSENT == set(), "a name of the top level is gone"


def test_no_tracked_file_speaks_of_one_machine():
    homes = "|".join(["work", "root", "home/[a-z]+", "Users/[A-Za-z]+", r"tmp/ipykernel_\d+"])
    stray = re.compile(rf"(?<![\w.~/:-])/(?:{homes})/|\.py" + r"env/versions|C:\\Users", re.ASCII)
    for file in tracked():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found = stray.search(text)
        assert not found, (
            f"{file.relative_to(ROOT)}: {text[found.start() - 40 : found.end() + 40]!r}"
        )


def test_every_text_file_is_utf8_with_plain_line_ends():
    for file in tracked():
        if file.suffix in TEXT:
            content = file.read_bytes()
            content.decode("utf-8")
            assert b"\r" not in content, file.relative_to(ROOT)
            assert not content.startswith(b"\xef\xbb\xbf"), file.relative_to(ROOT)


def test_no_tracked_file_is_large():
    for file in tracked():
        assert file.stat().st_size < 2 * 2**20, f"{file.relative_to(ROOT)} is over 2 MiB"


@pytest.mark.parametrize("file", modules(), ids=dotted)
def test_text_files_are_opened_as_utf8(file):
    """Windows would read and write them in a code page."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "id", getattr(node.func, "attr", ""))
        names = {k.arg for k in node.keywords}
        if called in ("read_text", "write_text") and isinstance(node.func, ast.Attribute):
            assert "encoding" in names or file.name == "atomic.py", f"line {node.lineno}"
        if isinstance(node.func, ast.Name) and called == "open":
            modes = [a.value for a in node.args[1:2] if isinstance(a, ast.Constant)]
            binary = any("b" in str(mode) for mode in modes)
            assert binary or "encoding" in names, f"line {node.lineno}: open without an encoding"


def test_readme_table_of_labs_is_up_to_date():
    from labs_lib.authoring.readme import with_table

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_table(text) == text, "run python -m labs_lib.authoring.readme"


def test_links_in_the_documents_lead_somewhere():
    link = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    for page in [*pages, *sorted((ROOT / "docs").glob("*.md"))]:
        for target in link.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_no_two_test_files_share_a_name():
    """pytest imports a test by its file's name alone: a second one of a name isn't collected."""
    own = {"__init__.py", "conftest.py"}
    names = [p.name for p in (ROOT / "tests").rglob("*.py") if p.name not in own]
    assert sorted(names) == sorted(set(names))


def test_pieces_that_are_dealt_to_test_processes_are_files_that_are_there():
    """A file that was renamed or cut in two would begin last, or no longer share what is dear."""
    for name in (*pieces.SEE_THE_SAME, *pieces.SHARE_NOTHING, *pieces.DEAR):
        file = name.split()[0]
        assert "/" not in file or (ROOT / file).exists(), name
