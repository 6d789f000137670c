# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ground and air of rolling take-offs and landings. docs/model, section 9.4."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rfly_common.arrays import Floats
from rfly_terrain.height_map.height_map import HeightMap

MOST_SLOPE = math.radians(5.0)
"""Slope of a track beyond which no vehicle rolls on it, rad."""

ROUGHNESS_LENGTH = 2.0
"""Length of the profile from which a track deviates, m."""

LONGEST_SAMPLE = 0.25
"""Largest distance of the samples of a track, m."""

EARLY_TIME = 1.0
"""Time by which a touch-down may come early, s."""

MOST_BEND = math.radians(30.0)
"""Largest bend at the end of a flight before a glide, rad."""

SLANT_STEPS = 12
"""Number of steps to the height of a slant; each one changes the ground's slope times the last."""

CLEAR_SHARE = 0.5
"""Share of the height of a climb or glide up to which the ground below it may rise."""

LEAST_HEIGHT = 0.5
"""Height of a flight's ends above the ground from which a vehicle rolls off and out, m."""


def rolls_at(height: Any, highest: float) -> Any:
    """Return whether flights begin or end rolling at heights above the ground, m.

    `highest`: the height, m, from which on rolling saves nothing. The planner and those who follow
    its plans choose by this rule.
    """
    return (height > LEAST_HEIGHT) & (height < highest)


def track_problem(
    terrain: HeightMap,
    way: Floats,
    *,
    width: float,
    wheelbase: float,
    most_roughness: float,
) -> str:
    """Return why no vehicle rolls along a straight way, (2, 2), m; "" if one can.

    The ground has to be on the map, neither steep nor rough, under all wheels. `width`: between
    wheels of an axle, m; `most_roughness`: deviation from the straight profile, m.
    """
    step = min(0.5 * wheelbase, LONGEST_SAMPLE)
    length = float(np.linalg.norm(way[1] - way[0]))
    direction = (way[1] - way[0]) / length
    along = np.arange(0.0, length + step, step)
    left = 0.5 * width * np.array((-direction[1], direction[0]))
    middle = way[0] + along[:, None] * direction
    rows = [middle + side * left for side in (-1.0, 0.0, 1.0)]

    if not all(np.asarray(terrain.inside(row[:, 0], row[:, 1])).all() for row in rows):
        return "the track leads off the map"
    heights = np.array([terrain.altitude(row[:, 0], row[:, 1]) for row in rows])

    # slope over ROUGHNESS_LENGTH along, and over the track width across
    count = max(2, round(ROUGHNESS_LENGTH / step) + 1)
    windows = np.lib.stride_tricks.sliding_window_view(heights, min(count, len(along)), axis=1)
    length = step * (windows.shape[2] - 1)
    ahead = (windows[:, :, -1] - windows[:, :, 0]) / length
    across = (heights[2] - heights[0]) / width
    slope = math.atan(float(max(np.abs(ahead).max(), np.abs(across).max())))
    if slope >= MOST_SLOPE:
        return (
            f"the track is {math.degrees(slope):.1f}° steep, "
            f"expected below {math.degrees(MOST_SLOPE):g}°"
        )

    # deviation from the straight line through each window's ends
    share = np.linspace(0.0, 1.0, windows.shape[2])
    straight = windows[:, :, :1] + share * (windows[:, :, -1:] - windows[:, :, :1])
    roughness = float(np.abs(windows - straight).max())
    if roughness >= most_roughness:
        return f"the track is rough by {roughness:.2f} m, expected less than {most_roughness:.2f} m"
    return ""


def slant_problem(terrain: HeightMap, base: Floats, way: Floats, height: float) -> str:
    """Return what is in the way of a climb, or of a glide seen backwards; "" if nothing is.

    It leads along a way, (2, 2), m, from the ground at its begin up to `height`, m, above that at
    `base`, (2,).
    """
    share = np.linspace(0.0, 1.0, 50)
    x, y = (way[0] + share[:, None] * (way[1] - way[0])).T
    if not np.asarray(terrain.inside(x, y)).all():
        return "it leads off the map"
    ground = np.asarray(terrain.altitude(x, y))
    climb = float(terrain.altitude(*base.tolist())) + height - ground[0]
    if (ground - ground[0] > CLEAR_SHARE * climb * share + 0.1).any():
        return "the ground rises into its way"
    return ""


def height_of_slant(
    terrain: HeightMap,
    end: Floats,
    direction: Floats,
    altitude: float,
    way: Callable[[float], float],
) -> float:
    """Return the height, m, of a climb or glide at its high end (2,) above its track's ground.

    It counts from the ground there or, if that is lower, at the other end of the track, which
    leads `way(height)` metres along a direction, (2,).
    """
    height = altitude - float(terrain.altitude(*end.tolist()))
    for _ in range(SLANT_STEPS):
        low = end + way(height) * direction
        if terrain.inside(*low.tolist()):
            height = max(height, altitude - float(terrain.altitude(*low.tolist())))
    return height
