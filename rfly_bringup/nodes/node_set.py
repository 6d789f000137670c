# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Node set of the suite, described once for the launch files and `rfly up`.

It needs only the standard library.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rfly_bringup.nodes.entry_points import SEVERAL


@dataclass(frozen=True)
class Argument:
    """Argument of the launch files, and option of the same name of `rfly up`.

    An empty text means: not given.
    """

    name: str
    description: str
    default: str = ""
    choices: tuple[str, ...] = ()


def switch(name: str, description: str, default: str = "false") -> Argument:
    """Return an argument that is true or false."""
    return Argument(name, description, default, ("true", "false"))


@dataclass(frozen=True)
class NodeDescription:
    """Description of one executable.

    `parameters` maps the node's parameters to the arguments that set them. `needs` names arguments,
    separated by spaces; the node starts only if one of them is given and not `false`.
    """

    executable: str
    parameters: Mapping[str, str]
    needs: str = ""

    @property
    def arguments(self) -> frozenset[str]:
        """Names of the arguments that set its parameters or start it."""
        return frozenset((*self.parameters.values(), *self.needs.split()))


def same(*names: str) -> dict[str, str]:
    """Return parameters with the names of the arguments that set them."""
    return {name: name for name in names}


@dataclass(frozen=True)
class StartedNode:
    """An executable in a namespace, with its parameters and remappings."""

    executable: str
    namespace: str = ""
    """Namespace, "" for none."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    remappings: Mapping[str, str] = field(default_factory=dict)
    package: str = "rfly_suite"
    node_name: str = ""
    """Name of the node, "" for the executable's."""

    @property
    def label(self) -> str:
        """Name of the node in the output, with its namespace."""
        return "/".join(
            filter(None, (self.namespace.strip("/"), self.node_name or self.executable))
        )


NAMESPACE = re.compile(r"/?([A-Za-z_]\w*(/[A-Za-z_]\w*)*/?)?", re.ASCII)
"""Namespaces that ROS accepts; a slash at the ends does not matter."""
LONGEST_NAMESPACE = 200
"""Characters of a namespace: names of topics with it must fit into 255."""

ARGUMENTS = (
    Argument("map", "terrain: a name on the search path, or the path of its png or txt"),
    Argument(
        "map_search_path",
        "folders to search for maps first, or http(s) addresses of folders with tiles, separated "
        f"by {os.pathsep!r}",
    ),
    Argument(
        "imagery",
        "picture of the ground for RViz, cameras and --view: path of a GeoTIFF, or of a picture "
        "with three points in NAME.csv",
    ),
    Argument(
        "world",
        "objects on the map: a world file or a shipped one's name (map: by default the world's)",
    ),
    Argument("fleet", "fleet file: a path, or the name of a shipped one"),
    Argument(
        "shard",
        "part of the fleet that is driven here, i/n with i from 0 to n - 1 (default 0/1: all)",
    ),
    Argument(
        "area",
        "x0,y0,x1,y1 in m: the vehicles in this part of the map are driven here, the others by "
        "hosts that share the ROS graph; -inf and inf are no border (--area=-inf,-inf,0,inf)",
    ),
    Argument(
        "start_time",
        "ROS time at which the fleet starts, s (default: with a running fleet, else at once)",
    ),
    Argument("time_scale", "fleet seconds per second (default 1; 0 stands still)"),
    Argument(
        "avoidance",
        "whether the fleet's vehicles leave their tracks, or wait, to keep clear of each other and "
        "of objects (default false)",
        choices=("true", "false"),
    ),
    Argument(
        "guarded_robots",
        "names of robots of any make, separated by commas, whose cmd_vel_wish becomes a cmd_vel "
        "that keeps them clear of each other: starts avoidance_node too",
    ),
    Argument(
        "file_folders",
        "folders from which load_fleet and missions may read the files that their callers name, "
        f"separated by {os.pathsep!r}",
    ),
    Argument(
        "mission_vehicles",
        "names of vehicles that fly missions, separated by commas: starts mission_node too",
    ),
    switch(
        "mavlink",
        "vehicles that fly missions speak MAVLink to ground stations: starts mavlink_node too",
    ),
    switch(
        "spawner",
        "land-air vehicles can be spawned, with mavlink as MAVLink vehicles: starts spawner_node "
        "too",
    ),
    switch("collision", "report contacts: starts collision_node too"),
    Argument(
        "collision_shapes",
        "shapes of vehicle types: a file, or the name of a shipped set (default rflysim3d)",
    ),
    Argument(
        "vehicle_xml",
        "vehicle XML of RflySim3D for those shapes, a file or a folder: heights and sizes of types",
    ),
    switch("planner", "plan paths over the terrain: starts planner_node too"),
    Argument("goal_vehicle", "vehicle that goes to RViz's goal_pose: starts planner_node too"),
    Argument(
        "vehicle_classes",
        "vehicle classes of the planner: a file (default: the shipped one)",
    ),
    Argument("host", "where RflySim3D runs (default 127.0.0.1)"),
    Argument(
        "windows",
        "number of RflySim3D windows at the host (2: windows 0 and 1, ports 20010 and 20011)",
    ),
    Argument(
        "scene",
        "whether RflySim3D's map follows the terrain, or the terrain RflySim3D's map (default off)",
        choices=("off", "follow", "lead"),
    ),
    Argument(
        "ue_sensors",
        "RflySim's Config.json of RflySim3D's cameras and lidars: starts ue_sensors_node too",
    ),
    Argument(
        "feedback_bind",
        "address of this machine for RflySim3D's answers (default: the one that faces the host)",
    ),
    Argument(
        "feedback_multicast_interface",
        "address of the interface for RflySim3D's multicast (default: feedback_bind's if the host "
        "is elsewhere)",
    ),
    Argument(
        "frame_id",
        "frame of the cloud, of the vehicles and of RflySim3D's answers",
        choices=("map", "map_ned"),
    ),
    Argument("namespace", "namespace of all nodes"),
    Argument("use_sim_time", "take the time from /clock", choices=("true", "false")),
    Argument(
        "params_file",
        "ROS parameter file: wins over the nodes' defaults; an argument given here wins over it",
    ),
    Argument(
        "log_level",
        "lowest level to log",
        choices=("debug", "info", "warn", "error", "fatal"),
    ),
    Argument(
        "nodes",
        "only these nodes, separated by commas: terrain, ue_bridge, trajectory, avoidance, "
        "mission, mavlink, spawner, collision, planner, ue_sensors, recorder (default: the first "
        "three, and those that other arguments need)",
    ),
    switch("respawn", "restart a node that dies"),
    switch(
        "single_process",
        "all nodes in one process: less memory, but a busy node delays the others",
    ),
    Argument(
        "record",
        "record all topics but pictures to an MCAP file of up to 4 GB, true (rfly_DATE_TIME.mcap "
        "in the current folder) or the file's name: starts recorder_node too",
        default="false",
    ),
    switch("record_pictures", "with record: record pictures too"),
    switch("rviz", "start RViz too"),
    Argument("rviz_config", "RViz configuration (default: the shipped one)"),
)

TERRAIN = NodeDescription("terrain_node", same("map", "map_search_path", "imagery", "frame_id"))
BRIDGE = NodeDescription(
    "ue_bridge_node",
    same(
        "host",
        "windows",
        "feedback_bind",
        "feedback_multicast_interface",
        "frame_id",
        "map_search_path",
        "world",
        "scene",
    ),
)
UE_SENSORS = NodeDescription(
    "ue_sensors_node",
    {"config": "ue_sensors", "bind": "feedback_bind"} | same("host"),
    needs="ue_sensors",
)
TRAJECTORY = NodeDescription(
    "trajectory_node",
    same(
        "fleet",
        "file_folders",
        "shard",
        "area",
        "start_time",
        "time_scale",
        "avoidance",
        "frame_id",
        "map_search_path",
    ),
)
AVOIDANCE = NodeDescription(
    "avoidance_node",
    {"robots": "guarded_robots"} | same("map_search_path"),
    needs="guarded_robots",
)
MISSION = NodeDescription(
    "mission_node",
    {"vehicles": "mission_vehicles"} | same("file_folders", "frame_id", "map_search_path"),
    needs="mission_vehicles",
)
MAVLINK = NodeDescription(
    "mavlink_node",
    {
        "vehicles": "mission_vehicles",
        "map_search_path": "map_search_path",
        "log_folder": "record",
    },
    needs="mavlink",
)
COLLISION = NodeDescription(
    "collision_node",
    {"shapes": "collision_shapes"} | same("vehicle_xml", "frame_id", "map_search_path"),
    needs="collision",
)
PLANNER = NodeDescription(
    "planner_node",
    same("goal_vehicle", "vehicle_classes", "map_search_path"),
    needs="planner goal_vehicle",
)
SPAWNER = NodeDescription("spawner_node", same("mavlink", "map_search_path"), needs="spawner")
RECORDER = NodeDescription(
    "recorder_node", {"file": "record", "pictures": "record_pictures"}, needs="record"
)

NODES = (
    RECORDER,
    TERRAIN,
    BRIDGE,
    TRAJECTORY,
    AVOIDANCE,
    MISSION,
    MAVLINK,
    SPAWNER,
    COLLISION,
    PLANNER,
    UE_SENSORS,
)
"""Nodes in the order of their start."""

_WHOLE_NUMBERS = frozenset({"windows"})
_NUMBERS = _WHOLE_NUMBERS | {"start_time", "time_scale", "real_time_factor"}
_SWITCHES = frozenset(
    {"autostart", "avoidance", "lock_step", "mavlink", "noise", "record_pictures"}
)
_LISTS = {
    "map_search_path": os.pathsep,
    "file_folders": os.pathsep,
    "mission_vehicles": ",",
    "guarded_robots": ",",
}
_NUMBER_LISTS = frozenset({"area"})


def node_parameters(node: NodeDescription, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters that the given (non-empty) arguments set on a node, with ROS types.

    Raise ValueError that names an argument whose value does not fit.
    """
    parameters: dict[str, Any] = {}
    for parameter, argument in node.parameters.items():
        text = arguments.get(argument, "")
        if text == "" or (argument == "record" and text in ("true", "false")):
            continue
        if argument in _NUMBERS:
            parameters[parameter] = _number(argument, text)
        elif argument in _SWITCHES:
            parameters[parameter] = text == "true"
        elif argument in _LISTS:
            parameters[parameter] = split_list(text, _LISTS[argument])
        elif argument in _NUMBER_LISTS:
            parameters[parameter] = _number_list(argument, text)
        else:
            parameters[parameter] = text

    if arguments.get("use_sim_time"):
        parameters["use_sim_time"] = arguments["use_sim_time"] == "true"
    return parameters


def split_list(text: str, separator: str = os.pathsep) -> list[str]:
    """Return the parts of a list, without spaces around them. Addresses keep their colons."""
    end = re.escape(separator)
    host = rf"(?:\[[^\]]*\]|[^/{end}]*)(?::\d+)?"
    parts = re.findall(rf"\s*https?://{host}[^{end}]*|[^{end}]+", text)
    return [part.strip() for part in parts if part.strip()]


def _number(argument: str, text: str) -> int | float:
    """Return an argument as a number. Raise ValueError."""
    is_whole = argument in _WHOLE_NUMBERS
    kind = int if is_whole else float
    least = 1 if is_whole else 0
    expected = "a whole number" if is_whole else "a number"
    try:
        number = kind(text)
    except ValueError:
        raise ValueError(f"{argument}: {text!r} is not {expected}") from None
    if not least <= number < math.inf:
        raise ValueError(f"{argument}: {text!r} is not {expected}, at least {least}")
    return number


def _number_list(argument: str, text: str) -> list[float]:
    """Return an argument of numbers with commas between. Raise ValueError."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"{argument}: {text!r} is not a list of numbers such as 0,0,10,10"
        ) from None


def parameter_file(nodes: Sequence[StartedNode]) -> dict[str, Any]:
    """Return the content of a ROS parameter file for these nodes.

    It wins over a file of the user, as it names each node in full.
    """
    return {
        f"/{node.label}": {"ros__parameters": dict(node.parameters)}
        for node in nodes
        if node.parameters
    }


def ros_arguments(node: StartedNode, log_level: str, files: Iterable[str | Path]) -> list[str]:
    """Return the words after `--ros-args` on the command line of a node."""
    namespace = node.namespace.strip("/")
    arguments = ["-r", f"__ns:=/{namespace}"] if namespace else []
    if node.node_name:
        arguments += ["-r", f"__node:={node.node_name}"]
    for topic, other in node.remappings.items():
        arguments += ["-r", f"{topic}:={other}"]
    if log_level:
        arguments += ["--log-level", log_level]
    for file in files:
        arguments += ["--params-file", str(file)]
    return arguments


def started_nodes(
    arguments: Mapping[str, str], nodes: Sequence[NodeDescription] = NODES
) -> list[NodeDescription]:
    """Return those of the nodes that these arguments start.

    Raise ValueError for a name in `nodes` that no node has.
    """
    if arguments.get("nodes"):
        return _chosen_nodes(arguments["nodes"], nodes)

    def is_needed(node: NodeDescription) -> bool:
        return not node.needs or any(is_given(arguments, name) for name in node.needs.split())

    return [node for node in nodes if is_needed(node)]


def is_given(arguments: Mapping[str, str], name: str) -> bool:
    """Return whether an argument is neither empty nor `false`."""
    return arguments.get(name, "") not in ("", "false")


def _chosen_nodes(names: str, nodes: Sequence[NodeDescription]) -> list[NodeDescription]:
    """Return the nodes that the argument `nodes` names, in the order of their start."""
    chosen = {name.strip().removesuffix("_node") for name in names.split(",") if name.strip()}
    known = {node.executable.removesuffix("_node"): node for node in nodes}
    unknown = chosen - known.keys()
    if unknown or not chosen:
        name = min(unknown, default=names)
        raise ValueError(f"nodes: there is no node {name!r}; there are {', '.join(known)}")
    return [node for name, node in known.items() if name in chosen]


def node_processes(
    arguments: Mapping[str, str],
    nodes: Sequence[NodeDescription] = NODES,
    extra: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[tuple[str, list[StartedNode]]]:
    """Return the processes that these arguments start, with the name of each.

    `extra` holds further parameters by node.
    """
    started = [
        StartedNode(
            node.executable,
            arguments.get("namespace", ""),
            node_parameters(node, arguments) | dict((extra or {}).get(node.executable, {})),
        )
        for node in started_nodes(arguments, nodes)
    ]
    if arguments.get("single_process") == "true":
        return [(SEVERAL, started)]
    return [(node.executable, [node]) for node in started]


def check_choices(arguments: Mapping[str, str], known_arguments: Sequence[Argument]) -> None:
    """Raise ValueError for an unknown argument, or a value that is none of its choices."""
    known = {argument.name: argument for argument in known_arguments}
    for name, value in arguments.items():
        if name not in known:
            raise ValueError(f"{name}: no such argument; there are {', '.join(known)}")
        choices = known[name].choices
        if value and choices and value not in choices:
            raise ValueError(f"{name}: {value!r}, expected one of {', '.join(choices)}")


def check_arguments(
    arguments: Mapping[str, str],
    known_arguments: Sequence[Argument] = ARGUMENTS,
    nodes: Sequence[NodeDescription] = NODES,
) -> None:
    """Raise ValueError for an unknown argument, a wrong value, or a file that does not exist."""
    check_choices(arguments, known_arguments)
    namespace = arguments.get("namespace", "")
    if not NAMESPACE.fullmatch(namespace) or len(namespace) > LONGEST_NAMESPACE:
        raise ValueError(
            f"namespace: {namespace!r}, expected words of letters, digits and _ that begin with no "
            f"digit, joined by single /; at most {LONGEST_NAMESPACE} characters"
        )

    for name in ("params_file", "rviz_config", "ue_sensors"):
        path = arguments.get(name, "")
        if path and not os.path.isfile(path):
            raise ValueError(f"{name}: there is no file {path!r}")

    for node in nodes:
        node_parameters(node, arguments)

    # arguments that only nodes understand which are left out
    started = started_nodes(arguments, nodes)
    understood = {name for node in started for name in node.arguments}
    if arguments.get("nodes"):
        for node in nodes:
            for name in sorted(node.arguments - understood):
                if is_given(arguments, name):
                    raise ValueError(f"{name}: it is for {node.executable}, which nodes leaves out")


def end_with_parent() -> list[str]:
    """Return the words before a command that shall get SIGTERM when this process ends in any way.

    They are [] outside Linux. The shell makes sure that this process had not ended before the
    system knew of the wish.
    """
    guard = shutil.which("setpriv") if sys.platform == "linux" else None
    if guard is None:
        return []
    return [
        guard,
        "--pdeathsig",
        "TERM",
        "sh",
        "-c",
        '[ "$PPID" = "$0" ] && exec "$@"',
        str(os.getpid()),
    ]
