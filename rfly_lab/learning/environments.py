# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The batch as environments of Gymnasium, which `register_environments` adds to its registry.

Their arguments are those of `LandAirBatch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats
from rfly_common.config.checks import check_choice, whole_number
from rfly_common.errors import ConfigError
from rfly_lab.learning.episodes import LARGEST_SEEN
from rfly_lab.learning.land_air_batch import PERIOD, LandAirBatch
from rfly_lab.learning.rendering import PICTURES, RENDER_MODES, Rendering

METADATA = {"render_modes": list(RENDER_MODES), "render_fps": round(1.0 / PERIOD)}
"""Metadata of an environment, which Gymnasium reads before it is made."""

Info = dict[str, Any]
"""Facts beside an observation, by name."""
Numbers = gymnasium.Space[NDArray[np.float32]]
"""Space of some numbers."""


def box_space(limit: float, count: int) -> Numbers:
    """Return the space of some numbers from -limit to limit."""
    return cast("Numbers", gymnasium.spaces.Box(-limit, limit, (count,), np.float32))


def _spaces(batch: LandAirBatch) -> tuple[Numbers, Numbers]:
    """Return the spaces of the observations and of the actions of one environment."""
    seen = box_space(LARGEST_SEEN, len(batch.observation_names))
    return seen, box_space(1.0, len(batch.action_names))


def metadata_of(batch: LandAirBatch) -> Info:
    """Return the metadata of an environment."""
    return {**METADATA, "render_fps": round(1.0 / batch.period)}


class LandAirVectorEnv(VectorEnv[NDArray[np.float32], NDArray[np.float32], NDArray[Any]]):
    """Land-air vehicles that learn a task, all stepped at once.

    Environment i with the seed s + i is the single environment with that seed, bit by bit.
    `autoreset_mode` is one of Gymnasium's. In each `info`, `ending` is an `Ending` and `distance`
    that to the next target, m.
    """

    metadata = METADATA

    def __init__(
        self,
        num_envs: int = 1,
        *,
        task: str = "hover",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        modes = {mode.value: mode for mode in AutoresetMode}
        if not isinstance(autoreset_mode, AutoresetMode):
            check_choice("autoreset_mode", autoreset_mode, tuple(modes))
            autoreset_mode = modes[autoreset_mode]
        self.batch = LandAirBatch(num_envs, task, **options)
        self.rendering = Rendering(self.batch, render_mode)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.autoreset_mode = autoreset_mode
        self.metadata = {**metadata_of(self.batch), "autoreset_mode": autoreset_mode}
        self.single_observation_space, self.single_action_space = _spaces(self.batch)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

        self._is_seeded = False
        self._is_over: Bools = np.ones(num_envs, np.bool_)
        """True for an environment whose episode has ended, or not begun."""

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Info | None = None,
    ) -> tuple[NDArray[np.float32], Info]:
        """Begin an episode in all environments, or in those of `options["reset_mask"]`, (n,) bool.

        A `seed` s gives environment i the seed s + i; a list has one for each, or None. Without a
        seed each environment draws on.
        """
        super().reset(seed=seed if isinstance(seed, int) else None)
        mask = self._mask(options)
        which = np.flatnonzero(mask)
        self._seed(mask, seed)
        self.batch.begin(which)
        self._is_over[which] = False
        self.rendering.show()
        return self.batch.observe(), self._info(mask)

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], Floats, Bools, Bools, Info]:
        """Hold the actions (n, numbers) for a period."""
        if not self._is_seeded:
            raise gymnasium.error.ResetNeeded("no episode has begun: reset the environments first")
        before = self._is_over
        if before.any() and self.autoreset_mode is not AutoresetMode.NEXT_STEP:
            first = int(np.flatnonzero(before)[0])
            raise gymnasium.error.ResetNeeded(f"environment {first} has ended: reset it first")

        batch = self.batch
        batch.step(actions)
        if before.any():  # what they did in this step does not count
            batch.begin(np.flatnonzero(before))
            batch.rewards[before] = 0.0
        rewards = batch.rewards.copy()
        terminated = batch.terminated
        truncated = batch.truncated
        self._is_over = terminated | truncated
        info = self._info(np.ones(self.num_envs, np.bool_))

        # begin anew at once
        if self._is_over.any() and self.autoreset_mode is AutoresetMode.SAME_STEP:
            over = self._is_over
            last = np.full(self.num_envs, None, object)
            seen = batch.observe()
            for i in np.flatnonzero(over):
                last[i] = seen[i]
            final = self._info(over)
            batch.begin(np.flatnonzero(over))
            info = self._info(np.ones(self.num_envs, np.bool_))
            info |= {"final_obs": last, "_final_obs": over}
            info |= {"final_info": final, "_final_info": over.copy()}
            self._is_over = np.zeros(self.num_envs, np.bool_)
        self.rendering.show()
        return batch.observe(), rewards, terminated, truncated, info

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """Return a picture of each environment, (height, width, 3), from behind its vehicle.

        None in the mode `human`, in which each step moves the window on.
        """
        if self.render_mode != PICTURES:
            return None
        if (self.batch.episodes.number < 0).any() or not self._is_seeded:
            raise gymnasium.error.ResetNeeded("no episode has begun: reset the environments first")
        return tuple(self.rendering.picture(i) for i in range(self.num_envs))

    def close_extras(self, **_options: Any) -> None:
        """Close the window."""
        if hasattr(self, "rendering"):  # else an argument was refused
            self.rendering.close()

    def _mask(self, options: Info | None) -> Bools:
        """Return which environments are to begin anew, (n,)."""
        if not isinstance(options, dict | None):
            raise ConfigError(f"options: {options!r}, expected a dict")
        mask = (options or {}).get("reset_mask")
        if mask is None:
            return np.ones(self.num_envs, np.bool_)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise ConfigError("reset_mask: expected an array of bool")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise ConfigError(
                f"reset_mask: shape {mask.shape} with {mask.sum()} True, "
                f"expected {(self.num_envs,)} with at least one"
            )
        return mask

    def _seed(self, mask: Bools, seed: int | Sequence[int | None] | None) -> None:
        """Give new seeds to those environments of a mask for which there is one."""
        if seed is None:
            seeds: list[int | None] = [None] * self.num_envs
        elif isinstance(seed, list | tuple | np.ndarray):
            seeds = list(seed)
        else:
            first = whole_number("seed", seed, at_least=0)
            seeds = list(range(first, first + self.num_envs))
        if len(seeds) != self.num_envs:
            raise ConfigError(f"seed: {len(seeds)} seeds, expected {self.num_envs}")
        for own in seeds:
            if own is not None:
                whole_number("seed", own, at_least=0)

        # random ones at first
        if not self._is_seeded:
            drawn = self.np_random.integers(2**63, size=self.num_envs).tolist()
            self.batch.seed(np.arange(self.num_envs), np.array(drawn, np.uint64))
            self._is_seeded = True

        new = [i for i in np.flatnonzero(mask).tolist() if seeds[i] is not None]
        values = np.array([int(seeds[i] or 0) % 2**64 for i in new], np.uint64)
        self.batch.seed(np.array(new, np.int64), values)

    def _info(self, which: Bools) -> Info:
        """Return the facts of some environments, with masks as Gymnasium has them."""
        ending = np.where(which, self.batch.endings, 0)
        distance = np.where(which, self.batch.episodes.distance, 0.0)
        return {
            "ending": ending,
            "_ending": which.copy(),
            "distance": distance,
            "_distance": which.copy(),
        }


class LandAirEnv(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """One land-air vehicle that learns a task: a batch of one."""

    metadata = METADATA

    def __init__(
        self, *, task: str = "hover", render_mode: str | None = None, **options: Any
    ) -> None:
        self.batch = LandAirBatch(1, task, **options)
        self.rendering = Rendering(self.batch, render_mode)
        self.render_mode = render_mode
        self.metadata = metadata_of(self.batch)
        self.observation_space, self.action_space = _spaces(self.batch)
        self._is_seeded = False
        self._is_over = True

    def reset(
        self, *, seed: int | None = None, options: Info | None = None
    ) -> tuple[NDArray[np.float32], Info]:
        """Begin an episode: with a seed its first one, without one the next."""
        super().reset(seed=seed)
        if seed is None and not self._is_seeded:
            seed = int(self.np_random.integers(2**63))
        if seed is not None:
            self.batch.seed(np.zeros(1, np.int64), np.array([seed % 2**64], np.uint64))
            self._is_seeded = True
        self.batch.begin(np.zeros(1, np.int64))
        self._is_over = False
        self.rendering.show()
        return self.batch.observe()[0], self._info()

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float, bool, bool, Info]:
        """Hold an action for a period."""
        if self._is_over:
            raise gymnasium.error.ResetNeeded("the episode has ended: reset the environment first")
        self.batch.step([action])
        terminated = bool(self.batch.terminated[0])
        truncated = bool(self.batch.truncated[0])
        self._is_over = terminated or truncated
        reward = float(self.batch.rewards[0])
        self.rendering.show()
        return self.batch.observe()[0], reward, terminated, truncated, self._info()

    def render(self) -> NDArray[np.uint8] | None:
        """Return a picture (height, width, 3) from behind the vehicle.

        None in the mode `human`, in which each step moves the window on.
        """
        if self.render_mode != PICTURES:
            return None
        if not self._is_seeded:
            raise gymnasium.error.ResetNeeded("no episode has begun: reset the environment first")
        return self.rendering.picture(0)

    def close(self) -> None:
        """Close the window."""
        self.rendering.close()

    def _info(self) -> Info:
        """Return the facts that go with an observation."""
        return {
            "ending": int(self.batch.endings[0]),
            "distance": float(self.batch.episodes.distance[0]),
        }
