# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Episodes of the environments to learn in: their records, and the sizes of their courses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.sensors.sensor_kernels import JointGeometry
from rfly_common.arrays import Floats, Ints

LOWEST = 3.0
"""Least height of a target in the air above the ground, m."""
HIGHEST = 8.0
"""Greatest height of a target in the air above the ground, m."""
NEAR = 2.0
"""Greatest distance from target to start of a hover along each axis, m."""
FASTEST = 1.0
"""Greatest speed at the start of a hover along each axis, m/s."""
CHAIN_STEP = (6.0, 12.0)
"""Least and greatest distance of way-points across the ground, m."""
TRACK_STEP = 2.0
"""Distance of the points of a path, m."""
TRACK_TURNS = 4
"""Points of a path after which its curvature changes."""
PLACE_DISTANCE = (20.0, 40.0)
"""Least and greatest distance from start to goal, m."""
HOP_DISTANCE = (8.0, 20.0)
"""Least and greatest distance from start to the end of a hop, m."""
GLIDE = 0.5
"""Slope of the last part of a hop: height of the wheels above the ground over distance."""
SPOT = 1.0
"""Distance from its end within which a hop leads straight down, m."""
ROOF_DISTANCE = (3.0, 8.0)
"""Least and greatest distance of a vehicle from its roof across the ground, m."""
ROOF_HEIGHT = (3.0, 6.0)
"""Least and greatest height of a vehicle above its roof, m."""
WIDEST_COURSE = 50.0
"""Distance from its start that no course exceeds, m."""

SCAN_AHEAD = (-1.0, 1.0, 2.0, 4.0, 8.0)
"""Distances ahead at which the ground is seen, m."""
SCAN_ASIDE = (-1.0, 0.0, 1.0)
"""Distances to the left at which the ground is seen, m."""
LARGEST_SEEN = 1000.0
"""Limit of all numbers of an observation."""
BEFORE_ROTORS = 17
"""Numbers of an observation before those of the rotors."""


class Episodes(NamedTuple):
    """Episodes of n environments, which kernels change in place."""

    seed: NDArray[np.uint64]
    """Seed of each environment, (n,)."""
    number: Ints
    """Number of the episode since the seed was set, (n,)."""
    steps: Ints
    """Steps of the episode until now, (n,)."""
    targets: Floats
    """Targets, m, world, (n, targets, 3)."""
    target: Ints
    """Index of the target that comes next, (n,)."""
    distance: Floats
    """Distance to it, m, (n,)."""
    way: Floats
    """Way left to it, whose decrease is paid, m, (n,)."""
    held: Ints
    """Steps for which the vehicle has stayed at the last target, (n,)."""
    failing_rotor: Ints
    """Rotor that fails in this episode, (n,)."""
    failing_step: Ints
    """Step at which it fails, (n,); -1: none does."""


def episodes_of(environments: int, targets: int) -> Episodes:
    """Return the records of environments in which no episode has begun."""
    count = environments
    return Episodes(
        seed=np.zeros(count, np.uint64),
        number=np.zeros(count, np.int64),
        steps=np.zeros(count, np.int64),
        targets=np.zeros((count, targets, 3)),
        target=np.zeros(count, np.int64),
        distance=np.zeros(count),
        way=np.zeros(count),
        held=np.zeros(count, np.int64),
        failing_rotor=np.zeros(count, np.int64),
        failing_step=np.zeros(count, np.int64),
    )


class Starts(NamedTuple):
    """Places and states in which episodes may begin."""

    flying: Floats
    """State of a vehicle that hovers at the origin and heads east, (states,)."""
    standing: Floats
    """States of vehicles that stand, (starts, states); without any for tasks that begin in the air.
    """
    standing_memory: Floats
    """Their memories, (starts, memory): brake torques that act."""
    roofs: Floats
    """Places of vehicles that stand on roofs, m, (roofs, 3); without any where there are no houses.
    """
    low: Floats
    """South-west corner of the places for vehicles that fly, m, (1, 2) for all or (n, 2)."""
    high: Floats
    """North-east corner, m, (1, 2) or (n, 2)."""
    turn_radius: float
    """Least radius of a path, m."""


class Disturbances(NamedTuple):
    """Limits of the wind, failures and vehicles that episodes draw."""

    wind: float
    """Greatest mean wind, m/s, across the ground."""
    rotor_failures: float
    """Share of the episodes in which a rotor fails."""
    rotors: int
    """Number of rotors."""
    variants: int
    """Number of kinds of vehicles beside the usual one, from which an episode draws."""
    steps: int
    """Steps of an episode."""


class EpisodeLayout(NamedTuple):
    """Numbers of a vehicle that observations and rewards need."""

    rotors: int
    max_rotor_speed: float
    hover_power: float
    """Power of the rotors in hover, W."""
    steering_column: int
    joints: JointGeometry
    wheel_load_columns: Ints
    rolling_radius: Floats
    """Rolling radii, (wheels,), m."""
    static_load: Floats
    """Loads at rest, (wheels,), N."""
