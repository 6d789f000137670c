"""Entry points of the nodes' executables, with signal handlers installed before any heavy import."""

from __future__ import annotations

from rfly_bringup.nodes import node_set
from rfly_common.startup import run_node_module


def terrain_node() -> None:
    """Executable `terrain_node`."""
    run_node_module(node_set.TERRAIN.module)


def ue_bridge_node() -> None:
    """Executable `ue_bridge_node`."""
    run_node_module(node_set.BRIDGE.module)


def trajectory_node() -> None:
    """Executable `trajectory_node`."""
    run_node_module(node_set.TRAJECTORY.module)


def mission_node() -> None:
    """Executable `mission_node`."""
    run_node_module(node_set.MISSION.module)


def planner_node() -> None:
    """Executable `planner_node`."""
    run_node_module(node_set.PLANNER.module)


def collision_node() -> None:
    """Executable `collision_node`."""
    run_node_module(node_set.COLLISION.module)


def teleop_node() -> None:
    """Executable `teleop_node`."""
    run_node_module("rfly_amphibious.ros.teleop_node")


def guidance_node() -> None:
    """Executable `guidance_node`."""
    run_node_module("rfly_amphibious.ros.guidance_node")


def amphibious_sim_node() -> None:
    """Executable `amphibious_sim_node`."""
    run_node_module("rfly_amphibious.ros.amphibious_sim_node")


def link_node() -> None:
    """Executable `link_node`."""
    run_node_module("rfly_amphibious.ros.link_node")


def mavlink_hil_node() -> None:
    """Executable `mavlink_hil_node`."""
    run_node_module("rfly_amphibious.ros.mavlink_hil_node")


def state_estimator_node() -> None:
    """Executable `state_estimator_node`."""
    run_node_module("rfly_amphibious.ros.state_estimator_node")


def flight_control_node() -> None:
    """Executable `flight_control_node`."""
    run_node_module("rfly_amphibious.ros.flight_control_node")


def chassis_control_node() -> None:
    """Executable `chassis_control_node`."""
    run_node_module("rfly_amphibious.ros.chassis_control_node")


def mapping_node() -> None:
    """Executable `mapping_node`."""
    run_node_module("rfly_amphibious.ros.mapping_node")


def betaflight_node() -> None:
    """Executable `betaflight_node`."""
    run_node_module("rfly_amphibious.ros.betaflight_node")
