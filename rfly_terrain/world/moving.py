# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Moving objects of a world: bodies on given paths, whose positions follow from the time alone."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.frames import euler_to_quat, rotation_matrix
from rfly_terrain.world.models import Model, scaled

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap

SPACING = 2.0
"""Distance between the points at which a path lies exactly on the ground, m."""
MAX_CORNERS = 2_000
"""Corners of a path on the ground, at most."""
MAX_SPEED = 100.0
"""Speed, at most, m/s."""
MovingPart: TypeAlias = tuple[Floats, Floats, Floats, Floats]
"""Corners (v, 3) of a convex part in body axes; the body's position (3,), axes (3, 3) and velocity
(3,) in the world.
"""
NEAREST_M = 1e-6
"""Distance between two corners of a path, in the plane, at least, m."""


@dataclass(frozen=True, eq=False)
class MovingPath:
    """A path at constant speed, repeated for ever. ENU, m; distances and speeds in the plane.

    Raises ValueError for an impossible path.
    """

    corners: Floats
    """Corners, (n, 3): x east, y north, z up, m."""
    speed: float
    """Speed, m/s."""
    loop: bool = False
    """True if the path leads from the last corner to the first; else it leads back."""
    start: float = 0.0
    """Distance along it from the first corner at the time 0, m."""

    def __post_init__(self) -> None:
        corners = np.array(self.corners, float)
        has_shape = corners.ndim == 2 and corners.shape[1] == 3 and len(corners) >= 2
        if not has_shape or not (np.abs(corners) <= 1e7).all():
            raise ValueError("path: expected 2 corners and more, each of 3 metres within 10,000 km")
        if not (0.0 < self.speed <= MAX_SPEED and abs(self.start) <= 1e7):  # false for NaN too
            raise ValueError(
                f"path: speed {self.speed:g} m/s, start {self.start:g} m: "
                f"expected 0 … {MAX_SPEED:g} m/s"
            )

        corners.flags.writeable = False
        object.__setattr__(self, "corners", corners)
        if not (np.diff(self.ways) > NEAREST_M).all():
            raise ValueError("path: two corners in a row lie at one place, as seen from above")

    @functools.cached_property
    def line(self) -> Floats:
        """Corners from the begin to the end, (m, 3); in a loop the end is the first one."""
        return np.concatenate([self.corners, self.corners[:1]]) if self.loop else self.corners

    @functools.cached_property
    def ways(self) -> Floats:
        """Distance from the begin to each corner of `line`, (m,), m."""
        return np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(self.line[:, :2], axis=0).T))])

    def at(self, time: float) -> tuple[Floats, float, Floats]:
        """Return position (3,), yaw and velocity (3,), m/s, at a time (s).

        The yaw is in rad, counter-clockwise from east.
        """
        length = float(self.ways[-1])
        distance = (self.start + self.speed * time) % (length if self.loop else 2.0 * length)
        direction = 1.0 if distance <= length else -1.0
        distance = distance if distance <= length else 2.0 * length - distance

        leg = min(int(np.searchsorted(self.ways, distance, side="right")) - 1, len(self.ways) - 2)
        slope = (self.line[leg + 1] - self.line[leg]) / (self.ways[leg + 1] - self.ways[leg])
        position = self.line[leg] + (distance - self.ways[leg]) * slope
        velocity = direction * self.speed * slope
        return position, math.atan2(velocity[1], velocity[0]), velocity

    def on(self, terrain: HeightMap | None, height: float = 0.0) -> MovingPath:
        """Return the path over the ground (None: level at z = 0), at a height above it (m)."""
        spacing = max(SPACING, float(self.ways[-1]) / (MAX_CORNERS - len(self.corners)))
        between = [
            np.linspace(a, b, math.ceil((b - a) / spacing), endpoint=False)
            for a, b in zip(self.ways, self.ways[1:], strict=False)
        ]
        distances = np.concatenate([*between, [] if self.loop else self.ways[-1:]])
        x = np.interp(distances, self.ways, self.line[:, 0])
        y = np.interp(distances, self.ways, self.line[:, 1])
        ground = np.zeros(len(x)) if terrain is None else np.asarray(terrain.altitude(x, y), float)
        corners = np.column_stack([x, y, ground + height])
        return MovingPath(corners, self.speed, self.loop, self.start)


@dataclass(frozen=True)
class MovingObject:
    """A model that moves along a path on the ground, facing ahead, upright."""

    model: Model
    path: MovingPath
    """Path; its z has no effect."""
    scale: float = 1.0

    @property
    def scaled_model(self) -> Model:
        """Model in its size here."""
        return scaled(self.model, self.scale)


@dataclass(frozen=True, eq=False)
class MovingSolids:
    """Bodies of convex parts, each on its path over the ground."""

    paths: tuple[MovingPath, ...]
    parts: tuple[tuple[Floats, ...], ...]
    """Corners of each part, (v, 3), about the body's position: x ahead, y left, z up."""

    @functools.cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Lowest and highest x, y and z that each body may reach on its path, (m, 3) each."""
        reach = np.array([max(map(_reach, parts)) for parts in self.parts])[:, None]
        low = [path.corners.min(axis=0) for path in self.paths]
        high = [path.corners.max(axis=0) for path in self.paths]
        return np.array(low).reshape(-1, 3) - reach, np.array(high).reshape(-1, 3) + reach

    def near(self, place: Floats, reach: float, time: float) -> Iterator[MovingPart]:
        """Yield each part that may be within `reach` (m) of a place (3,) at a time (s)."""
        low, high = self.bounds
        is_near = ((low < place + reach) & (high > place - reach)).all(axis=1)
        for row in np.flatnonzero(is_near).tolist():
            position, yaw, velocity = self.paths[row].at(time)
            distance = np.linalg.norm(position - place)
            for part in self.parts[row]:
                if distance < reach + _reach(part):
                    axes = rotation_matrix(euler_to_quat((0.0, 0.0, yaw)))
                    yield part, position, axes, velocity


def _reach(part: Floats) -> float:
    """Return the distance of a part's farthest corner, m."""
    return float(np.linalg.norm(part, axis=1).max())
