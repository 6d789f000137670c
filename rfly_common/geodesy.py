# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Geodetic conversions: latitude and longitude to and from the map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError

DEFAULT_GEO_ORIGIN = (47.397742, 8.545594, 488.0)
"""Latitude deg, longitude deg, altitude m: PX4's default home, for maps that name no origin."""

WGS84_A = 6378137.0
"""Equatorial radius, m."""
WGS84_E2 = 6.69437999014e-3
"""First eccentricity squared."""

GeoPoint = tuple[float, float, float]


def geo_point(values: Sequence[float], where: str) -> GeoPoint:
    """Return (latitude deg, longitude deg, altitude m), or raise ConfigError with `where`."""
    numbers = tuple(float(v) for v in values)

    if len(numbers) != 3:
        raise ConfigError(
            f"{where}: {len(numbers)} numbers, "
            "expected latitude, longitude (degrees) and altitude (m)"
        )

    if not all(map(math.isfinite, numbers)) or not fits_geo_point(numbers):
        raise ConfigError(
            f"{where}: {list(numbers)} is no place: latitude within ±90°, longitude within ±180°, "
            "altitude within -500…10,000 m"
        )

    return numbers[0], numbers[1], numbers[2]


def place_problem(origin: GeoPoint) -> str:
    """Return what is odd about the geodetic origin of a map; "" if nothing."""
    if any(origin):
        return ""
    return (
        "terrain_map has the geo_origin 0, 0, 0, as if it were not set "
        "(terrain_node: parameter geo_origin)"
    )


def fits_geo_point(values: Sequence[float]) -> bool:
    """Return whether three numbers can be latitude deg, longitude deg and altitude m."""
    latitude, longitude, altitude = values
    return abs(latitude) <= 90.0 and abs(longitude) <= 180.0 and -500.0 <= altitude <= 10_000.0


def geodetic_to_ned(point: ArrayLike, origin: Sequence[float]) -> Floats:
    """Convert (..., 3) latitude deg, longitude deg, altitude m to NED metres about `origin`.

    The map is the plane that touches the WGS 84 ellipsoid at the origin, scaled by its two radii of
    curvature there (NIMA TR8350.2, 3rd edition, section 3). Lengths along north and along east are
    right to a metre over ten kilometres; a parallel is taken as straight. Longitudes are wrapped,
    NaN stays NaN. `origin` has the form of a point.
    """
    p = np.asarray(point, dtype=float)
    north_per_deg, east_per_deg = _metres_per_degree(origin[0])
    east_deg = np.mod(p[..., 1] - origin[1] + 180.0, 360.0) - 180.0
    ned: NDArray[Any] = np.stack(
        [(p[..., 0] - origin[0]) * north_per_deg, east_deg * east_per_deg, origin[2] - p[..., 2]],
        axis=-1,
    )
    return ned


def ned_to_geodetic(ned: ArrayLike, origin: Sequence[float]) -> Floats:
    """Convert (..., 3) NED metres about `origin` to latitude deg, longitude deg, altitude m.

    The exact inverse of `geodetic_to_ned`. Longitudes are in [-180, 180).
    """
    p = np.asarray(ned, dtype=float)
    north_per_deg, east_per_deg = _metres_per_degree(origin[0])
    longitude = np.mod(origin[1] + p[..., 1] / east_per_deg + 180.0, 360.0) - 180.0
    geodetic: NDArray[Any] = np.stack(
        [origin[0] + p[..., 0] / north_per_deg, longitude, origin[2] - p[..., 2]], axis=-1
    )
    return geodetic


def _metres_per_degree(latitude_deg: float) -> tuple[float, float]:
    """Return the lengths of a degree of latitude and of longitude at a latitude, m."""
    phi = math.radians(latitude_deg)
    w = 1.0 - WGS84_E2 * math.sin(phi) ** 2
    meridian = WGS84_A * (1.0 - WGS84_E2) / w**1.5
    prime_vertical = WGS84_A / math.sqrt(w)

    return math.radians(meridian), math.radians(prime_vertical * math.cos(phi))
