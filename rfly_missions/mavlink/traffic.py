# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Other vehicles of a fleet as ADSB_VEHICLE, as an ADS-B receiver on board would report them.

https://mavlink.io/en/messages/common.html#ADSB_VEHICLE
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Floats
from rfly_common.geodesy import GeoPoint, ned_to_geodetic
from rfly_missions.mavlink.wire import load_dialect

PERIOD_S = 1.0
"""Time between two reports of a vehicle, s."""
SILENCE_S = 5.0
"""Time without a state, s, after which a vehicle is not reported any more."""
MOST_REPORTED = 20
"""Number of vehicles that each vehicle reports, the nearest ones."""
SLOW = 0.5
"""Speed over ground, m/s, below which the heading is the nose's instead of the course."""
_CALLSIGN_LETTERS = 8
_MOST_ICAO = 0xFFFFFF
"""Largest ICAO address, 24 bits."""


class VehicleMotion(NamedTuple):
    """The motion of n vehicles."""

    ids: NDArray[Any]
    """Ids of the fleet, (n,)."""
    position: NDArray[Any]
    """NED about the map's origin, (n, 3), m."""
    velocity: NDArray[Any]
    """NED, (n, 3), m/s."""
    yaw: NDArray[Any]
    """From north, clockwise, (n,), rad."""


class FleetTraffic:
    """The newest motion of each vehicle of the fleet, and the reports about it."""

    def __init__(self) -> None:
        self.names: Mapping[int, str] = {}
        """Names of vehicles, by id; the others are called V and their id."""
        self._d = load_dialect()
        self._motion = VehicleMotion(np.zeros(0, int), np.zeros((0, 3)), np.zeros((0, 3)), _none())
        self._heard_at = _none()

    def take(self, motion: VehicleMotion, wall: float) -> None:
        """Take states of some vehicles, each of which may come once, at a steady wall time, s."""
        kept = (wall - self._heard_at <= SILENCE_S) & ~np.isin(self._motion.ids, motion.ids)
        self._motion = VehicleMotion(
            *(
                np.concatenate([new, old[kept]])
                for new, old in zip(motion, self._motion, strict=True)
            )
        )
        times = np.full(len(motion.ids), wall)
        self._heard_at = np.concatenate([times, self._heard_at[kept]])

    def reports(
        self, here: ArrayLike, left_out: ArrayLike, origin: GeoPoint, wall: float
    ) -> list[Any]:
        """Return a message for each of the vehicles nearest to `here` (NED, m), nearest first.

        `left_out`: ids of vehicles that are not reported. Vehicles that are silent, or beyond what
        the message can hold, are not reported either.
        """
        age = wall - self._heard_at
        motion = self._motion
        places = ned_to_geodetic(motion.position, origin)
        usable = (age <= SILENCE_S) & ~np.isin(motion.ids, left_out)
        usable &= (np.abs(places[:, 0]) <= 90.0) & (np.abs(places[:, 2]) < 2e6)

        away = np.linalg.norm(motion.position - np.asarray(here), axis=1)
        order = np.argsort(np.where(usable, away, np.inf), kind="stable")
        nearest = order[: min(MOST_REPORTED, int(np.count_nonzero(usable)))]
        return [self._report(index, places[index], float(age[index])) for index in nearest.tolist()]

    def _report(self, index: int, place: Floats, age: float) -> Any:
        d = self._d
        latitude, longitude, altitude = place.tolist()
        north, east, down = self._motion.velocity[index].tolist()
        vehicle_id = int(self._motion.ids[index])

        speed = math.hypot(north, east)
        course = math.atan2(east, north) if speed >= SLOW else float(self._motion.yaw[index])
        heading = round(math.degrees(course) % 360.0 * 100.0) % 36_000

        flags = (
            d.ADSB_FLAGS_VALID_COORDS
            | d.ADSB_FLAGS_VALID_ALTITUDE
            | d.ADSB_FLAGS_VALID_HEADING
            | d.ADSB_FLAGS_VALID_VELOCITY
            | d.ADSB_FLAGS_VERTICAL_VELOCITY_VALID
            | d.ADSB_FLAGS_VALID_CALLSIGN
            | d.ADSB_FLAGS_SIMULATED
        )
        callsign = self.names.get(vehicle_id, f"V{vehicle_id}").encode("ascii", "replace")
        return d.MAVLink_adsb_vehicle_message(
            vehicle_id & _MOST_ICAO,
            round(latitude * 1e7),
            round(longitude * 1e7),
            d.ADSB_ALTITUDE_TYPE_GEOMETRIC,
            round(altitude * 1e3),
            heading,
            min(round(speed * 1e2), 65_535),
            min(max(round(0.0 - down * 1e2), -32_767), 32_767),
            callsign[:_CALLSIGN_LETTERS],
            d.ADSB_EMITTER_TYPE_UAV,
            min(round(age), 255),
            flags,
            0,
        )


def _none() -> Floats:
    return np.zeros(0)
