# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of mission_node and mavlink_node. No ROS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rfly_common.config.checks import check_vehicle_names
from rfly_common.errors import ConfigError
from rfly_common.ros.node_parameters import FrameParameters, parameter
from rfly_missions.execution.flown_items import TooLow
from rfly_missions.followers.vehicle_kinds import UavType
from rfly_terrain.ros.node_parameters import LatestTerrainParameters
from rfly_trajectory.ros.node_parameters import FIRST_ID, marker_scale_parameter


@dataclass(frozen=True)
class MissionParameters:
    """Parameters that the vehicles of mission_node share."""

    vehicles: list[str] = parameter([], "names of the vehicles that fly missions")
    rate: float = parameter(50.0, "steps per second", unit="Hz", low=1.0, high=1000.0)
    frame_id: Literal["map", "map_ned"] = parameter(
        "map",
        "frame of all output and of these parameters: map (ENU) or map_ned (RflySim's axes)",
    )
    file_folders: list[str] = parameter(
        [], "folders from which the `file` of a goal may be read; empty: no file is read"
    )
    simulate: bool = parameter(True, "move the vehicles; false: their poses come from <name>/pose")
    min_height: float = parameter(
        2.0, "minimum height above the ground between way-points", unit="m", low=0.0, high=1e4
    )
    marker_scale: float = marker_scale_parameter()
    default_radius: float = parameter(
        2.0,
        "transition radius for way-points from files that state none",
        unit="m",
        low=0.01,
        high=1e4,
    )

    @property
    def axes(self) -> str:
        """Axes of `frame_id`: enu or ned."""
        return "enu" if self.frame_id == "map" else "ned"


@dataclass(frozen=True)
class MissionVehicleParameters:
    """Parameters of each vehicle in `vehicles`, after its name and a dot."""

    PREFIX: ClassVar[str] = "NAME."

    uav_type: UavType = parameter("multirotor", "kind of vehicle: how it flies or drives")
    id: int = parameter(
        FIRST_ID,
        "RflySim copterID",
        low=1,
        high=2**31 - 1,
        shown=f"{FIRST_ID}, {FIRST_ID + 1} … in the order of names",
    )
    type: int = parameter(
        3,
        "RflySim vehicleType: the model that is shown",
        low=0,
        high=2**31 - 1,
        shown="3; fixed-wing 100, ground 50",
    )
    loiter_radius: float = parameter(
        25.0,
        "radius of a fixed wing's hold, and of orbits that state none",
        unit="m",
        low=0.1,
        high=1e5,
    )
    hold_turn_direction: int = parameter(
        0,
        "turn direction of a fixed wing's hold: 1 clockwise from above, -1 counter-clockwise, "
        "0 either",
        low=-1,
        high=1,
    )
    too_low: TooLow = parameter(
        "climb",
        "what to do with items that lie too low over the ground for this vehicle: climb flies them "
        "higher, refuse refuses the mission",
    )
    start: list[float] = parameter(
        [],
        "start of a simulated vehicle: x, y (m) and yaw (rad)",
        shown="10 m east of the vehicle before it",
    )
    home: list[float] = parameter([], "home for goals with home_source 1: x, y, z (m)")


MAX_VEHICLES = 100
"""Largest number of vehicles of one node."""


def check_mission_vehicles(key: str, names: Sequence[str]) -> None:
    """Raise ConfigError for vehicles that mission_node can't take."""
    if len(names) > MAX_VEHICLES:
        raise ConfigError(f"{len(names)}, at most {MAX_VEHICLES} in one node", key=key)
    check_vehicle_names(key, names)


NODES = {
    "mission_node": (
        MissionParameters,
        MissionVehicleParameters,
        FrameParameters,
        LatestTerrainParameters,
    ),
}
