# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles that keep clear of each other, against RVO2's ORCA (pyrvo).

Both sides move 1,000 discs of one height from and to the same random places in a square, a step of
0.05 s at a time. ORCA's discs change their velocity at will. A second row lets both lead cars: the
car steers and brakes towards ORCA's velocity as towards any wish. The note has the contacts that
dense sampling finds.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np
from crossing_vehicles import least_room, places, states_towards, usual, wishes

from benchmarks.harness import Row, measure, same
from rfly_trajectory.avoidance.avoidance import COURSE, SPEED, Avoidance
from rfly_trajectory.kernels.tables import GROUND, MULTIROTOR

PEER = "RVO2 (ORCA) by pyrvo"
STEP = 0.05
DISCS = 1_000
SIDE = 600.0
CARS = 60
CARS_SIDE = 150.0
HORIZON = 4.8


def rows() -> Iterator[Row]:
    """Yield the time of a step of many discs, and of cars, beside ORCA's."""
    if importlib.util.find_spec("pyrvo") is None:
        print("avoidance: no rows with pyrvo (pip install pyrvo)", file=sys.stderr)
        return
    yield _row("1,000 multirotors of one height, one step", MULTIROTOR, DISCS, SIDE, 0.05)
    yield _row("60 cars in a square of 150 m, one step", GROUND, CARS, CARS_SIDE, 0.05)


def _row(name: str, kind: int, n: int, side: float, target: float) -> Row:
    random = np.random.default_rng(3)
    kinds = np.full(n, kind)
    starts = places(random, kinds, side)
    goals = places(random, kinds, side)
    ours = Avoidance(usual(kinds), states_towards(kinds, starts, goals))
    peer = _Orca(Avoidance(usual(kinds), states_towards(kinds, starts, goals)))

    # the first 30 s count for contacts
    rooms = [math.inf, math.inf]
    for _ in range(600):
        for number, side_of in enumerate((ours, peer)):
            before = side_of.state.copy()
            side_of.step(wishes(before, kinds, goals))
            rooms[number] = min(rooms[number], least_room(ours.able, before, side_of.state))

    seconds = measure(
        lambda: ours.step(wishes(ours.state, kinds, goals)),
        lambda: peer.step(wishes(peer.state, kinds, goals)),
        11,
        ours_calls=5,
        peer_calls=5,
        clock=process_time,
    )
    note = f"least room {rooms[0]:.2f} m, ORCA's {rooms[1]:.2f} m"
    agree = same(rooms[0] > 0.0, "no contact in 30 s of ours, by dense sampling")
    return Row(name, *seconds, PEER, target_ratio=target, agree=agree, note=note)


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
