"""Legs from a planned path, driven where it lies on the ground and flown between; and the way that legs lead."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.guidance.legs import DriveLeg, FlyLeg, Leg, Point
from rfly_common.arrays import Floats
from rfly_common.errors import PlanError
from rfly_terrain.height_map.height_map import HeightMap

ON_GROUND = 1.0
"""m above the ground, up to which a pose of a path counts as on it, as the planner has it"""
SAME_PLACE = 0.5
"""m"""
DRAWN_STEP = 2.0
"""m between the points of a way that is driven"""
MOST_DRAWN = 20_000
"""of these points, but for two more a leg; they lie farther apart on a longer way"""
FARTHEST = 1e7
"""m from the map's origin"""


def way_of_legs(legs: Sequence[Leg], place: ArrayLike, terrain: HeightMap | None) -> Floats:
    """(n, 3) points x east, y north, z up, m, of the wheels on the whole way from `place` x, y.

    Driven ways follow the ground, without a terrain z = 0; flights rise and land straight up and down.
    """
    here = np.asarray(place, float)
    corners = np.array([here, *(point[:2] for leg in legs for point in leg.points)])
    length = float(np.linalg.norm(np.diff(corners, axis=0), axis=1).sum())
    step = max(DRAWN_STEP, length / MOST_DRAWN)
    way = [_on_ground(here[None], terrain)]
    for leg in legs:
        for point in leg.points:
            there = np.asarray(point, float)
            if isinstance(leg, DriveLeg):
                count = max(2, math.ceil(math.dist(here, there) / step) + 1)
                way.append(_on_ground(np.linspace(here, there, count)[1:], terrain))
            else:
                way.append(there[None])
            here = there[:2]
        if isinstance(leg, FlyLeg) and leg.lands:
            way.append(_on_ground(here[None], terrain))
    return np.concatenate(way)


def _on_ground(places: Floats, terrain: HeightMap | None) -> Floats:
    z = np.zeros(len(places)) if terrain is None else terrain.altitude(places[:, 0], places[:, 1])
    return np.column_stack([places, z])


def legs_of_path(
    points: ArrayLike,
    terrain: HeightMap | None,
    drive_speed: float,
    fly_speed: float,
    place: ArrayLike | None = None,
) -> tuple[Leg, ...]:
    """The legs of a path of points (n, 3) x east, y north, z up, m; without a terrain the ground is z = 0.

    A segment is driven where both its ends lie on the ground; a run of others is a flight that takes off and lands
    straight up and down at its ends. A path that ends in the air ends hovering there. `place` x, y: where the vehicle
    is; what of a way that begins on the ground lies behind it is left out. Raises PlanError for a path that can't be
    followed.
    """
    way = np.asarray(points, float)
    if way.ndim != 2 or way.shape[1:] != (3,) or len(way) < 2:
        raise PlanError("bad_path", f"a path of shape {way.shape}, expected two points x, y, z or more")
    if not np.isfinite(way).all():
        raise PlanError("not_finite", "a point of the path is not finite")
    if np.abs(way).max() > FARTHEST:
        raise PlanError("bad_path", f"the path leads farther than {FARTHEST / 1e3:,.0f} km from the map's origin")
    if terrain is None:
        ground = np.zeros(len(way))
    else:
        outside = ~np.asarray(terrain.inside(way[:, 0], way[:, 1]))
        if outside.any():
            x, y = way[outside][0, :2]
            raise PlanError("outside", f"the path leads to x {x:.1f}, y {y:.1f}, off the map")
        ground = np.asarray(terrain.altitude(way[:, 0], way[:, 1]))
    low = way[:, 2] <= ground + ON_GROUND
    driven = low[1:] & low[:-1]
    legs: list[Leg] = []
    first = 0
    for drives, run in itertools.groupby(driven.tolist()):
        last = first + len(list(run))
        piece = way[first : last + 1]
        if drives:
            xy = piece[:, :2] if place is None or legs else _ahead_of(piece[:, :2], np.asarray(place, float))
            legs.append(DriveLeg(tuple((x, y) for x, y in xy[1:].tolist()), (drive_speed,) * (len(xy) - 1)))
        else:
            legs.append(_flight(piece, bool(low[first]), bool(low[last]), fly_speed))
        first = last
    return tuple(legs)


def _flight(piece: Floats, takes_off: bool, lands: bool, speed: float) -> FlyLeg:
    high = piece[1 if takes_off else 0 : len(piece) - 1 if lands else len(piece)]
    if not len(high):
        x, y, z = piece[0].tolist()
        raise PlanError("bad_path", f"the path leaves the ground at x {x:.1f}, y {y:.1f}, z {z:.1f} without a way up")
    points: list[Point] = [(x, y, z) for x, y, z in high.tolist()]
    if takes_off and math.dist(piece[0, :2], points[0][:2]) > SAME_PLACE:
        points.insert(0, (float(piece[0, 0]), float(piece[0, 1]), points[0][2]))
    if lands and math.dist(piece[-1, :2], points[-1][:2]) > SAME_PLACE:
        points.append((float(piece[-1, 0]), float(piece[-1, 1]), points[-1][2]))
    return FlyLeg(tuple(points), (speed,) * len(points), lands)


def _ahead_of(way: Floats, place: Floats) -> Floats:
    """(k, 2) from the foot of the place on the way (n, 2) on."""
    steps = np.diff(way, axis=0)
    squares = np.maximum((steps**2).sum(axis=1), 1e-12)
    share = np.clip(((place - way[:-1]) * steps).sum(axis=1) / squares, 0.0, 1.0)
    feet = way[:-1] + share[:, None] * steps
    nearest = int(np.argmin(((feet - place) ** 2).sum(axis=1)))
    ahead: Floats = np.concatenate([feet[nearest : nearest + 1], way[nearest + 1 :]])
    return ahead
