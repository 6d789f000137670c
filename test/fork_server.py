# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A process that has imported what programs of the suite import and forks one for each start.

A node spends two seconds of processor time on imports and on loading its kernels, which the tests
would do a thousand times over. What is forked runs the entry point that the installed executable
runs, in a session, with an environment, signals and streams of its own. Tests of the start itself
take the executable (`fresh=True` of NodeProcess).

One server works for all processes of a test run. The first that needs it binds the server's name,
which is the claim, and starts it; it ends with the process that the user started. A program ends
with the process that started it, and with the server.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import inspect
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn, cast

ENVIRONMENT = dict(os.environ)
"""Environment before any test changed it: conftest.py imports this module."""
STATUS = struct.Struct("i")
MOST_BYTES = 1 << 20
"""Largest size of a request."""
READY_S = 1800.0
"""Longest wait for the server's answer, s: it may have to compile all kernels first."""
END_WITHIN_S = 2.0
"""Time after which a program is killed whose end nobody waits for any more, s."""
PR_SET_PDEATHSIG = 1
"""Linux's number for "send me this signal when my parent ends"."""
_LIBC = ctypes.CDLL(None)
"""The C library, loaded before any fork."""
NODE = "rfly_bringup.nodes.entry_points:{}"
"""Entry point of a node's executable."""
RFLY = "rfly_bringup.cli.entry_point:rfly"
"""Entry point of the command line."""
NAME = "RFLY_FORK_SERVER"
"""Variable with the server's name, for what forked programs start themselves."""
_LATER = (
    "node_harness",
    "rfly_bringup.ros.domain_check",
    "rfly_terrain.ros.occupancy_topics",
    "rfly_terrain.ros.grid_map_topics",
    "rclpy.experimental.events_executor",
    "pymavlink.dialects.v20.common",
    "mcap.writer",
    "encodings.idna",
    "rfly_bringup.cli.main",
    "rfly_bringup.ros.command_client",
    "rfly_bringup.ros.mission_client",
    "rfly_bringup.ros.topic_commands",
    "rfly_bringup.ros.play_topics",
    "rfly_bringup.ros.graph_watch",
    "rfly_bringup.runner.up",
)
"""Modules that nodes and commands import when they run, where they are installed."""
_NO_NODE = {"batches"}
"""Parts of the kernels that no program of the tests loads."""
_READ_WHEN_NEEDED = (
    "ROS_",
    "RCUTILS_",  # commands that tests run in their own process set the colours of logs
    "RFLY_",
    "RMW_",
    "FASTDDS_",
    "FASTRTPS_",
    "TMPDIR",
    "HOME",
    "XDG_",
    "PYTEST_",
    "LANG",
    "COLUMNS",
    "DURATION",
    "TERM",
)
"""Prefixes of variables that no module reads while it is imported."""


def changed_for_imports(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """Return the variables that differ and that a module may read while it is imported."""
    differing = {key for key, _ in before.items() ^ after.items()}
    return {key for key in differing if not key.startswith(_READ_WHEN_NEEDED)}


class ForkedProcess:
    """Process that a fork server has started."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self._status = status
        self._code: int | None = None

    def wait(self, timeout: float | None = None) -> int | None:
        """The exit code, negative where a signal has ended it; None while it runs."""
        if self._code is None and select.select([self._status], [], [], timeout)[0]:
            data = os.read(self._status, STATUS.size)
            os.close(self._status)
            self._code = (
                STATUS.unpack(data)[0] if data else -signal.SIGKILL
            )  # the server itself has gone
        return self._code


class ForkServer:
    """The server's other end; one for each process that runs tests."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        # the worker processes of pytest-xdist are children of the one that the user started
        run = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
        self.name = os.environ.get(NAME, f"rfly_fork_server-{run}")
        address = f"\0{self.name}"

        self._socket = _packets()
        self._socket.settimeout(READY_S)
        while True:
            with _packets() as listener, suppress(OSError):  # another process has claimed it
                listener.bind(address)
                listener.listen()
                self._start_server(listener, run)
            if not self._socket.connect_ex(address):  # else it is claimed, but not yet listening
                break

    def takes(self, environment: Mapping[str, str]) -> bool:
        """Return whether a program with this environment may be forked.

        It may if the environment differs only in variables that are read when they are needed.
        """
        return not changed_for_imports(self.environment, environment)

    def start(
        self,
        entry_point: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[int],
        folder: str | os.PathLike[str],
    ) -> ForkedProcess:
        """Run an entry point with `words` as `sys.argv`; the streams are its descriptors 0 to 2."""
        request = {
            "entry_point": entry_point,
            "words": list(words),
            "environment": {**environment, NAME: self.name},
            "folder": os.path.abspath(folder),
        }
        status, status_end = os.pipe()

        try:
            socket.send_fds(self._socket, [json.dumps(request).encode()], [*streams, status_end])
        finally:
            os.close(status_end)

        return ForkedProcess(int(self._socket.recv(32)), status)

    def _start_server(self, listener: socket.socket, run: int) -> None:
        lifeline = os.pidfd_open(run)
        try:
            subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno()), str(lifeline)],
                env=self.environment,
                pass_fds=[listener.fileno(), lifeline],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            os.close(lifeline)


def process_name(program: str, domain_id: object) -> str:
    """Return the name of a forked program's process, which has the server's command line."""
    return f"{domain_id} {program}"[:15]


def _packets() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class _Server:
    """Loop that forks for requests; descriptors are its state, since a child closes them all."""

    def __init__(self, listener: int, lifeline: int) -> None:
        self._listener = socket.socket(fileno=listener)
        self._lifeline = lifeline
        """Process that is readable once the test run has ended."""
        self._connections: dict[int, socket.socket] = {}
        """Processes that run tests, by descriptor."""
        self._forked: dict[int, tuple[int, int, int]] = {}
        """Forked process, the pipe for its status and the connection that asked for it, by the
        descriptor readable at its end.
        """
        self._kill_at: dict[int, float] = {}
        """Time of the monotonic clock at which a forked process is killed, by that descriptor."""

    def serve(self) -> dict[str, Any] | None:
        """Fork until the test run has ended (None); in a child, return what it is to run."""
        while True:
            waited = [self._listener.fileno(), self._lifeline, *self._connections, *self._forked]
            for ready in select.select(waited, [], [], self._kill_late())[0]:
                if ready == self._lifeline:
                    self._end_all()
                    return None
                if ready == self._listener.fileno():
                    connection, _ = self._listener.accept()
                    self._connections[connection.fileno()] = connection
                elif ready in self._forked:
                    self._report_end(ready)
                elif request := self._answer(ready):
                    return request

    def _end_all(self) -> None:
        """End all programs; return when they have ended."""
        self._end(self._forked)
        while self._forked:
            for ended in select.select([*self._forked], [], [], self._kill_late())[0]:
                self._report_end(ended)

    def _end(self, descriptors: Iterable[int]) -> None:
        """Ask programs to end; `_kill_late` kills those that do not."""
        for descriptor in descriptors:
            os.kill(self._forked[descriptor][0], signal.SIGTERM)
            self._kill_at[descriptor] = time.monotonic() + END_WITHIN_S

    def _kill_late(self) -> float | None:
        """Kill programs that were asked to end and have not; return the time to the next, s."""
        now = time.monotonic()
        for descriptor in [each for each, due in self._kill_at.items() if due <= now]:
            os.kill(self._forked[descriptor][0], signal.SIGKILL)
            del self._kill_at[descriptor]
        return min(self._kill_at.values()) - now if self._kill_at else None

    def _report_end(self, descriptor: int) -> None:
        pid, pipe, _ = self._forked.pop(descriptor)
        self._kill_at.pop(descriptor, None)
        os.close(descriptor)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with suppress(BrokenPipeError):
            os.write(pipe, STATUS.pack(status))
        os.close(pipe)

    def _answer(self, descriptor: int) -> dict[str, Any] | None:
        """Answer one request with the child's id; in the child, return the request."""
        connection = self._connections[descriptor]
        data, descriptors, *_ = socket.recv_fds(connection, MOST_BYTES, 4)
        if not data:
            # a process ends with the one that started it
            self._end([key for key, (*_, starter) in self._forked.items() if starter == descriptor])
            del self._connections[descriptor]
            connection.close()
            return None

        *streams, pipe = descriptors
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            _end_with(server)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            self._close([*descriptors])
            request: dict[str, Any] = json.loads(data)
            return request

        for stream in streams:
            os.close(stream)
        self._forked[os.pidfd_open(pid)] = pid, pipe, descriptor
        connection.send(str(pid).encode())
        return None

    def _close(self, others: list[int]) -> None:
        """Close in a child what belongs to the server, and these."""
        for connection in (self._listener, *self._connections.values()):
            connection.close()
        for descriptor, (_, pipe, _) in self._forked.items():
            os.close(descriptor)
            os.close(pipe)
        for descriptor in (self._lifeline, *others):
            os.close(descriptor)


def _end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends.

    It does so when the parent's thread ends that has forked; the server has only one that does.
    """
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before
        os._exit(1)


def _load() -> None:
    """Import the modules of all programs, and load the kernels that they call."""
    from rfly_bringup.nodes.entry_points import MODULES
    from rfly_bringup.warm_up import PARTS, compile_first

    for module in sorted(set(MODULES.values())):
        importlib.import_module(module)
    for module in _LATER:
        with suppress(ImportError):
            importlib.import_module(module)

    parts = PARTS.keys() - _NO_NODE
    compile_first(parts)
    for part in sorted(parts):
        for function in PARTS[part].functions:
            pkgutil.resolve_name(function)()

    _load_type_supports()
    with suppress(ImportError):
        pkgutil.resolve_name("rfly_bringup.cli.main:command")()
    inspect.getmodule(sys._getframe())  # fills the table in which rclpy's loggers look up callers
    gc.collect()
    gc.freeze()


def _load_type_supports() -> None:
    """Load what rclpy loads when the first publisher or service of a type is made."""
    for name, module in list(sys.modules.items()):
        if "._" in name and name.split(".")[1:2] in (["msg"], ["srv"], ["action"]):
            for each in list(vars(module).values()):
                if hasattr(type(each), "__import_type_support__"):
                    type(each).__import_type_support__()


def _become(request: dict[str, Any]) -> None:
    """Run the program in this forked process."""
    os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv[:] = request["words"]
    name = process_name(request["words"][0], request["environment"].get("ROS_DOMAIN_ID"))
    Path("/proc/self/comm").write_text(name, encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        cast("TextIOWrapper", stream).reconfigure(line_buffering=stream.isatty())
    importlib.import_module("node_harness").fork_what_is_started()
    try:
        pkgutil.resolve_name(request["entry_point"])()
    except SystemExit as ended:
        _end(ended.code)
    _end(0)


def _end(code: object) -> NoReturn:
    """End as Python does, but leave the imported modules to the system: that saves 0.3 s."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    signal.pthread_sigmask(
        signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    )  # as executables begin
    _load()
    asked = _Server(*map(int, sys.argv[1:])).serve()
    if asked is not None:
        _become(asked)
