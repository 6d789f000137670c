# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ORBIT_EXECUTION_STATUS: the circle that a vehicle flies, for whichever client."""

from __future__ import annotations

import math
from typing import Any

from rfly_common.geodesy import ned_to_geodetic
from rfly_missions.mavlink.flight import SILENCE_S, FlightLogic
from rfly_missions.mavlink.wire import load_dialect
from rfly_missions.mission.items import MissionMode
from rfly_missions.mission.mavlink_items import MAX_HEIGHT, MAX_RADIUS

_CIRCLES = (MissionMode.ORBIT, MissionMode.HOLD)
"""Modes of circles: the hold of a fixed-wing aircraft has a radius too, that of others has none."""


def orbit_execution_status(flight: FlightLogic, ms: int) -> Any:
    """Return the message about the present circle, its radius positive clockwise.

    None while the vehicle flies no circle, or is not armed.
    """
    item = flight.situation.item
    origin = flight.situation.origin
    is_known = flight.pose.known and flight.situation.silence < SILENCE_S
    if item is None or origin is None or not (flight.armed and is_known):
        return None

    radius = float(item.params[0])
    if item.mode not in _CIRCLES or not radius > 0.0:
        return None

    # where the item leaves the direction free, the vehicle's motion around the centre shows it
    north, east, _ = (flight.pose.position - item.position).tolist()
    v_north, v_east, _ = flight.pose.velocity.tolist()
    turn = float(item.params[1]) or north * v_east - east * v_north

    latitude, longitude, altitude = ned_to_geodetic(item.position, origin).tolist()
    is_place = abs(latitude) <= 90.0 and abs(longitude) <= 180.0 and abs(altitude) <= MAX_HEIGHT
    if not (is_place and radius <= MAX_RADIUS):
        return None

    d = load_dialect()
    return d.MAVLink_orbit_execution_status_message(
        ms * 1000,
        math.copysign(radius, turn),
        d.MAV_FRAME_GLOBAL,
        round(latitude * 1e7),
        round(longitude * 1e7),
        altitude,
    )
