"""`labs release`: from one source, the executed solution notebook and the student's notebook.

One way only. The solution notebook is executed when its source changed; the student's notebook has
stubs in place of answers and no output at all.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from ..exercises import exercise, labs
from ..exercises import lab as find_lab
from ..exercises.kit import Lab
from ..nbval_plugin import VARIABLE as UNDER_NBVAL
from ..notebook.atomic import write_text
from ..notebook.bindings import is_cuda
from ..notebook.cells import KEY, exercise_name, role, text_hash
from ..notebook.regions import replace_region, split_region
from ..paths import home
from .source import SourceError, read_source, source_hash

LEAK_LENGTH = 25
# In any kernel: which row is mine, and the head of a loop.
_GEOMETRY = re.compile(
    r"\s*(?:(?:const\s+)?(?:int|unsigned|size_t|auto)\s.*(?:blockIdx|threadIdx).*;"
    r"|for\s*\([^()]*\)\s*\{?)\s*$"
)
CELL_SECONDS = 180


class ReleaseError(RuntimeError):
    """A lab that can't be released; the message says why and what to do."""


def release(
    which: Iterable[str | int] = (),
    *,
    everything: bool = False,
    force: bool = False,
    say: Callable[[str], None] = print,
) -> list[Path]:
    """Write the notebooks of the given labs (all labs if none is given); the files written.

    Args:
        everything: execute also the labs whose source hasn't changed.
        force: overwrite a student's notebook although it holds answers.

    Raises:
        UnknownLab: if there is no such lab.
        ReleaseError: if a source is malformed, a check doesn't pass, a line of a solution would
            survive, or a student's answers would be lost.
    """
    chosen = [find_lab(name) for name in which] or labs()
    written: list[Path] = []
    for lab in chosen:
        written += _release_lab(lab, everything, force, say)
    return written


def plan(lab: Lab) -> tuple[NotebookNode, NotebookNode]:
    """The solution notebook without outputs and the student's notebook, executing nothing."""
    try:
        source = read_source(lab)
    except SourceError as error:
        raise ReleaseError(str(error)) from error
    student = copy.deepcopy(source)
    for cell in student.cells:
        if role(cell) == "answer":
            cell.source = replace_region(cell.source, exercise(exercise_name(cell)).stub)
            cell.metadata[KEY]["stub"] = text_hash(cell.source)
        else:  # so that `labs update` can tell a cell that a student changed
            cell.metadata[KEY]["text"] = text_hash(cell.source)
    _refuse_leaks(lab, source, student)
    return source, student


def solution_file(lab: Lab) -> Path:
    """The executed solution notebook."""
    return home() / "solutions" / f"{lab.stem}.ipynb"


def student_file(lab: Lab) -> Path:
    """The student's notebook."""
    return home() / "notebooks" / f"{lab.stem}.ipynb"


def has_answers(file: Path) -> bool:
    """Whether a notebook holds an answer: an answer cell that is not its stub any more."""
    try:
        notebook = nbformat.read(file, as_version=4)
    except (OSError, ValueError, nbformat.reader.NotJSONError):
        return file.exists()  # what can't be read is not ours to overwrite
    return any(
        cell.metadata[KEY].get("stub") != text_hash(cell.source)
        for cell in notebook.cells
        if role(cell) == "answer"
    )


def execute(lab: Lab, notebook: NotebookNode) -> NotebookNode:
    """Execute a solution notebook in `solutions/`, where every check has to pass.

    Raises:
        ReleaseError: with the cell that failed or took too long, or the check without a PASS.
    """
    run = copy.deepcopy(notebook)
    client = NotebookClient(
        run,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(home() / "solutions")}},
        record_timing=False,
    )
    try:
        with _checks_raise():
            client.execute()
    except CellExecutionError as error:
        raise ReleaseError(f"{lab.stem}.md: a cell fails\n{error}") from error
    except CellTimeoutError as error:
        raise ReleaseError(f"{lab.stem}.md: {error}") from error
    except DeadKernelError as error:
        raise ReleaseError(f"{lab.stem}.md: a cell ended the notebook's kernel") from error
    for cell in run.cells:
        if role(cell) == "check" and not _passed(cell):
            raise ReleaseError(f"{lab.stem}.md: the check of {exercise_name(cell)} didn't pass")
    return _canonical(run, notebook.metadata)


def _release_lab(lab: Lab, everything: bool, force: bool, say: Callable[[str], None]) -> list[Path]:
    solution, student = plan(lab)
    written = []
    if everything or _stored_hash(solution_file(lab)) != source_hash(lab):
        say(f"{lab.stem}: executing the solutions")
        _write(solution_file(lab), execute(lab, solution))
        written.append(solution_file(lab))
    target = student_file(lab)
    if target.exists() and target.read_text(encoding="utf-8") == _text(student):
        return written
    if target.exists() and not force and has_answers(target):
        raise ReleaseError(
            f"notebooks/{target.name} holds a student's answers and stays as it is; "
            "move it away, or give --force to overwrite it"
        )
    _write(target, student)
    say(f"{lab.stem}: wrote the student's notebook")
    return [*written, target]


def _passed(cell: NotebookNode) -> bool:
    text = "".join(out.get("text", "") for out in cell.outputs if out.output_type == "stream")
    return cell.execution_count is not None and text.startswith("PASS")


@contextmanager
def _checks_raise() -> Generator[None]:
    """Kernels started inside raise at a check that doesn't pass, as they do under nbval."""
    before = os.environ.get(UNDER_NBVAL)
    os.environ[UNDER_NBVAL] = "1"
    try:
        yield
    finally:
        os.environ.pop(UNDER_NBVAL)
        if before is not None:
            os.environ[UNDER_NBVAL] = before


def _canonical(run: NotebookNode, metadata: NotebookNode) -> NotebookNode:
    """Keep what is the same at each execution: no timestamps, no widget models, no stderr."""
    run.metadata = copy.deepcopy(metadata)
    for cell in run.cells:
        if cell.cell_type != "code":
            continue
        cell.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]
        for out in cell.outputs:
            if "data" in out:
                out["data"].pop("application/vnd.jupyter.widget-view+json", None)
                out["metadata"] = {}
        cell.outputs = _merged(cell.outputs)
    return run


def _merged(outputs: list[NotebookNode]) -> list[NotebookNode]:
    merged: list[NotebookNode] = []
    for out in outputs:
        last = merged[-1] if merged else None
        if last and out.output_type == last.output_type == "stream" and out.name == last.name:
            last.text += out.text
        elif out.output_type != "display_data" or out.data:
            merged.append(out)
    return merged


def _refuse_leaks(lab: Lab, source: NotebookNode, student: NotebookNode) -> None:
    for cell in source.cells:
        if role(cell) != "answer":
            continue
        name = exercise_name(cell)
        comment = "//" if is_cuda(cell.source) else "#"
        stub = {_plain(line, comment) for line in exercise(name).stub.split("\n")}
        answer = split_region(cell.source)[1].split("\n")
        secret = {_plain(line, comment) for line in answer if not _GEOMETRY.match(line)} - stub
        secret = {line for line in secret if len(line) >= LEAK_LENGTH}
        for other in student.cells:
            for line in other.source.split("\n"):
                if _plain(line, comment) in secret:
                    raise ReleaseError(
                        f"{lab.stem}.md: a line of the solution to {name} survives in the "
                        f"student's cell {other['id']}: {line.strip()!r}"
                    )


def _plain(line: str, comment: str) -> str:
    return "".join(line.partition(comment)[0].split())


def _stored_hash(file: Path) -> str:
    try:
        return str(nbformat.read(file, as_version=4).metadata[KEY]["source"])
    except (OSError, ValueError, KeyError, nbformat.reader.NotJSONError):
        return ""


def _text(notebook: NotebookNode) -> str:
    return nbformat.writes(notebook, version=4) + "\n"


def _write(file: Path, notebook: NotebookNode) -> None:
    nbformat.validate(notebook)
    write_text(file, _text(notebook))
