# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kinds of vehicles that fly or drive a mission, and the kinematic vehicle of each."""

from __future__ import annotations

from typing import Literal, get_args

from rfly_missions.followers.fixed_wing import FixedWing
from rfly_missions.followers.ground import Ground
from rfly_missions.followers.ground_vehicle import GroundVehicle
from rfly_missions.followers.land_air import LandAir
from rfly_missions.followers.multirotor import Follower, Multirotor
from rfly_missions.mission.items import Ned

UavType = Literal["multirotor", "fixed-wing", "ground", "land-air"]
"""Kinds of vehicles; the path manager holds all but fixed wings like a multirotor."""
UAV_TYPES: tuple[str, ...] = get_args(UavType)
"""Names of the kinds."""

GROUND_MODES = ("DISARMED", "DRIVE", "SPOOL_DOWN", "ROLL_OUT")
"""Modes of a land-air vehicle on the ground."""
AIRBORNE_HEIGHT = 3.0
"""Height above ground, m, from which an external vehicle counts as airborne."""


def make_follower(
    uav_type: str,
    position: Ned,
    yaw: float = 0.0,
    *,
    ground: Ground | None = None,
    loiter_radius: float = 25.0,
    airborne: bool = False,
) -> Follower:
    """Return a vehicle of a kind at a NED position (m) and a yaw (rad).

    `airborne` matters to the kinds that behave differently in the air.
    """
    if uav_type == "fixed-wing":
        return FixedWing(
            position, yaw, ground=ground, loiter_radius=loiter_radius, airborne=airborne
        )
    if uav_type == "ground":
        return GroundVehicle(position, yaw, ground=ground)
    if uav_type == "land-air":
        return LandAir(position, yaw, ground=ground, airborne=airborne)
    return Multirotor(position, yaw, ground=ground)
