# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Scan patterns of Livox's lidars, which never repeat.

Axes of the lidar: x forward, y left, z up. A sweep has columns of one beam for each line. The
pattern runs on from sweep to sweep, so that a scene is seen ever more densely.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats

PRISM_SPEEDS = (7294.0 / 60.0, -4664.0 / 60.0)
"""Turns a second of the two prisms of a Mid-40.

Liu, Wu and Zhu, Low-cost retina-like robotic lidars based on incommensurable scanning, IEEE/ASME
Transactions on Mechatronics 27, 2022.
"""
MID40_FOV = math.radians(38.4)
"""Angle of a Mid-40's round field of view, rad."""
MID360_ELEVATIONS = (math.radians(-7.0), math.radians(52.0))
"""Lowest and highest elevation of a Mid-360, rad: 59° by its manual."""
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
"""Share of a zigzag by which each sweep of a Mid-360 is ahead of the one before."""


def away_from_axis(angle: ArrayLike, bearing: ArrayLike) -> Floats:
    """Return unit vectors (…, 3) at an angle from x forward, rad.

    `bearing`: of the direction in which they lean, from y left to z up, rad.
    """
    sine = np.sin(angle)
    return np.stack([np.cos(angle), sine * np.cos(bearing), sine * np.sin(bearing)], axis=-1)


def towards(azimuth: ArrayLike, elevation: ArrayLike) -> Floats:
    """Return unit vectors (…, 3); azimuths from x forward to the left, elevations upwards, rad."""
    flat = np.cos(elevation)
    return np.stack(
        np.broadcast_arrays(flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)),
        axis=-1,
    )


def mid40(number: int, columns: int, rate: float) -> Floats:
    """Return the directions (columns, 1, 3) of sweep `number`, of `rate` sweeps a second.

    Two prisms of one wedge angle turn against each other. Each deflects the beam by a quarter of
    the field of view in its own direction, and the sum draws a rosette.
    """
    time = (number + np.arange(columns) / columns) / rate
    first, second = (2.0 * math.pi * speed * time for speed in PRISM_SPEEDS)
    left = np.cos(first) + np.cos(second)
    up = np.sin(first) + np.sin(second)
    angle = 0.25 * MID40_FOV * np.hypot(left, up)
    return away_from_axis(angle, np.arctan2(up, left))[:, None]


def mid360(number: int, columns: int, rate: float) -> Floats:
    """Return the directions (columns, 4, 3) of sweep `number`.

    Field of view, lines and points a second are those of the manual, which does not publish the
    curve. Here each line zigzags evenly between the lowest and the highest elevation while the head
    turns once, so that neighbouring points of a line and neighbouring lines are equally far apart.
    A turn has no whole number of zigzags: by the golden ratio the next one falls into the widest
    gaps (three-distance theorem). `rate` has no effect, as a sweep is a turn.
    """
    del rate
    low, high = MID360_ELEVATIONS
    lines = LIVOX["mid360"].lines

    # zigzags in a turn, for spacings of 2π / (2 · lines · zigzags) and 2 · span · zigzags / columns
    zigzags = round(math.sqrt(math.pi * columns / (2.0 * lines * (high - low))))
    turn = np.arange(columns) / columns
    phase = (zigzags + GOLDEN) * turn + math.fmod(number * GOLDEN, 1.0)
    phase = np.mod(phase[:, None] + np.arange(lines) / lines, 1.0)
    elevation = low + (high - low) * np.abs(2.0 * phase - 1.0)
    return towards(2.0 * math.pi * turn[:, None], elevation)


class LivoxPattern(NamedTuple):
    """A lidar that does not scan in rings."""

    lines: int
    """Beams that are fired at once."""
    points_per_second: int
    directions: Callable[[int, int, float], Floats]
    """Directions (columns, lines, 3) by number of the sweep, columns, and sweeps a second."""


LIVOX = {
    "mid40": LivoxPattern(1, 100_000, mid40),
    "mid360": LivoxPattern(4, 200_000, mid360),
}
"""Patterns by their names in sensor files; points a second by Livox's manuals."""
