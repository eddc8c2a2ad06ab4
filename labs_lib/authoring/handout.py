"""`labs handout`: the copy of the course that an instructor gives to a class.

Answers and solutions of the lab at hand and of later ones stay behind, and so do the tests. What
answers such a lab elsewhere in the library keeps its signature only. Checks still work, and still
name mistakes, on outputs stored beside them.
"""

from __future__ import annotations

import os
import re
import shutil
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.progress import track

from ..answers import answer
from ..checking.oracle import LiveOracle
from ..checking.stored import pack
from ..errors import UsageError
from ..exercises import UnknownLab, exercises, labs
from ..exercises import lab as find_lab
from ..exercises.kit import Lab
from ..notebook.atomic import folder_beside, write_text
from ..paths import home
from .withholding import withheld_from, withhold

TOP_FILES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "CITATION.cff",
    "Makefile",
    "environment.yml",
    "pyproject.toml",
    "requirements.lock",
    ".gitignore",
)
TOP_FOLDERS = ("data", "docs", ".binder", ".devcontainer")
GRADERS_ROOMS = ("authoring", "grading")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".ipynb_checkpoints", "*.part")


def handout(target: Path, from_lab: str | int) -> list[str]:
    """Build the handout in a new folder; returns the names of the labs whose answers stay behind.

    `from_lab` is the first lab without answers, or `end`, when all deadlines are over: then every
    solution is in it.

    Raises:
        UsageError: for an unknown lab, a target that exists with content, or a copy of the course
            that lacks the answers itself. Nothing is left half-written.
    """
    lab = _find(from_lab)
    target = Path(target).expanduser().absolute()
    _refuse_target(target)
    _require_answers(lab)
    target.parent.mkdir(parents=True, exist_ok=True)
    with folder_beside(target) as building:
        _copy_course(building, lab)
        build_library(building, lab)
        building.chmod(0o755)
        if target.exists():
            target.rmdir()
        os.replace(building, target)
    return [item.name for item in labs() if item.number >= lab.number]


def build_library(target: Path, from_lab: Lab, *, for_grading: bool = False) -> None:
    """Put `labs_lib` into `target` as a handout from a lab on holds it.

    `for_grading` leaves out the stored outputs, and the rooms that no student's code needs.
    """
    source = Path(__file__).resolve().parents[1]
    library = target / "labs_lib"
    hidden = _hidden(source, from_lab)

    def left_out(folder: str, names: list[str]) -> set[str]:
        inside = Path(folder).relative_to(source)
        own = {name for name in names if (inside / name).as_posix() in hidden}
        rooms = set(GRADERS_ROOMS) & set(names) if for_grading and not inside.parts else set()
        return _LEFT_OUT(folder, names) | own | rooms

    shutil.copytree(source, library, ignore=left_out, symlinks=False)
    for module, names in withheld_from(from_lab.name).items():
        _withhold_in(library, module, names)
    if not for_grading:
        _store_outputs(library, from_lab)


def _find(which: str | int) -> Lab:
    if str(which).strip() == "end":
        return Lab(labs()[-1].number + 1, "end", "after the last lab", 0, "")
    try:
        return find_lab(which)
    except UnknownLab as error:
        raise UsageError(str(error)) from error


def _refuse_target(target: Path) -> None:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise UsageError(f"{target} exists and is no folder; name a new one")
    if target.is_dir() and any(target.iterdir()):
        raise UsageError(f"the folder {target} exists and is not empty; name a new one")
    library, real = Path(__file__).resolve().parents[1], target.resolve()
    for own in (library, *(home() / name for name in ("notebooks", "solutions", *TOP_FOLDERS))):
        if real.is_relative_to(own):
            raise UsageError(f"{target} lies inside the course's own {own.name}/; name another one")


def _require_answers(lab: Lab) -> None:
    for item in exercises():
        try:
            if item.lab >= lab.name:
                answer(item.name)
        except ModuleNotFoundError as error:
            raise UsageError(
                f"this copy of the course holds no answers to {item.lab} (it is a handout itself); "
                "build handouts from the whole course"
            ) from error


def _hidden(library: Path, from_lab: Lab) -> set[str]:
    """Paths inside the library that stay behind: answers and kernels of this lab and later."""
    hidden = {"checking/stored_outputs", "bench"}
    for path in (library / "answers").iterdir():
        if re.fullmatch(r"lab\d\d.*", path.stem) and path.stem[:5] >= from_lab.name:
            hidden.add(f"answers/{path.name}")
    for module, names in withheld_from(from_lab.name).items():
        folder = module.replace(".", "/").removeprefix("labs_lib/")
        hidden |= {f"{folder}/{name}" for name in names if name.endswith(".cu")}
    return hidden


def _withhold_in(library: Path, module: str, names: dict[str, str]) -> None:
    functions = {name: lab for name, lab in names.items() if not name.endswith(".cu")}
    if not functions:
        return
    base = library.parent.joinpath(*module.split("."))
    file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    write_text(file, withhold(file.read_text(encoding="utf-8"), functions, module))


def _store_outputs(library: Path, from_lab: Lab) -> None:
    folder = library / "checking" / "stored_outputs"
    folder.mkdir()
    held = [lab for lab in labs() if lab.number >= from_lab.number]
    screen = Console(stderr=True)  # minutes for a whole course: a bar with the time left
    for lab in track(held, "outputs of each lab", console=screen, transient=True):
        entries, arrays = _packed(lab.number)
        write_text(folder / f"{lab.name}.json", entries)
        (folder / f"{lab.name}.npz").write_bytes(arrays)


@cache
def _packed(number: int) -> tuple[str, bytes]:
    """The stored outputs of one lab; running all its wrong programs takes seconds."""
    return pack(exercises(number), LiveOracle(), answer)


def _copy_course(target: Path, from_lab: Lab) -> None:
    for name in TOP_FILES:
        if (home() / name).is_file():
            shutil.copyfile(home() / name, target / name)
    for name in TOP_FOLDERS:
        if (home() / name).is_dir():
            shutil.copytree(home() / name, target / name, ignore=_LEFT_OUT, symlinks=False)
    for folder, kept in (("notebooks", labs()), ("solutions", _before(from_lab))):
        (target / folder).mkdir()
        for lab in kept:
            for suffix in (".ipynb", ".md"):
                file = home() / folder / f"{lab.stem}{suffix}"
                if file.is_file():
                    shutil.copyfile(file, target / folder / file.name)


def _before(from_lab: Lab) -> list[Lab]:
    return [lab for lab in labs() if lab.number < from_lab.number]
