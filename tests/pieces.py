"""What goes to one test process together, and what goes first.

The tests of a file stay together, since they share what is dear to make. Of some files the tests of
a lab do: whatever observes a lab's programs then finds them observed already. The dearest pieces
begin first, so that no process works on alone when the others are done.
"""

from __future__ import annotations

import re

from xdist.scheduler import LoadFileScheduling

# Their tests look at the same programs on the same inputs: a lab's are one piece, across files.
SEE_THE_SAME = (
    "tests/checking/test_stored.py",
    "tests/exercises/test_every_exercise.py",
    "tests/grading/test_handout.py",
    "tests/grading/test_handout_secrets.py",
    "tests/grading/expected/test_places.py",
)
# Their tests share nothing: each lab, and each test without one, is a piece.
SHARE_NOTHING = (
    "tests/browser/test_reading_site.py",
    "tests/cuda/test_other_compilers.py",
    "tests/grading/expected/test_planted.py",
    "tests/grading/batch/test_resume.py",
    "tests/test_notebooks.py",
    "tests/workbook/test_check_command.py",
)
# Pieces by the seconds that they take, the longest first; all others follow, most tests first.
DEAR = (
    "lab11",
    "lab09",
    "tests/grading/test_grade.py",
    "tests/grading/expected/test_planted.py test_",
    "tests/grading/expected/test_planted.py lab11",
    "tests/grading/expected/test_planted.py lab09",
    "tests/test_docs_walk.py",
    "tests/grading/expected/test_planted.py lab08",
    "tests/grading/expected/test_planted.py lab12",
    "lab10",
    "lab08",
    "tests/grading/expected/test_planted.py",
    "tests/cuda/test_solutions_are_cuda.py",
    "tests/cuda/test_kernels_nvcc.py",
    "lab",
    "tests/browser",
    "tests/grading/batch/test_scheduler.py",
    "tests/grading/test_handout_secrets.py",
    "tests/grading/batch/test_resume.py",
    "tests/grading/test_handout.py",
    "tests/test_notebooks.py",
    "tests/workbook/test_check_command.py",
    "tests/grading",
    "tests/cuda/test_other_compilers.py",
    "tests/bench",
    "tests/models",
    "tests/training",
    "tests/cuda",
    "tests/workbook",
    "tests/authoring",
)
LAB = re.compile(r"\[[^\]]*?\b(lab\d\d)")


def piece_of(nodeid: str) -> str:
    """The piece that a test belongs to: a file, a lab, a lab of a file, or the test itself."""
    file, _, name = nodeid.partition("::")
    lab = LAB.search(name)
    if file in SEE_THE_SAME and lab:
        return lab[1]
    if file in SHARE_NOTHING:
        return f"{file} {lab[1] if lab else name}"
    return file


def rank_of(piece: str, tests: int) -> tuple[int, int]:
    """Less for what begins earlier."""
    first = next((n for n, start in enumerate(DEAR) if piece.startswith(start)), len(DEAR))
    return first, -tests


class DearestFirst(LoadFileScheduling):
    """xdist's scheduler by files, with our pieces in our order."""

    def _split_scope(self, nodeid):
        return piece_of(nodeid)

    def _assign_work_unit(self, node):
        first = min(self.workqueue, key=lambda piece: rank_of(piece, len(self.workqueue[piece])))
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)
