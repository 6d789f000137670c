"""Altitude profiles along paths: z by horizontal arc length, through the waypoints' heights.

Between waypoints z is a cubic polynomial that keeps within their heights (PCHIP; Fritsch and Butland, SIAM Journal on
Scientific and Statistical Computing 5(2), 1984): it climbs where they climb, is level at the highest and lowest, and
the slope has no steps. Profiles of many paths lie in one table, and one call evaluates all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats, Ints
from rfly_trajectory.kernels import KERNELS
from rfly_trajectory.kernels.tables import AltitudeTable

if TYPE_CHECKING:
    from rfly_trajectory.paths.path import Path


@dataclass(frozen=True, eq=False)
class AltitudeProfile:
    """z along one path; immutable."""

    start: Floats
    """(p,) arc length at which a piece begins, m; the first is 0"""
    values: Floats
    """(p, 4) coefficients of z [m] in the arc length since the piece's start, lowest power first"""

    def __post_init__(self) -> None:
        for array in (self.start, self.values):
            array.flags.writeable = False


def altitude_profile(s: ArrayLike, z: ArrayLike, length: float, closed: bool) -> AltitudeProfile:
    """The profile through the heights z (k,) [m] at the arc lengths s (k,) [m] of a path of the given length.

    s grows; on an open path from 0 to `length`, on a closed one (which goes round) it begins anywhere.
    """
    from scipy.interpolate import PchipInterpolator

    knots, heights = np.asarray(s, float), np.asarray(z, float)
    if closed:
        knots = np.mod(knots, length)
        order = np.argsort(knots)
        knots, heights = knots[order], np.tile(heights[order], 3)
        knots = np.concatenate([knots - length, knots, knots + length])
    curve = PchipInterpolator(knots, heights)
    inside = (curve.x > 0.0) & (curve.x < length)
    start = np.concatenate([np.zeros(1), curve.x[inside]])
    values = np.stack([curve(start), curve(start, 1), curve(start, 2) / 2.0, curve(start, 3) / 6.0], axis=-1)
    return AltitudeProfile(start, values)


def join_profiles(paths: Sequence[Path]) -> AltitudeTable:
    """The table of several paths, in their order."""
    empty = AltitudeProfile(np.zeros(0), np.zeros((0, 4)))
    profiles = [path.altitude or empty for path in paths]
    counts = np.array([len(profile.start) for profile in profiles], np.int64)
    return AltitudeTable(
        first=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        start=np.concatenate([profile.start for profile in profiles]),
        values=np.concatenate([profile.values for profile in profiles]),
        length=np.array([path.length for path in paths]),
        closed=np.array([path.closed for path in paths]),
    )


def altitudes(table: AltitudeTable, path: Ints, s: Floats) -> Floats:
    """(k, 3) z [m], its slope and the slope's rate [1/m] by arc length at s (k,) [m] of the paths `path` (k,).

    Only for paths with a profile. Before its start and behind its end an open path goes on as steep as it is there.
    """
    return KERNELS.choose().altitudes(table, path, s)
