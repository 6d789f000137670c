# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The environments for Gymnasium, in its registry, and for PettingZoo: optional libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rfly_common.imports import require

if TYPE_CHECKING:
    from rfly_lab.learning.parallel_environment import LandAirParallelEnv

ENV_ID = "rfly/LandAir-v0"
"""Id of the environment in Gymnasium's registry."""


def register_environments() -> None:
    """Add `rfly/LandAir-v0` to Gymnasium's registry, where it is not yet.

    `gymnasium.make` then makes one environment, `gymnasium.make_vec` many that share one batch.
    Raise ConfigError without Gymnasium.
    """
    gymnasium = require("gymnasium", "an environment to learn in")
    if ENV_ID not in gymnasium.registry:
        module = "rfly_lab.learning.environments"
        gymnasium.register(
            ENV_ID,
            entry_point=f"{module}:LandAirEnv",
            vector_entry_point=f"{module}:LandAirVectorEnv",
        )


def parallel_env(
    *, vehicles: int = 4, task: str = "waypoints", **options: Any
) -> LandAirParallelEnv:
    """Return an environment of several vehicles that share one terrain, for PettingZoo.

    `options` are those of `LandAirBatch`. Raise ConfigError without PettingZoo, and for arguments
    that can't be used.
    """
    for library in ("gymnasium", "pettingzoo"):
        require(library, "an environment of several vehicles")
    from rfly_lab.learning.parallel_environment import LandAirParallelEnv

    return LandAirParallelEnv(vehicles=vehicles, task=task, **options)


def as_stable_baselines(envs: Any) -> Any:
    """Return a vector environment of Gymnasium as one of Stable-Baselines3, a `VecEnv`.

    It has to begin anew in the step of an end: `autoreset_mode="SameStep"`. Raise ConfigError for
    another mode, for other spaces than boxes, and without Stable-Baselines3.
    """
    require("gymnasium", "an environment to learn in")
    require("stable_baselines3", "its algorithms' environment")
    from rfly_lab.learning.stable_baselines import StableBaselinesEnv

    return StableBaselinesEnv(envs)
