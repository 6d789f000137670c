# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Nodes that run as users run them, and a real rclpy peer to talk to them.

The peer waits for conditions, never for time.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

from fork_server import ENVIRONMENT, NODE, RFLY, ForkedProcess, ForkServer

EXECUTABLES = Path(sys.prefix) / "lib" / "rfly_suite"
PATIENCE = float(os.environ.get("RFLY_PATIENCE", "120"))
"""Longest wall time to wait for a condition, s: far beyond what a busy machine needs."""
OF_LIBRARIES = {
    "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
    "_RFLY_SUITE_ENVIRONMENT",
    "GDAL_CURL_CA_BUNDLE",
    "PROJ_CURL_CA_BUNDLE",
    "MAVLINK20",
    "MAVLINK_DIALECT",
    "PYGAME_HIDE_SUPPORT_PROMPT",
    "SDL_AUDIODRIVER",
}
"""Variables that libraries set when this process imports them: the wheels, rasterio, pymavlink,
gymnasium, pettingzoo.
"""


def wait_until(ready: Callable[[], Any], what: Any = "", poll_s: float = 0.02) -> Any:
    """Return the first true value of `ready()`; fail with `what`, or with what that returns."""
    deadline = time.monotonic() + PATIENCE
    while not (value := ready()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(poll_s)
    return value


def executable(name: str, folder: str = "lib/rfly_suite") -> Path:
    """Return the installed executable of a node, or a command in `bin`.

    It is searched in this environment and on AMENT_PREFIX_PATH.
    """
    prefixes = [p for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
    for prefix in [sys.prefix, *prefixes]:
        path = Path(prefix) / folder / name
        if path.is_file():
            return path
    raise FileNotFoundError(f"{name} is not installed: run `make env`")


def shell_environment(of: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment without additions of this Python and its libraries, as a user has it.

    With such an addition no program could be forked any more, and all would take seconds longer.
    """
    environment = {key: value for key, value in of.items() if key not in OF_LIBRARIES}
    folders = environment.pop("LD_LIBRARY_PATH", "").split(os.pathsep)
    foreign = [
        folder for folder in folders if folder and not folder.startswith(sys.prefix + os.sep)
    ]
    if foreign:
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(foreign)
    return environment


def _end_with_this_process() -> list[str]:
    """Return the words before a command that shall end with this process, also if it is killed.

    Linux ends it with the thread that has started it, so another than the main one leaves it alone.
    """
    from rfly_bringup.nodes.node_set import end_with_parent

    return end_with_parent() if threading.current_thread() is threading.main_thread() else []


@cache
def _fork_server() -> ForkServer:
    return ForkServer(shell_environment(ENVIRONMENT))


class Program(subprocess.Popen[Any]):
    """One of the suite's programs in a session of its own.

    It is forked from a process that has imported all of them, unless it is to be `fresh`, its
    environment forbids it, or there is no ROS.
    """

    def __init__(
        self,
        entry_point: str,
        words: Sequence[str],
        start: Sequence[str],
        *,
        fresh: bool = False,
        env: Mapping[str, str] = os.environ,
        **options: Any,
    ) -> None:
        """`words` are its `sys.argv`; `start` are those that start it without the server."""
        environment = shell_environment(env)
        self._entry_point = entry_point
        self._forked: ForkedProcess | None = None
        self._fresh = fresh or not find_spec("rclpy") or not _fork_server().takes(environment)
        command = [*_end_with_this_process(), *start, *words[1:]] if self._fresh else words
        super().__init__(command, env=environment, start_new_session=True, **options)

    def _execute_child(self, args: Sequence[str], *others: Any) -> None:
        if self._fresh:
            super()._execute_child(args, *others)  # type: ignore[misc]
            return

        cwd, environment = others[4:6]
        pipes = others[9:15]
        ends = (pipes[0], pipes[3], pipes[5])
        streams = [number if end == -1 else end for number, end in enumerate(ends)]
        self._forked = _fork_server().start(
            self._entry_point, args, environment, streams, cwd or "."
        )
        self.pid = self._forked.pid
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _internal_poll(self, *others: Any, **options: Any) -> int | None:
        if self._forked is None:
            return super()._internal_poll(*others, **options)  # type: ignore[misc]
        self.returncode = self._forked.wait(0.0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self._forked is None:
            return super()._wait(timeout)  # type: ignore[misc]
        self.returncode = self._forked.wait(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self.returncode


def fork_what_is_started() -> None:
    """Let this forked process, such as `rfly up`, fork the nodes that it would start."""
    started = subprocess.Popen

    def start(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        for place, word in enumerate(command, 1):
            name = Path(word).name
            if Path(word) == EXECUTABLES / name:
                entry_point = NODE.format(name)
            elif command[place - 2 : place - 1] == ["-m"]:
                entry_point = f"{word}:main"
            else:
                continue
            del options["start_new_session"]
            return Program(entry_point, [name, *command[place:]], command[:place], **options)
        return started(command, **options)

    subprocess.Popen = start  # type: ignore[assignment, misc]


class Rfly(Program):
    """`rfly` with these words, as the installed executable runs it."""

    def __init__(self, *words: object, **options: Any) -> None:
        module, function = RFLY.split(":")
        start = [sys.executable, "-c", f"from {module} import {function}; {function}()"]
        super().__init__(RFLY, ["rfly", *map(str, words)], start, **options)


def run_rfly(*words: object, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run `rfly` to its end and return its exit code and what it printed."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with Rfly(*words, **{**streams, **options}) as process:
        try:
            output, errors = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


class NodeProcess:
    """One node as a process, its output kept. `prefix` is a command that runs it, such as nsenter.

    It is a `Program`, forked unless it is to be `fresh` or is run by a prefix. `nodes` are those
    that the executable `rfly_nodes` runs in one process, all with the same parameters.
    """

    def __init__(
        self,
        name: str,
        domain_id: int,
        parameters: Mapping[str, str] | None = None,
        *arguments: str,
        nodes: Sequence[str] = (),
        prefix: Sequence[str] = (),
        fresh: bool = False,
    ) -> None:
        options = [*nodes, "--ros-args", *arguments]
        for key, value in (parameters or {}).items():
            options += ["-p", f"{key}:={value}"]
        environment = {**shell_environment(), "ROS_DOMAIN_ID": str(domain_id)}
        environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        self.process = Program(
            NODE.format(name),
            [name, *options],
            [*prefix, str(executable(name))],
            fresh=fresh or bool(prefix),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.append(line)

    @property
    def output(self) -> str:
        """Everything that it has printed."""
        return "".join(self._lines)

    def threads(self) -> set[int]:
        """The ids of its threads; one that is missing later has ended."""
        return {int(each.name) for each in Path(f"/proc/{self.process.pid}/task").iterdir()}

    def stop(self, number: int = signal.SIGINT) -> int:
        """Send a signal and return the exit code; a node that does not end in order fails the
        test.
        """
        if self.process.poll() is None:
            self.process.send_signal(number)

        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE)
            raise AssertionError(f"the node did not end; output:\n{self.output}") from None

        self._reader.join(PATIENCE)
        assert "ended by force" not in self.output, self.output
        return code

    def __enter__(self) -> NodeProcess:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)


class Peer:
    """A node of the test's own, in a context of its own domain.

    One that hears hundreds of messages a second spins with the executor of `events`, with half of
    the processor time. That executor now and then loses the answer of a service or an action, and
    keeps a destroyed publisher until it spins.
    """

    def __init__(self, domain_id: int, name: str = "peer", *, events: bool = False) -> None:
        import rclpy
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.node import Node

        from rfly_common.ros.run_loop import events_executor

        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain_id)
        make_executor = events_executor if events else SingleThreadedExecutor
        with mock.patch("faulthandler.enable"):  # pytest's own handler of crashes stays
            self._executor = make_executor(context=self._context)
        self.node = Node(name, context=self._context)
        self._executor.add_node(self.node)
        self._clients: dict[tuple[Any, str], Any] = {}

    def spin_until(self, ready: Callable[[], Any], timeout_s: float = PATIENCE) -> Any:
        """Spin until `ready()` is true and return its value; fail the test after the time-out."""
        deadline = time.monotonic() + timeout_s
        while not (value := ready()):
            assert time.monotonic() < deadline, f"waited {timeout_s} s in vain; {self._graph()}"
            self._executor.spin_once(timeout_sec=0.02)
        return value

    def spin_for(self, seconds: float) -> None:
        """Spin for a time, to see that something does not happen."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._executor.spin_once(timeout_sec=0.02)

    def receive(self, msg_type: Any, topic: str, qos: Any) -> list[Any]:
        """The list that a new subscription fills."""
        received: list[Any] = []
        self.node.create_subscription(msg_type, topic, received.append, qos)
        return received

    def publisher(self, msg_type: Any, topic: str, qos: Any) -> Any:
        """A publisher that has a matched subscription."""
        made = self.node.create_publisher(msg_type, topic, qos)
        self.spin_until(lambda: made.get_subscription_count() > 0)
        return made

    def call(
        self,
        srv_type: Any,
        name: str,
        /,
        timeout_s: float = PATIENCE,
        *,
        changes: bool = True,
        **fields: Any,
    ) -> Any:
        """The response of a service. What only reads or changes nothing is asked again after 10 s.

        A response is lost where the server has not yet discovered who asked (rmw_fastrtps waits 0.1
        s for it): clients are kept. Rarely it never discovers a client: the next question comes
        from a new one.
        """
        may_repeat = not changes or srv_type.__name__.startswith("Get")
        if (client := self._clients.get((srv_type, name))) is None:
            client = self._client(srv_type, name)
        self.spin_until(client.service_is_ready, timeout_s)
        asked = [client.call_async(srv_type.Request(**fields))]
        asked_s = time.monotonic()

        def answer() -> Any:
            nonlocal asked_s, client
            if may_repeat and time.monotonic() > asked_s + 10.0:
                client = self._client(srv_type, name)
                self.spin_until(client.service_is_ready, timeout_s)
                asked.append(client.call_async(srv_type.Request(**fields)))
                asked_s = time.monotonic()
            return next((future for future in asked if future.done()), None)

        return self.spin_until(answer, timeout_s).result()

    def _client(self, srv_type: Any, name: str) -> Any:
        """A new client, which is kept."""
        client = self._clients[srv_type, name] = self.node.create_client(srv_type, name)
        return client

    def send_goal(self, client: Any, goal: Any, **options: Any) -> Any:
        """The handle of a goal of an ActionClient, which is sent again after 30 s (see `call`)."""
        asked: list[tuple[float, Any]] = []

        def answer() -> Any:
            if not asked or time.monotonic() > asked[-1][0] + 30.0:
                asked.append((time.monotonic(), client.send_goal_async(goal, **options)))
            return next((future for _, future in asked if future.done()), None)

        self.spin_until(client.server_is_ready)
        return self.spin_until(answer).result()

    def close(self) -> None:
        """End the peer."""
        import rclpy

        self._executor.remove_node(self.node)
        self._executor.shutdown(timeout_sec=0.5)
        self.node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def _graph(self) -> str:
        return f"topics: {self.node.get_topic_names_and_types()}"


class RflyBeside:
    """Run a command of `rfly` in a process of its own, while a peer goes on.

    `meanwhile` is called ten times a second.
    """

    def __init__(
        self, peer: Peer, *words: str, meanwhile: Callable[[], Any] = lambda: None
    ) -> None:
        self._peer = peer
        self._meanwhile = meanwhile
        self._due = 0.0
        self._err = tempfile.TemporaryFile("w+")  # noqa: SIM115  read while the command runs
        self.process = Rfly(*words, stdout=subprocess.PIPE, stderr=self._err, text=True)

    @property
    def err(self) -> str:
        """Standard error of the process up to now."""
        self._err.seek(0)
        return self._err.read()

    def until(self, ready: Callable[[], Any], timeout_s: float = PATIENCE) -> None:
        """Go on until `ready()`."""

        def step() -> Any:
            if time.monotonic() > self._due:
                self._due = time.monotonic() + 0.1
                self._meanwhile()
            return ready()

        self._peer.spin_until(step, timeout_s)

    def end(self) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        try:
            self.until(lambda: self.process.poll() is not None)
            out, _ = self.process.communicate(timeout=PATIENCE)
        finally:
            self.process.kill()
            self.process.wait(PATIENCE)
        return self.process.returncode, out, self.err


def diagnostic(messages: list[Any], task: str) -> Any:
    """The newest status whose name ends in `: task`, as (level, message, values), or None."""
    for message in reversed(messages):
        for status in message.status:
            if status.name.endswith(f": {task}"):
                return (
                    int.from_bytes(status.level, "big"),
                    status.message,
                    {v.key: v.value for v in status.values},
                )
    return None
