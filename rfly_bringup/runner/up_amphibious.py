"""`rfly up amphibious`: land-air vehicles with their sensors and controllers, without launch."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rfly_bringup.nodes.amphibious_set import FIRST_ID, StartedNode, amphibious_nodes, parameter_file, ros_arguments
from rfly_bringup.nodes.argument_files import check_params_file
from rfly_bringup.nodes.feedback_address import fill_feedback_addresses
from rfly_bringup.nodes.node_set import TERRAIN
from rfly_bringup.runner.demo_viewer import RFLY, VIEWER
from rfly_bringup.runner.supervisor import Supervisor, executable_path, node_environment
from rfly_bringup.runner.up import LinePrinter, run_until_signal, rviz_command
from rfly_common.errors import ConfigError
from rfly_common.imports import require


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
