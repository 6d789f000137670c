# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Range scans for an occupancy map: checked poses and ranges, and MATLAB's `lidarScan`."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Bools, Floats
from rfly_terrain.occupancy.call_forms import in_call_forms
from rfly_terrain.occupancy.cell_grid import number, numbers, points, real_numbers


@runtime_checkable
class Scan(Protocol):
    """Anything with ranges and angles of the same length.

    Ranges are in m; angles are in rad, counterclockwise from the sensor's x axis.
    """

    @property
    def ranges(self) -> Any: ...

    @property
    def angles(self) -> Any: ...


class ScanRays(NamedTuple):
    """Rays of a scan, without those that have no range."""

    lengths: Floats
    """Lengths, (n,), m, at most the maximum range."""
    angles: Floats
    """Angles, (n,), rad."""
    is_hit: Bools
    """True where the ray ends at an obstacle, (n,)."""


def pose_of(pose: ArrayLike) -> tuple[Floats, float]:
    """Convert x, y, θ to ((1, 2) place, θ)."""
    array = numbers(pose, "pose")
    if array.size != 3 or array.ndim > 2:
        raise ValueError(f"pose: the shape {array.shape}, expected x, y and an angle")
    x, y, theta = array.reshape(3).tolist()
    return np.array([[x, y]]), theta


def poses_of(poses: ArrayLike) -> Floats:
    """Return one pose or (m, 3) as (m, 3)."""
    array = numbers(poses, "pose")
    if array.ndim not in (1, 2) or array.shape[-1] != 3:
        raise ValueError(f"pose: the shape {array.shape}, expected x, y and an angle, or n-by-3")
    return array.reshape(-1, 3)


def directions(theta: Any, angles: Floats) -> Floats:
    """Return the unit vectors (…, n, 2) in the directions θ + angle."""
    turned = theta + angles
    return np.stack((np.cos(turned), np.sin(turned)), axis=-1)


def max_range_of(max_range: Any) -> float:
    """Return a maximum range, m; infinity means that there is none."""
    array = real_numbers(max_range, "max_range")
    if array.size != 1 or not float(array.reshape(())) > 0:
        raise ValueError(f"max_range: {max_range!r}, expected one number above 0")
    return float(array.reshape(()))


def _readings(ranges: Any, angles: Any) -> tuple[Floats, Floats]:
    lengths = real_numbers(ranges, "ranges").reshape(-1)
    turned = numbers(angles, "angles").reshape(-1)
    if lengths.shape != turned.shape:
        raise ValueError(
            f"{lengths.size} ranges for {turned.size} angles, expected the same number"
        )
    if (lengths < 0).any():
        raise ValueError(f"ranges: {lengths[lengths < 0][0]:g}, expected none below 0")
    return lengths, turned


def scan_of(rays: Any, angles: Any, max_range: Any) -> ScanRays:
    """Return the rays of (ranges, angles, max_range), or of (scan, max_range).

    The range of the second form may stand in either of the last two places.
    """
    if isinstance(rays, Scan):
        if max_range is None:
            angles, max_range = None, angles
        if angles is not None:
            raise ValueError("angles: a scan has its own; expected a scan and max_range")
        angles = rays.angles
        rays = rays.ranges
    if angles is None or max_range is None:
        raise ValueError("expected ranges, angles and max_range, or a scan and max_range")
    ranges, turned = _readings(rays, angles)
    limit = max_range_of(max_range)
    known = ~np.isnan(ranges)
    ranges = ranges[known]
    turned = turned[known]
    return ScanRays(np.minimum(ranges, limit), turned, ranges < limit)


class LidarScan:
    """Readings of a planar lidar: `LidarScan(ranges, angles)` or `LidarScan(points)`.

    Ranges are in metres, angles in radians, points (n, 2) in metres. Angles count from the sensor's
    x axis (ahead), counter-clockwise; y is left. Ranges may be NaN or infinite until
    `remove_invalid_data`. ValueError for readings of other shapes and for ranges below 0. It does
    not change.

    >>> scan = LidarScan([1.0, 2.0, float("inf")], [0.0, np.pi / 2, np.pi])
    >>> scan.remove_invalid_data().cartesian.round(6) + 0.0
    array([[1., 0.],
           [0., 2.]])
    """

    def __init__(self, ranges: ArrayLike, angles: ArrayLike | None = None) -> None:
        if angles is None:
            xy = points(ranges, "points")
            self._ranges = np.hypot(*xy.T)
            self._angles = np.arctan2(xy[:, 1], xy[:, 0])
            self._cartesian = xy
        else:
            self._ranges, self._angles = _readings(ranges, angles)
            with np.errstate(invalid="ignore"):
                self._cartesian = self._ranges[:, None] * directions(0.0, self._angles)
        for array in (self._ranges, self._angles, self._cartesian):
            array.flags.writeable = False

    @property
    def ranges(self) -> Floats:
        """Ranges, (n,), m, with NaN and infinity."""
        return self._ranges

    @property
    def angles(self) -> Floats:
        """Angles, (n,), rad."""
        return self._angles

    @property
    def cartesian(self) -> Floats:
        """Points, (n, 2), m, x ahead and y left; not finite where the range is not."""
        return self._cartesian

    @property
    def count(self) -> int:
        """Number of readings."""
        return int(self._ranges.size)

    def __repr__(self) -> str:
        return (
            f"<LidarScan of {self.count} readings, {int(np.isfinite(self._ranges).sum())} finite>"
        )

    @in_call_forms
    def remove_invalid_data(
        self,
        *,
        range_limits: ArrayLike = (0.0, np.inf),
        angle_limits: ArrayLike = (-np.inf, np.inf),
    ) -> LidarScan:
        """Return the readings with a finite range within the limits, both included (m, rad)."""
        keep = np.isfinite(self._ranges)
        for name, values, limits in (
            ("range_limits", self._ranges, range_limits),
            ("angle_limits", self._angles, angle_limits),
        ):
            bounds = real_numbers(limits, name).reshape(-1)
            if bounds.size != 2 or not bounds[0] <= bounds[1]:
                raise ValueError(f"{name}: {limits!r}, expected the least and the greatest")
            with np.errstate(invalid="ignore"):
                keep &= (values >= bounds[0]) & (values <= bounds[1])
        return LidarScan(self._ranges[keep], self._angles[keep])

    def transformed(self, pose: ArrayLike) -> LidarScan:
        """Return the same readings about another frame, in which the sensor is at `pose` (x, y, θ).

        Readings without a finite range keep it and turn by θ.
        """
        place, theta = pose_of(pose)
        cos = np.cos(theta)
        sin = np.sin(theta)
        finite = np.isfinite(self._ranges)
        xy = self._cartesian[finite] @ np.array([[cos, sin], [-sin, cos]]) + place
        ranges = np.array(self._ranges)
        angles = self._angles + theta
        ranges[finite] = np.hypot(*xy.T)
        angles[finite] = np.arctan2(xy[:, 1], xy[:, 0])
        return LidarScan(ranges, angles)

    @in_call_forms
    def plot(self, ax: Any = None, *, maximum_range: float | None = None) -> Any:
        """Draw the finite readings as points into Matplotlib axes and return the line artist.

        `ax`: the current axes by default. `maximum_range` (m): where the axes end, on all sides.
        """
        import matplotlib.pyplot as plt

        axes = plt.gca() if ax is None else ax
        finite = np.isfinite(self._ranges)
        (line,) = axes.plot(*self._cartesian[finite].T, ".")
        axes.set(xlabel="X", ylabel="Y", title="LiDAR Scan", aspect="equal")
        if maximum_range is not None:
            reach = number(maximum_range, "maximum_range", above=0.0)
            axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
        return line

    # MATLAB's names
    Ranges = ranges
    Angles = angles
    Cartesian = cartesian
    Count = count
    removeInvalidData = remove_invalid_data
    transformScan = transformed
