# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Launch actions of the node set, for the launch files only, as they need launch."""

from __future__ import annotations

import difflib
import json
import logging
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rfly_bringup.nodes import node_set
from rfly_bringup.nodes.amphibious_set import (
    AMPHIBIOUS_ARGUMENTS,
    amphibious_processes,
    checked_nodes,
    start_commands,
)
from rfly_bringup.nodes.argument_files import check_params_file, checked_arguments
from rfly_bringup.nodes.entry_points import SEVERAL
from rfly_bringup.nodes.node_set import end_with_parent
from rfly_common.errors import ConfigError, RflyError

_OF_LAUNCH = ("launch-prefix", "launch-prefix-filter")
"""Arguments that launch itself understands."""


def launch_description(nodes: tuple[node_set.NodeDescription, ...], launch_file: str) -> Any:
    """Return a LaunchDescription of these nodes, with their arguments, and RViz on request.

    If an argument, a file that it names or an executable is wrong, nothing starts and launch ends
    with exit code 1.
    """
    return _description(
        arguments_of(nodes), launch_file, lambda arguments: _actions(arguments, nodes)
    )


def amphibious_description(launch_file: str) -> Any:
    """Return a LaunchDescription of land-air vehicles, as in `launch_description`."""
    return _description(AMPHIBIOUS_ARGUMENTS, launch_file, _amphibious_actions)


def _description(
    declared: Sequence[node_set.Argument], file: str, actions: Callable[[dict[str, str]], list[Any]]
) -> Any:
    """Return a LaunchDescription of declared arguments and the actions that they lead to.

    The first action refuses wrong arguments: launch's own refusal of a value speaks of a traceback.
    """
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    from launch import LaunchDescription

    def check(context: Any) -> None:
        given = context.launch_configurations
        _refuse_unknown_arguments(declared, file)
        node_set.check_choices(
            {a.name: given[a.name] for a in declared if a.name in given}, declared
        )

    def act(context: Any) -> list[Any]:
        return actions({a.name: context.launch_configurations[a.name] for a in declared})

    return LaunchDescription(
        [
            OpaqueFunction(function=_with_plain_errors(check)),
            *(
                DeclareLaunchArgument(
                    a.name,
                    default_value=a.default,
                    description=a.description,
                    choices=list(dict.fromkeys((a.default, *a.choices))) if a.choices else None,
                )
                for a in declared
            ),
            OpaqueFunction(function=_with_plain_errors(act)),
        ]
    )


def _with_plain_errors(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function whose expected errors launch logs by their own text alone.

    launch ends with exit code 1 after any error. Around its text it writes that an exception was
    caught, and where its traceback is.
    """

    def wrapped(context: Any) -> Any:
        try:
            return function(context)
        except (RflyError, ValueError) as error:
            _log_plainly(str(error))
            raise

    return wrapped


def _log_plainly(text: str) -> None:
    """Let launch's record that ends with this text show nothing else."""

    def only_text(record: logging.LogRecord) -> bool:
        if record.getMessage().endswith(text):
            record.msg, record.args = text, None
        return True

    logging.getLogger("launch").addFilter(only_text)


def arguments_of(nodes: tuple[node_set.NodeDescription, ...]) -> list[node_set.Argument]:
    """Return the arguments of these nodes, and those that concern all nodes."""
    concern_others = {"nodes"} if len(nodes) < len(node_set.NODES) else set()
    concern_others.update(*(node.arguments for node in node_set.NODES))
    concern_others.difference_update(*(node.arguments for node in nodes))
    return [a for a in node_set.ARGUMENTS if a.name not in concern_others]


def _refuse_unknown_arguments(declared: Sequence[node_set.Argument], file: str) -> None:
    """Raise ConfigError for a command-line argument that this launch file lacks; launch takes any.

    If another launch file includes this one, nothing is refused, as the arguments may be that
    file's.
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
    """Return the actions of the node set. Raise the errors of its arguments."""
    node_set.check_arguments(arguments)
    arguments, warning = checked_arguments(arguments)
    processes = node_set.node_processes(arguments, nodes)
    _check_params_file(arguments, [node for _, started in processes for node in started])
    actions = [_process_action(started, arguments) for _, started in processes]
    if warning:
        logging.getLogger("launch").warning(warning)
    return [*actions, *_rviz(arguments, "rfly.rviz")]


def _amphibious_actions(arguments: dict[str, str]) -> list[Any]:
    """Return the actions of land-air vehicles. Raise the errors of their arguments."""
    nodes, arguments = checked_nodes(arguments)
    _check_params_file(arguments, nodes)
    for line in start_commands(arguments["autopilot"], nodes):
        logging.getLogger("launch").info(line)
    return [
        *(
            _process_action(started, arguments)
            for _, started in amphibious_processes(nodes, arguments)
        ),
        *_rviz(arguments, "amphibious.rviz"),
    ]


def _check_params_file(arguments: Mapping[str, str], nodes: Sequence[node_set.StartedNode]) -> None:
    """Warn of names in the parameter file that no node has. Raise ConfigError for a wrong file."""
    for warning in check_params_file(arguments["params_file"], nodes):
        logging.getLogger("launch").warning(warning)


def _process_action(started: Sequence[node_set.StartedNode], arguments: Mapping[str, str]) -> Any:
    """Return the action of a process of one node or several."""
    if len(started) > 1:
        return _single_process_action(started, arguments)
    [node] = started
    if node.package != "rfly_suite":
        given = [_plain_texts(node.parameters)]
        return _node(node.package, node.executable, namespace=node.namespace, parameters=given)
    more = {"name": node.executable, "remappings": list(node.remappings.items())}
    urdf = {key: text for key, text in node.parameters.items() if key == "robot_description"}
    ours = {**node.parameters, **_plain_texts(urdf)}
    return _our_node(node.executable, node.namespace, ours, arguments, **more)


def _plain_texts(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters whose texts launch must not read as YAML, such as a URDF."""
    from launch_ros.parameter_descriptions import ParameterValue

    return {
        name: ParameterValue(v, value_type=str) if isinstance(v, str) else v
        for name, v in parameters.items()
    }


def _single_process_action(
    started: Sequence[node_set.StartedNode], arguments: Mapping[str, str]
) -> Any:
    """Return the action of one process with several nodes of the same namespace and remappings.

    The process has no name, because each of its nodes would get that name.
    """
    with tempfile.NamedTemporaryFile(
        "w", prefix="rfly_launch_", suffix=".yaml", delete=False
    ) as file:
        # JSON is YAML; the file stays, as launch's own do
        json.dump(node_set.parameter_file(started), file)
    names = [node.executable for node in started]
    more = {"arguments": names, "remappings": list(started[0].remappings.items())}
    return _our_node(SEVERAL, started[0].namespace, file.name, arguments, **more)


def _our_node(
    executable: str,
    namespace: str,
    parameters: Mapping[str, Any] | str,
    arguments: Mapping[str, str],
    /,
    **more: Any,
) -> Any:
    """Return the action of one of our executables; `parameters` may be the name of their file."""
    files = [arguments["params_file"]] if arguments["params_file"] else []
    return _node(
        "rfly_suite",
        executable,
        namespace=namespace,
        parameters=[*files, parameters] if parameters else files,
        ros_arguments=["--log-level", arguments["log_level"]] if arguments["log_level"] else [],
        respawn=arguments["respawn"] == "true",
        respawn_delay=1.0,
        **more,
    )


def _rviz(arguments: dict[str, str], shipped: str) -> list[Any]:
    """Return the action of RViz, if it is wanted."""
    if arguments["rviz"] != "true":
        return []
    from ament_index_python.packages import get_package_share_directory

    share = get_package_share_directory("rfly_suite")
    sim_time = arguments["use_sim_time"]
    namespace = arguments.get("namespace", "")
    return [
        _node(
            "rviz2",
            "rviz2",
            name="rviz",
            namespace=namespace,
            arguments=["-d", arguments["rviz_config"] or f"{share}/rviz/{shipped}"],
            parameters=[{"use_sim_time": sim_time == "true"}] if sim_time else [],
        )
    ]


def _node(package: str, executable: str, **options: Any) -> Any:
    """Return a Node action. Raise ConfigError without its executable.

    launch would notice that only when other nodes are running. The process ends with launch, even
    if that is killed.
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
    return Node(
        package=package,
        executable=executable,
        exec_name=executable,  # else the process would have the prefix's name
        prefix=[shlex.join(end_with_parent()), " ", _prefix_of_user(executable)],
        output="screen",
        **options,
    )


def _prefix_of_user(executable: str) -> Any:
    """Return the substitution of launch's own arguments `launch-prefix`, `launch-prefix-filter`.

    launch ignores them for a node with a prefix.
    """
    from launch import Substitution

    class PrefixOfUser(Substitution):
        def describe(self) -> str:
            return f"launch-prefix of {executable}"

        def perform(self, context: Any) -> str:
            given = context.launch_configurations
            applies = re.match(given.get("launch-prefix-filter", ""), executable)
            return str(given.get("launch-prefix", "")) if applies else ""

    return PrefixOfUser()
