"""Launch actions of the node set. Read by the launch files only: launch is there where ROS 2 is."""

from __future__ import annotations

from typing import Any

from rfly_bringup.nodes.amphibious_set import AMPHIBIOUS_ARGUMENTS, amphibious_nodes
from rfly_bringup.nodes.feedback_address import fill_feedback_addresses
from rfly_bringup.nodes.node_set import (
    ARGUMENTS,
    NODES,
    NodeDescription,
    check_arguments,
    node_parameters,
    started_nodes,
)


def launch_description(nodes: tuple[NodeDescription, ...]) -> Any:
    """A LaunchDescription of these nodes, with the arguments that they and all nodes have, and RViz on request."""
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    from launch import LaunchDescription

    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(a.name, default_value=a.default, description=a.description)
                for a in arguments_of(nodes)
            ),
            OpaqueFunction(function=_actions, args=[nodes]),
        ]
    )


def arguments_of(nodes: tuple[NodeDescription, ...]) -> list[Any]:
    """The arguments that some of these nodes take, and those that concern all nodes."""
    of_nodes, of_any_node = (
        {a for n in some for a in (*n.parameters.values(), *n.needs.split())} for some in (nodes, NODES)
    )
    return [a for a in ARGUMENTS if a.name in of_nodes or a.name not in of_any_node]


def _actions(context: Any, nodes: tuple[NodeDescription, ...]) -> list[Any]:
    from launch_ros.actions import Node

    arguments = {a.name: context.launch_configurations[a.name] for a in arguments_of(nodes)}
    check_arguments(arguments)
    if "feedback_bind" in arguments:
        arguments = fill_feedback_addresses(arguments)
    log_level = ["--log-level", arguments["log_level"]] if arguments["log_level"] else []
    actions = []
    for node in started_nodes(arguments, nodes):
        given = node_parameters(node, arguments)
        files = [arguments["params_file"]] if arguments["params_file"] else []
        actions.append(
            Node(
                package="rfly_suite",
                executable=node.executable,
                name=node.executable,
                namespace=arguments["namespace"],
                parameters=[*files, given] if given else files,
                ros_arguments=log_level,
                respawn=arguments["respawn"] == "true",
                respawn_delay=1.0,
                output="screen",
            )
        )
    if arguments["rviz"] == "true":
        actions.append(_rviz(arguments))
    return actions


def _rviz(arguments: dict[str, str]) -> Any:
    from ament_index_python.packages import get_package_share_directory
    from launch_ros.actions import Node

    config = arguments["rviz_config"] or f"{get_package_share_directory('rfly_suite')}/rviz/rfly.rviz"
    sim_time = [{"use_sim_time": arguments["use_sim_time"] == "true"}] if arguments["use_sim_time"] else []
    return Node(
        package="rviz2",
        executable="rviz2",
        name="rviz",
        namespace=arguments["namespace"],
        arguments=["-d", config],
        parameters=sim_time,
        output="screen",
    )


def amphibious_description() -> Any:
    """A LaunchDescription of land-air vehicles."""
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    from launch import LaunchDescription

    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(a.name, default_value=a.default, description=a.description)
                for a in AMPHIBIOUS_ARGUMENTS
            ),
            OpaqueFunction(function=_amphibious_actions),
        ]
    )


def _amphibious_actions(context: Any) -> list[Any]:
    from launch_ros.actions import Node

    arguments = fill_feedback_addresses({a.name: context.launch_configurations[a.name] for a in AMPHIBIOUS_ARGUMENTS})
    return [
        Node(
            package="rfly_suite",
            executable=node.executable,
            name=node.executable,
            namespace=node.namespace,
            parameters=[*([arguments["params_file"]] if arguments["params_file"] else []), dict(node.parameters)],
            remappings=list(node.remappings.items()),
            ros_arguments=["--log-level", arguments["log_level"]] if arguments["log_level"] else [],
            respawn=arguments["respawn"] == "true",
            respawn_delay=1.0,
            output="screen",
        )
        for node in amphibious_nodes(arguments)
    ]
