# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""What a flight behind MAVLink knows of its vehicle and may request of it.

mission_node and the vehicle's controller are the remote pilot; its situation and phase come back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from rfly_common.geodesy import GeoPoint
from rfly_mavlink.stations.mission_rows import FlightPlan
from rfly_mavlink.stations.offboard import Quaternion
from rfly_mavlink.stations.terrain_protocol import PlacedTerrain
from rfly_missions.execution.path_manager import MissionPhase
from rfly_missions.mission.geofence import FlightAreaPlan
from rfly_missions.mission.items import MissionCommand, MissionItem, MissionMode, Ned
from rfly_missions.mission.mavlink_items import TerrainAltitude

SILENCE_S = 2.0
"""Wall time without a pose, s, after which the vehicle's position is unknown."""


class RemotePilot(Protocol):
    """The interfaces of mission_node for one vehicle, which carry out what is requested."""

    def problem(self) -> str:
        """Return why nothing can be requested now; "" if it can."""

    def fly(self, plan: FlightPlan, home: Ned, start_index: int) -> None:
        """Replace what is flown by a plan; report by `FlightLogic.progressed` and `ended`."""

    def command(self, command: MissionCommand) -> None:
        """Interrupt what is flown, or go on with it."""

    def request_mode(self, word: str) -> None:
        """Request `arm` or `disarm` of a vehicle that reports its mode."""

    def takes_attitudes(self) -> bool:
        """Return whether a flight controller listens to `turn`."""

    def turn(self, attitude: Quaternion, thrust: float) -> None:
        """Turn to an attitude, and push by a share (0 … 1) of the largest thrust."""

    def gimbal_pitch(self) -> float | None:
        """Return the pitch of the gimbal's joint against the body, rad, up positive.

        None: it has no gimbal.
        """

    def point_gimbal(self, pitch: float) -> None:
        """Turn the gimbal's joint to a pitch, rad, up positive."""

    def set_area(self, area: FlightAreaPlan) -> None:
        """Replace the fence that is watched in all flights, and the rally points."""


class Denied(Exception):
    """A refused request and its reason; `result` is a MAV_RESULT's name."""

    def __init__(self, text: str, result: str = "MAV_RESULT_TEMPORARILY_REJECTED") -> None:
        super().__init__(text)
        self.result = result


@dataclass
class Situation:
    """The vehicle's surroundings, and what it reports of itself besides its pose."""

    origin: GeoPoint | None = None
    """Origin of the map."""
    ground: float = math.nan
    """NED z of the ground below the vehicle, m; NaN: unknown."""
    altitude: TerrainAltitude | None = None
    """Altitude of the ground above sea level at a latitude and a longitude."""
    terrain: PlacedTerrain | None = None
    """The map."""
    mode: str = ""
    """DISARMED, DRIVE, FLIGHT …; "": the vehicle reports none, or none any more."""
    shown: MissionMode = MissionMode.ARMED
    """Mode of the item that it flies, for any client."""
    item: MissionItem | None = None
    """That item, at the place where it is flown."""
    silence: float = math.inf
    """Wall time since the last pose, s."""


class AwaitedPhase(NamedTuple):
    """The phase that a command leads to and mission_node does not show yet."""

    phase: MissionPhase
    since: float
    """Simulated time of the command, s."""


class ModeRequest(NamedTuple):
    """A request that the vehicle's controller does not show yet."""

    word: str
    """`arm` or `disarm`."""
    since: float
    """Simulated time of the request, s."""
