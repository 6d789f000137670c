"""Wheel contact check: height of the highest wheel over twisted ground."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rfly_trajectory.fleet.fleet import Fleet

TOUCHING = 0.02
"""m: a wheel nearer to the ground than this counts as on it"""
SAMPLES_IN_A_CELL = 10
MOST_SAMPLES = 50_000
"""on one track"""


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

    Places lie a tenth of the terrain's cell apart, or, on tracks longer than MOST_SAMPLES of them, evenly all along.
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
            s = np.linspace(0.0, length, min(max(math.ceil(length / step), 16), MOST_SAMPLES) + 1)
            gap = fleet.wheel_gap(index, s)
            worst = int(np.argmax(gap))
            x, y = fleet.places(index, s[worst : worst + 1])[0, :2].tolist()
            made[key] = WheelGap(float(gap[worst]), x, y, float(np.mean(gap > TOUCHING)))
        found.append(made[key])
    return found
