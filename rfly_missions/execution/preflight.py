# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Preflight check of a mission: ground and objects on its path, radio, battery, the way home.

The check follows the way of `planned_way`, over the bilinear ground. NED metres.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_number
from rfly_common.frames import ned_to_enu
from rfly_missions.execution.flown_items import ItemOffMap, RaisedItem, items_off_map, raised_items
from rfly_missions.execution.planned_way import PlannedLeg, Way, distinct, planned_way
from rfly_missions.followers.fixed_wing import FixedWing, FixedWingLimits
from rfly_missions.followers.ground import Ground
from rfly_missions.followers.multirotor import (
    RETURN_HEIGHT,
    Follower,
    Multirotor,
    MultirotorLimits,
)
from rfly_missions.mission.clearance import Boxes, height_over_ground, near_boxes
from rfly_missions.mission.items import MissionItem, MissionMode
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.ray_cast import RADIO_EARTH_RADIUS

ROUNDING = 1e-6
"""Height that a clearance may lack, m."""
REPAIR_MARGIN = 0.05
"""Height of a repair beyond what is needed, m."""
RADIO_STEP = 2.0
"""Distance, m, between the places that have to see home."""
RETURN_STEP = 10.0
"""Distance, m, between the places from which a return is checked."""
MAX_RETURNS = 2000
"""Limit of those places."""
MAX_PLACES = 200_000
"""Limit of the places that have to see home."""
MAX_PASSES = 20
"""Limit of the passes of a repair."""


@dataclass(frozen=True)
class Demands:
    """Demands on a mission."""

    clearance: float = 10.0
    """Clearance over the ground, and from objects, m."""
    antenna_height: float = 2.0
    """Height of home's antenna above the ground, m."""
    battery_wh: float = 0.0
    """Energy of the full battery, Wh; 0: not checked."""
    power_w: float = 0.0
    """Average power of the flight, W."""
    reserve: float = 0.2
    """Share of the battery that has to be left on the ground."""

    def __post_init__(self) -> None:
        for name in ("clearance", "antenna_height", "battery_wh", "power_w", "reserve"):
            finite_number(name, getattr(self, name), at_least=0.0, error=ValueError)
        if self.reserve >= 1.0:
            raise ValueError(f"reserve: {self.reserve:g}, expected less than 1")
        if bool(self.battery_wh) != bool(self.power_w):
            raise ValueError("battery_wh and power_w: one is 0, expected both or neither")


@dataclass(frozen=True)
class Problem:
    """A violated demand, and its place."""

    kind: str
    """ground, object, radio, battery or end."""
    item: int
    """Index of the item to which the leg leads."""
    place: tuple[float, float, float]
    """NED, m."""
    text: str
    """What is wrong there."""
    lacks: float = 0.0
    """Height that the way lacks, m; `repaired` raises it by that."""
    raises: tuple[int, ...] = ()
    """Indices of the items to be raised by it."""


@dataclass(frozen=True)
class PreflightReport:
    """The result of a check."""

    problems: tuple[Problem, ...]
    lowest: float
    """Least height over the ground of what has to be cleared, m; infinite if there is nothing."""
    length: float
    """Length of the way, m."""
    seconds: float
    """Duration, s, without the time for accelerating."""
    energy_wh: float
    """Energy, Wh; 0 without a power."""
    return_height: float
    """Height above home, m, from which every straight return clears ground and objects."""
    way: Way = field(repr=False, default=Way(()))
    raised: tuple[RaisedItem, ...] = ()
    """Items that the vehicle flies higher than they say, over this ground."""
    off_map: tuple[ItemOffMap, ...] = ()
    """Items beyond the map, where heights over the ground are those over its edge."""


def preflight(
    items: Sequence[MissionItem],
    home: Sequence[float],
    terrain: HeightMap,
    *,
    numbers: Sequence[int] = (),
    boxes: Boxes | None = None,
    demands: Demands | None = None,
    fixed_wing: bool = False,
    loiter_radius: float = 25.0,
    min_height: float = 2.0,
) -> PreflightReport:
    """Return the report on a mission whose items and home (3,) lie in the map's NED, m.

    `numbers`: the items' numbers in its jumps. `min_height`: height above the ground, m, that the
    vehicle keeps; where an item is too low for that, the report says how high it is flown.
    """
    required = demands or Demands()
    names = tuple(numbers) or tuple(range(1, len(items) + 1))
    way = planned_way(items, names, home, loiter_radius=loiter_radius if fixed_wing else 0.0)

    # clearance
    problems: list[Problem] = []
    lowest = math.inf
    legs = list(distinct(way.legs))
    for leg in legs:
        height, share = height_over_ground(terrain, leg.start, leg.end)
        lowest = min(lowest, height)
        if height < required.clearance - ROUNDING:
            problems.append(
                _on_leg(
                    leg,
                    "ground",
                    share,
                    f"{height:.1f} m over the ground",
                    required.clearance - height,
                )
            )
    problems += _near_objects(legs, boxes, required.clearance)
    problems = _worst_of_each(problems, items)

    # radio and battery
    problems += _out_of_sight(way, home, terrain, required.antenna_height)
    limits = FixedWingLimits() if fixed_wing else MultirotorLimits()
    seconds, length, short = _battery(way, home, limits, required)

    # an end
    if way.endless:
        last_item = way.legs[-1].item if way.legs else 0
        last_place = way.legs[-1].end.tolist() if way.legs else list(home)
        problems.append(Problem("end", last_item, tuple(last_place), way.endless))

    energy = required.power_w * seconds / 3600.0
    height = _return_height(way, home, terrain, boxes, required.clearance)
    circle = loiter_radius if fixed_wing else None
    return PreflightReport(
        (*problems, *short),
        lowest,
        length,
        seconds,
        energy,
        height,
        way,
        _raised(items, Ground(terrain, min_height), circle),
        tuple(items_off_map(items, terrain, circle)),
    )


def _raised(
    items: Sequence[MissionItem], ground: Ground, loiter_radius: float | None
) -> tuple[RaisedItem, ...]:
    """Return the items that are flown higher than they say; a radius (m) is a fixed wing's."""
    vehicle: Follower = Multirotor(ground=ground)
    if loiter_radius is not None:
        vehicle = FixedWing(ground=ground, loiter_radius=loiter_radius)
    return tuple(raised_items(items, ground, vehicle.flown, loiter_radius=loiter_radius))


def repaired(
    items: Sequence[MissionItem],
    home: Sequence[float],
    terrain: HeightMap,
    *,
    numbers: Sequence[int] = (),
    boxes: Boxes | None = None,
    demands: Demands | None = None,
    fixed_wing: bool = False,
    loiter_radius: float = 25.0,
    min_height: float = 2.0,
) -> tuple[tuple[MissionItem, ...], PreflightReport]:
    """Return the items, raised where the way is too low, and the report on what is left.

    Both ends of a leg are raised by the missing height; nothing is lowered, moved or added.
    """
    raised = list(items)
    for _ in range(MAX_PASSES):
        report = preflight(
            raised,
            home,
            terrain,
            numbers=numbers,
            boxes=boxes,
            demands=demands,
            fixed_wing=fixed_wing,
            loiter_radius=loiter_radius,
            min_height=min_height,
        )

        lacking: dict[int, float] = {}
        for problem in report.problems:
            for index in problem.raises:
                lacking[index] = max(lacking.get(index, 0.0), problem.lacks + REPAIR_MARGIN)
        if not lacking:
            break

        for index, metres in lacking.items():
            raised[index] = replace(
                raised[index], position=raised[index].position - (0.0, 0.0, metres)
            )

    return tuple(raised), report


def _on_leg(leg: PlannedLeg, kind: str, share: float, text: str, lacks: float) -> Problem:
    north, east, down = (leg.start + share * (leg.end - leg.start)).tolist()
    return Problem(kind, leg.item, (north, east, down), text, lacks, (leg.before, leg.item))


def _near_objects(
    legs: Sequence[PlannedLeg], boxes: Boxes | None, clearance: float
) -> list[Problem]:
    if boxes is None or not len(boxes) or not legs:
        return []
    near = near_boxes(
        boxes, np.array([leg.start for leg in legs]), np.array([leg.end for leg in legs]), clearance
    )

    problems = []
    for line, box, distance, share in zip(*(values.tolist() for values in near), strict=True):
        leg = legs[line]
        # the whole leg above the top: more than enough
        low = max(float(leg.start[2]), float(leg.end[2]))
        lacks = max(low - (float(boxes.top[box]) - clearance), 0.0)
        if distance < clearance - ROUNDING:
            text = f"{distance:.1f} m from {boxes.name(box)}"
            problems.append(_on_leg(leg, "object", share, text, lacks))
    return problems


def _worst_of_each(problems: list[Problem], items: Sequence[MissionItem]) -> list[Problem]:
    """Return the worst problem of each kind and item; it raises items that have an altitude."""
    worst: dict[tuple[str, int], Problem] = {}
    for problem in problems:
        before, item = problem.raises
        is_level = items[item].mode in (MissionMode.LAND, MissionMode.RTL)
        raises = tuple(index for index in ((before,) if is_level else (before, item)) if index >= 0)
        known = worst.get((problem.kind, item))
        if known is None or problem.lacks > known.lacks:
            worst[problem.kind, item] = replace(problem, raises=raises)
    return list(worst.values())


def _places(
    legs: Sequence[PlannedLeg], step: float, most: int = MAX_PLACES
) -> tuple[Floats, NDArray[np.int64]]:
    """Return places (n, 3) along legs, at most `step` apart, and the items (n,) they lead to."""
    lengths = [float(np.linalg.norm(leg.end - leg.start)) for leg in legs]
    step = max(step, sum(lengths) / most)
    counts = [max(1, math.ceil(length / step)) + 1 for length in lengths]
    places = [
        np.linspace(leg.start, leg.end, count) for leg, count in zip(legs, counts, strict=True)
    ]
    if not places:
        return np.empty((0, 3)), np.empty(0, np.int64)
    return np.concatenate(places), np.repeat([leg.item for leg in legs], counts)


def _out_of_sight(
    way: Way, home: Sequence[float], terrain: HeightMap, antenna_height: float
) -> list[Problem]:
    """Return the first place of each item's way from which the ground hides home's antenna.

    The Earth is round for radio waves, which the air refracts.
    """
    places, items = _places([leg for leg in way.legs if not leg.repeated], RADIO_STEP)
    if not len(places):
        return []

    ground = min(float(terrain.altitude_ned(home[0], home[1])), float(home[2]))
    antenna = np.array([home[0], home[1], ground - antenna_height])
    above = places.copy()
    above[:, 2] = np.minimum(
        places[:, 2], np.asarray(terrain.altitude_ned(places[:, 0], places[:, 1]))
    )
    seen = np.asarray(
        terrain.line_of_sight(
            ned_to_enu(above), ned_to_enu(antenna), earth_radius=RADIO_EARTH_RADIUS
        )
    )

    problems = []
    for item in np.unique(items[~seen]).tolist():
        hidden = np.flatnonzero((items == item) & ~seen)
        north, east, down = places[hidden[0]].tolist()
        share = 100.0 * len(hidden) / np.count_nonzero(items == item)
        text = f"the ground hides home's antenna over {share:.0f} % of the way there"
        problems.append(Problem("radio", item, (north, east, down), text))
    return problems


def _battery(
    way: Way, home: Sequence[float], limits: MultirotorLimits | FixedWingLimits, demands: Demands
) -> tuple[float, float, list[Problem]]:
    """Return duration (s), length (m), and the first item after which the way home is too far."""
    times = [_time(leg, limits) for leg in way.legs]
    length = sum(float(np.linalg.norm(leg.end - leg.start)) for leg in way.legs)
    if not demands.power_w:
        return sum(times), length, []

    # the first leg whose end is too far from home
    usable = demands.battery_wh * (1.0 - demands.reserve) * 3600.0 / demands.power_w
    used = 0.0
    for leg, time in zip(way.legs, times, strict=True):
        used += time
        north, east, down = leg.end.tolist()
        away = math.hypot(north - home[0], east - home[1])
        back = away / limits.speed + max(0.0, home[2] - down) / limits.descent
        if leg is way.legs[-1]:
            back = 0.0
        if used + back > usable:
            percent = 100.0 * (used + back) / usable * (1.0 - demands.reserve)
            reserve = 100.0 * demands.reserve
            text = (
                f"{percent:.0f} % of the battery with the way home, {reserve:.0f} % are to be left"
            )
            return sum(times), length, [Problem("battery", leg.item, (north, east, down), text)]
    return sum(times), length, []


def _time(leg: PlannedLeg, limits: MultirotorLimits | FixedWingLimits) -> float:
    north, east, down = (leg.end - leg.start).tolist()
    speed = min(leg.speed, limits.max_speed) if leg.speed > 0.0 else limits.speed
    return (
        max(math.hypot(north, east) / speed, -down / limits.climb, down / limits.descent)
        + leg.seconds
    )


def _return_height(
    way: Way, home: Sequence[float], terrain: HeightMap, boxes: Boxes | None, clearance: float
) -> float:
    """Return the height above home, m, of a level return that clears everything on its way."""
    places, _ = _places(list(distinct(way.legs)), RETURN_STEP, MAX_RETURNS)
    needed = RETURN_HEIGHT
    center = np.array([home[0], home[1], 0.0])

    # the ground
    starts = np.unique(np.round(places[:, :2], 1), axis=0)
    starts = np.column_stack((starts, np.zeros(len(starts))))
    for start in starts:
        height, _ = height_over_ground(terrain, start, center)
        needed = max(needed, clearance - height + float(home[2]))

    # objects, by their distance as seen from above
    if boxes is not None and len(boxes) and len(starts):
        flat = replace(boxes, top=np.zeros(len(boxes)))
        near = near_boxes(flat, starts, np.tile(center, (len(starts), 1)), clearance)
        tops = boxes.top[near.box]
        needed = max(needed, clearance + float(home[2]) - float(tops.min(initial=math.inf)))

    return needed
