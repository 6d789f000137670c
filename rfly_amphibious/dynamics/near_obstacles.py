# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Search for the vehicles of a batch that may come near something solid."""

from __future__ import annotations

import math
from typing import Any

from rfly_amphibious.dynamics.obstacle_contacts import may_touch
from rfly_amphibious.dynamics.obstacles import STEP_MARGIN
from rfly_amphibious.dynamics.records import new_workspace, read_row
from rfly_common.arrays import Bools, Floats
from rfly_common.kernels.jit import kernel
from rfly_common.kernels.record_vectors import vector
from rfly_common.kernels.vectors import norm

FASTEST_GAIN = 300.0
"""Acceleration that no vehicle has away from obstacles, m/s²: thirty times that of its rotors."""


@kernel
def may_touch_soon(
    states: Floats, records: Any, obstacles: Any, duration: float, near: Bools
) -> None:
    """Write to `near` (n,) whether vehicles may be near a part within `duration` seconds.

    Those that may not move as they do without obstacles, as far as any step can see.
    """
    workspace = new_workspace()
    p = records[0]
    for v in range(states.shape[0]):
        x = workspace[0].x
        read_row(states[v], p.state_columns, x)
        speed = norm(vector(x.velocity)) + 0.5 * FASTEST_GAIN * duration
        is_slow = speed * duration < STEP_MARGIN and math.isfinite(speed)
        near[v] = not is_slow or may_touch(x, 0.0, p, obstacles)
