# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of estimator, controllers, guidance and mapping. No ROS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rfly_amphibious.ros.node_parameters import SENSORS, VEHICLE, VehicleNameParameters
from rfly_amphibious.simulation.commands import RotorQuantity
from rfly_autonomy.control import chassis_controller, flight_controller
from rfly_autonomy.control.attitude_controller import GEOMETRIC
from rfly_autonomy.control.stuck import StuckLimits
from rfly_autonomy.control.teleop import JoystickLayout, TeleopLimits
from rfly_autonomy.estimation.trust import TrustLimits
from rfly_autonomy.guidance.detour_guide import MOST_DETOURS
from rfly_autonomy.mapping.elevation_map import ElevationParameters
from rfly_autonomy.mapping.octomap_parameters import OctomapParameters
from rfly_common.ros.node_parameters import FrameParameters, parameter
from rfly_missions.mission.legs import DRIVE_SPEED, FLY_SPEED
from rfly_terrain.ros.node_parameters import LatestTerrainParameters

DELAY = 0.02
"""Delay through ROS if the simulation does not wait, s."""


@dataclass(frozen=True)
class EstimatorNodeParameters:
    """Parameters of the estimator, and its publications."""

    vehicle: str = parameter("scale", VEHICLE)
    sensors: str = parameter("", SENSORS)
    estimator: str = parameter(
        "", "estimator set: a shipped name or a YAML file (default: the vehicle's)"
    )
    without_gps: float = parameter(
        0.0,
        "time without a GPS fix after which a vehicle that stands begins at the world's origin; "
        "0: that of the estimator set",
        unit="s",
        low=0.0,
        high=3600.0,
    )
    lock_step: bool = parameter(False, "answer each simulation_tick, and nothing else")
    publish_rate: float = parameter(
        100.0,
        "odometry/filtered and odometry/global a second, Hz; 0: at each imu/data",
        low=0.0,
        high=10_000.0,
    )
    tf_source: Literal["estimate", "truth"] = parameter(
        "estimate",
        "publisher of the vehicle's /tf: this node (estimate), or amphibious_sim_node (truth)",
    )


@dataclass(frozen=True)
class TrustParameters:
    """Limits of the estimate's uncertainty, shared by estimator, controllers and guidance."""

    uncertain_position: list[float] = parameter(
        list(TrustLimits().position),
        "standard deviations across the ground from which on: a warning, no faster than 1.5 m/s, "
        "stop or land, abort",
        unit="m",
    )
    uncertain_speed: list[float] = parameter(
        list(TrustLimits().speed), "the same for those of the velocity", unit="m/s"
    )

    @property
    def limits(self) -> TrustLimits:
        """Limits of the parameters. Raise ConfigError for other than four that rise."""
        return TrustLimits(tuple(self.uncertain_position), tuple(self.uncertain_speed))


@dataclass(frozen=True)
class StuckParameters:
    """Limits beyond which a driving vehicle counts as stuck, shared by chassis and guidance."""

    stuck_time: float = parameter(
        StuckLimits().time,
        "time within which a driving vehicle has to leave its place; then it counts as stuck, and "
        "guidance_node goes round the place, or gives up; 0: never",
        unit="s",
        low=0.0,
        high=3600.0,
    )
    stuck_distance: float = parameter(
        StuckLimits().distance,
        "distance from its place that it has to reach",
        unit="m",
        low=0.01,
        high=100.0,
    )

    @property
    def limits(self) -> StuckLimits:
        """Limits of the parameters."""
        return StuckLimits(self.stuck_time, self.stuck_distance)


# --- flight_control_node, chassis_control_node


@dataclass(frozen=True)
class ControlParameters:
    """Parameters of flight_control_node and chassis_control_node."""

    lock_step: bool = parameter(False, "answer each tick of the simulation, which waits for it")
    guided: bool = parameter(
        False,
        "in lock-step, wait for guidance_node's answer to each tick, so that missions repeat bit "
        "by bit; chassis_control_node waits for cmd/rotors as well",
    )
    vehicle: str = parameter("scale", VEHICLE)


def _gain(text: str, unit: str, high: float) -> Any:
    return parameter(
        1.0,
        text,
        unit=unit,
        low=1e-3,
        high=high,
        shown="the vehicle's",
        changeable=True,
    )


@dataclass(frozen=True)
class GainParameters:
    """Gains of the flight controller, which may be changed in flight."""

    attitude_frequency: float = _gain(
        "frequency of the attitude loop in roll and pitch", "rad/s", 100.0
    )
    attitude_damping: float = _gain("damping of the attitude loop, 1: critical", "", 5.0)
    position_gain: float = _gain("m/s for each metre beside the place", "1/s", 100.0)
    velocity_gain: float = _gain("m/s² for each m/s beside the velocity", "1/s", 100.0)
    max_tilt: float = _gain("largest tilt of the thrust in flight", "rad", 1.4)


@dataclass(frozen=True)
class FlightControlParameters:
    """Parameters of the loop through the flight controller."""

    sensors: str = parameter("", SENSORS)
    delay: float = parameter(
        DELAY,
        "s from a sample to the moment when its command acts; the attitude loop is made slower by "
        "it",
        low=0.0,
        high=1.0,
        shown="0.02; in lock-step 0",
    )
    command_timeout: float = parameter(
        flight_controller.COMMAND_TIMEOUT,
        "s of silence, after which a motion command is lost: hover 2 s, then land",
        low=0.05,
        high=3600.0,
    )
    rotor_command: RotorQuantity = parameter(
        "speed",
        "quantity by which it commands the rotors: speed, or torque, for motors that have no speed "
        "controller of their own",
    )
    attitude_law: str = parameter(
        GEOMETRIC,
        "law of the attitude loop: geometric, or an entry point of the group "
        "rfly_suite.attitude_laws",
    )


@dataclass(frozen=True)
class ChassisControlParameters:
    """Parameters of the loop through the chassis controller."""

    command_timeout: float = parameter(
        chassis_controller.COMMAND_TIMEOUT,
        "s of silence, after which a motion command is lost: it brakes; 0, with joint_commands "
        "only: never",
        low=0.0,
        high=3600.0,
    )
    joint_commands: bool = parameter(
        False,
        "obey joint_commands, as ros2_control sends them, instead of cmd/ackermann, cmd_vel and "
        "cmd/pose",
    )
    robot_description: str = parameter(
        "", "URDF that is published on robot_description, latched; empty: none"
    )


@dataclass(frozen=True)
class MotionCommandParameters:
    """Limits of `cmd_vel`."""

    stamped_cmd_vel: bool = parameter(
        True, "cmd_vel is a TwistStamped, false: a Twist; a subscriber follows its publishers"
    )


@dataclass(frozen=True)
class GuidanceParameters:
    """Mission of guidance_node, and its rate."""

    scenario: str = parameter("", "scenario whose mission it carries out: a file, or a shipped one")
    vehicle: str = parameter(
        "", "parameter set or file of the vehicle; empty: the scenario's, or scale"
    )
    autostart: bool = parameter(
        False,
        "begin with the scenario's mission as soon as it is known where the vehicle is",
    )
    drive_speed: float = parameter(
        DRIVE_SPEED, "along planned paths on the ground", unit="m/s", low=0.2, high=30.0
    )
    fly_speed: float = parameter(
        FLY_SPEED, "along planned paths in the air", unit="m/s", low=0.2, high=30.0
    )
    rolling: bool = parameter(
        True,
        "planned paths: take off and land on rolling wheels where that saves energy and a straight "
        "driven way is long, level and smooth enough",
    )
    thrust_assist: bool = parameter(
        False, "planned paths: rotors lift an axle where the wheels get no further"
    )
    stuck_detours: int = parameter(
        MOST_DETOURS,
        "detours on which it goes back and round a place at which it is stuck, before it gives up",
        low=0,
        high=MOST_DETOURS,
    )
    rate: float = parameter(
        50.0, "commands a second of the estimates' time", unit="Hz", low=5.0, high=500.0
    )
    lock_step: bool = parameter(
        False, "answer each odometry/global by guidance_tick, which guided controllers wait for"
    )


@dataclass(frozen=True)
class MappingParameters:
    """Clouds that are used, and the map's publications."""

    min_range: float = parameter(0.0, "nearer points are left out", unit="m", low=0.0)
    rate: float = parameter(
        0.0, "clouds a second that are taken at most; 0: all", low=0.0, high=1000.0
    )
    publish_rate: float = parameter(
        1.0, "maps a second at most, where they changed", low=0.01, high=50
    )
    max_pose_gap: float = parameter(
        0.5, "s between poses, beyond which clouds are left out", low=0.01
    )
    lock_step: bool = parameter(
        False, "lidar/points is reliable, as with the simulation's lock_step"
    )
    octomap: bool = parameter(True, "keep voxels; false: the map of heights alone")
    elevation_map: bool = parameter(True, "keep heights and their variances around the vehicle")
    file: str = parameter("", "file that ~/save writes the map to: .bt")


_NAMED = (VehicleNameParameters,)
_MOVED = (MotionCommandParameters, FrameParameters)
NODES = {
    "state_estimator_node": (
        *_NAMED,
        EstimatorNodeParameters,
        TrustParameters,
        LatestTerrainParameters,
    ),
    "flight_control_node": (
        *_NAMED,
        ControlParameters,
        GainParameters,
        FlightControlParameters,
        TrustParameters,
        *_MOVED,
    ),
    "chassis_control_node": (
        *_NAMED,
        ControlParameters,
        ChassisControlParameters,
        StuckParameters,
        TrustParameters,
        *_MOVED,
    ),
    "guidance_node": (
        *_NAMED,
        GuidanceParameters,
        StuckParameters,
        TrustParameters,
        FrameParameters,
        LatestTerrainParameters,
    ),
    "teleop_node": (
        *_NAMED,
        MotionCommandParameters,
        TeleopLimits,
        JoystickLayout,
    ),
    "mapping_node": (
        OctomapParameters,
        MappingParameters,
        ElevationParameters,
        FrameParameters,
    ),
}
