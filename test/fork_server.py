# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A process that has imported what nodes import and forks one for each node that a test starts.

A node of the suite spends a second and a half of processor time on imports, which the suite would
do a thousand times over. What is forked runs the entry point that the installed executable runs, in
a session, with an environment, signals and streams of its own. Tests of the start itself take the
executable (`fresh=True` of NodeProcess).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TextIO

ENVIRONMENT = dict(os.environ)
"""Environment before any test changed it: conftest.py imports this module."""
STATUS = struct.Struct("i")
MOST_BYTES = 1 << 20
"""Largest size of a request."""
READY_S = 300.0
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
    """Process with the part of `subprocess.Popen` that NodeProcess uses."""

    def __init__(self, pid: int, status: int, output: int) -> None:
        self.pid = pid
        self._status = status
        self.returncode: int | None = None
        # its reader closes it
        self.stdout: TextIO = open(output, encoding="utf-8", errors="replace")  # noqa: SIM115

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
        self._socket, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with end:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(end.fileno())],
                env=self.environment,
                pass_fds=[end.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

        self._socket.settimeout(READY_S)
        atexit.register(self.close)

    def takes(self, environment: Mapping[str, str]) -> bool:
        """Return whether a node with this environment may be forked.

        It may if the environment differs only in variables that are read when they are needed.
        """
        differing = {key for key, _ in self.environment.items() ^ environment.items()}
        return all(key.startswith(_READ_WHEN_NEEDED) for key in differing)

    def start(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> ForkedProcess:
        """Run the node's entry point; its output and errors come by one pipe."""
        request = {
            "name": name,
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": os.getcwd(),
        }
        output, output_end = os.pipe()
        status, status_end = os.pipe()

        try:
            socket.send_fds(self._socket, [json.dumps(request).encode()], [output_end, status_end])
        finally:
            os.close(output_end)
            os.close(status_end)

        return ForkedProcess(int(self._socket.recv(32)), status, output)

    def close(self) -> None:
        """No process is forked any more; those that run go on."""
        self._socket.close()
        self.process.wait(10.0)


def _import_all() -> None:
    from rfly_bringup.nodes.entry_points import MODULES

    for module in sorted(set(MODULES.values())):
        importlib.import_module(module)
    with suppress(ImportError):
        from numba.core.registry import cpu_target

        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
    gc.freeze()


def _serve(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for each request until the tests have ended (None); in a child, what it is to run."""
    status_of: dict[int, tuple[int, int]] = {}
    """Process and its status pipe, by the descriptor that becomes readable at its end."""
    while True:
        for ready in select.select([connection, *status_of], [], [])[0]:
            if ready is not connection:
                pid, pipe = status_of.pop(ready)
                os.close(ready)
                with suppress(BrokenPipeError):
                    os.write(
                        pipe,
                        STATUS.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])),
                    )
                os.close(pipe)
                continue

            data, descriptors, *_ = socket.recv_fds(connection, MOST_BYTES, 2)
            if not data:
                return None
            request = json.loads(data)
            (output, pipe) = descriptors
            pid = os.fork()

            if pid == 0:
                for descriptor in (1, 2):
                    os.dup2(output, descriptor)
                for descriptor in (
                    connection.fileno(),
                    output,
                    pipe,
                    *status_of,
                    *(p for _, p in status_of.values()),
                ):
                    os.close(descriptor)
                connection.detach()
                return request

            os.close(output)
            status_of[os.pidfd_open(pid)] = pid, pipe
            connection.send(str(pid).encode())


def _become(request: dict[str, Any]) -> None:
    """Run the node in this forked process."""
    os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv[:] = [request["name"], *request["arguments"]]
    from rfly_bringup.nodes import entry_points

    sys.exit(getattr(entry_points, request["name"])())


if __name__ == "__main__":
    signal.pthread_sigmask(
        signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    )  # as executables begin
    _import_all()
    asked = _serve(socket.socket(fileno=int(sys.argv[1])))
    if asked is not None:
        _become(asked)
