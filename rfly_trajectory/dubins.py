"""Dubins paths: the shortest ways between poses for what drives forward only and turns no tighter than a radius.

Such a way is one of six words of left turns L, right turns R and straights S (Dubins, American Journal of Mathematics
79(3), 1957): LSL, RSR, LSR, RSL, RLR, LRL. Segments follow in closed form (Shkel and Lumelsky, Robotics and Autonomous
Systems 34, 2001). All functions take arrays of poses. Coordinates are ENU metres, headings radians counter-clockwise
from east. The curvature of a Dubins path has steps where its segments meet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.errors import ConfigError
from rfly_trajectory.paths import Path, PathBuilder
from rfly_trajectory.shapes import check_heights, with_heights

Floats = NDArray[np.float64]

WORDS = ("LSL", "RSR", "LSR", "RSL", "RLR", "LRL")
TURNS = np.array([[{"L": 1.0, "S": 0.0, "R": -1.0}[letter] for letter in word] for word in WORDS])
"""(6, 3) of each word's segments: 1 left, 0 straight, -1 right"""
MAX_POSES = 2000
_FULL = 2.0 * math.pi
_ANGLE_SLACK = 1e-9
"""rad: a turn by less than this short of a whole one is a rounded 0"""
_SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class DubinsPath:
    """Dubins paths as arrays of one leading shape, which is () for a single one."""

    start: Floats
    """(…, 3) x, y [m] and heading [rad]"""
    turning_radius: float
    """m"""
    word: NDArray[np.int64]
    """(…) index into WORDS"""
    segments: Floats
    """(…, 3) m; inf where the word joins the two poses in no way"""

    @property
    def length(self) -> Floats:
        """(…) m"""
        return np.asarray(self.segments.sum(axis=-1))

    @property
    def name(self) -> str:
        """The word of a single path, such as LSL."""
        return WORDS[int(self.word)]

    def at(self, s: ArrayLike) -> Floats:
        """(…, k, 3) x, y, heading at the arc lengths s (…, k) or (k,) [m]; before the start and behind the end those.

        The heading counts on through whole turns.
        """
        s = np.asarray(s, dtype=float)
        turns = TURNS[self.word]
        x, y, heading = (self.start[..., i, None] for i in range(3))
        shape = np.broadcast_shapes(x.shape, s.shape)
        x, y, heading = (np.broadcast_to(each, shape) for each in (x, y, heading))
        left = np.maximum(np.broadcast_to(s, shape), 0.0)
        for i in range(3):
            way = np.minimum(left, self.segments[..., i, None])
            half = 0.5 * turns[..., i, None] * way / self.turning_radius
            chord = way * np.sinc(half / math.pi)
            x, y = x + chord * np.cos(heading + half), y + chord * np.sin(heading + half)
            heading = heading + 2.0 * half
            left = left - way
        return np.stack([x, y, heading], axis=-1)

    def lay(self, builder: PathBuilder) -> None:
        """Add the arcs of a single path to a path that has come to its start."""
        for turn, way in zip(TURNS[int(self.word)].tolist(), self.segments.tolist(), strict=True):
            if way > _ANGLE_SLACK * self.turning_radius:
                builder.arc(way, turn / self.turning_radius)


def dubins_path(start: ArrayLike, end: ArrayLike, turning_radius: float) -> DubinsPath:
    """The shortest ways from the poses `start` (…, 3) to the poses `end` (…, 3), x, y [m] and heading [rad].

    Leading shapes are broadcast: one start and many ends give as many paths. Of words of the same length the one that
    comes first in WORDS is taken. Raises ConfigError for a radius [m] that is not above 0 and for poses that are not
    finite.
    """
    every = dubins_words(start, end, turning_radius)
    word = np.asarray(np.argmin(_rounded(every.length), axis=-1))
    segments = np.take_along_axis(every.segments, word[..., None, None], axis=-2)[..., 0, :]
    return DubinsPath(every.start[..., 0, :], every.turning_radius, word, segments)


def _rounded(length: Floats) -> Floats:
    """Lengths in which a word is not shorter than an equal one by rounding alone."""
    least = length.min(axis=-1, keepdims=True)
    return np.where(length <= least * (1.0 + _SLACK), least, length)


def dubins_words(start: ArrayLike, end: ArrayLike, turning_radius: float) -> DubinsPath:
    """All six words between the poses, as `dubins_path` takes them: arrays of the leading shape (…, 6).

    Segments are inf where a word joins two poses in no way. Each word's way is its shortest; of the words with three
    turns only those can be shortest, and are given, whose middle turn is by more than half a circle.
    """
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    if not (math.isfinite(turning_radius) and turning_radius > 0.0):
        raise ConfigError(f"turning_radius: {turning_radius!r} m, must be finite and above 0")
    for name, poses in (("start", start), ("end", end)):
        if poses.shape[-1:] != (3,) or not np.isfinite(poses).all():
            raise ConfigError(f"{name}: expected finite poses (…, 3): x, y and heading")
    start, end = np.broadcast_arrays(start, end)
    way = (end - start)[..., :2] / turning_radius
    d, course = np.hypot(way[..., 0], way[..., 1]), np.arctan2(way[..., 1], way[..., 0])
    a, b = start[..., 2] - course, end[..., 2] - course
    words = [_same_side(d, a, b), _same_side(d, -a, -b), _cross(d, a, b), _cross(d, -a, -b)]
    words += [_three_turns(d, -a, -b), _three_turns(d, a, b)]
    segments = np.stack([np.stack(word, axis=-1) for word in words], axis=-2) * turning_radius
    segments[~np.isfinite(segments).all(axis=-1)] = np.inf
    word = np.broadcast_to(np.arange(6), segments.shape[:-1])
    return DubinsPath(np.broadcast_to(start[..., None, :], segments.shape), float(turning_radius), word, segments)


# Angles t, p, q of a word's segments between poses a distance d apart (in radii), with headings a and b seen from the
# straight line between them. Each is for a word that begins with L; that with R is its mirror image, with -a and -b.


def _positive(angle: Floats) -> Floats:
    turned = np.mod(angle, _FULL)
    return np.where(turned > _FULL - _ANGLE_SLACK, 0.0, turned)


def _same_side(d: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """LSL: from the first circle's centre to the second's."""
    ahead, aside = d + np.sin(a) - np.sin(b), np.cos(b) - np.cos(a)
    p, course = np.hypot(ahead, aside), np.arctan2(aside, ahead)
    one_circle = p < _ANGLE_SLACK  # its straight has no direction: one turn does it
    t = _positive(np.where(one_circle, b - a, course - a))
    return t, np.where(one_circle, 0.0, p), np.where(one_circle, 0.0, _positive(b - course))


def _cross(d: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """LSR: an inner tangent of two circles, whose centres are at least two radii apart."""
    ahead, aside = d + np.sin(a) + np.sin(b), -np.cos(a) - np.cos(b)
    square = ahead**2 + aside**2 - 4.0
    p = np.sqrt(np.where(square >= -_SLACK * (4.0 + d), np.maximum(square, 0.0), np.nan))
    course = np.arctan2(aside, ahead) + np.arctan2(2.0, p)
    return _positive(course - a), p, _positive(course - b)


def _three_turns(d: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """LRL: a third circle touches two whose centres are at most four radii apart."""
    ahead, aside = d + np.sin(a) - np.sin(b), np.cos(b) - np.cos(a)
    cosine = 1.0 - (ahead**2 + aside**2) / 8.0
    p = _FULL - np.arccos(np.where(cosine >= -1.0 - _SLACK, np.maximum(cosine, -1.0), np.nan))
    t = _positive(np.arctan2(aside, ahead) - a + 0.5 * p)
    return t, p, _positive(b - a - t + p)


@dataclass(frozen=True)
class Dubins:
    """The Dubins paths from pose to pose, one after the other; open, or closed with one from the last to the first."""

    poses: Sequence[Sequence[float]]
    """[east, north, heading_deg] or, for aircraft, [east, north, up, heading_deg]: m, and degrees counter-clockwise
    from east"""
    turning_radius: float
    """m"""
    closed: bool = False

    def path(self) -> Path:
        poses, heights = self._checked()
        ends = np.roll(poses, -1, axis=0)
        legs = len(poses) if self.closed else len(poses) - 1
        for i in range(legs):
            if (
                np.array_equal(poses[i, :2], ends[i, :2])
                and abs(math.remainder(ends[i, 2] - poses[i, 2], 360.0)) < 1e-7
            ):
                raise ConfigError(f"poses[{(i + 1) % len(poses)}]: the same pose as poses[{i}] before it")
        poses[:, 2], ends[:, 2] = np.radians(poses[:, 2]), np.radians(ends[:, 2])
        ways = dubins_path(poses[:legs], ends[:legs], self.turning_radius)
        builder, s = PathBuilder(0.0, 0.0, 0.0), []
        for i in range(legs):
            s.append(builder.length)
            builder.anchor(*poses[i].tolist())
            DubinsPath(ways.start[i], ways.turning_radius, ways.word[i], ways.segments[i]).lay(builder)
        path = builder.path(self.closed)
        return with_heights(path, s if self.closed else [*s, path.length], heights)

    def _checked(self) -> tuple[Floats, Floats]:
        """Poses (n, 3), and their heights (n,) or (0,)."""
        if len(self.poses) > MAX_POSES:
            raise ConfigError(f"poses: {len(self.poses)} of them, at most {MAX_POSES} are taken")
        heights = check_heights("poses", self.poses, 3)
        if len(self.poses) < 2:
            raise ConfigError(f"poses: {len(self.poses)} are too few, a Dubins path needs at least 2")
        return np.array(self.poses, float)[:, [0, 1, -1]], heights
