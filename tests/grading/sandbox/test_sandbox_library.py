"""Kernels whose parent has imported the course's library ahead of them."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import nbformat
import pytest
from fences import Starter
from runs import cell

from labs_lib.grading.run.library import library_modules
from labs_lib.grading.run.warm import shared
from labs_lib.grading.sandbox import Policy
from labs_lib.grading.sandbox.nursery import answers, possible

warm_only = pytest.mark.skipif(not possible(), reason="needs Linux 5.8 and bubblewrap")
FILES = {
    "__init__": "",
    "part": "MADE = 'once'\n\ndef divide():\n    return 1 / 0  # here\n",
    "late": "MADE = 'inside'\n",
    "placed": "PLACED = open(__file__, encoding='utf-8').read()\n",
}
MODULES = ["labs_lib.part", "labs_lib.placed", "labs_lib.nothing"]


def handout(folder: Path) -> Path:
    library = folder / "handout" / "labs_lib"
    library.mkdir(parents=True)
    library.parent.chmod(0o755)
    for name, text in FILES.items():
        (library / f"{name}.py").write_text(text, encoding="utf-8")
    return library.parent


@pytest.fixture
def nursery():
    return shared().nursery


@warm_only
def test_a_library_that_was_imported_ahead_is_as_if_the_kernel_had_done_it(
    tmp_path, monkeypatch, nursery
):
    """Also what failed ahead, where the files lay elsewhere."""
    course = handout(tmp_path)
    start = Starter("bubblewrap", tmp_path / "jupyter", monkeypatch)
    start.warm = nursery.of_library(course, MODULES)
    assert start.warm != nursery.socket
    with start(Policy(handout=course)) as kernel:
        there = kernel.run("import sys; print(sorted(m for m in sys.modules if 'labs_lib' in m))")
        assert there == "['labs_lib', 'labs_lib.part']"
        told = kernel.run(
            """
            import gc, linecache, traceback, labs_lib.late, labs_lib.part as part, labs_lib.placed
            print(part.MADE, labs_lib.late.MADE, "PLACED" in labs_lib.placed.PLACED)
            told = [part.__file__, part.__spec__.origin, part.__loader__.path, part.__cached__,
                    part.divide.__code__.co_filename, *labs_lib.__path__]
            print(all(path.startswith("/labs/course/labs_lib") for path in told))
            print(type(part.__loader__).__name__, len(sys.meta_path))
            print([name for name in sys.modules if "elsewhere" in name])
            try:
                part.divide()
            except ZeroDivisionError:
                print("# here" in traceback.format_exc())
            outer = [x for x in gc.get_objects() if isinstance(x, dict) and "outside" in x]
            print(len(outer))
            """
        ).splitlines()
        plain = len(sys.meta_path)
        assert told[:2] == ["once inside True", "True"]
        assert told[2].startswith("SourceFileLoader ") and int(told[2].split()[1]) <= plain
        assert told[3:] == ["[]", "True", "0"]


@warm_only
def test_the_parent_of_a_labs_kernels_ends_with_its_handout(tmp_path, nursery):
    course, other = handout(tmp_path / "one"), handout(tmp_path / "two")
    first = nursery.of_library(course, MODULES)
    assert nursery.of_library(course, MODULES) == first and answers(first)
    shutil.rmtree(course)
    second = nursery.of_library(other, MODULES)
    assert second not in (first, nursery.socket)
    deadline = time.monotonic() + 10
    while answers(first) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not answers(first) and answers(second)


def test_only_the_courses_own_set_up_says_what_is_imported_ahead(tmp_path):
    setup = cell("%load_ext labs_lib.cuda\nimport torch\nfrom labs_lib import plots", "setup")
    answer = cell("import labs_lib.answers.lab02", "answer", "lab02.one")
    notebook = nbformat.v4.new_notebook(cells=[setup, answer])
    found = library_modules(notebook, handout(tmp_path))
    assert found == ["labs_lib", "labs_lib.plots", "labs_lib.nbval_plugin"]
    setup.source = "this is no Python"
    assert library_modules(notebook, tmp_path) == []
