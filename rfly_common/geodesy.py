# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Geodetic conversions: latitude and longitude to and from the map."""

from __future__ import annotations

import functools
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
WGS84_F = 1.0 / 298.257223563
"""Flattening."""
WGS84_E = math.sqrt(WGS84_F * (2.0 - WGS84_F))
"""First eccentricity."""

_N = WGS84_F / (2.0 - WGS84_F)
"""Third flattening."""
_RADIUS = WGS84_A / (1.0 + _N) * (1.0 + _N**2 / 4.0 + _N**4 / 64.0)
"""Radius of the circle whose quarter is as long as a meridian's, m."""
_ALPHA = (
    _N / 2.0 - 2.0 / 3.0 * _N**2 + 5.0 / 16.0 * _N**3 + 41.0 / 180.0 * _N**4,
    13.0 / 48.0 * _N**2 - 3.0 / 5.0 * _N**3 + 557.0 / 1440.0 * _N**4,
    61.0 / 240.0 * _N**3 - 103.0 / 140.0 * _N**4,
    49561.0 / 161280.0 * _N**4,
)
"""Coefficients of Krüger's series from the conformal sphere to the plane."""
_BETA = (
    _N / 2.0 - 2.0 / 3.0 * _N**2 + 37.0 / 96.0 * _N**3 - 1.0 / 360.0 * _N**4,
    1.0 / 48.0 * _N**2 + 1.0 / 15.0 * _N**3 - 437.0 / 1440.0 * _N**4,
    17.0 / 480.0 * _N**3 - 37.0 / 840.0 * _N**4,
    4397.0 / 161280.0 * _N**4,
)
"""Coefficients of the series back."""
_LATITUDE_STEPS = 2
"""Newton's steps from the conformal latitude to the geodetic one."""

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

    North and east are those of the transverse Mercator projection of WGS 84 whose central meridian
    and latitude are the origin's and whose scale there is 1, as of PROJ's `+proj=tmerc`. So north
    is true north on the origin's meridian; 10 km east of it at 47° it is 0.1° off. East by d,
    lengths are too long by d²/(2 R²): 1 mm a kilometre at 9 km, 3 cm a kilometre at 50 km. They are
    those on the ellipsoid: the ground at an altitude of 1 km is 16 cm a kilometre longer. Down is
    the difference of the altitudes. Longitudes are wrapped, NaN stays NaN. `origin` has the form of
    a point.

    Source: C. F. F. Karney, Transverse Mercator with an accuracy of a few nanometers, Journal of
    Geodesy 85 (2011), equations 7 to 11, with four terms: less than 1 µm.
    """
    p = np.asarray(point, dtype=float)
    longitude = np.radians(np.mod(p[..., 1] - origin[1] + 180.0, 360.0) - 180.0)
    plane = _series(_on_conformal_sphere(np.radians(p[..., 0]), longitude), _ALPHA, 1.0)

    north = plane.real * _RADIUS - _meridian_arc(origin[0])
    east = plane.imag * _RADIUS
    ned: NDArray[Any] = np.stack([north, east, origin[2] - p[..., 2]], axis=-1)
    return ned


def ned_to_geodetic(ned: ArrayLike, origin: Sequence[float]) -> Floats:
    """Convert (..., 3) NED metres about `origin` to latitude deg, longitude deg, altitude m.

    The inverse of `geodetic_to_ned` (the same source, equations 15 to 21). Longitudes are in
    [-180, 180). What is farther north or south than a pole is no place: its latitude is beyond ±90.
    """
    p = np.asarray(ned, dtype=float)
    plane = (p[..., 0] + _meridian_arc(origin[0]) + 1j * p[..., 1]) / _RADIUS
    sphere = _series(plane, _BETA, -1.0)

    # from the conformal sphere to the ellipsoid
    with np.errstate(over="ignore"):  # east of all places
        across = np.sinh(sphere.imag)
    along = np.cos(sphere.real)
    conformal = np.sin(sphere.real) / np.hypot(across, along)
    tangent = conformal
    for _ in range(_LATITUDE_STEPS):
        guess = _conformal_tangent(tangent)
        slope = (1.0 + (1.0 - WGS84_E**2) * tangent**2) / (
            (1.0 - WGS84_E**2) * np.hypot(1.0, guess) * np.hypot(1.0, tangent)
        )
        tangent = tangent + (conformal - guess) * slope

    beyond_a_pole = np.abs(plane.real) > np.pi / 2.0
    latitude = np.degrees(np.where(beyond_a_pole, plane.real, np.arctan(tangent)))
    longitude = origin[1] + np.degrees(np.arctan2(across, along))
    geodetic: NDArray[Any] = np.stack(
        [latitude, np.mod(longitude + 180.0, 360.0) - 180.0, origin[2] - p[..., 2]], axis=-1
    )
    return geodetic


def ned_about(ned: ArrayLike, origin: Sequence[float], new_origin: Sequence[float]) -> Floats:
    """Convert (..., 3) NED metres about `origin` to those of the same places about `new_origin`.

    North of two origins differs unless they lie on one meridian: 5 km apart at 47° by 0.05°, or
    2.5 m at a distance of 3 km. What is beyond a pole is no place, and is only moved.
    """
    p = np.asarray(ned, dtype=float)
    if tuple(origin) == tuple(new_origin):
        return p
    places = ned_to_geodetic(p, origin)
    moved = p + geodetic_to_ned(origin, new_origin)
    beyond_a_pole = np.abs(places[..., :1]) > 90.0
    converted: Floats = np.where(beyond_a_pole, moved, geodetic_to_ned(places, new_origin))
    return converted


def _on_conformal_sphere(latitude: Floats, longitude: Floats) -> NDArray[np.complex128]:
    """Return Gauss-Schreiber coordinates ξ' + i η' of a latitude and a longitude, rad."""
    conformal = _conformal_tangent(np.tan(latitude))
    across = np.cos(longitude)
    sphere: NDArray[Any] = np.arctan2(conformal, across) + 1j * np.arcsinh(
        np.sin(longitude) / np.hypot(conformal, across)
    )
    return sphere


def _conformal_tangent(tangent: Any) -> Any:
    """Return the tangent of the conformal latitude for that of a geodetic latitude."""
    secant = np.hypot(1.0, tangent)
    sigma = np.sinh(WGS84_E * np.arctanh(WGS84_E * tangent / secant))
    return tangent * np.hypot(1.0, sigma) - sigma * secant


def _series(z: Any, coefficients: Sequence[float], sign: float) -> Any:
    """Return z + sign · Σ cⱼ sin 2jz, summed by Clenshaw's recurrence."""
    twice_cosine = 2.0 * np.cos(2.0 * z)
    last: Any = 0.0
    current: Any = 0.0
    for coefficient in reversed(coefficients):
        last, current = current, coefficient + twice_cosine * current - last
    return z + sign * np.sin(2.0 * z) * current


@functools.lru_cache(maxsize=256)
def _meridian_arc(latitude_deg: float) -> float:
    """Return the length of the meridian from the equator to a latitude, m."""
    sphere = _on_conformal_sphere(np.asarray(math.radians(latitude_deg)), np.asarray(0.0))
    return float(_series(sphere, _ALPHA, 1.0).real) * _RADIUS
