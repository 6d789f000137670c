"""Kinematic vehicle of each vehicle kind."""

from __future__ import annotations

from rfly_missions.followers.fixed_wing import FixedWing
from rfly_missions.followers.ground import Ground
from rfly_missions.followers.ground_vehicle import GroundVehicle
from rfly_missions.followers.land_air import LandAir
from rfly_missions.followers.multirotor import Follower, Multirotor, Vector

AIRBORNE_HEIGHT = 3.0
"""m above the ground: a vehicle of somebody else that is as high flies"""


def make_follower(
    uav_type: str,
    position: Vector,
    yaw: float = 0.0,
    *,
    ground: Ground | None = None,
    loiter_radius: float = 25.0,
    airborne: bool = False,
) -> Follower:
    """A vehicle of a kind at a NED position [m] and yaw [rad]; `airborne` for those that differ in
    the air.
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
