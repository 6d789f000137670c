# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Trials of a policy in the environment that it was trained in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.errors import ConfigError
from rfly_lab.learning.land_air_batch import LandAirBatch
from rfly_lab.learning.policy import Policy
from rfly_lab.learning.tasks import Ending


def try_policy(policy: Policy, seeds: ArrayLike, **options: Any) -> NDArray[np.int8]:
    """Return how the first episode of each seed ends with a policy, an `Ending`, (n,).

    Options are those of the environment, such as `wind`, or other `sensors` than the policy's, not
    what the policy was trained for. Raise ConfigError for those, for other seeds, and for sensors
    that read other numbers.
    """
    wrong = ConfigError("seeds: expected a row of whole numbers of 0 or more")
    try:
        numbers = np.asarray(seeds)
    except ValueError as error:  # rows of unlike lengths
        raise wrong from error
    is_whole = numbers.ndim == 1 and numbers.dtype.kind in "iu"
    if not is_whole or (numbers < 0).any():
        raise wrong
    facts = policy.facts
    if options.get("sensors") is None:
        options.pop("sensors", None)
    for name, value in options.items():
        if name in policy.environment and name != "sensors":
            raise ConfigError(f"{name}: {value!r}, expected none: the policy has its own")
    batch = LandAirBatch(len(numbers), **{**policy.environment, **options})
    policy.check_view(batch.observation_names)
    every = np.arange(len(numbers))
    batch.seed(every, numbers.astype(np.uint64))
    batch.begin(every)

    endings = np.zeros(len(numbers), np.int8)
    for _ in range(math.ceil(policy.task.duration / facts.period) + 1):
        batch.step(policy.act(batch.observe()))
        endings = np.where(endings == Ending.RUNNING, batch.endings, endings)
        if (endings != Ending.RUNNING).all():
            break
    return endings
