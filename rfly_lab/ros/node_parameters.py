# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of policy_node. No ROS."""

from __future__ import annotations

from dataclasses import dataclass

from rfly_amphibious.ros.node_parameters import SENSORS, VEHICLE, VehicleNameParameters
from rfly_common.ros.node_parameters import FrameParameters, parameter
from rfly_terrain.ros.node_parameters import LatestTerrainParameters


@dataclass(frozen=True)
class PolicyParameters:
    """The policy, and what it is to do."""

    policy: str = parameter(
        "",
        "trained policy: an ONNX file of rfly_lab.write_policy, or a shipped one, such as hover",
    )
    vehicle: str = parameter("", f"{VEHICLE}; empty: that which the policy was trained for")
    sensors: str = parameter(
        "", f"{SENSORS}; empty: those by which the policy sees, or the vehicle's"
    )
    goal: list[float] = parameter(
        [],
        "first targets in the world: x, y and z of each, one after the other; empty: with "
        "autostart 3 m above the vehicle's place",
        unit="m",
    )
    autostart: bool = parameter(
        False, "arm and take off as soon as it is known where the vehicle is"
    )
    lock_step: bool = parameter(
        False, "answer each odometry/global by guidance_tick, which guided controllers wait for"
    )


NODES = {
    "policy_node": (
        VehicleNameParameters,
        PolicyParameters,
        FrameParameters,
        LatestTerrainParameters,
    )
}
