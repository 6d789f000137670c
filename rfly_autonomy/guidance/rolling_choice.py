# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rolling take-offs and landings along a planned path, where they save energy.

A planned path drives where the ground is free, and flies over what is in the way. So a vehicle
rolls only along straight driven ways of the path: it lifts off before the place where it would take
off from a stand, and touches down beyond the place where it would land. docs/model, Eq. 9.3.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.guidance.rolling import (
    ALIGNING,
    climb_length,
    glide_length,
    highest_landing,
    highest_take_off,
    hover_saved_down,
    hover_saved_off,
    roll_out_length,
    rolling_plan,
    run_length,
)
from rfly_common.arrays import Floats
from rfly_missions.mission.legs import (
    CHOSEN_LANDING,
    DriveLeg,
    FlyLeg,
    Leg,
    Place,
)
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.planning.rolling_tracks import MOST_BEND, height_of_slant, rolls_at

STRAIGHT = 0.3
"""Largest distance of way-points from a straight way, m."""

GLIDE_ROOM = 1.0
"""Way before a glide on which the vehicle comes on course, m."""


class RollingChoice(NamedTuple):
    """Legs of a path, and what was chosen for its take-offs and landings."""

    legs: tuple[Leg, ...]
    """Legs to follow."""

    notes: tuple[str, ...]
    """Choice for each take-off and landing beside a driven way, with its reason."""


def assisted(legs: Sequence[Leg]) -> tuple[Leg, ...]:
    """Return legs on which the rotors may help wherever the vehicle drives forward."""
    return tuple(
        dataclasses.replace(leg, thrust_assist=not leg.backward)
        if isinstance(leg, DriveLeg)
        else leg
        for leg in legs
    )


def choose_rolling(
    legs: Sequence[Leg], place: Place, params: VehicleParameters, terrain: HeightMap | None
) -> RollingChoice:
    """Return the legs of a path that begins at `place`, rolling where that saves energy."""
    chosen = list(legs)
    notes = []
    for index, leg in enumerate(legs):
        if not isinstance(leg, FlyLeg):
            continue
        before = chosen[index - 1] if index > 0 else None
        if isinstance(before, DriveLeg) and not before.backward:
            begin = place if index == 1 else chosen[index - 2].points[-1][:2]
            notes.append(_roll_off(chosen, index, begin, params, terrain))
        after = chosen[index + 1] if index + 1 < len(chosen) else None
        if isinstance(after, DriveLeg) and not after.backward and leg.lands:
            notes.append(_roll_down(chosen, index, params, terrain))
    return RollingChoice(tuple(chosen), tuple(notes))


def _roll_off(
    legs: list[Leg],
    index: int,
    begin: Place,
    params: VehicleParameters,
    terrain: HeightMap | None,
) -> str:
    """Let a flight take off rolling, if that saves energy; return what was chosen.

    `begin`: place where the drive before it begins, m.
    """
    before = legs[index - 1]
    leg = legs[index]
    assert isinstance(before, DriveLeg)
    assert isinstance(leg, FlyLeg)
    speed = min(before.speeds[-1], *leg.speeds[:2])
    way = np.array([begin, *before.points])
    first = _straight_from(way[::-1])
    end = way[-1]
    length, back = _length_and_direction(way[len(way) - 1 - first] - end)

    def run_and_climb(height: float) -> float:
        climb = speed * ALIGNING + climb_length(speed, height)
        return max(climb, run_length(speed, standing=False))

    height = _slant_height(terrain, end, back, leg.points[0][2], run_and_climb)
    if not rolls_at(height, highest_take_off(speed, leg.speeds[0])):
        return "take-off from a stand: rolling saves nothing"
    needed = run_and_climb(height)
    if length < needed:
        return f"take-off from a stand: {_too_short(length, needed)}"

    # lift off on the driven way, to be at height at its end
    x, y = (end + needed * back).tolist()
    kept = len(before.points) - first
    drive = DriveLeg(
        (*before.points[:kept], (x, y)),
        before.speeds[: kept + 1],
        thrust_assist=before.thrust_assist,
    )
    points = ((x, y, leg.points[0][2]), *leg.points)
    fly = dataclasses.replace(
        leg, points=points, speeds=(leg.speeds[0], *leg.speeds), roll_off=speed
    )
    notes = rolling_plan(fly, None, params, terrain, standing=False).notes
    if notes:
        return f"take-off from a stand: {notes[0]}"
    legs[index - 1] = drive
    legs[index] = fly
    saved = hover_saved_off(speed, leg.speeds[0], height)
    return f"rolling take-off: it saves {saved:.1f} s of hovering"


def _roll_down(
    legs: list[Leg], index: int, params: VehicleParameters, terrain: HeightMap | None
) -> str:
    """Let a flight land rolling, if that saves energy; return what was chosen."""
    leg = legs[index]
    after = legs[index + 1]
    assert isinstance(leg, FlyLeg)
    assert isinstance(after, DriveLeg)
    speed = min(after.speeds[0], leg.speeds[-1], CHOSEN_LANDING)
    begin = np.array(leg.points[-1][:2])
    way = np.array([begin, *after.points])
    length, direction = _length_and_direction(way[_straight_from(way)] - begin)

    def whole_glide(height: float) -> float:
        return glide_length(speed, height) + GLIDE_ROOM

    height = _slant_height(terrain, begin, direction, leg.points[-1][2], whole_glide)
    if not rolls_at(height, highest_landing(speed, leg.speeds[-1])):
        return "landing straight down: rolling saves nothing"
    glide = whole_glide(height)
    needed = glide + roll_out_length(speed)
    if length < needed:
        return f"landing straight down: {_too_short(length, needed)}"
    if len(leg.points) > 1:
        flown = begin - np.array(leg.points[-2][:2])
        across = flown[0] * direction[1] - flown[1] * direction[0]
        if abs(math.atan2(float(across), float(flown @ direction))) > MOST_BEND:
            return "landing straight down: the path bends there"

    # touch down on the driven way, and drive on beyond the roll-out
    x, y = (begin + glide * direction).tolist()
    fly = dataclasses.replace(
        leg,
        points=(*leg.points, (x, y, leg.points[-1][2])),
        speeds=(*leg.speeds, leg.speeds[-1]),
        roll_out=speed,
    )
    ahead = (way[1:] - begin) @ direction
    first = int(np.argmax(ahead >= needed - 1e-6))
    drive = dataclasses.replace(after, points=after.points[first:], speeds=after.speeds[first:])
    notes = rolling_plan(fly, drive.points[0], params, terrain, standing=False).notes
    if notes:
        return f"landing straight down: {notes[0]}"
    legs[index] = fly
    legs[index + 1] = drive
    saved = hover_saved_down(speed, leg.speeds[-1], height)
    return f"rolling landing: it saves {saved:.1f} s of hovering"


def _straight_from(way: Floats) -> int:
    """Return the last point (index) up to which a way, (n, 2), is straight from its first one."""
    last = 0
    for end in range(1, len(way)):
        chord = way[end] - way[0]
        length = float(np.linalg.norm(chord))
        if length < 1e-6:
            continue
        steps = way[1:end] - way[0]
        across = np.abs(steps[:, 0] * chord[1] - steps[:, 1] * chord[0]) / length
        along = np.diff((way[: end + 1] - way[0]) @ chord)
        if (across > STRAIGHT).any() or (along < 0.0).any():
            break
        last = end
    return last


def _length_and_direction(way: Floats) -> tuple[float, Floats]:
    """Return the length of a way, (2,), m, and its unit vector; (0, 0) if it has no length."""
    length = float(np.linalg.norm(way))
    return length, way / length if length > 0.0 else np.zeros(2)


def _slant_height(
    terrain: HeightMap | None,
    end: Floats,
    direction: Floats,
    altitude: float,
    way: Callable[[float], float],
) -> float:
    """Return the height of a climb or glide, m, by `height_of_slant`; without a terrain z."""
    if terrain is None:
        return altitude
    return height_of_slant(terrain, end, direction, altitude, way)


def _too_short(length: float, needed: float) -> str:
    return f"{length:.1f} m of straight ground, expected {needed:.1f} m"
