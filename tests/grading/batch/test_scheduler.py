"""The same work on this machine and on a cluster; a worker that dies costs nobody anything."""

from __future__ import annotations

import io
import os
import signal
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from test_resume import hand_in, lines

from labs_lib.errors import UsageError
from labs_lib.grading.batch.parcel import OtherVersion, Parcel, Unfenced, run_parcel
from labs_lib.grading.batch.scheduler import Cluster, Cores, executor
from labs_lib.grading.grade import grade
from labs_lib.grading.sandbox import Limits
from labs_lib.grading.sandbox.levels import PROCESS_LIMITS, Level
from labs_lib.grading.versions import library_hash

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


@with_dask
@pytest.mark.parametrize("address", ["", " ", "host", "tcp://host", "tcp://host:99999", "4", "x:y"])
def test_what_is_no_address_is_refused_at_once(address):
    began = time.monotonic()
    with pytest.raises(UsageError, match=r"is no address; .* tcp://192\.168\.0\.7:8786"):
        executor(address, None)
    assert time.monotonic() - began < 1


@pytest.mark.slow
@with_dask
@pytest.mark.parametrize("address", ["tls://127.0.0.1:1", "ucx://127.0.0.1:1", "inproc://1/2:3"])
def test_an_address_of_another_kind_is_one_sentence(address, monkeypatch):
    monkeypatch.setattr("labs_lib.grading.batch.scheduler.CONNECT_S", 1)
    with pytest.raises(UsageError, match="no Dask scheduler answers at"):
        executor(address, None)


def test_a_worker_without_a_fence_refuses_unless_it_is_insisted_on(monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr("labs_lib.grading.batch.parcel._unpacked", lambda parcel: None)
    monkeypatch.setattr("labs_lib.grading.batch.parcel.shared", lambda: None)
    monkeypatch.setattr(
        "labs_lib.grading.batch.parcel.level", lambda _: Level(PROCESS_LIMITS, "It was weak.")
    )
    monkeypatch.setattr(
        "labs_lib.grading.batch.parcel.run_notebook", lambda *_, **more: ran.append(more)
    )
    mine = Parcel(b"", "{}", False, Limits(), None, library_hash())
    with pytest.raises(Unfenced, match=r"insist on --fence process-limits\. It was weak\."):
        run_parcel(mine, None)
    assert not ran
    run_parcel(replace(mine, level=PROCESS_LIMITS), None)
    assert len(ran) == 1


def test_a_cluster_that_goes_away_ends_the_run_in_a_sentence(monkeypatch):
    class Lost:
        status = "connecting"

        def submit(self, *_, **__):
            raise RuntimeError("cancelled")

        def nthreads(self):
            return {}

    cluster = Cluster.__new__(Cluster)
    cluster.address, cluster._client, cluster._parcels = "tcp://h:1", Lost(), {"lab00": None}
    cluster._lock = threading.Lock()
    key = SimpleNamespace(course=SimpleNamespace(lab=SimpleNamespace(name="lab00")))
    with pytest.raises(UsageError, match="went away; nothing that was graded is lost"):
        cluster.submit(key, None)
    assert "has no workers left" in cluster.waiting()
    Lost.status = "running"
    with pytest.raises(RuntimeError, match="cancelled"):
        cluster.submit(key, None)
