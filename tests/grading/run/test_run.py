"""One notebook, run: what is right passes, and a misdeed costs its own exercise only."""

from __future__ import annotations

import time

import psutil
import pytest
from fences import LEVELS
from runs import exercise, of, right, run

from labs_lib.grading.run import STATUSES, read_results
from labs_lib.grading.sandbox import Limits, level


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
