"""The Earth's magnetic field by place, from a table of the World Magnetic Model."""

from __future__ import annotations

from importlib import resources

import numpy as np

from rfly_common.arrays import Floats, Triple


def earth_field(latitude: float, longitude: float) -> Triple:
    """T, ENU, at sea level in the middle of 2027. Bilinear in 5°: declination within 0.3° below 60° of latitude.

    World Magnetic Model 2025 (NOAA and British Geological Survey, public domain), evaluated by pygeomag 1.1.
    """
    with (resources.files("rfly_amphibious") / "data" / "magnetic_field" / "wmm2025.npz").open("rb") as file:
        table: Floats = np.load(file, allow_pickle=False)["enu_nt"]  # (37, 73, 3), from -90° and -180° on
    row, column = (latitude + 90.0) / 5.0, (longitude + 180.0) / 5.0
    r, c = min(int(row), 35), min(int(column), 71)
    west, east = table[r : r + 2, c], table[r : r + 2, c + 1]
    south, north = west + (column - c) * (east - west)
    x, y, z = (1e-9 * (south + (row - r) * (north - south))).tolist()
    return x, y, z
