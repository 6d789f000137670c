"""`rfly up`: the nodes of the launch file without launch."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any

from rich.console import Console
from rich.text import Text

from rfly_bringup.nodes.feedback_address import fill_feedback_addresses
from rfly_bringup.nodes.node_set import TERRAIN, check_arguments, node_parameters, started_nodes
from rfly_bringup.runner.supervisor import Supervisor, describe_exit, node_supervisor, rviz_config_path
from rfly_common.errors import ConfigError
from rfly_common.files import open_regular

STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""signals that end all processes: Ctrl-C, kill, and the terminal that is closed"""

MAX_PARAMS_FILE_BYTES = 1_000_000

_COLOURS = ("cyan", "green", "magenta", "yellow", "blue")


class LinePrinter:
    """Prints the lines of several processes, each behind its name in its colour."""

    def __init__(self, names: list[str], console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._width = max(map(len, names))
        self._styles = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}

    def __call__(self, name: str, line: str) -> None:
        """One line of one process."""
        self._console.print(Text(f"{name:<{self._width}} | ", style=self._styles.get(name, "white")) + Text(line))


def up(arguments: Mapping[str, str], lan: bool = False) -> int:
    """Run the node set until Ctrl-C, SIGTERM or the last node's end; returns 1 where a node ended by itself, else 0."""
    try:
        check_arguments(arguments)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    _check_files(arguments)
    arguments = fill_feedback_addresses(arguments)
    names = [node.executable for node in started_nodes(arguments)]
    commands_of_rviz: list[tuple[str, list[str]]] = []
    if arguments.get("rviz") == "true":
        commands_of_rviz = [("rviz2", _rviz_command(arguments))]
    printer = LinePrinter([*names, *(name for name, _ in commands_of_rviz)])
    supervisor = node_supervisor(arguments, printer, lan=lan)
    supervisor.commands = [*supervisor.commands, *commands_of_rviz]

    return run_until_signal(supervisor, printer)


def run_until_signal(supervisor: Supervisor, printer: LinePrinter) -> int:
    """Run processes until one of STOPS or the last one's end; 1 where one ended by itself, else 0."""
    stop = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal stop
        stop = True

    before: dict[int, Any] = {s: signal.signal(s, on_signal) for s in STOPS}
    try:
        supervisor.start()
        while not stop and (supervisor.processes or supervisor.respawn):
            supervisor.poll()
            time.sleep(0.05)
    finally:
        supervisor.stop()
        for number, handler in before.items():
            signal.signal(number, handler)
    for name, code in supervisor.ended.items():
        printer(name, f"had ended with {describe_exit(code)}")
    return 1 if supervisor.exits else 0


def _check_files(arguments: Mapping[str, str]) -> None:
    """Raises what the nodes would log, where they would stay and wait for a map by `load_terrain`."""
    check_params_file(arguments.get("params_file", ""))
    if arguments.get("map"):
        from rfly_terrain.files.search import find_map

        find_map(arguments["map"], node_parameters(TERRAIN, arguments).get("map_search_path", ()))
    if arguments.get("fleet"):
        from rfly_trajectory.fleet.fleet_file import load_fleet

        load_fleet(arguments["fleet"])
    if arguments.get("collision") == "true" and arguments.get("collision_shapes"):
        from rfly_collision.shapes.shape_file import load_shapes

        load_shapes(arguments["collision_shapes"])
    if arguments.get("shard"):
        from rfly_trajectory.fleet.shard import shard_range

        shard_range(arguments["shard"], 0)


def check_params_file(path: str) -> None:
    """Raises ConfigError for a ROS parameter file that no node could read."""
    if not path:
        return
    import yaml

    try:
        with open_regular(path, MAX_PARAMS_FILE_BYTES) as file:
            found = yaml.safe_load(file)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"params_file: {path}: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"params_file: {path}: expected node names with ros__parameters below them")


def _rviz_command(arguments: Mapping[str, str]) -> list[str]:
    program = shutil.which("rviz2")
    if program is None:
        raise ConfigError("rviz: rviz2 is not on the PATH; RViz comes with a ROS 2 installation")
    return [program, "-d", arguments.get("rviz_config") or str(rviz_config_path())]
