"""nbval's kernel with eyes: it sees death at once, counts output and keeps deadlines."""

from __future__ import annotations

import time
from collections import Counter, deque
from queue import Empty
from typing import Any

import psutil
import zmq
from jupyter_client.manager import KernelManager
from nbval.kernel import NbvalKernelspecManager, RunningKernel

from labs_lib.grading.sandbox.policy import MIB, Limits
from labs_lib.grading.sandbox.provisioner import Death

STEP_S = 0.25  # how often a kernel without a pidfd is asked whether it lives
READY_STEP_S = 0.3
QUEUE = 200  # messages that may wait unread in this process
MOST_FRAMES = 1000  # of one message; the protocol's have a dozen, and one for each buffer
MOST_GROWTH = 256 * MIB  # of this process: zmq keeps what it got of a message that doesn't end


class KernelGone(Exception):
    """The kernel ended while it was being listened to."""

    def __init__(self, death: Death) -> None:
        super().__init__(death.sentence)
        self.death = death


class TooMuchOutput(Exception):
    """The kernel sent more than a cell may; `parent_id` is the request that most of it answers."""

    def __init__(self, parent_id: str | None, sentence: str) -> None:
        super().__init__(sentence)
        self.parent_id = parent_id


class StartFailure(Exception):
    """No kernel could be started: never the student's fault."""


class WatchedKernel(RunningKernel):
    """A started kernel; `begin` before each cell sets its deadline and its output budget."""

    def __init__(self, kernel_name: str, limits: Limits) -> None:
        self.limits = limits
        self.hosted: set[str] = set()
        self.sent: dict[str, str | None] = {}
        self.exercise: str | None = None
        self._kept: deque[dict[str, Any]] = deque()
        self._own = psutil.Process()
        self._small = self._own.memory_info().rss
        self.km = KernelManager(
            kernel_name=kernel_name, kernel_spec_manager=NbvalKernelspecManager()
        )
        self.begin(limits.startup_s)
        try:
            self.km.start_kernel()
            self._connect()
            self._wait_until_ready()
        except Exception as error:
            told = getattr(self.km.provisioner, "errors", str)()
            self.stop()
            raise StartFailure(f"the kernel did not start: {error} {told}".strip()) from error

    def begin(self, seconds: float, exercise: str | None = None) -> None:
        """Start the clock of one cell that belongs to `exercise`."""
        self._soft = time.monotonic() + seconds
        self._hard = self._soft + self.limits.grace_s
        self._bytes: Counter[str | None] = Counter()
        self.exercise = exercise
        if exercise is not None:
            self.hosted.add(exercise)

    def execute_cell_input(self, cell_input: str, allow_stdin: bool | None = None) -> str:
        """Send a cell, and remember whose it is."""
        msg_id = super().execute_cell_input(cell_input, allow_stdin=allow_stdin)
        self.sent[msg_id] = self.exercise
        return msg_id

    def run_quietly(self, source: str, seconds: float, exercise: str | None) -> None:
        """Run a cell for its effect; its errors are its own affair.

        Raises KernelGone, TooMuchOutput, or Empty when the time is up.
        """
        self.begin(seconds, exercise)
        msg_id = self.execute_cell_input(source, allow_stdin=False)
        self.await_reply(msg_id, timeout=seconds)
        self.await_idle(msg_id, seconds)

    def get_message(self, stream: str, timeout: float | None = None) -> dict[str, Any]:
        """The next message; output is read and counted while a reply is awaited."""
        until = self._until(timeout)
        poller = self._pollers[stream]
        while True:
            if stream == "iopub" and self._kept:
                return self._kept.popleft()
            left = until - time.monotonic()
            if left <= 0:
                raise Empty
            ready = dict(poller.poll(int(1000 * min(left, STEP_S))))
            if self._iopub in ready:
                self._keep()
            if stream == "shell" and self._shell in ready:
                message, _ = self._receive(self._shell)
                if message is not None:
                    return message
            if self._monitor in ready:
                self._cut_off()
            self._check_size()
            if self._iopub not in ready and self._shell not in ready:
                self._check_alive()

    def stop(self) -> None:
        """End the kernel with everything it started; a second call does nothing."""
        if not hasattr(self, "km"):
            return
        manager = self.km
        del self.km
        if hasattr(self, "kc"):
            self._iopub.disable_monitor()
            self._monitor.close(linger=0)
            self.kc.stop_channels()
        if manager.has_kernel:
            manager.shutdown_kernel(now=True)
        elif manager.provisioner is not None:
            manager.cleanup_resources()

    def _connect(self) -> None:
        self.kc = self.km.client()
        self.kc.context.setsockopt(zmq.MAXMSGSIZE, self.limits.output_bytes + MIB)
        self.kc.context.setsockopt(zmq.RCVHWM, QUEUE)
        self.kc.start_channels(stdin=False, hb=False, control=False)
        self._shell = self.kc.shell_channel.socket
        self._iopub = self.kc.iopub_channel.socket
        self._monitor = self._iopub.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        liveness = getattr(self.km.provisioner, "liveness", None)
        self._pollers = {"shell": zmq.Poller(), "iopub": zmq.Poller()}
        for poller in self._pollers.values():
            for source in (self._iopub, self._monitor, liveness):
                if source is not None:
                    poller.register(source, zmq.POLLIN)
        self._pollers["shell"].register(self._shell, zmq.POLLIN)

    def _wait_until_ready(self) -> None:
        """Ask until the answer comes on both channels: iopub may be connected a little later."""
        while time.monotonic() < self._soft:
            msg_id = self.kc.kernel_info()
            try:
                self.await_reply(msg_id, timeout=self.limits.startup_s)
                self.await_idle(msg_id, READY_STEP_S)
                return
            except Empty:
                continue
        raise TimeoutError(f"no answer within {self.limits.startup_s:g} s.")

    def _until(self, timeout: float | None) -> float:
        now = time.monotonic()
        end = self._soft if now < self._soft else self._hard
        return end if timeout is None else min(end, now + timeout)

    def _keep(self) -> None:
        message, size = self._receive(self._iopub)
        parent = None
        if message is not None:
            parent = message["parent_header"].get("msg_id")
            self._kept.append(message)
        self._bytes[parent] += size
        if self._bytes.total() > self.limits.output_bytes:
            loudest = self._bytes.most_common(1)[0][0]
            raise TooMuchOutput(loudest, self._flood_sentence())

    def _receive(self, channel: zmq.Socket) -> tuple[dict[str, Any] | None, int]:
        """One message and its size; None for what is no message of the protocol."""
        frames = [channel.recv()]
        while channel.getsockopt(zmq.RCVMORE):
            if len(frames) >= MOST_FRAMES:
                sentence = f"a message had more than {MOST_FRAMES} parts"
                raise TooMuchOutput(None, sentence)
            frames.append(channel.recv())
        size = sum(len(frame) for frame in frames)
        try:
            _, parts = self.kc.session.feed_identities(frames)
            return self.kc.session.deserialize(parts), size
        except Exception:  # written by student code to the socket itself: nothing is owed to it
            return None, size

    def _cut_off(self) -> None:
        """zmq hangs up on a message beyond MAXMSGSIZE, and so does a kernel that ends."""
        self._monitor.recv_multipart()
        for _ in range(20):  # one that ends hangs up first: on a busy machine a while before
            time.sleep(0.05)
            self._check_alive()
        raise TooMuchOutput(None, self._flood_sentence())

    def _check_size(self) -> None:
        """A message reaches nobody before its last part: until then no count of bytes sees it."""
        grown = self._own.memory_info().rss - self._small
        if grown > MOST_GROWTH:
            raise TooMuchOutput(None, "it sent a message without an end")

    def _check_alive(self) -> None:
        if self.km.is_alive():
            return
        while self._iopub.poll(0):
            self._keep()
        provisioner = self.km.provisioner
        unknown = Death("crash", "the kernel ended")
        death = getattr(provisioner, "death", None)
        raise KernelGone(unknown if death is None else death())

    def _flood_sentence(self) -> str:
        return f"more than {self.limits.output_bytes / MIB:g} MiB of output in one cell"
