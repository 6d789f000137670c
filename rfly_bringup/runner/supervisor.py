# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Process supervisor of the nodes: ordered start, prefixed output, clean stop.

It needs neither ROS nor launch itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from rfly_bringup.nodes.entry_points import SEVERAL
from rfly_bringup.nodes.node_set import StartedNode, end_with_parent, parameter_file, ros_arguments
from rfly_common.errors import ConfigError
from rfly_common.startup import STOPS

STOP_TIMEOUT_S = 4.0
RESPAWN_DELAY_S = 1.0

Output = Callable[[str, str], None]
"""Called with (executable, line), from one thread per node."""


def executable_path(name: str, package: str = "rfly_suite") -> Path:
    """Return the path of a node's executable. Raise ConfigError if it is not installed."""
    return installed(Path("lib") / package / name)


def installed(relative: Path) -> Path:
    """Return a file of the installed package by its path below the prefix. Raise ConfigError."""
    prefixes = [p for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
    for prefix in [sys.prefix, *prefixes]:
        path = Path(prefix) / relative
        if path.is_file():
            return path
    raise ConfigError(
        f"{relative.name} is not installed in {sys.prefix} or on AMENT_PREFIX_PATH: the nodes "
        "need ROS 2 (run `make env` in the source tree, or `colcon build` and source the workspace)"
    )


def node_environment(lan: bool = False) -> dict[str, str]:
    """Return the environment of the nodes.

    They are announced only on this host, unless the user has set the range or wants the LAN.
    """
    environment = dict(os.environ)

    if lan:
        environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SUBNET"
    elif not {"ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY"} & set(environment):
        environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    environment.setdefault("RCUTILS_COLORIZED_OUTPUT", "0")
    return environment


@dataclass
class Supervisor:
    """Processes that start in order and are ended cleanly by `stop`."""

    commands: Sequence[tuple[str, Sequence[str]]]
    """Names and command lines, in the order of the start."""
    output: Output
    environment: Mapping[str, str]
    respawn: bool = False
    full_names: Sequence[str] = ()
    """Full names that should be unique in the ROS domain; `output` reports those that are not."""
    folder: tempfile.TemporaryDirectory[str] | None = None
    """Folder of files that the processes need; `stop` removes it."""
    nodes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names of the nodes of each process."""
    after: Mapping[str, str] = field(default_factory=dict)
    """Processes that start last, each after the first line of another."""
    processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)
    """Exit codes of the processes that ended by themselves and do not run now."""
    exits: int = 0
    """Number of times that a process ended by itself, respawned or not."""
    _restart_at: dict[str, float] = field(default_factory=dict)
    _spoke: dict[str, threading.Event] = field(default_factory=dict)
    """Set when a process has printed a line, or ended."""
    _check: subprocess.Popen[str] | None = None

    def start(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Start all processes, or those before `stopped` returns True."""
        for name, command in sorted(self.commands, key=lambda named: named[0] in self.after):
            spoke = self._spoke.get(self.after.get(name, ""))
            while spoke is not None and not (stopped() or spoke.wait(0.1)):
                pass
            if not stopped():
                self._start(name, command)
        if self.full_names and not stopped():
            command = [sys.executable, "-m", "rfly_bringup.ros.domain_check"]
            self._check = self._open([*command, *self.full_names])
            self._forward_in_thread("rfly up", self._check)

    def poll(self) -> None:
        """Notice processes that ended, and start them again with `respawn`."""
        for name, command in self.commands:
            process = self.processes.get(name)
            if process is not None and process.poll() is not None:
                del self.processes[name]
                self.ended[name] = process.returncode
                self.exits += 1
                again = f", starting again in {RESPAWN_DELAY_S:.0f} s" if self.respawn else ""
                for node in self.nodes.get(name, [name]):
                    self.output(
                        node,
                        f"ended by itself with {describe_exit(process.returncode)}{again}",
                    )
                self._restart_at[name] = time.monotonic() + RESPAWN_DELAY_S

            if self.respawn and name in self.ended and time.monotonic() >= self._restart_at[name]:
                del self.ended[name]
                self._start(name, command)

    def ended_nodes(self) -> list[tuple[str, str]]:
        """Return each node whose process ended by itself and does not run now, and how."""
        return [
            (node, f"had ended with {describe_exit(code)}")
            for name, code in self.ended.items()
            for node in self.nodes.get(name, [name])
        ]

    def stop(self) -> None:
        """Send SIGINT to all, then SIGKILL to those that still run after STOP_TIMEOUT_S."""
        running = dict(self.processes)
        if self._check is not None:
            self._check.terminate()

        for process in running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGINT)

        deadline = time.monotonic() + STOP_TIMEOUT_S
        for name, process in running.items():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.output(name, f"did not end within {STOP_TIMEOUT_S:.0f} s: killed")
                process.kill()
                process.wait()
                self.exits += 1

        self.processes.clear()
        if self._check is not None:
            self._check.kill()  # it has had the nodes' time
            self._check.wait()
        if self.folder is not None:
            self.folder.cleanup()

    def _start(self, name: str, command: Sequence[str]) -> None:
        process = self._open(command)
        self.processes[name] = process
        self._spoke[name] = threading.Event()
        self._forward_in_thread(name, process)

    def _open(self, command: Sequence[str]) -> subprocess.Popen[str]:
        # a session of its own: Ctrl-C in the terminal reaches only this process, which then ends
        # the nodes in order
        with _blocked_stops() if command[0] == sys.executable else nullcontext():
            return subprocess.Popen(
                [*end_with_parent(), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(self.environment),
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )

    def _forward_in_thread(self, name: str, process: subprocess.Popen[str]) -> None:
        threading.Thread(target=self._forward, args=(name, process), daemon=True).start()

    def _forward(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        spoke = self._spoke.get(name, threading.Event())
        for line in process.stdout:
            self.output(name, line.rstrip("\n"))
            spoke.set()
        spoke.set()


@contextmanager
def _blocked_stops() -> Iterator[None]:
    """Block stop signals for a child until it handles them.

    Otherwise one could end it untidily before that (see `startup`).
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def node_supervisor(
    processes: Sequence[tuple[str, Sequence[StartedNode]]],
    arguments: Mapping[str, str],
    output: Output,
    *,
    lan: bool = False,
) -> Supervisor:
    """Return a supervisor of named processes, each of one node or several.

    The nodes of a process have the same namespace and remappings.

    `arguments` are those that concern all nodes. Parameters given as `-p` count for all nodes and
    lose against a params_file that names the node, so each process has a file that names its nodes
    too.
    """
    folder = tempfile.TemporaryDirectory(prefix="rfly_up_")
    commands = []
    for number, (name, nodes) in enumerate(processes):
        path = Path(folder.name) / f"{number}.yaml"
        content = parameter_file(nodes)
        if content:
            path.write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML

        several = [node.executable for node in nodes] if len(nodes) > 1 else []
        executable = executable_path(SEVERAL if several else nodes[0].executable, nodes[0].package)
        files = [file for file in (arguments.get("params_file"), path if content else None) if file]
        node_arguments = ros_arguments(nodes[0], arguments.get("log_level", ""), files)
        commands.append((name, [str(executable), *several, "--ros-args", *node_arguments]))

    respawn = arguments.get("respawn") == "true"
    names = {name: [node.label for node in nodes] for name, nodes in processes}
    full_names = [f"/{label}" for labels in names.values() for label in labels]
    environment = node_environment(lan)
    return Supervisor(commands, output, environment, respawn, full_names, folder, names)


def describe_exit(code: int) -> str:
    """Return `exit code 1`, or the name of the signal that ended a process."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
