# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Latitude and longitude on a terrain, and the ground along a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Bools, Floats
from rfly_common.config.checks import check_unmasked
from rfly_common.errors import ConfigError
from rfly_common.geodesy import GeoPoint, geodetic_to_ned, ned_to_geodetic

if TYPE_CHECKING:
    from rfly_terrain.height_map.terrain import Terrain

MOST_SAMPLES = 1_000_000
"""Number of points of a profile, at most."""


class Profile(NamedTuple):
    """The ground at n points along a straight line on the map."""

    distance: Floats
    """Horizontal distance from the start, (n,), m."""
    x: Floats
    """x east, (n,), m."""
    y: Floats
    """y north, (n,), m."""
    altitude: Floats
    """z of the ground, up, (n,), m."""
    inside: Bools
    """False where the line is off the map and the altitude is that of its edge, (n,)."""

    @property
    def climb(self) -> float:
        """Sum of all rises along the line, m."""
        return float(np.maximum(np.diff(self.altitude), 0.0).sum())

    @property
    def descent(self) -> float:
        """Sum of all falls along the line, m."""
        return float(np.maximum(-np.diff(self.altitude), 0.0).sum())

    @property
    def steepest(self) -> float:
        """Largest slope between two points of the line, rad."""
        return float(np.arctan(np.abs(np.diff(self.altitude) / np.diff(self.distance)).max()))


def place_origin(terrain: Terrain) -> GeoPoint:
    """Return latitude, longitude and altitude of the map's origin; raise ConfigError for none."""
    if terrain.geo_origin is None:
        raise ConfigError(
            f"map {terrain.name!r} names no latitude and longitude: its txt has nine numbers; "
            "append latitude, longitude and altitude of x = y = z = 0"
        )
    return terrain.geo_origin


def position_of(latitude: ArrayLike, longitude: ArrayLike, origin: GeoPoint) -> tuple[Any, Any]:
    """Return x east and y north, m, of places in degrees on a map with that origin.

    The two broadcast; two numbers give floats. Raises ValueError for what is no place on the Earth.
    """
    check_unmasked("latitude", latitude)
    check_unmasked("longitude", longitude)
    latitudes, longitudes = np.broadcast_arrays(
        np.asarray(latitude, float), np.asarray(longitude, float)
    )
    for name, values, most in (("latitude", latitudes, 90.0), ("longitude", longitudes, 180.0)):
        wrong = ~(np.abs(values) <= most)
        if wrong.any():
            number = values[wrong].flat[0]
            raise ValueError(f"{name} is {number:g}, expected degrees from -{most:g} to {most:g}")

    places = np.stack([latitudes, longitudes, np.zeros_like(latitudes)], axis=-1)
    ned = geodetic_to_ned(places, origin)
    x, y = ned[..., 1], ned[..., 0]
    return (x, y) if x.ndim else (float(x), float(y))


def place_of(x: ArrayLike, y: ArrayLike, origin: GeoPoint) -> tuple[Any, Any]:
    """Return latitude and longitude, degrees, of positions on a map, x east, y north, m."""
    check_unmasked("x", x)
    check_unmasked("y", y)
    x_east, y_north = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
    geodetic = ned_to_geodetic(np.stack([y_north, x_east, np.zeros_like(x_east)], axis=-1), origin)
    latitude, longitude = geodetic[..., 0], geodetic[..., 1]
    return (latitude, longitude) if latitude.ndim else (float(latitude), float(longitude))


def are_exchanged(terrain: Terrain, latitude: float, longitude: float, origin: GeoPoint) -> bool:
    """Return whether a place is on the map only with latitude and longitude exchanged."""
    if abs(longitude) > 90.0:
        return False
    there = terrain.inside(*position_of(longitude, latitude, origin))
    return there and not terrain.inside(*position_of(latitude, longitude, origin))


def profile(terrain: Terrain, start: ArrayLike, end: ArrayLike, count: int) -> Profile:
    """Return the ground at `count` evenly spaced points from start to end; see `Terrain`."""
    if not 2 <= count <= MOST_SAMPLES:
        raise ValueError(f"{count} points of a profile, expected 2 to {MOST_SAMPLES:,}")
    ends = np.array([start, end], dtype=float)
    if ends.shape != (2, 2):
        raise ValueError("start and end: expected two pairs x east, y north, m")

    x, y = np.linspace(ends[0], ends[1], count).T
    length = float(np.hypot(*(ends[1] - ends[0])))
    if length == 0.0:
        raise ValueError("start and end are the same place: a profile needs a length")
    altitude, inside, _ = terrain.query(x, y, want_normals=False)
    return Profile(np.linspace(0.0, length, count), x, y, altitude, inside)
