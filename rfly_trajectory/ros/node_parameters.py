# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of trajectory_node and avoidance_node. No ROS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rfly_common.config.checks import check_vehicle_names
from rfly_common.errors import ConfigError
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
        "of the ground, and come back; those of one node know each other only, and with area those "
        "of the other areas too",
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


# --- avoidance_node


@dataclass(frozen=True)
class AvoidanceParameters:
    """Parameters of avoidance_node."""

    robots: list[str] = parameter(
        [], "names of the robots whose cmd_vel is made safe; NAME.… are the parameters of each"
    )
    others: list[str] = parameter(
        [],
        "names of vehicles that do not give way, known by their poses; NAME.… are the parameters "
        "of each. Vehicles of vehicle_states need not be named",
    )
    rate: float = parameter(20.0, "safe commands per second", unit="Hz", low=2.0, high=200.0)
    stamped_cmd_vel: bool = parameter(
        True,
        "safe commands are TwistStamped, false: Twist; a subscription to wishes follows its "
        "publishers",
    )
    pose_timeout: float = parameter(
        0.5, "age of its pose from which a robot is stopped", unit="s", low=0.05, high=60.0
    )
    command_timeout: float = parameter(
        0.5, "age of its wish from which a robot is stopped", unit="s", low=0.05, high=60.0
    )
    wait_for_all: bool = parameter(
        True,
        "robots stand until a pose of each of `robots` and `others` has come; false: those that "
        "have never been heard of are not avoided",
    )
    forget_after: float = parameter(
        10.0,
        "silence after which a vehicle of vehicle_states is forgotten; until then its surroundings "
        "grow",
        unit="s",
        low=0.5,
        high=3600.0,
    )
    others_acceleration: float = parameter(
        2.0,
        "acceleration that vehicles of vehicle_states may have in any direction",
        unit="m/s²",
        low=0.0,
        high=100.0,
    )
    others_speed: float = parameter(
        10.0,
        "largest change of the velocity of vehicles of vehicle_states",
        unit="m/s",
        low=0.0,
        high=1000.0,
    )


@dataclass(frozen=True)
class RobotBodyParameters:
    """Body and abilities of a robot. Their defaults are `robot_defaults.…`."""

    kind: Literal["ground", "multirotor", "fixed_wing"] = parameter(
        "ground", "kind: a ground vehicle goes forwards and backwards, a multirotor anywhere"
    )
    radius: float = parameter(
        0.35, "radius of the upright cylinder around the body", unit="m", low=0.01, high=1e3
    )
    height: float = parameter(0.5, "height of the cylinder", unit="m", low=0.01, high=1e3)
    below: float = parameter(
        0.0, "lowest part of the body below the pose", unit="m", low=0.0, high=1e3
    )
    margin: float = parameter(
        0.1,
        "room around the body: error of the pose, and distance from its command's way",
        unit="m",
        low=0.0,
        high=1e3,
    )
    max_speed: float = parameter(1.0, "largest speed", unit="m/s", low=0.01, high=500.0)
    min_speed: float = parameter(
        0.0, "least speed; a fixed wing has one, others stop", unit="m/s", low=0.0, high=500.0
    )
    acceleration: float = parameter(1.0, "largest gain of speed", unit="m/s²", low=0.01, high=100.0)
    braking: float = parameter(
        1.0, "loss of speed on which others may rely", unit="m/s²", low=0.01, high=100.0
    )
    lateral_acceleration: float = parameter(
        2.0, "largest acceleration across the way", unit="m/s²", low=0.01, high=100.0
    )
    turn_radius: float = parameter(
        0.0,
        "smallest radius of a ground vehicle's way; 0: it turns on the spot",
        unit="m",
        low=0.0,
        high=1e4,
    )
    turn_rate: float = parameter(1.5, "largest yaw rate", unit="rad/s", low=0.01, high=100.0)
    climb_speed: float = parameter(
        1.0, "largest vertical speed of aircraft", unit="m/s", low=0.0, high=100.0
    )
    latency: float = parameter(
        0.1, "time from a command to its effect", unit="s", low=0.0, high=2.0
    )


@dataclass(frozen=True)
class RobotDefaultParameters(RobotBodyParameters):
    """Body and abilities of robots whose own parameters are not given."""

    PREFIX: ClassVar[str] = "robot_defaults."


@dataclass(frozen=True)
class PoseTopicParameters:
    """Source of a vehicle's poses."""

    message: Literal["odometry", "pose", "tf"] = parameter(
        "odometry",
        "source of its poses: an Odometry, a PoseStamped, or the transform of `base_frame` on /tf",
    )
    topic: str = parameter("", "topic of its poses", shown="NAME/odom or NAME/pose")
    base_frame: str = parameter("", "frame of its body", shown="NAME/base_link")


@dataclass(frozen=True)
class GuardedRobotParameters(RobotBodyParameters, PoseTopicParameters):
    """One of `robots`; its parameters stand after its name and a dot."""

    PREFIX: ClassVar[str] = "NAME."

    wish_topic: str = parameter(
        "", "topic of its wished velocity, Twist or TwistStamped", shown="NAME/cmd_vel_wish"
    )
    cmd_vel_topic: str = parameter("", "topic of its safe velocity", shown="NAME/cmd_vel")
    id: int = parameter(
        0,
        "its id in vehicle_states, which is then not taken for another vehicle; 0: none",
        low=0,
        high=2**31 - 1,
    )


@dataclass(frozen=True)
class OtherVehicleParameters(PoseTopicParameters):
    """One of `others`; its parameters stand after its name and a dot."""

    PREFIX: ClassVar[str] = "NAME."

    kind: Literal["ground", "multirotor", "fixed_wing"] = parameter(
        "ground", "kind; aircraft stay out of the air below a multirotor"
    )
    radius: float = parameter(
        0.5, "radius of the upright cylinder around the body", unit="m", low=0.01, high=1e3
    )
    height: float = parameter(2.0, "height of the cylinder", unit="m", low=0.01, high=1e3)
    below: float = parameter(
        0.0, "lowest part of the body below the pose", unit="m", low=0.0, high=1e3
    )
    acceleration: float = parameter(
        1.0, "acceleration that it may have in any direction", unit="m/s²", low=0.0, high=100.0
    )
    speed_change: float = parameter(
        2.0, "largest change of its velocity", unit="m/s", low=0.0, high=1000.0
    )


def check_robots(key: str, names: Sequence[str]) -> None:
    """Raise ConfigError for a name that is none, that is taken, or that comes twice."""
    if RobotDefaultParameters.PREFIX.rstrip(".") in names:
        raise ConfigError(
            f"{RobotDefaultParameters.PREFIX.rstrip('.')!r} is not free, its parameters are those "
            "of all robots",
            key=key,
        )
    check_vehicle_names(key, names)


NODES = {
    "trajectory_node": (
        TrajectoryParameters,
        RunControlParameters,
        FrameParameters,
        LatestTerrainParameters,
    ),
    "avoidance_node": (
        AvoidanceParameters,
        RobotDefaultParameters,
        GuardedRobotParameters,
        OtherVehicleParameters,
        FrameParameters,
        LatestTerrainParameters,
    ),
}
