"""Parameters of trajectory_node. No ROS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rfly_common.ros.node_parameters import FrameParameters, parameter
from rfly_terrain.ros.node_parameters import LatestTerrainParameters
from rfly_trajectory.fleet.run_clock import MAX_TIME_SCALE

PER_VEHICLE_LIMIT = 20
"""Most vehicles of a node whose poses, paths and transforms `publish_per_vehicle: auto` publishes.
"""
FIRST_ID = 501
"""Id of the first vehicle without one of its own; the next count up."""


def marker_scale_parameter() -> Any:
    text = (
        "how many times their size vehicles are in fleet_markers, with names and paths to match; "
        "1: as they are"
    )
    return parameter(4.0, text, low=0.01, high=1e4)


@dataclass(frozen=True)
class TrajectoryParameters:
    """The fleet that trajectory_node drives, and what it publishes of it."""

    fleet: str = parameter("demo_convoy", "fleet file: a path, or the name of a shipped one")
    file_folders: list[str] = parameter(
        [],
        "folders below which ~/load_fleet may read; without any, shipped fleets only",
    )
    rate: float = parameter(50.0, "states per second", unit="Hz", low=0.1, high=1000.0)
    frame_id: Literal["map", "map_ned"] = parameter(
        "map", "frame of all that is published: map (ENU) or map_ned (RflySim's axes)"
    )
    publish_per_vehicle: Literal["auto", "always", "never"] = parameter(
        "auto",
        "<name>/pose, <name>/path, <name>/follow_path and /tf of each vehicle; auto: where the "
        "node drives up to "
        f"{PER_VEHICLE_LIMIT} of the fleet file; spawned ones as the others",
    )
    marker_scale: float = marker_scale_parameter()
    first_spawned_id: int = parameter(
        5001,
        "RflySim copterID of the first vehicle that is spawned; the next free ones up follow",
        low=1,
        high=2**30,
    )
    shard: str = parameter(
        "0/1",
        "which part of the fleet this node drives, i/n with i from 0 to n - 1: 1/4 is the second "
        "quarter",
    )


@dataclass(frozen=True)
class RunControlParameters:
    """When a fleet starts, and how fast its time goes."""

    start_time: float = parameter(
        0.0,
        "ROS time at which the fleet starts, s; 0: with the fleet that runs already "
        "(fleet_start), else at the next "
        "whole second",
        low=0.0,
    )
    time_scale: float = parameter(
        1.0,
        "seconds of the fleet in a second, may be changed at any time; 0 stands still",
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
