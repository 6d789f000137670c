# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of trajectory_node. No ROS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rfly_common.ros.node_parameters import FrameParameters, parameter
from rfly_terrain.ros.node_parameters import LatestTerrainParameters
from rfly_trajectory.fleet.run_clock import MAX_TIME_SCALE

PER_VEHICLE_LIMIT = 20
"""Largest number of vehicles of a node for which `publish_per_vehicle: auto` publishes poses,
paths and transforms.
"""
FIRST_ID = 501
"""Id of the first vehicle without an id of its own; the next ones count up."""


def marker_scale_parameter() -> Any:
    """Return the parameter `marker_scale`, which several nodes have."""
    text = "size of the vehicles in fleet_markers, their names and paths, times their true size"
    return parameter(4.0, text, low=0.01, high=1e4)


@dataclass(frozen=True)
class TrajectoryParameters:
    """Parameters of the fleet that trajectory_node drives and of its topics."""

    fleet: str = parameter("demo_convoy", "fleet file: a path, or the name of a shipped one")
    file_folders: list[str] = parameter(
        [],
        "folders from which ~/load_fleet may read; empty: shipped fleets only",
    )
    rate: float = parameter(50.0, "published states per second", unit="Hz", low=0.1, high=1000.0)
    frame_id: Literal["map", "map_ned"] = parameter(
        "map", "frame of all output: map (ENU) or map_ned (RflySim's axes)"
    )
    publish_per_vehicle: Literal["auto", "always", "never"] = parameter(
        "auto",
        "publish <name>/pose, <name>/path, <name>/follow_path and /tf for each vehicle; auto: if "
        f"the node drives at most {PER_VEHICLE_LIMIT} vehicles of the fleet file; spawned vehicles "
        "are treated alike",
    )
    marker_scale: float = marker_scale_parameter()
    first_spawned_id: int = parameter(
        5001,
        "RflySim copterID of the first spawned vehicle; later ones take the next free ids",
        low=1,
        high=2**30,
    )
    avoidance: bool = parameter(
        False,
        "vehicles leave their tracks, or wait, to keep clear of each other, of placed_objects and "
        "of the ground, and come back; those of one node know each other only",
    )
    shard: str = parameter(
        "0/1",
        "part of the fleet that this node drives, as i/n with i from 0 to n - 1: 1/4 is the "
        "second quarter",
    )
    area: list[float] = parameter(
        [],
        "part of the map whose vehicles this node drives, as x0, y0, x1, y1 in map (ENU), also "
        ".inf: x0 <= x < x1 and y0 <= y < y1; the nodes of the other areas are on /fleet_areas; "
        "empty: everywhere",
        unit="m",
    )


@dataclass(frozen=True)
class RunControlParameters:
    """Parameters that set when a fleet starts and how fast its time runs."""

    start_time: float = parameter(
        0.0,
        "ROS time at which the fleet starts, s; 0: with a fleet that already runs (fleet_start), "
        "else at the next whole second",
        low=0.0,
    )
    time_scale: float = parameter(
        1.0,
        "fleet seconds per second of ROS time; 0 stops the fleet; may be changed at any time",
        low=0.0,
        high=MAX_TIME_SCALE,
        changeable=True,
    )


NODES = {
    "trajectory_node": (
        TrajectoryParameters,
        RunControlParameters,
        FrameParameters,
        LatestTerrainParameters,
    ),
}
