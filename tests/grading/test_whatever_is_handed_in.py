"""Random damage to a notebook, from its bytes to its cells: nothing crashes, hangs, loses an answer
or earns a point that isn't earned. Seeded, so that a failure comes again."""

from __future__ import annotations

import copy
import json
import random
import time

import pytest
from pupils import COURSE, POINTS, WRONG_SCORES, dump, new_cell, released, solved

from labs_lib.grading.intake.candidates import parse, sort_files
from labs_lib.grading.intake.collect import Handed, Submission
from labs_lib.grading.reading.transplant import neutral, transplant
from labs_lib.notebook.cells import exercise_name, role
from labs_lib.notebook.matching import match

EXPECTED = {item.name: f"{item.name}\nvalue 1\n" for item in COURSE.exercises}
CHECKS = [(c.id, c.source) for c in COURSE.notebook.cells if role(c) == "check"]
TRIES = 60
SECONDS_A_TRY = 3.0  # a hundred times what one takes: it is no measurement, but an end
JUNK = [
    *(None, True, 0, -1, 1e308, 10**30, float("nan"), "", "\x00", "\ud800", "x" * 2000),
    *([], {}, [[]], [{}], {"labs": 1}, {"labs": {"exercise": POINTS[0], "role": "check"}}),
]
SCRATCH = [
    *("", "   \n\n", "# NBVAL_SKIP", "%%bash\necho", "!ls", "while True: pass", "def f(:", "\t x"),
    *("attention_scores = None", "check = print", "del torch", "a" + ".b" * 3000, "\x1b[31m", "é𝔘"),
    *('check("lab01.attention_scores", 1)', "exit()", "%reset -f", '"""', "x = '" + "q" * 50_000),
]


def taken(content):
    """What grading would run for a file: (sorted, answers, the prepared notebook), as far as it
    gets. No code runs here."""
    began = time.process_time()
    files = sort_files(Submission("a", (Handed("a.ipynb", lambda: content),)), [COURSE])
    answers, prepared = {}, None
    if "lab01" in files.notebooks:
        student = parse(files.notebooks["lab01"]).notebook
        answers = match(student, COURSE.notebook, COURSE.asked)
        prepared = transplant(COURSE.notebook, answers, EXPECTED, COURSE.kernels)
        json.dumps(prepared)
    assert time.process_time() - began < SECONDS_A_TRY
    return files, answers, prepared


def accounted(files, answers, prepared, texts):
    """Everything has a place, and what would run is ours or the student's own."""
    if prepared is None:
        assert files.broken.get("lab01") or files.strangers or files.doubts, "a lost row"
        return
    assert set(answers) == {item.name for item in COURSE.exercises}, "a lost exercise"
    ran = [c for c in prepared.cells if role(c) == "check"]
    assert {(c.id, c.source) for c in ran} <= set(CHECKS), "a check that isn't ours"
    for cell in ran:
        assert cell.outputs[0].text == EXPECTED[exercise_name(cell)]
    for cell in prepared.cells:
        if role(cell) == "answer":
            assert any(cell.source in text for text in texts), "an answer from nowhere"


def texts_of(content):
    """The texts of all cells that a file holds, as a student wrote them."""
    cells = json.loads(content).get("cells", [])
    cells = [c for c in cells if isinstance(c, dict)] if isinstance(cells, list) else []
    sources = [c.get("source", c.get("input", "")) for c in cells]
    plain = [s if isinstance(s, str) else "".join(x for x in s if isinstance(x, str))
             for s in sources if isinstance(s, (str, list))]  # fmt: skip
    return [
        neutral(s.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n"))
        for s in plain
    ]


@pytest.mark.parametrize("seed", range(4))
def test_damaged_bytes_never_crash_or_lose_a_row(seed):
    rng = random.Random(seed)
    whole = dump(solved())
    for _ in range(TRIES // 4):
        content = bytearray(whole)
        for _ in range(rng.choice([1, 1, 2, 5, 40])):
            at, length = rng.randrange(len(content)), rng.choice([0, 1, 2, 30, 4000])
            new = rng.choice([b"", rng.randbytes(3), b"\xff\xfe", b'"', b"}", b"\x00", b"[" * 300])
            content[at : at + length] = new
            content = content or bytearray(b"{")
        if rng.random() < 0.2:
            del content[rng.randrange(len(content)) :]
        files, answers, prepared = taken(bytes(content))
        if prepared is None:
            assert files.broken.get("lab01") or files.strangers, "a lost row"
        else:
            assert len(answers) == len(COURSE.exercises)
            accounted(files, answers, prepared, [c.source for c in prepared.cells])


@pytest.mark.parametrize("seed", range(4))
def test_json_of_any_shape_never_crashes_or_loses_a_row(seed):
    rng = random.Random(seed)
    whole = json.loads(dump(solved()))
    for _ in range(TRIES // 4):
        changed = copy.deepcopy(whole)
        for _ in range(rng.choice([1, 2, 8])):
            _graft(changed, rng)
        content = json.dumps(changed).encode("utf-8", "replace")
        accounted(*taken(content), texts_of(content))


def _graft(value, rng):
    """Put junk somewhere into nested JSON, or take something away, or let two things change
    places."""
    for _ in range(rng.randrange(1, 6)):
        inner = list(value.values()) if isinstance(value, dict) else value
        holders = [x for x in inner if isinstance(x, (dict, list)) and x]
        if not holders or rng.random() < 0.15:
            break
        value = rng.choice(holders)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys:
        return
    key = rng.choice(keys)
    how = rng.random()
    if how < 0.2:
        del value[key]
    elif how < 0.4:
        other = rng.choice(keys)
        value[key], value[other] = value[other], value[key]
    else:
        value[key] = copy.deepcopy(rng.choice(JUNK))


EDITS = {}


def edit(function):
    """Register one of the things that students and editors do to cells."""
    EDITS[function.__name__] = function
    return function


@edit
def strip_metadata(cells, rng):
    for cell in cells:
        cell["metadata"] = {}


@edit
def strip_ids(cells, rng):
    for number, cell in enumerate(cells):
        cell["id"] = f"new-{number}-{rng.randrange(10**6)}"


@edit
def delete_a_check(cells, rng):
    checks = [c for c in cells if role(c) == "check"]
    if checks:
        cells.remove(rng.choice(checks))


@edit
def delete_prose(cells, rng):
    prose = [c for c in cells if c["cell_type"] == "markdown"]
    for cell in rng.sample(prose, len(prose) // 2):
        cells.remove(cell)


@edit
def insert_scratch(cells, rng):
    cells.insert(rng.randrange(len(cells) + 1), new_cell(rng.choice(SCRATCH)))


@edit
def copy_a_check(cells, rng):
    checks = [c for c in cells if role(c) == "check"]
    if checks:
        cells.insert(rng.randrange(len(cells) + 1), copy.deepcopy(rng.choice(checks)))


@edit
def copy_an_answer_below_itself(cells, rng):
    at = rng.choice([n for n, c in enumerate(cells) if role(c) == "answer"] or [0])
    cells.insert(at + 1, copy.deepcopy(cells[at]))


@edit
def move_a_cell(cells, rng):
    cell = cells.pop(rng.randrange(len(cells)))
    cells.insert(rng.randrange(len(cells) + 1), cell)


@edit
def retype_a_cell(cells, rng):
    cell = rng.choice(cells)
    cell["cell_type"] = rng.choice(["markdown", "raw", "code", "heading"])


@edit
def add_tags_and_points(cells, rng):
    cell = rng.choice(cells)
    cell["metadata"]["tags"] = rng.sample(["nbval-skip", "raises-exception", "x"], 2)
    cell["metadata"].setdefault("labs", {})["points"] = 100


@edit
def add_outputs(cells, rng):
    cell = rng.choice(cells)
    text = f"PASS  {rng.choice(POINTS)}\n"
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}]


@edit
def blank_lines(cells, rng):
    cell = rng.choice(cells)
    cell["source"] = "\n\n" + cell["source"] + "   \n"


@pytest.mark.parametrize("seed", range(6))
def test_no_edit_around_an_answer_loses_it(seed):
    """Each answer still stands in one code cell: it is found, or a person is asked."""
    rng = random.Random(seed)
    for _ in range(TRIES // 6):
        whole = json.loads(dump(solved()))
        names = [rng.choice(list(EDITS)) for _ in range(rng.choice([1, 2, 4, 8]))]
        for name in names:
            EDITS[name](whole["cells"], rng)
        content = json.dumps(whole).encode()
        files, answers, prepared = taken(content)
        accounted(files, answers, prepared, texts_of(content))
        for name in POINTS:
            assert answers[name].attempted or answers[name].doubt, (name, names)


@pytest.mark.parametrize("seed", range(6))
def test_no_edit_makes_a_right_answer_of_a_wrong_or_a_missing_one(seed):
    """What would run of an untouched notebook with one wrong answer holds that answer alone."""
    rng = random.Random(seed)
    for _ in range(TRIES // 6):
        whole = json.loads(dump(released()))
        answer = next(c for c in whole["cells"] if exercise_name(c) == POINTS[0])
        answer["source"] = WRONG_SCORES
        for _ in range(rng.choice([1, 3, 9])):
            EDITS[rng.choice([n for n in EDITS if n != "insert_scratch"])](whole["cells"], rng)
        content = json.dumps(whole).encode()
        files, answers, prepared = taken(content)
        accounted(files, answers, prepared, texts_of(content))
        assert [n for n in POINTS[1:] if answers[n].attempted and not answers[n].doubt] == []
