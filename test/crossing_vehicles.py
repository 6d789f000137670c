# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles that cross each other's way to goals, and a check of contacts that samples densely."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from rfly_trajectory.avoidance.avoidance import COURSE, SPEED, Avoidance, abilities
from rfly_trajectory.kernels.tables import FIXED_WING, GROUND, MULTIROTOR, AbilityTable

CRUISE = {GROUND: 8.0, MULTIROTOR: 6.0, FIXED_WING: 18.0}
HEIGHT = {GROUND: 0.0, MULTIROTOR: 8.0, FIXED_WING: 40.0}
ARRIVED = {GROUND: 5.0, MULTIROTOR: 1.0, FIXED_WING: 40.0}
"""Distance from its goal at which a vehicle has arrived, m."""
APART = {GROUND: 8.0, MULTIROTOR: 8.0, FIXED_WING: 90.0}
"""Least distance of starts, and of goals, of one kind, m."""
MIXED = (0.5, 0.35, 0.15)
SUBSTEPS = 10


def usual(kinds: Any) -> AbilityTable:
    """Return cars of 5 x 2 m, multirotors of 1 m and aeroplanes of 3 m."""
    kind = np.asarray(kinds, np.uint8)

    def pick(*values: float) -> Any:
        return np.array(values)[kind]

    return abilities(
        kind,
        radius=pick(2.5, 0.5, 1.5),
        below=pick(0.0, 0.2, 0.3),
        height=pick(1.6, 0.4, 0.6),
        most=pick(10.0, 8.0, 22.0),
        least=pick(0.0, 0.0, 14.0),
        gain=pick(3.0, 5.0, 3.0),
        brake=pick(6.0, 6.0, 3.0),
        lateral=pick(5.0, 5.0, 12.0),
        turn_radius=pick(5.0, 0.0, 0.0),
        climb=pick(0.0, 3.0, 4.0),
        climb_gain=4.0,
    )


class Run(NamedTuple):
    """The outcome of a run."""

    room: float
    """Least level distance between two bodies at one height, m; negative: contact."""
    arrived: Any
    """Time of the arrival, (n,), s; inf: never."""
    ratio: Any
    """Way over the straight way to the goal, (n,)."""
    stood: Any
    """Longest time at a standstill on the way, (n,), s."""
    track: Any
    """States, (steps + 1, n, 7)."""
    kinds: Any


def places(random: Any, kinds: Any, side: float) -> Any:
    """Return random places (n, 2) in a square, those of one kind APART from each other, m."""
    chosen: list[Any] = []
    for kind in kinds:
        same = [other for j, other in enumerate(chosen) if kinds[j] == kind]
        tries = (random.uniform(0.0, side, 2) for _ in range(10_000))
        chosen.append(
            next(p for p in tries if all(math.dist(p, q) >= APART[int(kind)] for q in same))
        )
    return np.array(chosen)


def states_towards(kinds: Any, starts: Any, goals: Any) -> Any:
    """Return states at rest, or at the least speed, that look at their goals."""
    able = usual(kinds)
    state = np.zeros((len(kinds), 7))
    state[:, :2] = starts
    state[:, 2] = [HEIGHT[int(kind)] for kind in kinds]
    away = goals - starts
    state[:, COURSE] = np.arctan2(away[:, 1], away[:, 0])
    state[:, SPEED] = able.least
    state[:, 6] = np.where(able.kind == FIXED_WING, 1.0, 0.0)
    return state


def wishes(state: Any, kinds: Any, goals: Any) -> Any:
    """Return the wishes (n, 4) of vehicles that go straight to their goals and stop there."""
    away = goals - state[:, :2]
    distance = np.hypot(*away.T)
    cruise = np.array([CRUISE[int(kind)] for kind in kinds])
    least = np.where(kinds == FIXED_WING, 14.0, 0.0)
    speed = np.maximum(np.minimum(cruise, np.sqrt(4.0 * np.maximum(distance - 0.5, 0.0))), least)
    near = distance < np.array([ARRIVED[int(kind)] for kind in kinds])
    speed[near & (kinds != FIXED_WING)] = 0.0
    rise = np.array([HEIGHT[int(kind)] for kind in kinds]) - state[:, 2]
    climb = np.where(kinds == GROUND, 0.0, np.clip(rise, -2.0, 2.0))
    return np.column_stack([np.arctan2(away[:, 1], away[:, 0]), speed, climb, np.zeros(len(kinds))])


def least_room(able: AbilityTable, before: Any, after: Any) -> float:
    """Return the least level distance between bodies at one height, m, from one step to the next.

    Sampled at SUBSTEPS instants, with NumPy and SciPy alone.
    """
    farthest = 2.0 * float(able.radius.max())
    moved = float(np.hypot(*(after[:, :2] - before[:, :2]).T).max())
    tree = cKDTree(before[:, :2])
    i, j = tree.query_pairs(farthest + 2.0 * moved, output_type="ndarray").T
    reach = able.radius[i] + able.radius[j]

    least = math.inf
    for share in np.linspace(0.0, 1.0, SUBSTEPS, endpoint=False):
        place = (1.0 - share) * before[:, :3] + share * after[:, :3]
        apart = place[i] - place[j]
        level = np.hypot(apart[:, 0], apart[:, 1]) - reach
        meets = apart[:, 2] < able.below[i] + able.above[j]
        meets &= -apart[:, 2] < able.above[i] + able.below[j]
        least = min(least, float(level[meets].min(initial=math.inf)))
    return least


def run_to_goals(avoidance: Avoidance, goals: Any, seconds: float, **keys: Any) -> Run:
    """Let vehicles go to their goals and look for contacts densely."""
    able = avoidance.able
    kinds = able.kind
    n = len(kinds)
    cruise = np.array([CRUISE[int(kind)] for kind in kinds])
    near = np.array([ARRIVED[int(kind)] for kind in kinds])
    straight = np.hypot(*(goals - avoidance.state[:, :2]).T)

    room = math.inf
    way = np.zeros(n)
    standing = np.zeros(n)
    stood = np.zeros(n)
    arrived = np.full(n, math.inf)
    track = [avoidance.state.copy()]
    step = avoidance.time_step
    for number in range(round(seconds / step)):
        avoidance.step(wishes(track[-1], kinds, goals), **keys)
        track.append(avoidance.state.copy())
        room = min(room, least_room(able, track[-2], track[-1]))

        on_way = ~np.isfinite(arrived)
        way += np.where(on_way, np.hypot(*(track[-1] - track[-2])[:, :2].T), 0.0)
        stands = on_way & (np.abs(track[-1][:, SPEED]) < 0.1 * cruise)
        standing = np.where(stands, standing + step, 0.0)
        stood = np.maximum(stood, standing)
        distance = np.hypot(*(goals - track[-1][:, :2]).T)
        arrived[on_way & (distance < near)] = (number + 1) * step
        if np.isfinite(arrived).all():
            break
    return Run(room, arrived, way / straight, stood, np.array(track), kinds)


def random_crossing(n: int, seed: int, side: float, seconds: float, mix: Any = MIXED) -> Run:
    """Let n mixed vehicles in a square, m, go to random goals."""
    random = np.random.default_rng(seed)
    kinds = random.choice(3, n, p=mix)
    starts = places(random, kinds, side)
    goals = places(random, kinds, side)
    avoidance = Avoidance(usual(kinds), states_towards(kinds, starts, goals))
    return run_to_goals(avoidance, goals, seconds)
