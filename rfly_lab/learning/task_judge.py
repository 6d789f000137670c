# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Judge of one vehicle's task outside the environment, by the environment's own kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_array
from rfly_common.errors import CommandError
from rfly_lab.learning.episode_kernels import judge
from rfly_lab.learning.episodes import episodes_of
from rfly_lab.learning.land_air_batch import layout_of
from rfly_lab.learning.tasks import Ending, Task

MOST_TARGETS = 1000
"""Most targets of a task."""


class TaskJudge:
    """Targets of a vehicle, and how its task stands, without a time limit.

    `update` is called with its state once a period, s; the state may be the truth or an estimate.
    """

    def __init__(self, task: Task, period: float, params: VehicleParameters) -> None:
        self.task = task
        self.layout = layout_of(params)
        self._period = period
        self._hold = max(1, int(task.hold / period + 0.5))
        self._memory = np.zeros((1, state_layout.memory_size(len(params.wheels))))
        self.episode = episodes_of(1, 0)
        """Its targets, as an episode of the environment."""
        self.ending = Ending.RUNNING
        """How the task stands."""

    def set_targets(self, places: ArrayLike) -> None:
        """Begin with targets (n, 3), m, world; none: there is no task.

        Raise CommandError for numbers that are not finite, and for too many.
        """
        points = np.asarray(places, float).reshape(-1, 3)
        if len(points) > MOST_TARGETS:
            raise CommandError(f"targets: {len(points)}, expected at most {MOST_TARGETS}")
        finite_array("targets", points, points.shape, error=CommandError)
        self.episode = episodes_of(1, len(points))
        self.episode.targets[0] = points
        self.ending = Ending.RUNNING

    @property
    def has_targets(self) -> bool:
        """True if there are targets."""
        return self.episode.targets.shape[1] > 0

    @property
    def target(self) -> int:
        """Index of the target that comes next."""
        return int(self.episode.target[0])

    @property
    def distance(self) -> float:
        """Distance to it at the last update, m."""
        return float(self.episode.distance[0])

    @property
    def stays(self) -> bool:
        """True if it was where the task ends at the last update."""
        return bool(self.episode.held[0] > 0)

    def update(self, x: Floats, outputs: Floats) -> Ending:
        """Return how the task stands with a state (states,) and its outputs (outputs,)."""
        episode = self.episode
        episode.steps[0] = 0
        endings = np.zeros(1, np.int8)

        judge(
            self.task,
            self._period,
            x[None],
            self._memory,
            outputs[None],
            np.zeros(1, np.bool_),
            self.layout,
            episode,
            np.zeros(1),
            endings,
        )

        self.ending = Ending(int(endings[0]))
        if self.ending is Ending.RUNNING and episode.held[0] >= self._hold:
            self.ending = Ending.SUCCESS  # of a task that goes on
        return self.ending
