"""Node set of the suite, described once for the launch files and `rfly up`. Standard library only."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Argument:
    """An argument of the launch files, and the option of the same name of `rfly up`. Empty means: not given."""

    name: str
    description: str
    default: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeDescription:
    """One executable. `parameters` maps the node's parameters to the arguments that set them; the node is started only
    where one of the arguments that `needs` names, separated by spaces, is given, and not `false`."""

    executable: str
    description: str
    parameters: Mapping[str, str]
    needs: str = ""


ARGUMENTS = (
    Argument("map", "terrain: a name on the search path, or the path of its png or txt"),
    Argument("map_search_path", f"folders that are searched for maps first, separated by {os.pathsep!r}"),
    Argument("world", "what stands on the map: a world file or a shipped one's name (map: by default the world's)"),
    Argument("fleet", "fleet file: a path, or the name of a shipped one"),
    Argument("shard", "which part of the fleet is driven here, i/n with i from 0 to n - 1 (default 0/1: all)"),
    Argument("start_time", "ROS time at which the fleet starts, s (default: with a fleet that runs, else at once)"),
    Argument("time_scale", "seconds of the fleet in a second (default 1; 0 stands still)"),
    Argument(
        "file_folders",
        "folders below which load_fleet and missions may read files that their callers name, separated by "
        f"{os.pathsep!r}",
    ),
    Argument("mission_vehicles", "names of vehicles that fly missions, separated by commas: starts mission_node too"),
    Argument(
        "mavlink",
        "vehicles that fly missions speak MAVLink to ground stations: starts mavlink_node too",
        default="false",
        choices=("true", "false"),
    ),
    Argument("collision", "report what touches: starts collision_node too", default="false", choices=("true", "false")),
    Argument("collision_shapes", "shapes of vehicle types: a file, or the name of a shipped set (default rflysim3d)"),
    Argument(
        "vehicle_xml", "vehicle XML of RflySim3D for those shapes, a file or a folder: heights and sizes of types"
    ),
    Argument(
        "planner", "plan paths over the terrain: starts planner_node too", default="false", choices=("true", "false")
    ),
    Argument("goal_vehicle", "vehicle that goes to RViz's goal_pose: starts planner_node too"),
    Argument("vehicle_classes", "vehicle classes of the planner: a file (default: the shipped one)"),
    Argument("host", "where RflySim3D runs (default 127.0.0.1)"),
    Argument("windows", "how many RflySim3D windows there are at the host (2: windows 0 and 1, ports 20010 and 20011)"),
    Argument("feedback_bind", "address of this machine for RflySim3D's answers (default: the one that faces the host)"),
    Argument(
        "feedback_multicast_interface",
        "address of the interface for RflySim3D's multicast (default: feedback_bind's where the host is elsewhere)",
    ),
    Argument("frame_id", "frame of the cloud, of the vehicles and of RflySim3D's answers", choices=("map", "map_ned")),
    Argument("namespace", "namespace of all nodes"),
    Argument("use_sim_time", "take the time from /clock", choices=("true", "false")),
    Argument("params_file", "ROS parameter file: wins over the nodes' defaults; an argument given here wins over it"),
    Argument("log_level", "lowest level that is logged", choices=("debug", "info", "warn", "error", "fatal")),
    Argument("respawn", "start a node that died again", default="false", choices=("true", "false")),
    Argument(
        "single_process",
        "all nodes in one process: less memory, but one that is busy keeps the others waiting",
        default="false",
        choices=("true", "false"),
    ),
    Argument(
        "record",
        "record all topics to an MCAP file, true (rfly_DATE_TIME.mcap in the current folder) or the file's name: "
        "starts recorder_node too",
        default="false",
    ),
    Argument("rviz", "start RViz too", default="false", choices=("true", "false")),
    Argument("rviz_config", "RViz configuration (default: the shipped one)"),
)

TERRAIN = NodeDescription(
    "terrain_node",
    "publishes the terrain, answers altitude queries",
    {"map": "map", "map_search_path": "map_search_path", "frame_id": "frame_id"},
)
BRIDGE = NodeDescription(
    "ue_bridge_node",
    "sends vehicles to RflySim3D, publishes what it answers",
    {
        "host": "host",
        "windows": "windows",
        "feedback_bind": "feedback_bind",
        "feedback_multicast_interface": "feedback_multicast_interface",
        "frame_id": "frame_id",
        "map_search_path": "map_search_path",
        "world": "world",
    },
)
TRAJECTORY = NodeDescription(
    "trajectory_node",
    "drives a fleet over the terrain",
    {
        "fleet": "fleet",
        "file_folders": "file_folders",
        "shard": "shard",
        "start_time": "start_time",
        "time_scale": "time_scale",
        "frame_id": "frame_id",
        "map_search_path": "map_search_path",
    },
)
MISSION = NodeDescription(
    "mission_node",
    "flies missions",
    {
        "vehicles": "mission_vehicles",
        "file_folders": "file_folders",
        "frame_id": "frame_id",
        "map_search_path": "map_search_path",
    },
    needs="mission_vehicles",
)
MAVLINK = NodeDescription(
    "mavlink_node",
    "speaks MAVLink with ground stations",
    {"vehicles": "mission_vehicles", "map_search_path": "map_search_path", "log_folder": "record"},
    needs="mavlink",
)
COLLISION = NodeDescription(
    "collision_node",
    "reports which vehicles, placed objects and ground touch",
    {
        "shapes": "collision_shapes",
        "vehicle_xml": "vehicle_xml",
        "frame_id": "frame_id",
        "map_search_path": "map_search_path",
    },
    needs="collision",
)
PLANNER = NodeDescription(
    "planner_node",
    "plans paths over the terrain",
    {"goal_vehicle": "goal_vehicle", "vehicle_classes": "vehicle_classes", "map_search_path": "map_search_path"},
    needs="planner goal_vehicle",
)
RECORDER = NodeDescription("recorder_node", "records topics to an MCAP file", {"file": "record"}, needs="record")

NODES = (RECORDER, TERRAIN, BRIDGE, TRAJECTORY, MISSION, MAVLINK, COLLISION, PLANNER)
"""In the order in which they start."""

_INTEGERS = frozenset({"windows"})
_NUMBERS = frozenset({"start_time", "time_scale", "real_time_factor"})
_SWITCHES = frozenset({"lock_step", "noise", "autostart"})
_LISTS = {"map_search_path": os.pathsep, "file_folders": os.pathsep, "mission_vehicles": ","}


def node_parameters(node: NodeDescription, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The parameters that the given (non-empty) arguments set on a node, with their ROS types.

    Raises ValueError that names an argument whose value does not fit.
    """
    parameters: dict[str, Any] = {}
    for parameter, argument in node.parameters.items():
        text = arguments.get(argument, "")
        if text == "" or (argument, text) == ("record", "true"):
            continue
        if argument in _INTEGERS:
            try:
                parameters[parameter] = int(text)
            except ValueError:
                raise ValueError(f"{argument}: {text!r} is not a whole number") from None
            if parameters[parameter] < 1:
                raise ValueError(f"{argument}: {text!r} is not a whole number from 1 on")
        elif argument in _NUMBERS:
            try:
                parameters[parameter] = float(text)
            except ValueError:
                raise ValueError(f"{argument}: {text!r} is not a number") from None
            if not 0.0 <= parameters[parameter] < math.inf:
                raise ValueError(f"{argument}: {text!r} is not a number from 0 on")
        elif argument in _SWITCHES:
            parameters[parameter] = text == "true"
        elif argument in _LISTS:
            parts = (part.strip() for part in text.split(_LISTS[argument]))
            parameters[parameter] = [part for part in parts if part]
        else:
            parameters[parameter] = text
    if arguments.get("use_sim_time"):
        parameters["use_sim_time"] = arguments["use_sim_time"] == "true"
    return parameters


def parameters_by_node(
    nodes: Sequence[NodeDescription],
    arguments: Mapping[str, str],
    extra: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Content of a ROS parameter file that names each node in full; `extra` gives further parameters by executable."""
    namespace = "/" + arguments.get("namespace", "").strip("/")
    given = {
        f"{namespace.rstrip('/')}/{node.executable}": {
            **node_parameters(node, arguments),
            **(extra or {}).get(node.executable, {}),
        }
        for node in nodes
    }
    return {name: {"ros__parameters": parameters} for name, parameters in given.items() if parameters}


def started_nodes(arguments: Mapping[str, str], nodes: Sequence[NodeDescription] = NODES) -> list[NodeDescription]:
    """Those of the nodes that these arguments start."""

    def is_needed(node: NodeDescription) -> bool:
        return not node.needs or any(arguments.get(name, "") not in ("", "false") for name in node.needs.split())

    return [node for node in nodes if is_needed(node)]


def check_arguments(
    arguments: Mapping[str, str],
    known_arguments: Sequence[Argument] = ARGUMENTS,
    nodes: Sequence[NodeDescription] = NODES,
) -> None:
    """Raises ValueError for a name or a value that no argument has, or a file that is not there."""
    known = {a.name: a for a in known_arguments}
    for name, value in arguments.items():
        if name not in known:
            raise ValueError(f"{name}: no such argument; there are {', '.join(known)}")
        choices = known[name].choices
        if value and choices and value not in choices:
            raise ValueError(f"{name}: {value!r}, expected one of {', '.join(choices)}")
    for name in ("params_file", "rviz_config"):
        path = arguments.get(name, "")
        if path and not os.path.isfile(path):
            raise ValueError(f"{name}: there is no file {path!r}")
    for node in nodes:
        node_parameters(node, arguments)
