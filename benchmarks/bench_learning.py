# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Environments to learn in: 256 land-air vehicles, half of them driving and half flying.

A step is an action held for 20 steps of 1 ms, with observations and rewards.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time

import gymnasium
import numpy as np
from gymnasium.vector import SyncVectorEnv

from benchmarks.budgets import SCALED, scaled
from benchmarks.harness import Row, agreement, is_short
from rfly_common.kernels.parallel import cores
from rfly_lab import LandAirBatch, register_environments
from rfly_lab.learning.environments import LandAirVectorEnv

ENVIRONMENTS = 256
STEPS_PER_SECOND = 300_000
"""Steps of all environments together in a second that two cores should do."""
TASK = "goal"
ABOVE = 10.0
"""Height above their places on the ground at which half of the vehicles hover, m."""


def rows() -> Iterator[Row]:
    """Yield the steps in a second, and the way from a batch to single environments."""
    register_environments()
    together = LandAirVectorEnv(ENVIRONMENTS, task=TASK)
    together.reset(seed=1)
    fly_half(together.batch, np.arange(ENVIRONMENTS))
    single = SyncVectorEnv(
        [lambda: gymnasium.make("rfly/LandAir-v0", task=TASK) for _ in range(ENVIRONMENTS)]
    )
    single.reset(seed=1)
    for i, environment in enumerate(single.envs):
        fly_half(environment.unwrapped.batch, np.array([i]))  # type: ignore[attr-defined]

    # rotors carry those that fly, the others drive
    actions = np.zeros(together.action_space.shape, np.float32)
    actions[1::2] = (-1.0, 0.0, 0.0, 0.0, 0.1, 0.2, -1.0)
    seen = together.step(actions)[0]
    alone = single.step(actions)[0]
    agree = agreement(seen, alone, 0.0, "any unit")

    seconds = least_time(together, actions, 2 if is_short() else 60)
    yield Row(
        f"{ENVIRONMENTS} environments to learn in, a step of one",
        seconds / ENVIRONMENTS / cores(),
        scaled(1.0 / STEPS_PER_SECOND),
        f"{STEPS_PER_SECOND:,} in a second, {SCALED}",
        target_ratio=1.0,
        agree=agree,
        note=f"half driving, half flying; CPU time, shared by {cores()} cores",
    )
    yield Row(
        f"{ENVIRONMENTS} environments to learn in at once",
        seconds,
        least_time(single, actions, 2 if is_short() else 8),
        "Gymnasium's SyncVectorEnv of single ones",
        target_ratio=10.0,
        agree=agree,
        note="CPU time of a step of all; half driving, half flying",
    )


def fly_half(batch: LandAirBatch, numbers: np.ndarray) -> None:
    """Lift those vehicles of a batch whose numbers in all are even, and let them hover."""
    which = np.flatnonzero(numbers % 2 == 0)
    model = batch.vehicles.models[0]
    if not len(which):
        return
    places = batch.vehicles.x[which, :3] + (0.0, 0.0, ABOVE)
    batch.vehicles.put(which, np.array([model.flying(place).x for place in places]))


def least_time(
    environments: LandAirVectorEnv | SyncVectorEnv, actions: np.ndarray, turns: int
) -> float:
    """Return the least processor time of a step of all environments, s."""
    times = []
    for _ in range(turns):
        start = process_time()
        environments.step(actions)
        times.append(process_time() - start)
    return min(times)
