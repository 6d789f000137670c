"""What moves in a world: bodies on given paths. Where they are follows from the time alone: all
know the same.
"""

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
"""m between the points at which a path lies exactly on the ground"""
MAX_CORNERS = 2_000
"""of a path on the ground"""
MAX_SPEED = 100.0
"""m/s"""
MovingPart: TypeAlias = tuple[Floats, Floats, Floats, Floats]
"""corners (v, 3) of a convex part in body axes; the body's place (3,), axes (3, 3) and velocity
(3,) in the world
"""
NEAREST_M = 1e-6
"""between two corners of a path, in the plane: more"""


@dataclass(frozen=True, eq=False)
class MovingPath:
    """A way at one speed, again and again. ENU, m; ways and speeds as seen from above, whatever the
    slope.

    Raises ValueError for what nobody can go along.
    """

    corners: Floats
    """(n, 3) x east, y north, z up"""
    speed: float
    """m/s"""
    loop: bool = False
    """from the last corner on to the first; else back the way that it came"""
    start: float = 0.0
    """m along it from the first corner at the time 0"""

    def __post_init__(self) -> None:
        corners = np.array(self.corners, float)
        if (
            corners.ndim != 2
            or corners.shape[1] != 3
            or len(corners) < 2
            or not (np.abs(corners) <= 1e7).all()
        ):
            raise ValueError("path: expected 2 corners and more, each of 3 metres within 10,000 km")
        if not (0.0 < self.speed <= MAX_SPEED and abs(self.start) <= 1e7):  # false for NaN too
            raise ValueError(
                f"path: speed {self.speed:g} m/s, start {self.start:g} m: expected 0 … {MAX_SPEED:g} m/s"
            )
        corners.flags.writeable = False
        object.__setattr__(self, "corners", corners)
        if not (np.diff(self.ways) > NEAREST_M).all():
            raise ValueError("path: two corners in a row lie at one place, as seen from above")

    @functools.cached_property
    def line(self) -> Floats:
        """(m, 3) corners from the begin to the end, which in a loop is the first one."""
        return np.concatenate([self.corners, self.corners[:1]]) if self.loop else self.corners

    @functools.cached_property
    def ways(self) -> Floats:
        """(m,) m from the begin to each corner of `line`."""
        return np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(self.line[:, :2], axis=0).T))])

    def at(self, time: float) -> tuple[Floats, float, Floats]:
        """(position (3,), yaw (rad, counter-clockwise from east), velocity (3,) m/s) at a time (s)."""
        length = float(self.ways[-1])
        way = (self.start + self.speed * time) % (length if self.loop else 2.0 * length)
        ahead = 1.0 if way <= length else -1.0
        way = way if way <= length else 2.0 * length - way
        leg = min(int(np.searchsorted(self.ways, way, side="right")) - 1, len(self.ways) - 2)
        slope = (self.line[leg + 1] - self.line[leg]) / (self.ways[leg + 1] - self.ways[leg])
        velocity = ahead * self.speed * slope
        return (
            self.line[leg] + (way - self.ways[leg]) * slope,
            math.atan2(velocity[1], velocity[0]),
            velocity,
        )

    def on(self, terrain: HeightMap | None, height: float = 0.0) -> MovingPath:
        """The same over the ground (None: level at z = 0), so high above it (m)."""
        spacing = max(SPACING, float(self.ways[-1]) / (MAX_CORNERS - len(self.corners)))
        more = [
            np.linspace(a, b, math.ceil((b - a) / spacing), endpoint=False)
            for a, b in zip(self.ways, self.ways[1:], strict=False)
        ]
        at = np.concatenate([*more, [] if self.loop else self.ways[-1:]])
        xy = np.column_stack([np.interp(at, self.ways, self.line[:, axis]) for axis in (0, 1)])
        ground = (
            np.zeros(len(xy))
            if terrain is None
            else np.asarray(terrain.altitude(xy[:, 0], xy[:, 1]), float)
        )
        return MovingPath(np.column_stack([xy, ground + height]), self.speed, self.loop, self.start)


@dataclass(frozen=True)
class MovingObject:
    """A model that goes along a path on the ground, facing ahead, upright."""

    model: Model
    path: MovingPath
    """its z counts for nothing"""
    scale: float = 1.0

    @property
    def scaled_model(self) -> Model:
        """The model in its size here."""
        return scaled(self.model, self.scale)


@dataclass(frozen=True, eq=False)
class MovingSolids:
    """m bodies of convex parts, each on its path over the ground."""

    paths: tuple[MovingPath, ...]
    parts: tuple[tuple[Floats, ...], ...]
    """(v, 3) corners of each part, about the body's place: x ahead, y left, z up"""

    @functools.cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """(m, 3) lowest and (m, 3) highest x, y and z that each may reach on its path."""
        reach = np.array(
            [max(float(np.linalg.norm(part, axis=1).max()) for part in each) for each in self.parts]
        )
        low, high = (
            [bound(path.corners, axis=0) for path in self.paths] for bound in (np.min, np.max)
        )
        return np.array(low).reshape(-1, 3) - reach[:, None], np.array(high).reshape(-1, 3) + reach[
            :, None
        ]

    def near(self, place: Floats, reach: float, time: float) -> Iterator[MovingPart]:
        """Each part that may be within `reach` (m) of a place (3,) at a time (s)."""
        low, high = self.bounds
        for row in np.flatnonzero(
            ((low < place + reach) & (high > place - reach)).all(axis=1)
        ).tolist():
            position, yaw, velocity = self.paths[row].at(time)
            for part in self.parts[row]:
                if np.linalg.norm(position - place) < reach + float(
                    np.linalg.norm(part, axis=1).max()
                ):
                    yield part, position, rotation_matrix(euler_to_quat((0.0, 0.0, yaw))), velocity
