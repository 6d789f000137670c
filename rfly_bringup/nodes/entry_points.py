# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Entry points of the nodes' executables.

They import little, so that signals are handled before a node's own imports begin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rfly_common.startup import run_node_module

_NODES = {
    "rfly_terrain": ("terrain_node", "planner_node"),
    "rfly_ue_bridge": ("ue_bridge_node", "ue_sensors_node", "coptersim_node"),
    "rfly_trajectory": ("trajectory_node", "avoidance_node"),
    "rfly_missions": ("mission_node",),
    "rfly_collision": ("collision_node",),
    "rfly_amphibious": ("amphibious_sim_node",),
    "rfly_autonomy": (
        "state_estimator_node",
        "flight_control_node",
        "chassis_control_node",
        "guidance_node",
        "teleop_node",
        "mapping_node",
    ),
    "rfly_mavlink": (
        "mavlink_node",
        "link_node",
        "mavlink_hil_node",
        "ardupilot_json_node",
        "motor_output_node",
    ),
    "rfly_lab": ("policy_node",),
    "rfly_bringup": ("recorder_node", "spawner_node"),
}

MODULES = {name: f"{package}.ros.{name}" for package, names in _NODES.items() for name in names}
"""Module of each executable, which defines the node's class."""
GIVEN = {"amphibious_sim_node": {"fail_safe": "rfly_autonomy.control.pilot:abort_pilot"}}
"""Parts of higher packages that a node is given when it is made, as `module:name`."""
SEVERAL = "rfly_nodes"
"""Name of the executable that runs several nodes in one process."""
MOTION_CONTROLLER = (
    "flight_control_node",
    "chassis_control_node",
    "state_estimator_node",
    "guidance_node",
)
"""Nodes of a land-air vehicle's motion controller, which share a process by default.

They wake hundreds of times a second.
"""
WAKE_OFTEN = (
    "amphibious_sim_node",
    "state_estimator_node",
    "flight_control_node",
    "chassis_control_node",
    "policy_node",
    "link_node",
    "mavlink_hil_node",
    "ardupilot_json_node",
    "recorder_node",
)
"""Nodes that wake hundreds of times a second in a process of their own."""


def __getattr__(name: str) -> Callable[[], None]:
    """Return the function that an executable calls.

    `terrain_node()` runs terrain_node until a stop.
    """
    if name not in (SEVERAL, *MODULES):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(run_node_module, "rfly_bringup.ros.executables", name)
