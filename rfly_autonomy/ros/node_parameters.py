# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of estimator, controllers, guidance and mapping. No ROS."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
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


def _as_in(owner: Any, name: str, text: str, unit: str = "", **about: Any) -> Any:
    """Return a parameter whose default is the field `name` of `owner`."""
    return parameter(getattr(owner, name), text, unit=unit, **about)


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


_limit = partial(_as_in, TeleopLimits(), low=0.001, high=100.0)


_number = partial(_as_in, JoystickLayout(), low=-1, high=99)


@dataclass(frozen=True)
class TeleopLimitParameters:
    """Commands of full deflections."""

    drive_speed: float = _limit("drive_speed", "fastest drive", "m/s")
    curvature: float = _limit("curvature", "sharpest bend that is driven", "1/m")
    fly_speed: float = _limit("fly_speed", "fastest flight", "m/s")
    climb_speed: float = _limit("climb_speed", "fastest climb and descent", "m/s")
    yaw_rate: float = _limit("yaw_rate", "fastest turn in flight", "rad/s")


@dataclass(frozen=True)
class JoystickParameters:
    """Numbers of axes and buttons."""

    axis_forward: int = _number("axis_forward", "axis that drives and flies forward")
    axis_turn: int = _number("axis_turn", "axis that steers and turns to the left")
    axis_left: int = _number("axis_left", "axis that flies to the left")
    axis_up: int = _number("axis_up", "axis that climbs")
    button_enable: int = _number(
        "button_enable", "button that is held while the axes count; -1: they always do"
    )
    button_arm: int = _number("button_arm", "button that arms")
    button_disarm: int = _number("button_disarm", "button that disarms")
    button_takeoff: int = _number("button_takeoff", "button that takes off")
    button_land: int = _number("button_land", "button that lands")
    button_abort: int = _number("button_abort", "button that aborts the flight")
    button_rolling: int = _number(
        "button_rolling", "button that is held to take off and land while the wheels roll"
    )
    button_lift_front: int = _number(
        "button_lift_front", "button that is held while the rotors lift the front axle"
    )
    button_lift_rear: int = _number(
        "button_lift_rear", "button that is held while the rotors lift the rear axle"
    )
    dead_zone: float = _number(
        "dead_zone", "deflection of an axis below which it counts as 0", low=0.0, high=0.9
    )


_elevation = partial(_as_in, ElevationParameters(), low=0.0)


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
    file: str = parameter("", "file that ~/save writes the map to: .bt")


@dataclass(frozen=True)
class ElevationMapParameters:
    """The map of heights around the vehicle."""

    elevation_map: bool = parameter(True, "keep heights and their variances around the vehicle")
    elevation_resolution: float = _elevation("resolution", "side of a cell", "m")
    elevation_length: float = _elevation(
        "length", "side of the map, with the sensor in its middle", "m"
    )
    elevation_range_sigma: float = _elevation(
        "range_sigma", "standard deviation of a point along its ray", "m"
    )
    elevation_angle_sigma: float = _elevation(
        "angle_sigma", "standard deviation of a cloud's rays together, from the attitude", "rad"
    )
    elevation_cell_sigma: float = _elevation(
        "cell_sigma", "standard deviation of a cloud's mean in a cell that is not level", "m"
    )
    elevation_drift: float = _elevation("drift", "growth of the uncertainty of known cells", "m/√s")
    elevation_gate: float = _elevation(
        "gate", "standard deviations, beyond which a cloud sees another surface"
    )
    elevation_surface: float = _elevation(
        "surface",
        "points farther below the highest one of a cloud in a cell are not of its surface",
        "m",
    )


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
        TeleopLimitParameters,
        JoystickParameters,
    ),
    "mapping_node": (
        OctomapParameters,
        MappingParameters,
        ElevationMapParameters,
        FrameParameters,
    ),
}
