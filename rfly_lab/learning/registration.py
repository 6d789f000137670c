# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The environments in the registry of Gymnasium, an optional library."""

from __future__ import annotations

from rfly_common.imports import require

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
