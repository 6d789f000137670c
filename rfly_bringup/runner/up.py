"""`rfly up` and `rfly up amphibious`: the nodes of the launch files without launch."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.text import Text

from rfly_bringup.nodes.amphibious_set import FIRST_ID, StartedNode, amphibious_nodes, parameter_file, ros_arguments
from rfly_bringup.nodes.argument_files import check_files, check_params_file, fill_feedback_addresses, with_map_of_world
from rfly_bringup.nodes.entry_points import SEVERAL
from rfly_bringup.nodes.node_set import TERRAIN, check_arguments, started_nodes
from rfly_bringup.runner.demo_viewer import RFLY, VIEWER
from rfly_bringup.runner.supervisor import (
    STOP_TIMEOUT_S,
    Supervisor,
    describe_exit,
    executable_path,
    node_environment,
    node_supervisor,
    rviz_config_path,
)
from rfly_bringup.warm_up import compile_for_nodes
from rfly_common.errors import ConfigError
from rfly_common.imports import require
from rfly_common.startup import stop_by_signal

_COLOURS = ("cyan", "green", "magenta", "yellow", "blue")


class LinePrinter:
    """Prints the lines of several processes, each behind its name in its colour."""

    def __init__(self, names: list[str], console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._width = max(map(len, names))
        self._styles = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}

    def __call__(self, name: str, line: str) -> None:
        """One line of one process. Where nobody reads them any more the processes go on all the same."""
        with suppress(OSError, SystemExit):  # the latter is rich's answer to a broken pipe
            self._console.print(Text(f"{name:<{self._width}} | ", style=self._styles.get(name, "white")) + Text(line))


def up(arguments: Mapping[str, str], lan: bool = False) -> int:
    """Run the node set until Ctrl-C, SIGTERM or the last node's end; returns 1 where a node ended by itself, else 0."""
    try:
        check_arguments(arguments)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    arguments = with_map_of_world(arguments)
    check_files(arguments)
    arguments = fill_feedback_addresses(arguments)
    names = [node.executable for node in started_nodes(arguments)]
    commands_of_rviz: list[tuple[str, list[str]]] = []
    if arguments.get("rviz") == "true":
        commands_of_rviz = [("rviz2", rviz_command(arguments, "rfly.rviz"))]
    if arguments.get("single_process") == "true":
        names = [SEVERAL]
    printer = LinePrinter([*names, *(name for name, _ in commands_of_rviz)])
    supervisor = node_supervisor(arguments, printer, lan=lan)
    supervisor.commands = [*supervisor.commands, *commands_of_rviz]

    return run_until_signal(supervisor, printer)


def run_until_signal(supervisor: Supervisor, printer: LinePrinter) -> int:
    """Run processes until Ctrl-C, SIGTERM, SIGHUP or the last one's end; 1 where one ended by itself, else 0."""
    compile_for_nodes(name for name, _ in supervisor.commands)
    with stop_by_signal(within_s=STOP_TIMEOUT_S + 1.0) as stopped:
        try:
            supervisor.start(stopped)
            while not stopped() and (supervisor.processes or supervisor.respawn):
                supervisor.poll()
                time.sleep(0.05)
        finally:
            supervisor.stop()
    for name, code in supervisor.ended.items():
        printer(name, f"had ended with {describe_exit(code)}")
    return 1 if supervisor.exits else 0


def rviz_command(arguments: Mapping[str, str], shipped: str) -> list[str]:
    """RViz with the given configuration, or the shipped one of that name. Raises ConfigError where there is none."""
    program = shutil.which("rviz2")
    if program is None:
        raise ConfigError("rviz: rviz2 is not on the PATH; RViz comes with a ROS 2 installation")
    return [program, "-d", arguments.get("rviz_config") or str(rviz_config_path(shipped))]


def up_amphibious(arguments: Mapping[str, str], *, view: bool = False, lan: bool = False) -> int:
    """Run the vehicles until Ctrl-C, SIGTERM or the last node's end; returns 1 where a node ended by itself, else 0.

    `view`: a browser window of `rfly view` beside them.
    """
    if view:
        require("viser", "--view")
    check_params_file(arguments.get("params_file", ""))
    try:
        nodes = amphibious_nodes(fill_feedback_addresses(arguments))
    except ValueError as error:
        raise ConfigError(str(error)) from error
    folder = tempfile.TemporaryDirectory(prefix="rfly_up_")
    commands = [(VIEWER, _viewer_command(nodes))] if view else []
    for number, node in enumerate(nodes):
        commands.append((node.label, _command(node, arguments, Path(folder.name) / f"{number}.yaml")))
    if arguments.get("rviz") == "true":
        commands.append(("rviz2", rviz_command(arguments, "amphibious.rviz")))
    printer = LinePrinter([name for name, _ in commands])
    respawn = arguments.get("respawn") == "true"
    names = [f"/{node.label}" for node in nodes]
    return run_until_signal(Supervisor(commands, printer, node_environment(lan), respawn, names, folder), printer)


def _command(node: StartedNode, arguments: Mapping[str, str], file: Path) -> list[str]:
    file.write_text(json.dumps(parameter_file(node)), encoding="utf-8")  # JSON is YAML
    files = [str(file)] if not arguments.get("params_file") else [arguments["params_file"], str(file)]
    return [
        str(executable_path(node.executable, node.package)),
        "--ros-args",
        *ros_arguments(node, arguments.get("log_level", ""), files),
    ]


def _viewer_command(nodes: list[StartedNode]) -> list[str]:
    """`rfly view` of the same map; level ground where there is none."""
    terrain = next((node for node in nodes if node.executable == TERRAIN.executable), None)
    command = [sys.executable, "-c", RFLY, "view", "--open", "--follow", str(FIRST_ID), "--map", ""]
    if terrain is not None:
        command[-1] = terrain.parameters["map"]
        for folder in terrain.parameters.get("map_search_path", ()):
            command += ["--search-path", folder]
    return command
