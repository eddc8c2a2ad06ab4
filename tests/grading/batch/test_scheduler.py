"""The same work on this machine and on a cluster; a worker that dies costs nobody anything."""

from __future__ import annotations

import io
import os
import signal
import threading
import time

import pytest
from test_resume import hand_in, lines

from labs_lib.errors import UsageError
from labs_lib.grading.batch.parcel import OtherVersion, Parcel, run_parcel
from labs_lib.grading.batch.scheduler import Cores, executor
from labs_lib.grading.grade import grade
from labs_lib.grading.sandbox import Limits

try:
    import distributed
except ImportError:
    distributed = None

with_dask = pytest.mark.skipif(distributed is None, reason="needs the package distributed")


def test_without_a_scheduler_the_cores_of_this_machine_are_used():
    assert executor(None, 3).workers == 3
    assert executor(None, None).workers == os.cpu_count()
    assert isinstance(executor(None, 1), Cores)


def test_a_number_of_workers_does_not_go_with_a_cluster():
    with pytest.raises(UsageError, match="--workers counts on this machine"):
        executor("tcp://127.0.0.1:1", 2)


def test_without_the_package_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install 'attention-labs\[dask\]'"):
        executor("tcp://127.0.0.1:1", None)


def test_a_worker_with_another_course_refuses():
    parcel = Parcel(b"", "{}", False, Limits(), None, "another one")
    with pytest.raises(OtherVersion, match="install the same on each"):
        run_parcel(parcel, None)


@with_dask
def test_a_scheduler_that_does_not_answer_is_one_sentence(monkeypatch):
    monkeypatch.setattr("labs_lib.grading.batch.scheduler.CONNECT_S", 1)
    with pytest.raises(UsageError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        executor("tcp://127.0.0.1:1", None)


@pytest.mark.slow
@with_dask
def test_a_class_is_graded_on_a_cluster_though_a_worker_is_killed_half_way(tmp_path):
    students = [f"s{number}" for number in range(6)]
    for student in students:
        hand_in(tmp_path / "in", student, text=f"import time; time.sleep(1)  # {student}")
    hand_in(tmp_path / "in", "wrong", text="first_tensor = None")
    said, rows = io.StringIO(), []

    def run(address):
        report = grade(tmp_path / "in", tmp_path / "out", labs="00", scheduler=address, stream=said)
        rows.extend(report.rows)

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        grader = threading.Thread(target=run, args=(cluster.scheduler_address,))
        grader.start()
        deadline = time.monotonic() + 400
        while not lines(tmp_path) and grader.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert 0 < len(lines(tmp_path)) < 7
        victim = next(iter(client.run(os.getpid).values()))
        os.kill(victim, signal.SIGKILL)
        grader.join(180)
    assert {row.student: row.status for row in rows} == {
        **dict.fromkeys(students, "complete"),
        "wrong": "not-attempted 1",
    }
    assert len(lines(tmp_path)) == 7
    assert "graded 7 of 7" in said.getvalue()
