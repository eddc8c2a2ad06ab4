"""One notebook through nbval: what a student's code does to its kernel costs that exercise only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from labs_lib.grading.run import STATUSES, CellRun, read_results, run_notebook
from labs_lib.grading.run.observe import padded
from labs_lib.grading.run.records import cut
from labs_lib.grading.run.runner import _complete
from labs_lib.grading.run.warm import Warm, shared
from labs_lib.grading.sandbox import Limits, Policy, level

MIB = 1 << 20
LEVELS = sorted({level().name, "process-limits"})
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
LIMITS = Limits(cell_s=3, grace_s=1, memory_bytes=400 * MIB, output_bytes=1 * MIB, processes=64)
SECRET = "expected-4711"


def cell(source: str, role: str, exercise: str | None = None, expected: str | None = None):
    made = nbformat.v4.new_code_cell(textwrap.dedent(source).strip())
    made.metadata["labs"] = {"exercise": exercise, "role": role}
    if role == "check":
        made.metadata["tags"] = ["nbval-check-output"]
    if expected is not None:
        made.outputs = [nbformat.v4.new_output("stream", name="stdout", text=expected)]
    return made


def exercise(name: str, answer: str, check: str | None = None, expected: str | None = None):
    """An answer and its check; a right answer defines `name` so that it gives 7."""
    check = check or f"print('{name}', {name}())"
    return [
        cell(answer, "answer", name),
        cell(check, "check", name, expected or f"{name} 7\n"),
    ]


def right(name: str) -> list:
    return exercise(name, f"def {name}():\n    return base + 2")


def notebook(*parts):
    cells = [cell("base = 5", "setup"), *(made for part in parts for made in part)]
    return nbformat.v4.new_notebook(cells=cells)


def run(tmp_path: Path, *parts, limits: Limits = LIMITS, name: str | None = None, **policy):
    policy = Policy(limits=limits, level=name, **policy)
    return run_notebook(notebook(*parts), policy=policy, out=tmp_path / "out", warm=shared())


def of(runs: list[CellRun], name: str, role: str = "check") -> CellRun:
    (found,) = [one for one in runs if one.exercise == name and one.role == role]
    return found


def test_right_answers_pass_and_wrong_ones_do_not(tmp_path):
    runs = run(
        tmp_path,
        right("one"),
        exercise("two", "def two():\n    return 8"),
        exercise("three", "def three():\n    return 1 / 0"),
        exercise("four", "# nothing yet"),
        right("five"),
    )
    assert [one.index for one in runs] == list(range(11))
    assert of(runs, "one").status == "ok" and of(runs, "one").stdout == "one 7\n"
    assert of(runs, "two").status == "mismatch" and of(runs, "two").stdout == "two 8\n"
    assert (of(runs, "three").status, of(runs, "three").ename) == ("error", "ZeroDivisionError")
    assert "three" in of(runs, "three").traceback and "\x1b" not in of(runs, "three").traceback
    assert of(runs, "four").ename == "NameError"
    assert of(runs, "five").status == "ok"
    assert all(one.status in STATUSES and one.seconds >= 0 for one in runs)
    assert read_results(tmp_path / "out" / "cells.jsonl") == runs


MISDEEDS = {
    "leaves": ("import os\nos._exit(0)", "crash"),
    "kills itself": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "crash"),
    "reads address zero": ("import ctypes\nctypes.string_at(0)", "crash"),
    "loops": ("while True:\n    pass", "timeout"),
    "loops on": (
        """
        import time
        while True:
            try:
                time.sleep(0.01)
            except KeyboardInterrupt:
                pass
        """,
        "timeout",
    ),
    "hoards": ("held = []\nwhile True:\n    held.append(bytearray(32 << 20))", "memory"),
    "floods": ("while True:\n    print('x' * 1000)", "output-flood"),
    "floods at once": ("print('x' * (40 << 20))", "output-flood"),
}


@pytest.mark.parametrize("name", LEVELS)
@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_a_misdeed_costs_its_own_exercise_only(tmp_path, misdeed, name):
    source, status = MISDEEDS[misdeed]
    began = time.monotonic()
    runs = run(tmp_path, right("before"), exercise("bad", source), right("after"), name=name)
    assert of(runs, "before").status == "ok"
    assert of(runs, "bad", "answer").status == status, of(runs, "bad", "answer")
    assert (of(runs, "bad").status, of(runs, "bad").cause) == ("not-run", status)
    assert of(runs, "after").status == "ok", of(runs, "after")
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("import os; os._exit(3)", "crash"),
        ("while True: pass", "timeout"),
        ("print('x' * (9 << 20))", "output-flood"),
        ("return bytearray(8 << 30)", "memory"),
        ("import sys; sys.exit()", "error"),
    ],
)
def test_a_function_that_misbehaves_when_checked_costs_its_check_only(tmp_path, body, status):
    bad = exercise("bad", f"def bad():\n    {body}")
    runs = run(tmp_path, right("before"), bad, right("after"))
    assert of(runs, "bad", "answer").status == "ok"
    assert of(runs, "bad").status == status, of(runs, "bad")
    assert [of(runs, name).status for name in ("before", "after")] == ["ok", "ok"]


def test_memory_that_an_answer_held_is_back_before_the_next_exercise(tmp_path):
    greedy = "import mmap\nheld = mmap.mmap(-1, 1 << 30)\nmore = bytearray(8 << 30)"
    after = exercise(
        "after", "import mmap\ndef after():\n    return len(mmap.mmap(-1, 600 << 20)) >> 20"
    )
    after[1].outputs[0].text = "after 600\n"
    runs = run(tmp_path, right("before"), exercise("greedy", greedy), after)
    assert of(runs, "greedy", "answer").ename == "MemoryError"
    assert of(runs, "greedy", "answer").status == "memory"
    assert of(runs, "after").status == "ok", of(runs, "after")


def test_what_can_not_work_without_a_front_end_fails_at_once_with_its_reason(tmp_path):
    runs = run(
        tmp_path,
        exercise("asks", "name = input('name?')"),
        exercise("loops_async", "import asyncio\nasyncio.run(asyncio.sleep(0))"),
        exercise("leaves", "import sys\nsys.exit()"),
        right("after"),
    )
    assert of(runs, "asks", "answer").ename == "StdinNotImplementedError"
    assert of(runs, "loops_async", "answer").ename == "RuntimeError"
    assert of(runs, "leaves", "answer").ename == "SystemExit"
    assert of(runs, "after").status == "ok"
    assert all(one.seconds < 30 for one in runs)


HARMLESS = {
    "installs": "!pip install surely-not-a-package",
    "debugs": "%debug",
    "awaits": "import asyncio\nawait asyncio.sleep(0)",
    "warns": "import warnings\nwarnings.warn('careful')",
    "moves": "from ipywidgets import interact\n@interact(x=(0, 3))\ndef shown(x=1):\n    print(x)",
    "threads": "import threading\nthreading.Thread(target=print, args=('hello',)).start()",
    "draws": "import matplotlib.pyplot as plt\nfigure = plt.plot([1, 2])",
    "skips": "# NBVAL_SKIP\n# NBVAL_RAISES_EXCEPTION",
    "shadows": "import pathlib\npathlib.Path('json.py').write_text('x = 1', encoding='utf-8')",
}


def test_oddities_beside_a_right_answer_do_no_harm(tmp_path):
    parts = []
    for name, oddity in HARMLESS.items():
        answer = (
            f"{oddity}\nimport sys\ndef {name}():\n    print('!', file=sys.stderr)\n    return 7"
        )
        parts.append(exercise(name, answer))
    runs = run(tmp_path, *parts, limits=Limits(cell_s=30))
    assert {name: of(runs, name).status for name in HARMLESS} == dict.fromkeys(HARMLESS, "ok")


FORGERIES = {
    "surrogates": "k.session.pack = lambda value: json.dumps(value).encode()\nprint('\\ud800')",
    "shapes": "k.session.send(k.iopub_socket, 'stream', {'name': 5}, parent=k.get_parent())",
    "strange": "k.session.send(k.iopub_socket, '\\n' * 9, {}, parent=k.get_parent())",
    "unsigned": "k.session.key = b'other'\nprint('x')",
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_messages_cost_their_own_exercise_only(tmp_path, forgery):
    source = f"import json\nk = get_ipython().kernel\n{FORGERIES[forgery]}"
    runs = run(tmp_path, right("before"), exercise("forged", source), right("after"))
    assert of(runs, "forged").status != "ok"
    assert [of(runs, name).status for name in ("before", "after")] == ["ok", "ok"], runs


def test_death_is_seen_long_before_the_deadline(tmp_path):
    bad = exercise("bad", "import os\nos._exit(0)")
    runs = run(tmp_path, bad, limits=Limits(cell_s=60))
    assert of(runs, "bad", "answer").status == "crash"
    assert of(runs, "bad", "answer").seconds < 30  # with the start of the kernel in it
    assert of(runs, "bad").seconds < 1  # nobody else can have done it: not repeated


def test_a_fork_bomb_costs_its_own_exercise_only(tmp_path):
    bomb = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    if level().name != "bubblewrap":  # without a fence, a slow one that can't take the machine
        bomb = "import os, time\nfor _ in range(200):\n    os.fork() or time.sleep(60)"
    before = len(psutil.pids())
    runs = run(tmp_path, right("before"), exercise("bomb", bomb), right("after"))
    assert of(runs, "bomb").status != "ok"
    assert [of(runs, name).status for name in ("before", "after")] == ["ok", "ok"]
    assert len(psutil.pids()) < before + 30


def test_text_that_another_answer_strews_in_does_not_spoil_a_right_check(tmp_path):
    noisy = """
        import os, threading, time
        def chatter():
            while True:
                os.write(1, b".")
                time.sleep(0.02)
        def noisy():
            return 7
        threading.Thread(target=chatter, daemon=True).start()
    """
    slow = "import time\ntime.sleep(0.5)\nprint('after', after())\ntime.sleep(0.3)"
    after = exercise("after", "def after():\n    return 7", slow)
    runs = run(tmp_path, exercise("noisy", noisy), after, right("last"))
    assert of(runs, "after").status == "ok" and of(runs, "after").alone
    assert of(runs, "after").stdout == "after 7\n"
    assert of(runs, "last").status == "ok"


def test_a_wrong_answer_gains_nothing_from_strewing_text(tmp_path):
    wrong = "def wrong():\n    return '1 2 3 4 5 6 7 8 9'"
    runs = run(tmp_path, right("before"), exercise("wrong", wrong))
    assert of(runs, "wrong").status == "mismatch"


def test_a_delayed_exit_is_not_charged_to_the_next_exercise(tmp_path):
    late = "import os, threading\nthreading.Timer(1.0, os._exit, [0]).start()\ndef late(): return 7"
    slow = exercise(
        "after", "def after():\n    return 7", "import time\ntime.sleep(2)\nprint('after', after())"
    )
    runs = run(tmp_path, exercise("late", late), slow, limits=Limits(cell_s=20))
    assert of(runs, "after").status == "ok" and of(runs, "after").alone
    assert of(runs, "after").seconds < 20


def test_the_whole_notebook_has_a_deadline(tmp_path):
    slow = [
        exercise(f"slow{i}", f"import time\ntime.sleep(2)\ndef slow{i}(): return 7")
        for i in range(5)
    ]
    runs = run(tmp_path, *slow, limits=Limits(cell_s=3, notebook_s=5))
    assert [runs[-1].status, runs[-1].cause] == ["not-run", "timeout"]
    assert "5 s for the whole notebook" in runs[-1].reason
    assert of(runs, "slow0").status == "ok"


@pytest.mark.parametrize("name", LEVELS)
def test_what_is_expected_lies_in_no_file_and_no_report(tmp_path, name):
    spy = f"""
        import os, pathlib
        found = []
        def look(folder):
            for path in pathlib.Path(folder).rglob("*"):
                try:
                    if b"{SECRET[:5]}" + b"{SECRET[5:]}" in path.read_bytes():
                        found.append(str(path))
                except OSError:
                    pass
        look({str(tmp_path)!r})
        def spy():
            return found
    """
    shows = exercise("spy", spy, expected=f"spy {SECRET}\n")
    numbers = exercise("number", "def number():\n    return 8", expected=f"number {SECRET}\n")
    several = exercise("several", "def several():\n    return 8", expected=f"several {SECRET}\n")
    several[1].outputs.append(
        nbformat.v4.new_output("execute_result", data={"text/plain": SECRET}, execution_count=1)
    )
    old = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(tmp_path)
    try:
        runs = run(tmp_path, shows, numbers, several, name=name, readable=(tmp_path,))
    finally:
        os.environ.pop("TMPDIR") if old is None else os.environ.update(TMPDIR=old)
    assert of(runs, "spy").stdout == "spy []\n"
    assert [one.status for one in runs if one.role == "check"] == ["mismatch"] * 3
    kept = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir())
    assert "number 8" in kept and SECRET not in kept
    assert SECRET not in json.dumps([one.reason + one.traceback for one in runs])


def test_values_can_be_collected_without_comparing(tmp_path):
    source = notebook(exercise("one", "def one():\n    return 7"))
    source.cells[-1].outputs = []
    runs = run_notebook(source, policy=Policy(), out=tmp_path / "out", compare=False)
    assert (of(runs, "one").status, of(runs, "one").stdout) == ("ok", "one 7\n")


@pytest.mark.parametrize("fault", ["tag", "outputs"])
def test_a_check_that_nbval_would_wave_through_is_refused(tmp_path, fault):
    source = notebook(right("one"))
    if fault == "tag":
        source.cells[-1].metadata["tags"] = []
    else:
        source.cells[-1].outputs = []
    with pytest.raises(ValueError, match=r"check cell 2 .* nbval would pass it"):
        run_notebook(source, policy=Policy(), out=tmp_path / "out")


def starter(tmp_path: Path, failures: int) -> Path:
    """A Python that fails to start so many times before it works."""
    count = tmp_path / "count"
    script = tmp_path / "python"
    script.write_text(
        f'#!/bin/sh\necho x >> "{count}"\n[ $(wc -l < "{count}") -gt {failures} ] || '
        f'{{ echo broken environment >&2; exit 3; }}\nexec "{sys.executable}" "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    return script


@linux
def test_a_kernel_that_does_not_start_is_tried_again_and_costs_nobody(tmp_path):
    python = starter(tmp_path, failures=1)
    runs = run(tmp_path, right("one"), name="process-limits", python=python)
    assert of(runs, "one").status == "ok"


@linux
@pytest.mark.slow
@pytest.mark.parametrize("which", ["runs", "kernels"])
def test_the_end_of_a_warm_parent_half_way_costs_nobody(tmp_path, which):
    with Warm() as warm:
        parent = warm.process if which == "runs" or warm.nursery is None else warm.nursery.process
        waiting = "import time\ndef one():\n    return base + 2\ntime.sleep(2)"
        whole = notebook(exercise("one", waiting), right("two"))
        results = tmp_path / "out" / "cells.jsonl"

        def kill():
            while not (results.exists() and '"setup"' in results.read_text(encoding="utf-8")):
                time.sleep(0.05)
            parent.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        runs = run_notebook(whole, policy=Policy(), out=tmp_path / "out", warm=warm)
        killer.join()
        assert parent.poll() is not None
    assert [one.status for one in runs] == ["ok"] * 5


@linux
def test_a_kernel_that_never_starts_is_infrastructure_and_says_why(tmp_path):
    python = starter(tmp_path, failures=99)
    runs = run(tmp_path, right("one"), name="process-limits", python=python)
    assert {one.status for one in runs} == {"infrastructure"}
    assert "broken environment" in of(runs, "one").reason
    assert (tmp_path / "count").read_text(encoding="utf-8").count("x") >= 4


@linux
def test_killing_the_grader_keeps_what_is_finished_and_ends_the_rest(tmp_path):
    word = f"{95_000_000 + os.getpid()}"
    source = notebook(
        right("one"),
        exercise("two", f"import subprocess\nsubprocess.run(['sleep', '{word}'])"),
    )
    nbformat.write(source, tmp_path / "given.ipynb")
    script = textwrap.dedent(f"""
        from pathlib import Path
        from labs_lib.grading.run import run_notebook
        from labs_lib.grading.sandbox import Policy
        folder = Path({str(tmp_path)!r})
        run_notebook(folder / "given.ipynb", policy=Policy(), out=folder / "out")
    """)
    with tempfile.TemporaryDirectory(prefix="labs-t", dir="/tmp") as short:
        grader = subprocess.Popen(
            [sys.executable, "-c", script], env=os.environ | {"TMPDIR": short}
        )
        try:
            wait_for(lambda: sleeping(word), 60)
        finally:
            grader.send_signal(signal.SIGKILL)
            grader.wait()
        wait_for(lambda: not sleeping(word), 10)
    runs = read_results(tmp_path / "out" / "cells.jsonl")
    assert [(one.exercise, one.role, one.status) for one in runs] == [
        (None, "setup", "ok"),
        ("one", "answer", "ok"),
        ("one", "check", "ok"),
    ]


def sleeping(word: str) -> bool:
    return any(
        word in (process.info["cmdline"] or []) and process.info["status"] != psutil.STATUS_ZOMBIE
        for process in psutil.process_iter(["cmdline", "status"])
    )


def wait_for(promise, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not promise():
        assert time.monotonic() < deadline
        time.sleep(0.05)


JUNIT = "<testsuites><testsuite>{}</testsuite></testsuites>"


@pytest.mark.parametrize(
    "case",
    [
        '<testcase name="Cell 0"><skipped message="xfail"/></testcase>',
        '<testcase name="Cell 0"><failure message="differs"/></testcase>',
        '<testcase name="Cell 0"/><testcase name="Cell 0"/>',
        "",
    ],
)
def test_a_pass_needs_a_test_that_ran_once_and_passed(tmp_path, case):
    line = {"kind": "cell", "index": 0, "exercise": "one", "role": "check", "status": "ok"}
    (tmp_path / "cells.jsonl").write_text(json.dumps(line) + '\n{"kind": "ce', encoding="utf-8")
    cells = [cell("print(1)", "check", "one", "1\n")]
    (tmp_path / "junit.xml").write_text(JUNIT.format('<testcase name="Cell 0"/>'), encoding="utf-8")
    assert _complete(cells, tmp_path, None)[0].status == "ok"
    (tmp_path / "junit.xml").write_text(JUNIT.format(case), encoding="utf-8")
    assert _complete(cells, tmp_path, None)[0].status == "infrastructure"


def test_no_submission_file_steers_pytest(tmp_path, monkeypatch):
    (tmp_path / "conftest.py").write_text("raise SystemExit('loaded')", encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts=--collect-only\n", encoding="utf-8")
    nbformat.write(notebook(right("one")), tmp_path / "given.ipynb")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    monkeypatch.chdir(tmp_path)
    runs = run_notebook(tmp_path / "given.ipynb", policy=Policy(), out=tmp_path / "out")
    assert of(runs, "one").status == "ok"


def test_long_texts_are_cut_in_the_middle():
    assert cut("x" * 10, 10) == "x" * 10
    assert cut("a" * 50 + "b" * 50, 20) == "a" * 10 + "\n[80 characters left out]\n" + "b" * 10


def test_strewn_text_is_told_from_a_different_value():
    expected = [{"output_type": "stream", "name": "stdout", "text": "max 1.25\n"}]
    assert padded(expected, "ma.x 1..25\n.")
    assert not padded(expected, "max 1.25\n")
    assert not padded(expected, "max 1.26\nmax 1.24\n")


def test_an_unknown_status_is_refused_by_name():
    with pytest.raises(ValueError, match="status='passed' is not one of ok, mismatch"):
        CellRun(0, None, "setup", "passed")
