# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Commands and nodes that are attacked: their output is collected, and they are watched from
outside.

ROS domains are claimed as the tests claim them, so that attacks, tests and soaks may run in
parallel.
"""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
from claims import domain
from node_harness import executable, shell_environment

PATIENCE_S = 60.0
SAMPLE_EVERY_S = 0.1
MB = 1e6


class Running:
    """A command that runs, with its children.

    `output` is what it has printed, `peak_mb` its largest memory.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        environment: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            list(map(str, command)),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**shell_environment(), **(environment or {})},
            start_new_session=True,
        )
        self.peak_mb: float | None = None
        """Largest resident memory of one process."""
        self.first_threads: set[int] = set()
        """Threads that must not end."""
        self._lines: list[str] = []
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._read, self._watch)
        ]

        for thread in self._threads:
            thread.start()

    @property
    def output(self) -> str:
        return "".join(self._lines)

    def threads(self) -> set[int]:
        """Return the ids of the threads of the process itself."""
        try:
            return {thread.id for thread in psutil.Process(self.process.pid).threads()}
        except psutil.NoSuchProcess:
            return set()

    def processes(self) -> dict[str, psutil.Process]:
        """Return the process and all below it, by the names of their scripts.

        A repeated name gets a number.
        """
        named: dict[str, psutil.Process] = {}
        with suppress(psutil.NoSuchProcess):
            own = psutil.Process(self.process.pid)
            for process in (own, *own.children(recursive=True)):
                with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                    name = _name(process.cmdline())
                    named[name if name not in named else f"{name} {process.pid}"] = process
        return named

    def wait_for(self, text: str, times: int = 1, timeout_s: float = PATIENCE_S) -> None:
        """Wait until it has printed this text `times` times.

        Raise TimeoutError with all that it has printed.
        """
        wait_until(
            lambda: self.output.count(text) >= times, f"{text!r} in\n{self.output}", timeout_s
        )

    def end(self, number: int, within_s: float) -> tuple[int | None, float]:
        """Send a signal and return the exit code and the seconds that the end took.

        The code is None if the command did not end in time and was killed.
        """
        start = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.wait(within_s)
        return code, time.monotonic() - start

    def wait(self, within_s: float) -> int | None:
        """Return the exit code.

        Kill the command and its children, and return None, if it does not end in time.
        """
        try:
            code = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        self._threads[0].join(1.0)
        return code

    def kill(self) -> None:
        for process in self.processes().values():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.kill()

    def _read(self) -> None:
        """Collect the lines of the output until it ends."""
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.append(line)

    def _watch(self) -> None:
        """Sample the memory of all processes until the command ends."""
        while self.process.poll() is None:
            for process in self.processes().values():
                with suppress(psutil.NoSuchProcess):
                    self.peak_mb = max(self.peak_mb or 0.0, process.memory_info().rss / MB)
            time.sleep(SAMPLE_EVERY_S)


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs; a zombie does not."""
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _name(command: Sequence[str]) -> str:
    """Return the name in a command line, such as `ue_bridge_node` or `rfly view`."""
    script = next(
        (word for word in command[1:] if not word.startswith("-")), command[0] if command else ""
    )
    if "rfly_bringup.cli" in script:
        script = "rfly"

    # its command, if it has several
    name = Path(script).name
    rest = command[command.index(script) + 1 :] if script in command else command[3:]
    return f"{name} {rest[0]}" if name == "rfly" and rest else name


def node_command(
    name: str, parameters: Mapping[str, Any] | None = None, *arguments: str
) -> list[str]:
    """Return the command line of a node."""
    command = [str(executable(name)), "--ros-args", *arguments]
    for key, value in (parameters or {}).items():
        command += ["-p", f"{key}:={value}"]
    return command


def rfly(*arguments: str) -> list[str]:
    """Return the command line of `rfly`."""
    return [str(executable("rfly", "bin")), *arguments]


@contextmanager
def own_graph() -> Iterator[dict[str, str]]:
    """Return the environment of a ROS graph of its own, announced on this host only."""
    with domain() as number:
        yield {"ROS_DOMAIN_ID": str(number), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}


def free_port(kind: int = socket.SOCK_DGRAM) -> int:
    """Return a free port of the loopback."""
    with socket.socket(socket.AF_INET, kind) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_until(ready: Callable[[], Any], what: str, timeout_s: float = PATIENCE_S) -> Any:
    """Return the value of `ready()` once it is true.

    Raise TimeoutError after `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while not (value := ready()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s:g} s in vain for {what}")
        time.sleep(0.02)
    return value
