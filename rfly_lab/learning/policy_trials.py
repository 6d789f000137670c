# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Trials of a policy in the environment that it was trained in, by the truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_lab.learning.land_air_batch import LandAirBatch
from rfly_lab.learning.policy import Policy
from rfly_lab.learning.tasks import Ending


def try_policy(policy: Policy, seeds: ArrayLike, **options: Any) -> NDArray[np.int8]:
    """Return how the first episode of each seed ends with a policy, an `Ending`, (n,).

    Options are those of the environment, such as `wind`.
    """
    numbers = np.asarray(seeds, np.uint64)
    facts = policy.facts
    batch = LandAirBatch(
        len(numbers),
        facts.task,
        vehicle=policy.params,
        actions=facts.actions,
        period=facts.period,
        **options,
    )
    every = np.arange(len(numbers))
    batch.seed(every, numbers)
    batch.begin(every)

    endings = np.zeros(len(numbers), np.int8)
    for _ in range(math.ceil(policy.task.duration / facts.period) + 1):
        batch.step(policy.act(batch.observe()))
        endings = np.where(endings == Ending.RUNNING, batch.endings, endings)
        if (endings != Ending.RUNNING).all():
            break
    return endings
