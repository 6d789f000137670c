# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles that keep clear of each other: what a step costs, beside RVO2's ORCA (pyrvo).

The target is that of its users: 1,000 vehicles at 20 Hz on one core, thus 50 µs of a step for each
vehicle, scaled by a fixed loop. ORCA is no target: its discs change their velocity at will, and it
knows no tracks. The notes have its time where all are discs of one height, and the contacts that
dense sampling finds on both sides. Cars steer and brake towards ORCA's velocity as towards any
wish.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Iterator
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from crossing_vehicles import MIXED, least_room, places, states_towards, usual, wishes

from benchmarks.budgets import SCALED, scaled
from benchmarks.harness import Row, is_short, same
from rfly_trajectory.avoidance.avoidance import COURSE, SPEED, Avoidance
from rfly_trajectory.kernels.tables import GROUND, MULTIROTOR

STEP = 0.05
VEHICLE_S = 50e-6
"""Processor time of a step of one vehicle: 1,000 of them at 20 Hz keep one core busy, s."""
HORIZON = 4.8
TIMED = 55
"""Steps that are timed."""
COUNTED_S = (30.0, 2.0)
"""Time in which contacts are looked for, s; the second one in a short run."""


def rows() -> Iterator[Row]:
    """Yield the time of a step of many vehicles."""
    random = np.random.default_rng(3)
    mixed = random.choice(3, 1_000, p=MIXED)
    yield _row("1,000 mixed vehicles in a square of 1,900 m, one step", mixed, 1900.0, False)
    rotors = np.full(1_000, MULTIROTOR)
    yield _row("1,000 multirotors of one height in 600 m, one step", rotors, 600.0, True)
    yield _row("60 cars in a square of 150 m, one step", np.full(60, GROUND), 150.0, True)


def _row(name: str, kinds: Any, side: float, beside_orca: bool) -> Row:
    random = np.random.default_rng(3)
    starts = places(random, kinds, side)
    goals = places(random, kinds, side)
    ours = Avoidance(usual(kinds), states_towards(kinds, starts, goals))
    room, seconds = _run(ours, kinds, goals)

    note = f"least room {room:.2f} m"
    if beside_orca and importlib.util.find_spec("pyrvo") is None:
        print("avoidance: nothing of ORCA (pip install pyrvo)", file=sys.stderr)
    elif beside_orca:
        orca = _Orca(Avoidance(usual(kinds), states_towards(kinds, starts, goals)))
        orca_room, orca_seconds = _run(orca, kinds, goals)
        note += (
            f"; ORCA takes {orca_seconds / seconds:.2f} of the time, its least room is "
            f"{orca_room:.2f} m"
        )
    budget = scaled(VEHICLE_S * len(kinds))
    peer = f"50 µs of a step for each vehicle (1,000 at 20 Hz on a core), {SCALED}"
    agree = same(room > 0.0, f"no contact in {COUNTED_S[is_short()]:g} s, by dense sampling")
    return Row(name, seconds, budget, peer, target_ratio=1.0, agree=agree, note=note)


def _run(vehicles: Avoidance | _Orca, kinds: Any, goals: Any) -> tuple[float, float]:
    """Return the least room in COUNTED_S, m, and the median time of a step after that, s."""
    room = math.inf
    for _ in range(round(COUNTED_S[is_short()] / STEP)):
        before = vehicles.state.copy()
        vehicles.step(wishes(before, kinds, goals))
        room = min(room, least_room(usual(kinds), before, vehicles.state))
    wish = wishes(vehicles.state, kinds, goals)
    timed = 5 if is_short() else TIMED
    return room, median(_time_of(vehicles.step, wish) for _ in range(timed))


def _time_of(step: Callable[[Any], None], wish: Any) -> float:
    begin = process_time()
    step(wish)
    return process_time() - begin


class _Orca:
    """Vehicles that go for ORCA's velocities; cars as far as they can."""

    def __init__(self, vehicles: Avoidance) -> None:
        import pyrvo

        able = vehicles.able
        self.state = vehicles.state
        self._able = able
        self._simulator = pyrvo.RVOSimulator()
        self._simulator.set_time_step(STEP)
        for (x, y), radius, most in zip(
            self.state[:, :2].tolist(), able.radius.tolist(), able.most.tolist(), strict=True
        ):
            self._simulator.add_agent(
                [x, y], 100.0, 12, HORIZON, HORIZON, radius + 0.02, most, [0.0, 0.0]
            )

    def step(self, wish: Any) -> None:
        """Move all by a step."""
        velocity = wish[:, 1, None] * np.stack([np.cos(wish[:, 0]), np.sin(wish[:, 0])], -1)
        simulator = self._simulator
        for i, wanted in enumerate(velocity.tolist()):
            simulator.set_agent_pref_velocity(i, wanted)
        simulator.do_step()
        chosen = [simulator.get_agent_velocity(i) for i in range(len(wish))]
        found = np.array([(v.x, v.y) for v in chosen])
        self._move(found)
        for i, (place, speed) in enumerate(
            zip(self.state[:, :2].tolist(), self._velocity().tolist(), strict=True)
        ):
            simulator.set_agent_position(i, place)
            simulator.set_agent_velocity(i, speed)

    def _velocity(self) -> Any:
        course = self.state[:, COURSE]
        return self.state[:, SPEED, None] * np.stack([np.cos(course), np.sin(course)], -1)

    def _move(self, velocity: Any) -> None:
        """Move discs by a velocity, or cars towards it by what they can steer and brake."""
        state = self.state
        able = self._able
        course = np.arctan2(velocity[:, 1], velocity[:, 0])
        speed = np.hypot(*velocity.T)
        if able.kind[0] == MULTIROTOR:
            state[:, :2] += STEP * velocity
            state[:, COURSE] = course
            state[:, SPEED] = speed
            return
        turn = (course - state[:, COURSE] + math.pi) % (2.0 * math.pi) - math.pi
        before = state[:, SPEED].copy()
        ahead = speed * np.maximum(np.cos(turn), 0.0)
        state[:, SPEED] = np.clip(ahead, before - able.brake * STEP, before + able.gain * STEP)
        way = 0.5 * (before + state[:, SPEED]) * STEP
        tightest = np.minimum(able.bend, able.lateral / np.maximum(state[:, SPEED], 0.1) ** 2)
        turned = np.clip(turn, -tightest * way, tightest * way)
        middle = state[:, COURSE] + 0.5 * turned
        state[:, 0] += way * np.cos(middle)
        state[:, 1] += way * np.sin(middle)
        state[:, COURSE] += turned
