"""A jupyter_client kernel provisioner that starts its kernel behind the best fence there is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

import psutil
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import LocalProvisioner
from traitlets import Dict, List, Unicode

from labs_lib.grading.sandbox import (
    bubblewrap,
    deaths,
    holding,
    levels,
    nursery,
    processes,
    refused,
    tree,
    unseen,
)
from labs_lib.grading.sandbox.deaths import Death
from labs_lib.grading.sandbox.groups import Group
from labs_lib.grading.sandbox.policy import Policy
from labs_lib.grading.sandbox.room import Room

WATCH_S = 0.1
SUPERVISOR_S = 3.0


class SandboxProvisioner(LocalProvisioner):
    """Starts a kernel as its `policy` says (see `Policy.to_json`), watches it, ends all of it."""

    policy: Any = Dict(help="The policy of the fence, as JSON values.").tag(config=True)
    warm: Any = Unicode(help="The socket of a warm parent; empty for none.").tag(config=True)

    groups: Any = List(help="Folders of a run's control groups.").tag(config=True)

    # These three are there from `pre_launch` on, the process from the launch on, and its errors.
    level: levels.Level = None  # ty: ignore[invalid-assignment]
    _room: Room = None  # ty: ignore[invalid-assignment]
    process: subprocess.Popen[bytes] = None  # ty: ignore[invalid-assignment]
    _errors: IO[bytes] = None  # ty: ignore[invalid-assignment]
    exit_code: int | None = None
    liveness: int | None = None
    _broken: Death | None = None
    _watcher: threading.Thread | None = None
    _kernel: list[str] | None = None
    _forked: psutil.Process | None = None
    _group: Group | None = None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Choose the fence, prepare its folder, and wrap the kernel's command line in it."""
        self._plan = Policy.from_json(self.policy)
        self._holding = holding.given(self.groups)
        self.level = levels.level(self._plan, self._holding)
        fenced = self.level.name == levels.BUBBLEWRAP
        if self._room is None:
            self._room = Room(self._plan, uid=bubblewrap.sandbox_uid() if fenced else None)
        else:
            self._room.open_sockets()
        room, manager = self._room, cast("KernelManager", self.parent)
        if sys.platform != "win32":  # a socket in a file crosses the border of a network namespace
            manager.transport, manager.ip = "ipc", str(room.sockets / "s")
        manager.connection_file = str(room.outside_connection)
        kwargs = await super().pre_launch(**kwargs)
        inside = str(room.outside_connection)
        build = processes.command
        if fenced:
            room.write_inside_connection("/labs/sockets")
            inside, build = "/labs/connection.json", bubblewrap.command
        kernel = [word.replace(str(room.outside_connection), inside) for word in kwargs["cmd"]]
        kwargs["cmd"], kwargs["env"] = build(self._plan, room, kernel)
        self._kernel = kernel[kernel.index("-f") :] if fenced and "-f" in kernel else None
        return kwargs

    async def launch_kernel(self, cmd: Sequence[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the fence with nothing inherited: no descriptor, no variable, no terminal."""
        self._close()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, `_close` ends it with the kernel
        self._leave_group()
        self._broken, self.exit_code, self._forked = None, None, None
        self._group = self._holding.group(self._plan.limits)
        if not (self.warm and self._kernel and self._fork(self._kernel)):
            self._popen(cmd, kwargs["env"])
        self.pid = self.process.pid
        self.pgid = self.pid
        self.cwd = str(self._room.home)
        if hasattr(os, "pidfd_open"):
            self.liveness = os.pidfd_open(self.pid)
        self._watcher = threading.Thread(target=self._watch, args=(self.process,), daemon=True)
        self._watcher.start()
        return self.connection_info

    def _popen(self, cmd: Sequence[str], env: Mapping[str, str], pipes: int | None = None) -> None:
        fenced = self.level.name == levels.BUBBLEWRAP
        calls = refused.as_descriptor() if fenced else None
        argv = bubblewrap.with_filter(cmd, calls)
        if self._group is not None and pipes is None:  # a forked kernel enters by `_admit`
            argv = self._group.entering(argv)
        try:
            self.process = subprocess.Popen(
                argv,
                stdin=pipes or subprocess.DEVNULL,
                stdout=pipes or subprocess.DEVNULL,
                stderr=self._errors,
                cwd=str(self._room.home),
                env=env,
                pass_fds=() if calls is None else (calls,),
                start_new_session=True,
            )
        finally:
            if calls is not None:
                os.close(calls)

    def _fork(self, kernel: Sequence[str]) -> bool:
        """Build the same fence with nobody in it and have the warm parent fork a kernel into it;
        False, with nothing left behind, where that can't be done."""
        argv, environment = bubblewrap.empty(self._plan, self._room)
        self._popen(argv, environment, subprocess.PIPE)
        fence = self.process
        gate, opened = os.pipe()
        try:
            number = nursery.fork_into(
                Path(self.warm),
                fence,
                argv=kernel,
                environment=environment,
                limits=processes.resource_limits(self._plan.limits),
                uid=self._room.uid,
                errors=self._errors.fileno(),
                gate=gate,
                seconds=self._plan.limits.startup_s,
            )
            self._forked = psutil.Process(number)
            threading.Thread(target=self._admit, args=(os.dup(opened),), daemon=True).start()
        except (nursery.NoWarmKernel, psutil.Error) as trouble:
            self._errors.write(f"{trouble}\n".encode())
            fence.kill()
            fence.wait()
            self._room.open_sockets()
            return False
        finally:
            for end in (gate, opened):
                os.close(end)
            for pipe in filter(None, (fence.stdin, fence.stdout)):
                pipe.close()
        return True

    def _admit(self, opened: int) -> None:
        """Put a forked kernel and its fence into their group, then let the kernel begin: Linux
        takes up to 20 ms for it, in which the kernel makes itself ready."""
        if (group := self._group) is not None:
            for pid in self.everything():
                with contextlib.suppress(OSError):  # the watcher sees who stays out
                    group.join(pid)
        with contextlib.suppress(OSError):
            os.write(opened, b"\n")
        os.close(opened)

    def everything(self) -> list[int]:
        """All processes of the kernel and of its fence that are alive now.

        Who has a dead kernel's number now is a stranger: it is known by its time of birth.
        """
        found = tree.descendants(self.process.pid)
        if self._forked is None or not self._forked.is_running():
            return found
        return [*found, *tree.descendants(self._forked.pid)]

    async def send_signal(self, signum: int) -> None:
        """Pass signals on, except the interrupt: that goes as a message, here it would end all."""
        if self.process is not None and signum != signal.SIGINT:
            self.process.send_signal(signum)

    async def kill(self, restart: bool = False) -> None:
        """End the kernel and everything that it started, and wait until they are gone."""
        if self.process is not None:
            await asyncio.to_thread(self._end, self.process)

    async def terminate(self, restart: bool = False) -> None:
        """The same as `kill`: a fence has nothing to save."""
        await self.kill(restart=restart)

    async def wait(self) -> int | None:
        """Wait for the end, and remember the exit code."""
        code = await super().wait()
        self.exit_code = code
        self._close()
        return code

    async def cleanup(self, restart: bool = False) -> None:
        """Remove the kernel's folder, unless it starts again."""
        await super().cleanup(restart=restart)
        self._close()
        self._leave_group()
        if self._room is not None and not restart:
            self._room.remove()
            self._room = None  # ty: ignore[invalid-assignment]  # until the next `pre_launch`

    def death(self) -> Death:
        """Why the kernel is gone, as far as its watcher and its exit code tell."""
        broken = self._broken or deaths.told_by_group(self._group, self._plan.limits)
        if broken is not None:
            return broken
        if self._forked is not None and not nursery.answers(Path(self.warm)):
            return Death("infrastructure", "the kernel ended with its warm parent")
        code = self.exit_code if self.process is None else self.process.poll()
        return deaths.told_by_exit(code, self._plan.limits)

    def errors(self) -> str:
        """The last lines that the fence or the kernel's start wrote to standard error."""
        if self._errors is None:
            return ""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 2000))
        return self._errors.read().decode("utf-8", "replace").strip()

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Look at memory, processes and the socket folder until the kernel is gone."""
        sealed = False
        while process.poll() is None:
            try:
                sealed = sealed or sys.platform == "win32" or self._room.seal()
                self._broken = self._overstep(sealed)
            except (OSError, AttributeError):  # the folder is being removed: the end is near
                pass
            if self._broken is not None:
                self._end(process)
                return
            try:
                process.wait(WATCH_S)
            except subprocess.TimeoutExpired:
                continue

    def _overstep(self, stands: bool) -> Death | None:
        limits, pids = self._plan.limits, self.everything()
        told = deaths.told_by_group(self._group, limits) or self._seen(pids)
        if told is not None:
            return told
        if len(pids) > limits.processes:
            return deaths.of_processes(limits)
        if stands and len(pids) > 1 and self.level.name == levels.BUBBLEWRAP:
            too_much = unseen.too_much(pids[-1])
            if too_much:
                return Death("memory", too_much)
        stranger = self._room.intruder()
        if stranger is not None:
            return Death("crash", f"{stranger!r} was written into the folder of the sockets")
        return None

    def _seen(self, pids: list[int]) -> Death | None:
        """Whether too much memory is held, where no group sees to that for all of `pids`."""
        group = self._group
        if group is not None and not any(map(tree.active, set(pids) - group.pids())):
            return None
        limits = self._plan.limits
        return deaths.told_by_watcher(tree.memory(pids, limits.memory_bytes), limits)

    def _leave_group(self) -> None:
        """End what is left in the kernel's group, and remember what it has told."""
        group = self._group
        if group is not None:
            self._broken = self._broken or deaths.told_by_group(group, self._plan.limits)
            self._group = None
            group.end()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        below = self.everything()
        if self.level.name == levels.PROCESS_LIMITS and process.poll() is None:
            process.terminate()  # the supervisor ends also what left the tree
            try:
                process.wait(SUPERVISOR_S)
            except subprocess.TimeoutExpired:
                below = [*below, *tree.descendants(process.pid)]
        process.kill()
        process.wait()
        tree.end(below[1:])
        self._leave_group()

    def _close(self) -> None:
        if self.liveness is not None:
            os.close(self.liveness)
            self.liveness = None
        if self._errors is not None and self.process is None:
            self._errors.close()
            self._errors = None
