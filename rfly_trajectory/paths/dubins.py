# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Dubins paths as Path objects.

They are the shortest curves between poses for forward motion with a turn radius. Such a path is one
of six words of left turns L, right turns R and straights S (Dubins, American Journal of Mathematics
79(3), 1957): LSL, RSR, LSR, RSL, LRL, RLR; `rfly_common.kernels.dubins` finds it. All functions
take arrays of poses. Coordinates are ENU metres, headings radians counter-clockwise from east. The
curvature of a Dubins path has steps where its segments meet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats, Ints
from rfly_common.config.checks import finite_number
from rfly_common.errors import ConfigError
from rfly_common.kernels.dubins import shortest_dubins
from rfly_trajectory.paths.path import Path, PathBuilder
from rfly_trajectory.paths.shapes import PathShape, check_heights, with_heights

WORDS = ("LSL", "RSR", "LSR", "RSL", "LRL", "RLR")
TURNS = np.array([[{"L": 1.0, "S": 0.0, "R": -1.0}[letter] for letter in word] for word in WORDS])
"""Turn of each word's segments, (6, 3): 1 left, 0 straight, -1 right."""
# largest number of poses of a path
MAX_POSES = 2000
_SHORTEST_SEGMENT = 1e-9
"""Length below which a segment is rounding error, in turning radii."""
_SHORTEST = np.frompyfunc(shortest_dubins, 7, 6)


@dataclass(frozen=True, eq=False)
class DubinsPath:
    """Dubins paths as arrays of one leading shape, which is () for a single path."""

    start: Floats
    """Poses at the start, (…, 3): x, y, m, and heading, rad."""
    turning_radius: float
    """Turning radius, m."""
    word: Ints
    """Index into WORDS, (…)."""
    segments: Floats
    """Lengths of the segments, (…, 3), m."""

    @property
    def length(self) -> Floats:
        """Length of each path, (…), m."""
        return np.asarray(self.segments.sum(axis=-1))

    @property
    def name(self) -> str:
        """The word of a single path, such as LSL."""
        return WORDS[int(self.word)]

    def at(self, s: ArrayLike) -> Floats:
        """Return the poses x, y, heading (…, k, 3) at the arc lengths s (…, k) or (k,), m.

        The pose at the start holds before it, the pose at the end behind it. The heading counts on
        through whole turns.
        """
        s = np.asarray(s, dtype=float)
        turns = TURNS[self.word]

        x, y, heading = (self.start[..., i, None] for i in range(3))
        shape = np.broadcast_shapes(x.shape, s.shape)
        x, y, heading = (np.broadcast_to(each, shape) for each in (x, y, heading))

        # along the three segments; the chord of an arc has the direction of its middle
        remaining = np.maximum(np.broadcast_to(s, shape), 0.0)
        for i in range(3):
            length = np.minimum(remaining, self.segments[..., i, None])
            half = 0.5 * turns[..., i, None] * length / self.turning_radius
            chord = length * np.sinc(half / math.pi)
            x = x + chord * np.cos(heading + half)
            y = y + chord * np.sin(heading + half)
            heading = heading + 2.0 * half
            remaining = remaining - length
        return np.stack([x, y, heading], axis=-1)

    def append_to(self, builder: PathBuilder) -> None:
        """Add the arcs of a single path to a builder that has reached its start."""
        for turn, length in zip(
            TURNS[int(self.word)].tolist(), self.segments.tolist(), strict=True
        ):
            if length > _SHORTEST_SEGMENT * self.turning_radius:
                builder.arc(length, turn / self.turning_radius)


def dubins_path(start: ArrayLike, end: ArrayLike, turning_radius: float) -> DubinsPath:
    """Return the shortest paths from the poses `start` (…, 3) to the poses `end` (…, 3).

    A pose is x, y, m, and heading, rad. Leading shapes are broadcast: one start and many ends give
    as many paths. Of words of the same length the first one in WORDS is taken. Raises ConfigError
    for a radius, m, that is not above 0 and for poses that are not finite.
    """
    start = np.asarray(start, dtype=float)
    end = np.asarray(end, dtype=float)
    finite_number("turning_radius", turning_radius, "m", above=0.0)
    for name, poses in (("start", start), ("end", end)):
        if poses.shape[-1:] != (3,) or not np.isfinite(poses).all():
            raise ConfigError("expected finite poses (…, 3): x, y and heading", key=name)

    start, end = np.broadcast_arrays(start, end)
    numbers = _SHORTEST(*np.moveaxis(start, -1, 0), *np.moveaxis(end, -1, 0), float(turning_radius))
    rows = np.stack([np.asarray(number, dtype=float) for number in numbers], axis=-1)
    word = np.asarray((rows[..., None, 3:] == TURNS).all(axis=-1).argmax(axis=-1))
    return DubinsPath(start, float(turning_radius), word, rows[..., :3])


@dataclass(frozen=True)
class Dubins(PathShape):
    """Dubins paths from pose to pose, one after the other.

    A closed one leads from the last pose back to the first.
    """

    poses: Sequence[Sequence[float]]
    """Poses [east, north, heading_deg] or, for aircraft, [east, north, up, heading_deg].

    Distances are in m, headings in degrees counter-clockwise from east.
    """
    turning_radius: float
    """Turning radius, m."""
    closed: bool = False

    def path(self) -> Path:
        """Return the path. Raises ConfigError for a pose that equals the one before it."""
        poses, heights = self._checked()
        ends = np.roll(poses, -1, axis=0)
        legs = len(poses) if self.closed else len(poses) - 1
        for i in range(legs):
            turn = math.remainder(ends[i, 2] - poses[i, 2], 360.0)
            if np.array_equal(poses[i, :2], ends[i, :2]) and abs(turn) < 1e-7:
                raise ConfigError(
                    f"the same pose as poses[{i}] before it", key=("poses", (i + 1) % len(poses))
                )

        poses[:, 2] = np.radians(poses[:, 2])
        ends[:, 2] = np.radians(ends[:, 2])
        paths = dubins_path(poses[:legs], ends[:legs], self.turning_radius)
        builder = PathBuilder(0.0, 0.0, 0.0)
        s = []
        for i in range(legs):
            s.append(builder.length)
            builder.anchor(*poses[i].tolist())
            leg = DubinsPath(paths.start[i], paths.turning_radius, paths.word[i], paths.segments[i])
            leg.append_to(builder)

        path = builder.path(self.closed)
        return with_heights(path, s if self.closed else [*s, path.length], heights)

    def _checked(self) -> tuple[Floats, Floats]:
        """Return the poses (n, 3) and their heights (n,) or (0,)."""
        if len(self.poses) > MAX_POSES:
            raise ConfigError(
                f"got {len(self.poses)}, at most {MAX_POSES} are allowed", key="poses"
            )
        heights = check_heights("poses", self.poses, 3)
        if len(self.poses) < 2:
            raise ConfigError(
                f"{len(self.poses)} are too few, a Dubins path needs at least 2", key="poses"
            )
        return np.array(self.poses, float)[:, [0, 1, -1]], heights
