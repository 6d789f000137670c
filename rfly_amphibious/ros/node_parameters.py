# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of the land-air vehicle's nodes. No ROS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rfly_amphibious.dynamics.wind import MOST_ROUGHNESS, MOST_TURBULENCE
from rfly_amphibious.simulation.commands import COMMAND_TIMEOUT, RotorQuantity
from rfly_collision.shapes.vehicle_shapes import DEFAULT_SET
from rfly_common.ros.node_parameters import parameter
from rfly_terrain.ros.node_parameters import LatestTerrainParameters
from rfly_terrain.world.weather import MOST_RAIN

VEHICLE = "parameters: full, scale, scale_quad, scale_six or a YAML file"
SENSORS = "sensor set: a shipped name or a YAML file (default: the vehicle's)"


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
    world: str = parameter(
        "",
        "world file whose ground friction counts: a shipped name, or a file (default: the "
        "scenario's)",
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
    rotor_command: RotorQuantity = parameter(
        "speed",
        "quantity by which the fail-safe commands the rotors; cmd/rotors may hold either",
        shown="the scenario's, or speed",
    )
    command_timeout: float = parameter(
        COMMAND_TIMEOUT,
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
    publish_truth: bool = parameter(True, "publish ground_truth/odom and ground_truth/forces")
    tf_source: Literal["estimate", "truth"] = parameter(
        "estimate",
        "publisher of the vehicle's /tf: state_estimator_node (estimate), or this node (truth)",
    )
    gimbal_state: Literal["tf", "joint_states", "both"] = parameter(
        "tf",
        "where the pitch of the cameras' gimbal is published: camera_link on /tf, camera_joint in "
        "joint_states (from which robot_state_publisher makes camera_link), or both",
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
    imagery: str = parameter(
        "",
        "picture of the ground for the colour camera: path of a GeoTIFF, or of a picture with "
        "three points in NAME.csv; empty: colours of heights",
    )


# --- state_estimator_node


# --- control nodes


# --- guidance_node, teleop_node


# --- mapping_node


# --- link_node, mavlink_hil_node, ardupilot_json_node


_NAMED = (VehicleNameParameters,)
_SIMULATION = (
    WorldParameters,
    SimulationParameters,
    RangeSensorNodeParameters,
    LatestTerrainParameters,
)

NODES = {"amphibious_sim_node": (VehicleNameParameters, *_SIMULATION)}
