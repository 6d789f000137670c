# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Several vehicles over one ground, which see and may touch each other, as PettingZoo has them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from rfly_amphibious.vehicle.state_layout import POSITION
from rfly_common.arrays import Bools, Floats
from rfly_common.config.checks import check_choice, finite_array, whole_number
from rfly_common.errors import CommandError, ConfigError
from rfly_lab.learning.environments import METADATA, Info, Numbers, box_space, metadata_of
from rfly_lab.learning.episodes import LARGEST_SEEN, NEAR
from rfly_lab.learning.land_air_batch import LandAirBatch, real_numbers
from rfly_lab.learning.rendering import PICTURES, Rendering
from rfly_lab.learning.tasks import Ending

TASKS_TOGETHER = ("hover", "waypoints")
"""Tasks that several vehicles learn together."""
MOST_TOGETHER = 64
"""Most vehicles of an environment."""
APART = 8.0
"""Distance of neighbouring places of start, relative to the reach of a vehicle, beyond 4 NEAR."""
JITTER = 0.25
"""Largest distance of a start from its place along each axis, relative to that of the places."""
TRIES = 50
"""Squares of places that are tried for the start of all vehicles, clear of objects."""
_PLACE = slice(POSITION, POSITION + 3)
"""Columns of the position in a row of the state."""
METADATA_TOGETHER = {**METADATA, "name": "rfly_land_air_v0", "is_parallelizable": True}
"""Metadata of an environment, which PettingZoo reads."""
SEEN_OF_ONE = ("x_m", "y_m", "z_m", "x_mps", "y_mps", "z_mps", "is_there")
"""Numbers that a vehicle sees of another one."""


class LandAirParallelEnv(ParallelEnv[str, NDArray[np.float32], NDArray[np.float32]]):
    """Vehicles that fly the same task side by side.

    Each has its own targets, reward and end, and sees the others: position and velocity relative to
    its own, body axes, the nearest first. Two whose spheres of the size `reach` meet have crashed.
    One whose episode has ended is gone. They do not feel each other's downwash. `vehicles`: their
    number. `options` are those of `LandAirBatch`. Raise ConfigError for what can't be used.
    """

    metadata = METADATA_TOGETHER

    def __init__(
        self,
        *,
        vehicles: int = 4,
        task: str = "waypoints",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        check_choice("task", task, TASKS_TOGETHER)
        vehicles = whole_number("vehicles", vehicles, at_least=2, at_most=MOST_TOGETHER)
        self.batch = LandAirBatch(vehicles, task, **options)
        self.rendering = Rendering(self.batch, render_mode)
        self.render_mode = render_mode
        self.metadata = {**self.metadata, **metadata_of(self.batch)}
        self.possible_agents = [f"vehicle_{i}" for i in range(vehicles)]
        self.agents: list[str] = []

        # places of start: a square of them fits on the map
        self._spacing = 4.0 * NEAR + APART * self.batch.params.reach
        self._side = math.ceil(math.sqrt(vehicles))
        low, high = self.batch.places
        room = np.asarray(high) - low - self._side * self._spacing
        if (room < 0.0).any():
            raise ConfigError(
                f"vehicles: {vehicles} start on {self._side * self._spacing:.0f} m along each "
                "side, expected fewer or a wider terrain"
            )
        self._corners = np.array((low, low + room))

        self._seen = box_space(LARGEST_SEEN, len(self.observation_names))
        self._acted = box_space(1.0, len(self.batch.action_names))
        self._is_live: Bools = np.zeros(vehicles, np.bool_)
        self._generator: np.random.Generator | None = None

    @property
    def observation_names(self) -> list[str]:
        """Names of the numbers of an observation, each with its unit."""
        others = range(1, len(self.possible_agents))
        about = [f"other_{k}_{name}" for k in others for name in SEEN_OF_ONE]
        return [*self.batch.observation_names, *about]

    def observation_space(self, agent: str) -> Numbers:
        """Return the space of a vehicle's observations, the same for all."""
        return self._seen

    def action_space(self, agent: str) -> Numbers:
        """Return the space of a vehicle's actions, the same for all."""
        return self._acted

    def reset(
        self, seed: int | None = None, options: Info | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, Info]]:
        """Begin an episode of all vehicles: with a seed its first one, without one the next."""
        if seed is not None:
            seed = whole_number("seed", seed, at_least=0)
        if seed is not None or self._generator is None:
            self._generator = np.random.default_rng(seed)

        every = np.arange(len(self.possible_agents))
        for _ in range(TRIES):
            if self._begin(self._generator):
                break
        else:
            raise ConfigError(
                f"vehicles: no places were found for {len(every)} of them that are clear of the "
                "objects, expected fewer vehicles or objects"
            )
        self.agents = list(self.possible_agents)
        self._is_live[:] = True
        self.rendering.show()
        return self._by_name(self._observe(), every), self._infos(every)

    def _begin(self, random: np.random.Generator) -> bool:
        """Begin an episode, each vehicle at a place of its own; return whether all are clear."""
        count = len(self.possible_agents)
        cell = random.permutation(self._side**2)[:count]
        corner = random.uniform(*self._corners)
        row_column = np.column_stack([cell // self._side, cell % self._side])
        place = corner + self._spacing * (row_column + 0.5)
        away = JITTER * self._spacing
        self.batch.place(place - away, place + away)

        every = np.arange(count)
        self.batch.seed(every, random.integers(2**63, size=count).astype(np.uint64))
        return self.batch.begin(every)

    def step(
        self, actions: dict[str, NDArray[np.float32]]
    ) -> tuple[
        dict[str, NDArray[np.float32]],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, Info],
    ]:
        """Hold the action of each vehicle that is left for a period.

        Raise CommandError where one of them has none, for an action of another, and for one that is
        no row of finite numbers.
        """
        if not self.agents and not actions:
            return {}, {}, {}, {}, {}
        if set(actions) != set(self.agents):
            names = ", ".join(self.agents) or "none before reset"
            raise CommandError(
                f"actions: of {', '.join(map(str, actions)) or 'none'}, expected of {names}"
            )

        batch = self.batch
        before = batch.vehicles.x[:, _PLACE].copy()
        rows = np.zeros((len(before), len(batch.action_names)), np.float32)
        own = np.flatnonzero(self._is_live)
        for name, i in zip(self.agents, own.tolist(), strict=True):
            what = f"action of {name}"
            action = real_numbers(what, actions[name])
            row = finite_array(what, action, rows[i].shape, error=CommandError)
            rows[i] = np.clip(row, -1.0, 1.0)
        batch.step(rows)

        # who has touched another one
        touched = self._is_live & (batch.endings == Ending.RUNNING)
        touched &= self._touches(before, batch.vehicles.x[:, _PLACE])
        batch.endings[touched] = Ending.CRASHED
        batch.rewards[touched] -= batch.task.broken

        terminated = batch.terminated
        truncated = batch.truncated
        self._is_live &= ~(terminated | truncated)
        seen = self._observe()
        self.agents = [self.possible_agents[i] for i in np.flatnonzero(self._is_live)]
        self.rendering.show(self._is_live)
        return (
            self._by_name(seen, own),
            {self.possible_agents[i]: float(batch.rewards[i]) for i in own},
            {self.possible_agents[i]: bool(terminated[i]) for i in own},
            {self.possible_agents[i]: bool(truncated[i]) for i in own},
            self._infos(own),
        )

    def render(self) -> NDArray[np.uint8] | None:
        """Return a picture (height, width, 3) from behind the first vehicle that is left.

        It shows all that are left; once none is, the first one. None in the mode `human`, in which
        each step moves the window on. Raise CommandError before the first episode.
        """
        if self.render_mode != PICTURES:
            return None
        if self._generator is None:
            raise CommandError("no episode has begun: reset the environment first")
        first, *others = np.flatnonzero(self._is_live).tolist() or [0]
        return self.rendering.picture(first, others)

    def close(self) -> None:
        """Close the window."""
        self.rendering.close()

    def _touches(self, before: Floats, after: Floats) -> Bools:
        """Return which vehicles came within twice their reach of another one, (n,).

        All move straight from positions (n, 3) to others, m.
        """
        begin = before - before[:, None]
        way = after - after[:, None] - begin
        square = (way * way).sum(axis=-1)
        share = -(begin * way).sum(axis=-1) / np.where(square > 0.0, square, 1.0)
        closest = begin + np.clip(share, 0.0, 1.0)[..., None] * way
        near = (closest * closest).sum(axis=-1) < (2.0 * self.batch.params.reach) ** 2

        near &= self._is_live & self._is_live[:, None]
        np.fill_diagonal(near, False)
        return np.asarray(near.any(axis=1))

    def _observe(self) -> NDArray[np.float32]:
        """Return what each vehicle sees, (n, numbers); those that are gone are not seen."""
        rotation, motion = self.batch.known_motion()
        count = len(motion)
        apart = motion - motion[:, None]
        in_body = np.einsum("ikl,ijck->ijcl", rotation, apart)

        # the nearest first; gone ones and itself last
        away = np.linalg.norm(apart[..., 0, :], axis=-1)
        away[:, ~self._is_live] = np.inf
        np.fill_diagonal(away, np.inf)
        order = np.argsort(away, axis=1, kind="stable")[:, :-1]
        rows = np.arange(count)[:, None]
        is_there = np.isfinite(away[rows, order])
        others = np.zeros((count, count - 1, len(SEEN_OF_ONE)))
        others[is_there, :-1] = in_body.reshape(count, count, 6)[rows, order][is_there]
        others[..., -1] = is_there

        own = self.batch.observe()
        about = np.clip(others.reshape(count, -1), -LARGEST_SEEN, LARGEST_SEEN)
        return np.concatenate([own, about.astype(np.float32)], axis=1)

    def _by_name(self, rows: NDArray[np.float32], which: Any) -> dict[str, NDArray[np.float32]]:
        """Return the rows of some vehicles by their names."""
        return {self.possible_agents[i]: rows[i] for i in which}

    def _infos(self, which: Any) -> dict[str, Info]:
        """Return the facts that go with the observations of some vehicles."""
        endings = self.batch.endings
        distance = self.batch.episodes.distance
        return {
            self.possible_agents[i]: {"ending": int(endings[i]), "distance": float(distance[i])}
            for i in which
        }
