# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A process that has imported what programs of the suite import and forks one for each start.

A node spends two seconds of processor time on imports and on loading its kernels, which the tests
would do a thousand times over. What is forked runs the entry point that the installed executable
runs, in a session, with an environment, signals and streams of its own. Tests of the start itself
take the executable (`fresh=True` of NodeProcess).

One server works for all processes of a test run. The first that needs it binds the server's name,
which is the claim, and starts it; it ends with the process that the user started.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

ENVIRONMENT = dict(os.environ)
"""Environment before any test changed it: conftest.py imports this module."""
STATUS = struct.Struct("i")
MOST_BYTES = 1 << 20
"""Largest size of a request."""
READY_S = 1800.0
"""Longest wait for the server's answer, s: it may have to compile all kernels first."""
NODE = "rfly_bringup.nodes.entry_points:{}"
"""Entry point of a node's executable."""
RFLY = "rfly_bringup.cli.entry_point:rfly"
"""Entry point of the command line."""
_NO_NODE = {"batches"}
"""Parts of the kernels that no program of the tests loads."""
_READ_WHEN_NEEDED = (
    "ROS_",
    "RFLY_",
    "RMW_",
    "FASTDDS_",
    "FASTRTPS_",
    "TMPDIR",
    "HOME",
    "XDG_",
    "PYTEST_",
    "LANG",
)
"""Prefixes of variables that no module reads while it is imported."""


class ForkedProcess:
    """Process with the part of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self._status = status
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative where a signal has ended it; None while it runs."""
        return self._wait(0.0)

    def wait(self, timeout: float | None = None) -> int:
        if self._wait(timeout) is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def _wait(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            data = os.read(self._status, STATUS.size)
            os.close(self._status)
            self.returncode = (
                STATUS.unpack(data)[0] if data else -signal.SIGKILL
            )  # the server itself has gone
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The server's other end; one for each process that runs tests."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        # the worker processes of pytest-xdist are children of the one that the user started
        run = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
        name = f"\0rfly_fork_server-{run}"

        self._socket = _packets()
        self._socket.settimeout(READY_S)
        while True:
            with _packets() as listener, suppress(OSError):  # another process has claimed it
                listener.bind(name)
                listener.listen()
                self._start_server(listener, run)
            if not self._socket.connect_ex(name):  # else it is claimed, but not yet listening
                break

    def takes(self, environment: Mapping[str, str]) -> bool:
        """Return whether a program with this environment may be forked.

        It may if the environment differs only in variables that are read when they are needed.
        """
        differing = {key for key, _ in self.environment.items() ^ environment.items()}
        return all(key.startswith(_READ_WHEN_NEEDED) for key in differing)

    def start(
        self,
        entry_point: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        output: int,
        errors: int,
        folder: str | os.PathLike[str] = ".",
    ) -> ForkedProcess:
        """Run an entry point with `words` as `sys.argv`, which prints to two descriptors."""
        request = {
            "entry_point": entry_point,
            "words": list(words),
            "environment": dict(environment),
            "folder": os.path.abspath(folder),
        }
        status, status_end = os.pipe()

        try:
            socket.send_fds(
                self._socket, [json.dumps(request).encode()], [output, errors, status_end]
            )
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
        self._forked: dict[int, tuple[int, int]] = {}
        """Forked process and the pipe for its status, by the descriptor readable at its end."""

    def serve(self) -> dict[str, Any] | None:
        """Fork until the test run has ended (None); in a child, return what it is to run."""
        while True:
            waited = [self._listener.fileno(), self._lifeline, *self._connections, *self._forked]
            for ready in select.select(waited, [], [])[0]:
                if ready == self._lifeline:
                    return None
                if ready == self._listener.fileno():
                    connection, _ = self._listener.accept()
                    self._connections[connection.fileno()] = connection
                elif ready in self._forked:
                    self._report_end(ready)
                elif request := self._answer(ready):
                    return request

    def _report_end(self, descriptor: int) -> None:
        pid, pipe = self._forked.pop(descriptor)
        os.close(descriptor)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with suppress(BrokenPipeError):
            os.write(pipe, STATUS.pack(status))
        os.close(pipe)

    def _answer(self, descriptor: int) -> dict[str, Any] | None:
        """Answer one request with the child's id; in the child, return the request."""
        connection = self._connections[descriptor]
        data, descriptors, *_ = socket.recv_fds(connection, MOST_BYTES, 3)
        if not data:
            del self._connections[descriptor]
            connection.close()
            return None

        output, errors, pipe = descriptors
        pid = os.fork()
        if pid == 0:
            os.dup2(output, 1)
            os.dup2(errors, 2)
            self._close([*descriptors])
            request: dict[str, Any] = json.loads(data)
            return request

        os.close(output)
        os.close(errors)
        self._forked[os.pidfd_open(pid)] = pid, pipe
        connection.send(str(pid).encode())
        return None

    def _close(self, others: list[int]) -> None:
        """Close in a child what belongs to the server, and these."""
        for connection in (self._listener, *self._connections.values()):
            connection.close()
        for descriptor, (_, pipe) in self._forked.items():
            os.close(descriptor)
            os.close(pipe)
        for descriptor in (self._lifeline, *others):
            os.close(descriptor)


def _load() -> None:
    """Import the modules of all programs, and load the kernels that they call."""
    from rfly_bringup.nodes.entry_points import MODULES
    from rfly_bringup.warm_up import PARTS, compile_first

    for module in sorted({*MODULES.values(), "rfly_bringup.cli.main"}):
        importlib.import_module(module)

    parts = PARTS.keys() - _NO_NODE
    compile_first(parts)
    for part in sorted(parts):
        for function in PARTS[part].functions:
            pkgutil.resolve_name(function)()

    gc.collect()
    gc.freeze()


def _become(request: dict[str, Any]) -> None:
    """Run the program in this forked process."""
    os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv[:] = request["words"]
    sys.exit(pkgutil.resolve_name(request["entry_point"])())


if __name__ == "__main__":
    signal.pthread_sigmask(
        signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    )  # as executables begin
    _load()
    asked = _Server(*map(int, sys.argv[1:])).serve()
    if asked is not None:
        _become(asked)
