# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink's terrain protocol: heights of the map for autopilots and ground stations.

An autopilot without a map asks its ground station for heights by TERRAIN_REQUEST, and gets a
TERRAIN_DATA for each wanted grid of 4 x 4 points. `TerrainServer` answers in a station's place. The
vehicles report the ground below them by TERRAIN_REPORT. Places off the map have no heights: their
grids are not sent, and their reports have the spacing 0.

https://mavlink.io/en/services/terrain.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rfly_common.geodesy import GeoPoint, geodetic_to_ned
from rfly_mavlink.dialect.wire import Address, load_dialect

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap

GRID = 4
"""Number of points along each side of a grid in TERRAIN_DATA."""
GRIDS_EAST = 8
"""Number of grids in a row of a request, from west to east."""
GRIDS = 56
"""Number of grids in a request: 7 rows from south to north."""
GRIDS_A_TICK = 8
"""Number of grids that are sent in one tick, to all autopilots together."""
MOST_ASKING = 16
"""Number of autopilots whose requests wait."""
M_PER_DEG = 111_318.84502145034
"""Length of a degree that autopilots and stations count with to place a grid's points, m.

ArduPilot's LATLON_TO_M for 1e-7 degrees, times 1e7.
"""
_DEG_E7 = 1e-7
"""Degrees per unit of a latitude or longitude."""
_MOST_BLOCKS = 65_535
"""Largest number of grids that a report can hold."""


class PlacedTerrain(NamedTuple):
    """A map and the place of its origin."""

    terrain: HeightMap
    origin: GeoPoint

    def altitude(self, latitude: float, longitude: float) -> float:
        """Return the ground's altitude above sea level, m; NaN off the map."""
        north, east, _ = geodetic_to_ned((latitude, longitude, 0.0), self.origin).tolist()
        if not self.terrain.inside(east, north):
            return math.nan
        return self.origin[2] - float(self.terrain.altitude_ned(north, east))

    @property
    def spacing(self) -> int:
        """Distance between the map's samples, whole metres, at least 1."""
        step = min(abs(self.terrain.step_x), abs(self.terrain.step_y))
        return min(max(1, round(step)), _MOST_BLOCKS)

    @property
    def grids(self) -> int:
        """Number of grids of 4 x 4 samples in the map, as far as a report can hold it."""
        rows = math.ceil(self.terrain.rows / GRID)
        return min(rows * math.ceil(self.terrain.columns / GRID), _MOST_BLOCKS)


@dataclass
class _Request:
    """A TERRAIN_REQUEST that is being answered."""

    lat: int
    """Latitude of the south-west corner, 1e-7 degrees."""
    lon: int
    """Longitude of the south-west corner, 1e-7 degrees."""
    spacing: int
    """Distance between two points, m."""
    missing: list[int]
    """Numbers of the grids that have not been sent yet."""


class TerrainServer:
    """Answers TERRAIN_REQUEST as a ground station does; `terrain` is the map, once it is known.

    The newest request of an address replaces the one before, and grids are sent a few at a time.
    """

    HANDLED = frozenset({"TERRAIN_REQUEST"})

    def __init__(self, send: Callable[[Any, Address], None]) -> None:
        self._d = load_dialect()
        self._send = send
        self._requests: dict[Address, _Request] = {}
        self.terrain: PlacedTerrain | None = None
        self.sent = 0
        """Number of grids that were sent."""
        self.off_map = 0
        """Number of grids that were asked for and reach beyond the map."""

    def handle(self, message: Any, address: Address) -> None:
        """Take a TERRAIN_REQUEST; one that names no place or no distance is ignored."""
        is_place = abs(message.lat) <= 90e7 and abs(message.lon) <= 180e7
        is_full = address not in self._requests and len(self._requests) >= MOST_ASKING
        if self.terrain is None or is_full or not is_place or message.grid_spacing < 1:
            return

        wanted = [grid for grid in range(GRIDS) if message.mask >> grid & 1]
        request = _Request(message.lat, message.lon, message.grid_spacing, wanted)
        self._requests[address] = request

    def forget(self, address: Address) -> None:
        """Drop the request of an autopilot that is silent now."""
        self._requests.pop(address, None)

    def tick(self) -> None:
        """Send the next grids, of each request in turn."""
        left = GRIDS_A_TICK
        while self._requests and left > 0:
            address, request = next(iter(self._requests.items()))
            del self._requests[address]
            if not request.missing:
                continue

            left -= 1
            self._send_grid(request, request.missing.pop(0), address)
            self._requests[address] = request  # behind the others

    def _send_grid(self, request: _Request, grid: int, address: Address) -> None:
        assert self.terrain is not None
        heights = grid_altitudes(
            self.terrain, request.lat * _DEG_E7, request.lon * _DEG_E7, request.spacing, grid
        )
        if not all(map(math.isfinite, heights)):
            self.off_map += 1
            return

        self.sent += 1
        data = [round(height) for height in heights]
        message = self._d.MAVLink_terrain_data_message(
            request.lat, request.lon, request.spacing, grid, data
        )
        self._send(message, address)


def grid_altitudes(
    terrain: PlacedTerrain, latitude: float, longitude: float, spacing: float, grid: int
) -> list[float]:
    """Return the altitudes of a grid's 16 points, m, NaN off the map.

    `latitude`, `longitude`: the request's south-west corner, degrees; `spacing`: m. Grids and the
    points in a grid are numbered from west to east, then from south to north (ArduPilot,
    AP_Terrain.h, "Data conventions in this library"). Metres become degrees as in ArduPilot's
    Location::offset: on a sphere, the length of a degree of longitude taken half-way.
    """
    first_north = grid // GRIDS_EAST * GRID
    first_east = grid % GRIDS_EAST * GRID

    altitudes = []
    for point in range(GRID * GRID):
        north_deg = (first_north + point // GRID) * spacing / M_PER_DEG
        east = (first_east + point % GRID) * spacing
        narrowing = max(math.cos(math.radians(latitude + 0.5 * north_deg)), 0.01)
        east_deg = east / (M_PER_DEG * narrowing)
        altitudes.append(terrain.altitude(latitude + north_deg, longitude + east_deg))
    return altitudes


def report_message(
    terrain: PlacedTerrain | None, lat: int, lon: int, vehicle_altitude: float
) -> Any:
    """Return the TERRAIN_REPORT of a place in 1e-7 degrees; None without a map.

    `vehicle_altitude`: the vehicle's altitude above sea level, m, NaN if it is unknown.
    """
    if terrain is None:
        return None
    height = math.nan
    if abs(lat) <= 90e7 and abs(lon) <= 180e7:
        height = terrain.altitude(lat * _DEG_E7, lon * _DEG_E7)

    message = load_dialect().MAVLink_terrain_report_message
    if math.isnan(height):
        return message(lat, lon, 0, 0.0, 0.0, 0, terrain.grids)
    above = vehicle_altitude - height
    return message(lat, lon, terrain.spacing, height, above, 0, terrain.grids)
