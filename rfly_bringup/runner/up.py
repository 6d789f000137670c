# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly up` and `rfly up amphibious`: the nodes of the launch files without launch."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.text import Text

from rfly_amphibious.vehicle.motor_channels import FIRST_ID
from rfly_bringup.nodes.amphibious_set import amphibious_processes, checked_nodes, start_commands
from rfly_bringup.nodes.argument_files import check_params_file, checked_arguments
from rfly_bringup.nodes.node_set import (
    BRIDGE,
    TERRAIN,
    StartedNode,
    check_arguments,
    node_processes,
)
from rfly_bringup.runner.supervisor import (
    STOP_TIMEOUT_S,
    Supervisor,
    installed,
    node_supervisor,
)
from rfly_bringup.warm_up import compile_for_nodes
from rfly_common.errors import ConfigError
from rfly_common.imports import require
from rfly_common.startup import stop_by_signal

VIEWER = "view"
BRIDGE_AFTER_VIEWER = {BRIDGE.executable: VIEWER}
"""Order in which the bridge finds its window."""
RFLY = "import sys; from rfly_bringup.cli.entry_point import rfly; sys.argv[0] = 'rfly'; rfly()"
_COLOURS = ("cyan", "green", "magenta", "yellow", "blue")


class LinePrinter:
    """Printer for the lines of several processes, each after its name in its colour."""

    def __init__(self, names: list[str], console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._width = max(map(len, names))
        self._styles = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}

    def __call__(self, name: str, line: str) -> None:
        """Print a line of a process; the processes go on after a broken pipe."""
        with suppress(OSError, SystemExit):  # the latter is rich's answer to a broken pipe
            self._console.print(
                Text(f"{name:<{self._width}} | ", style=self._styles.get(name, "white"))
                + Text(line)
            )


class Observer:
    """What goes with a node set that runs; this one only waits for its end."""

    console: Console | None = None
    """Where the lines of the processes are printed; None: on the standard output."""
    within_s = STOP_TIMEOUT_S + 1.0
    """Time after a signal in which everything must have ended, s."""
    extra: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    """Further parameters by node."""
    others: Sequence[tuple[str, list[str]]] = ()
    """Names and commands of further processes."""

    def hear(self, name: str, line: str) -> None:
        """Take note of a line of a process, which is printed."""

    def watch(self, supervisor: Supervisor, stopped: Callable[[], bool]) -> None:
        """Start the processes; return when they are to be stopped."""
        supervisor.start(stopped)
        while not stopped() and (supervisor.processes or supervisor.respawn):
            supervisor.poll()
            time.sleep(0.05)


_ONLY_WAIT = Observer()


def up(arguments: Mapping[str, str], lan: bool = False, observer: Observer = _ONLY_WAIT) -> int:
    """Run the node set until Ctrl-C, SIGTERM or the last node's end.

    Return 1 if a node ended by itself, else 0.
    """
    try:
        check_arguments(arguments)
    except ValueError as error:
        raise ConfigError(str(error)) from error

    arguments, warning = checked_arguments(arguments)
    if warning:
        _warn(warning)
    processes = node_processes(arguments, extra=observer.extra)
    return _run(processes, arguments, lan, "rfly.rviz", observer)


def _warn(text: str) -> None:
    print(f"rfly up: warning: {text}", file=sys.stderr, flush=True)


def _run(
    processes: Sequence[tuple[str, Sequence[StartedNode]]],
    arguments: Mapping[str, str],
    lan: bool,
    rviz_config: str,
    observer: Observer,
) -> int:
    """Run the processes, the observer's, and RViz on request."""
    started = [node for _, nodes in processes for node in nodes]
    for warning in check_params_file(arguments.get("params_file", ""), started):
        _warn(warning)
    rviz = []
    if arguments.get("rviz") == "true":
        rviz.append(("rviz2", rviz_command(arguments, rviz_config)))
    others = observer.others
    names = [*(name for name, _ in (*others, *processes, *rviz)), *(n.label for n in started)]
    printer = LinePrinter(list(dict.fromkeys(names)), observer.console)

    def output(name: str, line: str) -> None:
        observer.hear(name, line)
        printer(name, line)

    supervisor = node_supervisor(processes, arguments, output, lan=lan)
    supervisor.commands = [*others, *supervisor.commands, *rviz]
    supervisor.after = BRIDGE_AFTER_VIEWER
    compile_for_nodes(
        (node.executable for node in started), avoidance=arguments.get("avoidance") == "true"
    )

    # until Ctrl-C, SIGTERM, SIGHUP or the end of the last process
    with stop_by_signal(within_s=observer.within_s) as stopped:
        try:
            observer.watch(supervisor, stopped)
        finally:
            supervisor.stop()

    for name, text in supervisor.ended_nodes():
        printer(name, text)
    return 1 if supervisor.exits else 0


def rviz_command(arguments: Mapping[str, str], shipped: str) -> list[str]:
    """Return RViz's command, with the given configuration or the shipped one.

    Raise ConfigError without RViz or configuration.
    """
    program = shutil.which("rviz2")
    if program is None:
        raise ConfigError("rviz: rviz2 is not on the PATH; RViz comes with a ROS 2 installation")
    config = arguments.get("rviz_config") or str(installed(Path("share/rfly_suite/rviz") / shipped))
    namespace = arguments.get("namespace", "").strip("/")
    words = ["-r", f"__ns:=/{namespace}"] if namespace else []
    if arguments.get("use_sim_time"):
        words += ["-p", f"use_sim_time:={arguments['use_sim_time']}"]
    return [program, "-d", config, *(["--ros-args", *words] if words else [])]


def up_amphibious(arguments: Mapping[str, str], *, view: bool = False, lan: bool = False) -> int:
    """Run land-air vehicles until Ctrl-C, SIGTERM or the last node's end.

    Return 1 if a node ended by itself, else 0. `view` adds a browser window of `rfly view`.
    """
    if view:
        require("viser", "--view")

    try:
        nodes, arguments = checked_nodes(arguments)
    except ValueError as error:
        raise ConfigError(str(error)) from error

    for line in start_commands(arguments.get("autopilot", ""), nodes):
        print(line, flush=True)
    observer = Observer()
    if view:
        observer.others = [(VIEWER, _viewer_command(nodes))]
    processes = amphibious_processes(nodes, arguments)
    return _run(processes, arguments, lan, "amphibious.rviz", observer)


def _viewer_command(nodes: list[StartedNode]) -> list[str]:
    """Return the command of `rfly view` on the same map, or on level ground without one."""
    terrain = next((node for node in nodes if node.executable == TERRAIN.executable), None)
    command = [sys.executable, "-c", RFLY, "view", "--open", "--follow", str(FIRST_ID), "--map", ""]
    if terrain is not None:
        command[-1] = terrain.parameters["map"]
        for folder in terrain.parameters.get("map_search_path", ()):
            command += ["--search-path", folder]
        if terrain.parameters.get("imagery"):
            command += ["--imagery", terrain.parameters["imagery"]]
    return command
