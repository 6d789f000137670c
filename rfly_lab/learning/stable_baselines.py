# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A vector environment of Gymnasium as one of Stable-Baselines3, which has no adapter of its own.

Stable-Baselines3 begins an ended episode in the same step, and keeps what it saw last in `infos`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from rfly_common.errors import ConfigError

Indices = int | Sequence[int] | None
"""Environments by index; None: all."""


class StableBaselinesEnv(VecEnv):
    """Environments of a `VectorEnv` for the algorithms of Stable-Baselines3.

    They have to begin anew in the step that ends an episode: `autoreset_mode="SameStep"`. Raise
    ConfigError for another mode, or for other spaces than boxes.
    """

    def __init__(self, envs: Any) -> None:
        mode = envs.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise ConfigError(f"autoreset_mode: {mode}, expected {AutoresetMode.SAME_STEP.value}")
        spaces = (envs.single_observation_space, envs.single_action_space)
        for space in spaces:
            if not isinstance(space, gymnasium.spaces.Box):
                raise ConfigError(f"space: {type(space).__name__}, expected Box")
        self.envs = envs
        self._actions: NDArray[Any] = np.zeros(0)
        super().__init__(envs.num_envs, *spaces)

    def reset(self) -> NDArray[Any]:
        """Begin an episode in all environments; `seed` before it counts once."""
        if any(self._options):
            raise ConfigError("options: the environments take none")
        seen, info = self.envs.reset(seed=self._seeds)
        self.reset_infos = _rows(info, self.num_envs)
        self._reset_seeds()
        return np.array(seen)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions of the next step."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Hold the actions for a period; return observations, rewards, ends and facts."""
        seen, rewards, terminated, truncated, info = self.envs.step(self._actions)
        over = terminated | truncated
        final = info.pop("final_info", {})
        last = info.pop("final_obs", None)
        begun = _rows(info, self.num_envs)
        infos = list(begun)

        # those that have ended tell of their last step
        if over.any():
            ended = _rows(final, self.num_envs)
            for i in np.flatnonzero(over).tolist():
                infos[i] = {**ended[i], "terminal_observation": last[i]}
                self.reset_infos[i] = begun[i]
        for i in range(self.num_envs):
            infos[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
        return np.array(seen), np.asarray(rewards, np.float32), over, infos

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Return a picture of each environment."""
        pictures = self.envs.render()
        return [None] * self.num_envs if pictures is None else list(pictures)

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute of the environments, which all have in common."""
        value = getattr(self.envs, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Raise ConfigError: the environments share their attributes."""
        raise ConfigError(f"{attr_name}: the environments are one batch, none has its own")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Raise ConfigError: no environment has methods of its own."""
        raise ConfigError(f"{method_name}: the environments are one batch, none has its own")

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: Indices = None
    ) -> list[bool]:
        """Return False for each: single environments are not wrapped."""
        return [False for _ in self._get_indices(indices)]


def _rows(info: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Return the facts of each environment from arrays of all, (n,), with masks."""
    rows: list[dict[str, Any]] = [{} for _ in range(count)]
    for name, values in info.items():
        if name.startswith("_"):
            continue
        for i in np.flatnonzero(info[f"_{name}"]).tolist():
            rows[i][name] = values[i]
    return rows
