"""Where the map lies on the Earth: the only place that knows latitudes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rfly_common.errors import ConfigError

DEFAULT_GEO_ORIGIN = (47.397742, 8.545594, 488.0)
"""Latitude deg, longitude deg, altitude m: PX4's customary home, used where a map names none."""

GeoPoint = tuple[float, float, float]


def geo_point(values: Sequence[float], where: str) -> GeoPoint:
    """(latitude deg, longitude deg, altitude m) checked; raises ConfigError that begins with `where`."""
    numbers = tuple(float(v) for v in values)
    if len(numbers) != 3:
        raise ConfigError(f"{where}: {len(numbers)} numbers, expected latitude, longitude (degrees) and altitude (m)")
    if not all(map(math.isfinite, numbers)) or not fits_geo_point(numbers):
        raise ConfigError(
            f"{where}: {list(numbers)} is no place: latitude within ±90°, longitude within ±180°, "
            "altitude within -500…10,000 m"
        )
    return numbers[0], numbers[1], numbers[2]


def fits_geo_point(values: Sequence[float]) -> bool:
    """Whether three numbers can be latitude deg, longitude deg, altitude m, in that order."""
    latitude, longitude, altitude = values
    return abs(latitude) <= 90.0 and abs(longitude) <= 180.0 and -500.0 <= altitude <= 10_000.0
