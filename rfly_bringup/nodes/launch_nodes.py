"""Launch actions of the node set. Read by the launch files only: launch is there where ROS 2 is."""

from __future__ import annotations

import difflib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rfly_bringup.nodes import node_set
from rfly_bringup.nodes.amphibious_set import AMPHIBIOUS_ARGUMENTS, amphibious_nodes
from rfly_bringup.nodes.argument_files import (
    check_files,
    check_params_file,
    fill_feedback_addresses,
    with_map_of_world,
)
from rfly_bringup.nodes.entry_points import SEVERAL
from rfly_common.errors import ConfigError

_OF_LAUNCH = ("launch-prefix", "launch-prefix-filter")
"""arguments that launch itself understands"""


def launch_description(nodes: tuple[node_set.NodeDescription, ...], launch_file: str) -> Any:
    """A LaunchDescription of these nodes, with the arguments that they and all nodes have, and RViz
    on request.

    Nothing is started where an argument, a file that it names or an executable is wrong; launch
    then ends with 1.
    """
    return _description(
        arguments_of(nodes), launch_file, lambda arguments: _actions(arguments, nodes)
    )


def amphibious_description(launch_file: str) -> Any:
    """A LaunchDescription of land-air vehicles; otherwise as `launch_description`."""
    return _description(AMPHIBIOUS_ARGUMENTS, launch_file, _amphibious_actions)


def _description(
    declared: Sequence[node_set.Argument], file: str, actions: Callable[[dict[str, str]], list[Any]]
) -> Any:
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    from launch import LaunchDescription

    def act(context: Any) -> list[Any]:
        _refuse_unknown_arguments(declared, file)
        return actions({a.name: context.launch_configurations[a.name] for a in declared})

    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(
                    a.name,
                    default_value=a.default,
                    description=a.description,
                    choices=list(dict.fromkeys((a.default, *a.choices))) if a.choices else None,
                )
                for a in declared
            ),
            OpaqueFunction(function=act),
        ]
    )


def arguments_of(nodes: tuple[node_set.NodeDescription, ...]) -> list[node_set.Argument]:
    """The arguments that some of these nodes take, and those that concern all nodes."""
    of_nodes, of_any_node = (
        {a for n in some for a in (*n.parameters.values(), *n.needs.split())}
        for some in (nodes, node_set.NODES)
    )
    return [a for a in node_set.ARGUMENTS if a.name in of_nodes or a.name not in of_any_node]


def _refuse_unknown_arguments(declared: Sequence[node_set.Argument], file: str) -> None:
    """Raises ConfigError for an argument on the command line that this launch file does not have:
    launch takes any.

    One that another launch file includes is left alone, as the arguments may be that file's.
    """
    words = sys.argv[1:]
    if not any(os.path.basename(word) == os.path.basename(file) for word in words):
        return
    known = [a.name for a in declared]
    for name in (word.partition(":=")[0] for word in words if ":=" in word):
        if name not in (*known, *_OF_LAUNCH):
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            raise ConfigError(f"{name}: no such argument; {hint}")


def _actions(arguments: dict[str, str], nodes: tuple[node_set.NodeDescription, ...]) -> list[Any]:
    node_set.check_arguments(arguments)
    arguments = with_map_of_world(arguments)
    check_files(arguments)
    if "feedback_bind" in arguments:
        arguments = fill_feedback_addresses(arguments)
    processes = node_set.node_processes(arguments, nodes)
    actions = [
        _several(started, arguments) if name == SEVERAL else _one(started[0], arguments)
        for name, started in processes
    ]
    return [*actions, *_rviz(arguments, "rfly.rviz")]


def _amphibious_actions(arguments: dict[str, str]) -> list[Any]:
    check_params_file(arguments["params_file"])
    arguments = fill_feedback_addresses(arguments)
    return [
        *(_one(node, arguments) for node in amphibious_nodes(arguments)),
        *_rviz(arguments, "amphibious.rviz"),
    ]


def _one(node: node_set.StartedNode, arguments: Mapping[str, str]) -> Any:
    if node.package != "rfly_suite":
        given = [_as_they_are(node.parameters)]
        return _node(node.package, node.executable, namespace=node.namespace, parameters=given)
    more = {"name": node.executable, "remappings": list(node.remappings.items())}
    return _our_node(node.executable, node.namespace, dict(node.parameters), arguments, **more)


def _as_they_are(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters whose texts launch does not read as YAML, such as a URDF."""
    from launch_ros.parameter_descriptions import ParameterValue

    return {
        name: ParameterValue(v, value_type=str) if isinstance(v, str) else v
        for name, v in parameters.items()
    }


def _several(started: Sequence[node_set.StartedNode], arguments: Mapping[str, str]) -> Any:
    """All nodes in one process; without a name, which would be that of each of them."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="rfly_launch_", suffix=".yaml", delete=False
    ) as file:
        json.dump(
            node_set.parameter_file(started), file
        )  # JSON is YAML; launch's own files stay there, too
    names = [node.executable for node in started]
    return _our_node(SEVERAL, arguments["namespace"], file.name, arguments, arguments=names)


def _our_node(
    executable: str,
    namespace: str,
    given: Mapping[str, Any] | str,
    arguments: Mapping[str, str],
    /,
    **more: Any,
) -> Any:
    """`given`: parameters, or the file of them."""
    files = [arguments["params_file"]] if arguments["params_file"] else []
    return _node(
        "rfly_suite",
        executable,
        namespace=namespace,
        parameters=[*files, given] if given else files,
        ros_arguments=["--log-level", arguments["log_level"]] if arguments["log_level"] else [],
        respawn=arguments["respawn"] == "true",
        respawn_delay=1.0,
        **more,
    )


def _rviz(arguments: dict[str, str], shipped: str) -> list[Any]:
    """RViz, where it is asked for."""
    if arguments["rviz"] != "true":
        return []
    from ament_index_python.packages import get_package_share_directory

    config = (
        arguments["rviz_config"] or f"{get_package_share_directory('rfly_suite')}/rviz/{shipped}"
    )
    sim_time = (
        [{"use_sim_time": arguments["use_sim_time"] == "true"}] if arguments["use_sim_time"] else []
    )
    namespace = arguments.get("namespace", "")
    return [
        _node(
            "rviz2",
            "rviz2",
            name="rviz",
            namespace=namespace,
            arguments=["-d", config],
            parameters=sim_time,
        )
    ]


def _node(package: str, executable: str, **options: Any) -> Any:
    """A Node action. Raises ConfigError where launch would find no such executable, once other
    nodes are running.
    """
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix
    from launch_ros.actions import Node

    try:
        prefix = get_package_prefix(package)
    except PackageNotFoundError:
        distro = os.environ.get("ROS_DISTRO", "jazzy")
        debian = f"ros-{distro}-{package.replace('_', '-')}"
        raise ConfigError(
            f"{executable}: package {package} is not installed (apt install {debian})"
        ) from None
    path = os.path.join(prefix, "lib", package, executable)
    if not os.access(path, os.X_OK):
        raise ConfigError(
            f"{executable}: package {package} is installed without it: there is no program {path}"
        )
    return Node(package=package, executable=executable, output="screen", **options)
