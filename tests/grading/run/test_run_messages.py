"""A message of countless parts, or one without an end, neither stops a run nor makes it grow."""

from __future__ import annotations

import contextlib
import sys
import threading

import psutil
import pytest
from fences import MIB
from runs import exercise, of, right, run

from labs_lib.grading.run.warm import shared

PARTS = """
    import threading, zmq
    thread, sent = get_ipython().kernel.iopub_thread, threading.Event()

    def flood():
        for _ in range(2_000_000):
            thread.socket.send(b"", zmq.SNDMORE)
        thread.socket.send(b"")
        sent.set()

    thread.schedule(flood)  # there nobody else writes to the socket meanwhile
    sent.wait(60)
"""
WITHOUT_AN_END = """
    import os, stat, time
    open_ones = []
    for number in range(3, 256):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.set_blocking(number, False)
                open_ones.append(number)
        except OSError:
            pass
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for number in open_ones:
            try:
                os.write(number, b"\\x01\\x00" * 50_000)  # an empty part, and more to come
            except OSError:
                pass
"""


@contextlib.contextmanager
def watched():
    """The most bytes that one run of a notebook holds meanwhile."""
    most, over = [0], threading.Event()
    parent = psutil.Process(shared().process.pid)

    def look():
        while not over.wait(0.02):
            for process in parent.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    most[0] = max(most[0], process.memory_info().rss)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield most
    finally:
        over.set()
        watcher.join()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a warm parent, whose runs are watched")
@pytest.mark.parametrize("source", [PARTS, WITHOUT_AN_END], ids=["parts", "without-an-end"])
def test_no_message_makes_the_grader_grow(tmp_path, source):
    with watched() as most:
        runs = run(tmp_path, right("one"), exercise("two", source), right("three"))
    assert of(runs, "two", "answer").status in ("output-flood", "crash", "memory", "timeout")
    assert of(runs, "two").status != "ok"
    assert of(runs, "one").status == of(runs, "three").status == "ok"
    assert most[0] < 1000 * MIB
