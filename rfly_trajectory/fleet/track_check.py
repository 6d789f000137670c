"""Track checks of a fleet over a terrain: off the map, below the ground, wheels in the air."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Bools, Floats
from rfly_trajectory.fleet.fleet import Fleet
from rfly_trajectory.fleet.limit_check import Finding, check_limits

MAX_POINTS = 20_000
"""on one track; its points lie at most half a cell apart where that takes no more"""
TOUCHING = 0.02
"""m: a wheel nearer to the ground than this counts as on it"""
SAMPLES_IN_A_CELL = 10
MAX_WHEEL_SAMPLES = 50_000
"""on one track"""


def check_tracks(fleet: Fleet) -> list[Finding]:
    """Findings of all vehicles, in their order, and then those of `check_limits`. Vehicles that stand still are looked
    at too; without a terrain there are no places off the map.

    Off the map the ground has the altitude of the map's edge, and a z below the ground is raised to it: both are
    safe, and both are seldom what was meant. Copies on one track are looked at once and reported once, for the first.
    """
    terrain = fleet.terrain
    if terrain is None:
        return check_limits(fleet)
    half_cell = 0.5 * min(abs(terrain.step_x), abs(terrain.step_y))
    findings = []
    seen = set()
    for index, vehicle in enumerate(fleet.vehicles):
        key = (id(vehicle.path), vehicle.shift, vehicle.offset, vehicle.height if vehicle.absolute else None)
        if key in seen:
            continue
        seen.add(key)
        path = vehicle.path
        points = min(max(math.ceil(path.length / half_cell), 16), MAX_POINTS) + 1
        s = np.linspace(0.0, path.length, points)
        position = fleet.points_at(index, s)[:, :2]
        on_map = terrain.inside(position[:, 0], position[:, 1])
        if not on_map.all():
            first = _first(position, ~on_map)
            share = path.length * float(np.mean(~on_map))
            findings.append(
                Finding(
                    vehicle.name,
                    f"about {share:.1f} m of its {path.length:.0f} m long track are off the map, first at "
                    f"{_position_text(first)}; the ground there has the altitude of the map's edge",
                    vehicle.locations.get("shape", ""),
                    first,
                )
            )
        climb = fleet.climb(index, s)
        if vehicle.absolute or climb is not None:
            under = terrain.altitude(position[:, 0], position[:, 1]) - (vehicle.height if climb is None else climb)
            if under.max() > 0.0:
                first = _first(position, under > 0.0)
                what = "the altitude of its waypoints" if climb is not None else f"its altitude of {vehicle.height:g} m"
                findings.append(
                    Finding(
                        vehicle.name,
                        f"{what} is up to {under.max():.1f} m below the ground, first at "
                        f"{_position_text(first)}; it is raised to the ground there",
                        vehicle.locations.get("altitude" if vehicle.absolute else "shape", ""),
                        first,
                    )
                )
    return findings + check_limits(fleet)


def _first(position: Floats, where: Bools) -> tuple[float, float]:
    x, y = position[int(np.argmax(where))].tolist()
    return x, y


def _position_text(position: tuple[float, float]) -> str:
    return f"x {position[0]:.1f}, y {position[1]:.1f}"


class WheelGap(NamedTuple):
    """The residual of one vehicle's wheel contact along its track."""

    gap: float
    """m, of the wheel that is farthest above the ground, where that is most"""
    x: float
    """m, there"""
    y: float
    share: float
    """of the track on which a wheel is more than TOUCHING above the ground"""


def wheel_gaps(fleet: Fleet) -> list[WheelGap | None]:
    """Of each vehicle in order; None for those without wheels. Copies on one track share one result.

    Places lie a tenth of the terrain's cell apart, or, on longer tracks, MAX_WHEEL_SAMPLES evenly all along.
    Wheels are never below the ground; of four that can't all touch, the two on the lower diagonal are off it.
    """
    terrain, made = fleet.terrain, {}
    found: list[WheelGap | None] = []
    for index, vehicle in enumerate(fleet.vehicles):
        if vehicle.wheelbase is None:
            found.append(None)
            continue
        key = (id(vehicle.path), vehicle.shift, vehicle.offset, vehicle.height, vehicle.wheelbase, vehicle.track)
        if key not in made:
            length = vehicle.path.length
            step = math.inf if terrain is None else min(abs(terrain.step_x), abs(terrain.step_y)) / SAMPLES_IN_A_CELL
            s = np.linspace(0.0, length, min(max(math.ceil(length / step), 16), MAX_WHEEL_SAMPLES) + 1)
            gap = fleet.max_wheel_gap(index, s)
            worst = int(np.argmax(gap))
            x, y = fleet.points_at(index, s[worst : worst + 1])[0, :2].tolist()
            made[key] = WheelGap(float(gap[worst]), x, y, float(np.mean(gap > TOUCHING)))
        found.append(made[key])
    return found
