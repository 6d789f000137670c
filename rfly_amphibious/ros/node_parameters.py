# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of the land-air vehicle's nodes. No ROS."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from rfly_amphibious.control import chassis_controller, flight_controller
from rfly_amphibious.control.stuck import StuckLimits
from rfly_amphibious.control.teleop import JoystickLayout, TeleopLimits
from rfly_amphibious.dynamics.wind import MOST_ROUGHNESS, MOST_TURBULENCE
from rfly_amphibious.estimation.trust import TrustLimits
from rfly_amphibious.links import ardupilot_session, mavlink_hil, session
from rfly_amphibious.mapping.elevation_map import ElevationParameters
from rfly_amphibious.mapping.octomap_parameters import OctomapParameters
from rfly_amphibious.scenarios.speeds import DRIVE_SPEED, FLY_SPEED
from rfly_amphibious.simulation import defaults
from rfly_collision.shapes.shape_file import DEFAULT_SET
from rfly_common.ros.node_parameters import FrameParameters, parameter
from rfly_terrain.ros.node_parameters import LatestTerrainParameters
from rfly_terrain.world.weather import MOST_RAIN

DELAY = 0.02
"""Delay through ROS if the simulation does not wait, s."""
VEHICLE = "parameters: full, scale, scale_quad, scale_six or a YAML file"
SENSORS = "sensor set: a shipped name or a YAML file (default: the vehicle's)"


def _as_in(owner: Any, name: str, text: str, unit: str = "", **about: Any) -> Any:
    """Return a parameter whose default is the field `name` of `owner`."""
    return parameter(getattr(owner, name), text, unit=unit, **about)


@dataclass(frozen=True)
class VehicleNameParameters:
    """Name of the vehicle."""

    vehicle_name: str = parameter(
        "amphibious",
        "prefix of the vehicle's frames",
        shown="the node's namespace, or amphibious",
    )


# --- amphibious_sim_node


@dataclass(frozen=True)
class WorldParameters:
    """Subject of the simulation: ground, vehicle, sensors, start and wind."""

    scenario: str = parameter(
        "", "map, vehicle, start, wind, events and seed: a shipped name, or a file"
    )
    vehicle: str = parameter(
        "",
        "parameters: full, scale, scale_quad, scale_six or a YAML file (default: scale)",
    )
    sensors: str = parameter("", SENSORS)
    ground: Literal["auto", "terrain_map", "level"] = parameter(
        "auto",
        "terrain_map (the topic), level (z = 0), or auto: the scenario's, without a scenario the "
        "topic's",
    )
    map_folders: list[str] = parameter(
        [], "folders searched first for the map that a scenario names"
    )
    start: list[float] = parameter(
        [], "x east, y north (m), heading (rad from east); default: the scenario's"
    )
    wind: list[float] = parameter(
        [], "mean, m/s towards east, north, up; default: the scenario's, or none"
    )
    gust_sigma: list[float] = parameter(
        [], "standard deviation of gusts by axis, m/s; default as of wind"
    )
    turbulence: float = parameter(
        -1.0,
        "wind at 6 m for Dryden's gusts, m/s; 0: none of them; -1: the scenario's",
        low=-1.0,
        high=MOST_TURBULENCE,
    )
    roughness: float = parameter(
        -1.0,
        "roughness length of the ground, m: the mean wind is that at 10 m and grows with height; "
        "0: it does not; -1: the scenario's",
        low=-1.0,
        high=MOST_ROUGHNESS,
    )
    lee: bool = parameter(
        False, "objects have wakes of weaker wind; the scenario may set it as well"
    )
    seed: int = parameter(
        -1, "seed of noise and gusts; -1: the scenario's, or 0", low=-1, high=2**31 - 1
    )


@dataclass(frozen=True)
class SimulationParameters:
    """Settings of the simulation, and its publications."""

    noise: bool = parameter(True, "false: sensors read the truth")
    method: Literal["rk4", "semi_implicit_euler"] = parameter(
        "rk4", "method of integration", shown="the scenario's, or rk4"
    )
    command_timeout: float = parameter(
        defaults.COMMAND_TIMEOUT,
        "s of simulation time: an older actuator command brings the fail-safe",
        low=0.01,
        high=10.0,
    )
    command_patience: float = parameter(
        0.0,
        "s for which simulation time stands still before a command grows too old: on a busy "
        "machine it goes slower",
        low=0.0,
        high=60.0,
    )
    lock_step: bool = parameter(
        False, "each tick waits for a RotorCommand and a WheelCommand with its stamp"
    )
    real_time_factor: float = parameter(
        1.0,
        "simulated seconds in a second; 0: as fast as possible",
        low=0.0,
        high=1000.0,
    )
    publish_clock: bool = parameter(
        False,
        "publish /clock, simulated time from 0, for nodes with use_sim_time; false: stamps are in "
        "the node's time, in which the simulation begins (in lock-step or at another pace without "
        "use_sim_time they count from 0)",
    )
    publish_truth: bool = parameter(True, "publish ground_truth/odom")
    tf_source: Literal["estimate", "truth"] = parameter(
        "estimate",
        "publisher of the vehicle's /tf: state_estimator_node (estimate), or this node (truth)",
    )
    other_vehicles: bool = parameter(
        True, "the vehicles of vehicle_states can be run into; false: only seen"
    )
    paused: bool = parameter(False, "begin paused: set_simulation_state plays")
    id: int = parameter(601, "RflySim copterID", low=1, high=2**31 - 1)
    type: int = parameter(3, "RflySim vehicleType: which model is shown", low=0, high=2**31 - 1)

    @property
    def has_own_pace(self) -> bool:
        """Whether simulated time does not run with the clock on the wall."""
        return self.lock_step or self.real_time_factor != 1.0


@dataclass(frozen=True)
class RangeSensorNodeParameters:
    """Parameters of lidar and cameras."""

    light: float = parameter(
        1.0, "0 (night) … 1 (day), for the cameras", low=0.0, high=1.0, changeable=True
    )
    visibility: float = parameter(
        0.0,
        "m in fog, for lidar and cameras; 0: clear air",
        low=0.0,
        high=1e6,
        changeable=True,
    )
    cloud_cover: float = parameter(
        0.0, "0 … 1 of the sky, for the cameras", low=0.0, high=1.0, changeable=True
    )
    rain_rate: float = parameter(
        0.0, "mm/h, for lidar and cameras", low=0.0, high=MOST_RAIN, changeable=True
    )
    shapes: str = parameter(
        DEFAULT_SET,
        "shapes of other vehicles' types: a file, or the name of a shipped set",
    )


# --- state_estimator_node


@dataclass(frozen=True)
class EstimatorNodeParameters:
    """Parameters of the estimator, and its publications."""

    vehicle: str = parameter("scale", VEHICLE)
    sensors: str = parameter("", SENSORS)
    estimator: str = parameter(
        "", "estimator set: a shipped name or a YAML file (default: the vehicle's)"
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


# --- control nodes


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
    """Limits by which a driving vehicle counts as stuck, shared by chassis and guidance."""

    stuck_time: float = parameter(
        StuckLimits().time,
        "time within which a driving vehicle has to leave its place; then it counts as stuck, and "
        "guidance_node gives up; 0: never",
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


@dataclass(frozen=True)
class ChassisControlParameters:
    """Parameters of the loop through the chassis controller."""

    command_timeout: float = parameter(
        chassis_controller.COMMAND_TIMEOUT,
        "s of silence, after which a motion command is lost: it brakes",
        low=0.05,
        high=3600.0,
    )


@dataclass(frozen=True)
class MotionCommandParameters:
    """Limits of `cmd_vel`."""

    stamped_cmd_vel: bool = parameter(
        True, "cmd_vel is a TwistStamped, false: a Twist; a subscriber follows its publishers"
    )


# --- guidance_node, teleop_node


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
    dead_zone: float = _number(
        "dead_zone", "deflection of an axis below which it counts as 0", low=0.0, high=0.9
    )


# --- mapping_node

_voxel = partial(_as_in, OctomapParameters())
_elevation = partial(_as_in, ElevationParameters(), low=0.0)


@dataclass(frozen=True)
class VoxelParameters:
    """Side of the voxels, and log-odds of a sensor's rays."""

    resolution: float = _voxel("resolution", "side of the voxels", "m", low=0.05, high=10.0)
    hit: float = _voxel("hit", "log-odds that a ray's end adds")
    miss: float = _voxel("miss", "log-odds that a passing ray adds, negative")
    clamp_min: float = _voxel("clamp_min", "least log-odds, negative")
    clamp_max: float = _voxel("clamp_max", "largest log-odds")
    max_range: float = _voxel("max_range", "range of a hit; a longer ray is free up to there", "m")
    max_voxels: int = _voxel(
        "max_voxels",
        "then those farthest from the sensor make room; 16 to 32 bytes each",
    )
    forget_after: float = _voxel(
        "forget_after",
        "after which an occupied voxel that no ray hits any more is unknown, at the latest; 0: "
        "rays alone clear it",
        "s",
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


# --- link_node, mavlink_hil_node, ardupilot_json_node

Supplies = Literal["both", "rotors", "chassis"]


@dataclass(frozen=True)
class PerceptionParameters:
    """Perception that an external controller gets."""

    lock_step: bool = parameter(
        False,
        "the simulation waits for the answer to each tick; as the simulation's parameter",
    )
    odometry: Literal["filtered", "truth"] = parameter(
        "truth",
        "source of position, velocity and attitude: ground_truth/odom (truth), or odometry/global "
        "of state_estimator_node (filtered)",
    )


@dataclass(frozen=True)
class LinkParameters:
    """Parameters of link_node."""

    vehicle: str = parameter("scale", "parameter set of the vehicle: a shipped name or a YAML file")
    transport: Literal["udp", "tcp", "serial"] = parameter(
        "udp",
        "udp, tcp (a server of one connection), or serial: a line to the controller",
    )
    bind: str = parameter("127.0.0.1", "IPv4 address of this machine to listen on, 0.0.0.0 for all")
    port: int = parameter(session.PORT, "to listen on; 0: the system chooses", low=0, high=65535)
    controller_host: str = parameter("127.0.0.1", "IPv4 address of the controller (udp)")
    controller_port: int = parameter(
        session.CONTROLLER_PORT,
        "port of the controller (udp); 0: the one it sends from",
        low=0,
        high=65535,
    )
    device: str = parameter("/dev/ttyUSB0", "line to the controller (serial)")
    baud: int = parameter(921600, "rate of the line (serial)", unit="bit/s")


@dataclass(frozen=True)
class MavlinkHilParameters:
    """Parameters of mavlink_hil_node."""

    vehicle: str = parameter("scale", "parameter set of the vehicle: a shipped name or a YAML file")
    bind: str = parameter("127.0.0.1", "IPv4 address of this machine to listen on, 0.0.0.0 for all")
    port: int = parameter(
        mavlink_hil.PORT,
        "TCP; 4560 + instance for PX4; 0: the system chooses",
        low=0,
        high=65535,
    )
    device: str = parameter("", "serial line to an autopilot's board, instead of TCP")
    baud: int = parameter(921600, "rate of the serial line", unit="bit/s")
    supplies: Supplies = parameter("both", "outputs that the autopilot commands")
    geo_origin: list[float] = parameter(
        [],
        "latitude, longitude (deg), altitude (m) of the world's origin; default: of the simulation",
    )
    unanswered: Literal["wait", "resend", "go_on"] = parameter(
        "go_on",
        "a tick of lock-step that is not answered within answer_timeout: wait for it, send it "
        "again each time, or go on with the last controls and learn which ticks are answered",
    )
    answer_timeout: float = parameter(
        session.ANSWER_WITHIN_S,
        "wall time in which a tick of lock-step is answered; a twentieth of it while the answer "
        "rate is being learned",
        unit="s",
        low=0.05,
        high=60.0,
    )


@dataclass(frozen=True)
class ArdupilotParameters:
    """Parameters of ardupilot_json_node."""

    vehicle: str = parameter(
        "scale_quad", "parameter set of the vehicle: a shipped name or a YAML file"
    )
    bind: str = parameter("127.0.0.1", "IPv4 address of this machine to listen on, 0.0.0.0 for all")
    port: int = parameter(
        ardupilot_session.PORT,
        "UDP; 10 more for each of ArduPilot's instances; 0: the system chooses",
        low=0,
        high=65535,
    )
    controller_host: str = parameter(
        "127.0.0.1", "IPv4 address of the machine that ArduPilot runs on"
    )
    supplies: Supplies = parameter("both", "outputs that ArduPilot commands")


@dataclass(frozen=True)
class ControlMappingParameters:
    """Use of the autopilot's first 16 outputs, from 0: MAVLink's controls, ArduPilot's servos."""

    rotor_controls: list[int] = parameter(
        [], "outputs of the rotors in their order, 0 … 1", shown="the first, in order"
    )
    steering_control: int = parameter(8, "-1 … 1; -1: none", low=-1, high=15)
    drive_control: int = parameter(9, "-1 … 1; -1: none", low=-1, high=15)
    brake_control: int = parameter(10, "0 … 1; -1: none", low=-1, high=15)


@dataclass(frozen=True)
class MotorOutputParameters:
    """Parameters of motor_output_node."""

    vehicle: str = parameter("scale", "parameter set of the vehicle: a shipped name or a YAML file")
    motors: str = parameter("scale", "constants of its motors: a shipped name or a YAML file")
    max_duty: float = parameter(
        0.2,
        "safety limit of every motor's duty cycle; 1: all that the battery gives",
        low=0.01,
        high=1.0,
    )
    dead_man: float = parameter(
        0.2,
        "s without one of the commands that came before, after which all is off until it is armed "
        "again",
        unit="s",
        low=0.02,
        high=2.0,
    )
    rate: float = parameter(50.0, "outputs a second", unit="Hz", low=1.0, high=500.0)
    device: str = parameter(
        "", "serial line that gets them as MAVLink SERVO_OUTPUT_RAW; empty: none"
    )
    baud: int = parameter(57600, "rate of the line", unit="bit/s")
    file: str = parameter("", "CSV file that gets them; empty: none")


_NAMED = (VehicleNameParameters,)
_MOVED = (MotionCommandParameters, FrameParameters)
_SIMULATION = (
    WorldParameters,
    SimulationParameters,
    RangeSensorNodeParameters,
    LatestTerrainParameters,
)
_AUTOPILOT = (ControlMappingParameters, PerceptionParameters)
NODES = {
    "amphibious_sim_node": (*_NAMED, *_SIMULATION),
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
        VoxelParameters,
        MappingParameters,
        ElevationMapParameters,
        FrameParameters,
    ),
    "link_node": (LinkParameters, PerceptionParameters),
    "mavlink_hil_node": (MavlinkHilParameters, *_AUTOPILOT, LatestTerrainParameters),
    "ardupilot_json_node": (ArdupilotParameters, *_AUTOPILOT),
    "motor_output_node": (MotorOutputParameters,),
}
