"""Range scans for an occupancy map: poses, directions, ranges, checked and in one form."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Bools, Floats
from rfly_terrain.occupancy.cell_grid import numbers, real_numbers


@runtime_checkable
class Scan(Protocol):
    """Anything with ranges (m) and angles (rad, from the sensor's x axis, counterclockwise) of the same length."""

    @property
    def ranges(self) -> Any: ...

    @property
    def angles(self) -> Any: ...


class Rays(NamedTuple):
    """The rays of a scan that say something."""

    lengths: Floats
    """(n,) m, at most the maximum range"""
    angles: Floats
    """(n,) rad"""
    is_hit: Bools
    """(n,) whether the ray ends at an obstacle"""


def pose_of(pose: ArrayLike) -> tuple[Floats, float]:
    """x, y, θ -> ((1, 2) place, θ)."""
    array = numbers(pose, "pose")
    if array.size != 3 or array.ndim > 2:
        raise ValueError(f"pose: the shape {array.shape}, expected x, y and an angle")
    x, y, theta = array.reshape(3).tolist()
    return np.array([[x, y]]), theta


def poses_of(poses: ArrayLike) -> Floats:
    """One pose or (m, 3) -> (m, 3)."""
    array = numbers(poses, "pose")
    if array.ndim not in (1, 2) or array.shape[-1] != 3:
        raise ValueError(f"pose: the shape {array.shape}, expected x, y and an angle, or n-by-3")
    return array.reshape(-1, 3)


def directions(theta: Any, angles: Floats) -> Floats:
    """Unit vectors (…, n, 2) in the directions θ + angle."""
    turned = theta + angles
    return np.stack((np.cos(turned), np.sin(turned)), axis=-1)


def max_range_of(max_range: Any) -> float:
    """A maximum range, m; infinity means that there is none."""
    array = real_numbers(max_range, "max_range")
    if array.size != 1 or not float(array.reshape(())) > 0:
        raise ValueError(f"max_range: {max_range!r}, expected one number above 0")
    return float(array.reshape(()))


def scan_of(rays: Any, angles: Any, max_range: Any) -> Rays:
    """(ranges, angles, max_range), or (scan, max_range) with the range in either of the last two places."""
    if isinstance(rays, Scan):
        if max_range is None:
            angles, max_range = None, angles
        if angles is not None:
            raise ValueError("angles: a scan has its own; expected a scan and max_range")
        rays, angles = rays.ranges, rays.angles
    if angles is None or max_range is None:
        raise ValueError("expected ranges, angles and max_range, or a scan and max_range")
    ranges, turned = real_numbers(rays, "ranges").reshape(-1), numbers(angles, "angles").reshape(-1)
    if ranges.shape != turned.shape:
        raise ValueError(f"{ranges.size} ranges for {turned.size} angles, expected the same number")
    if (ranges < 0).any():
        raise ValueError(f"ranges: {ranges[ranges < 0][0]:g}, expected none below 0")
    limit = max_range_of(max_range)
    known = ~np.isnan(ranges)
    ranges, turned = ranges[known], turned[known]
    return Rays(np.minimum(ranges, limit), turned, ranges < limit)
