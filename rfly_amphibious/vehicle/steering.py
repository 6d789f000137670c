# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ackermann geometry: the steering angle of each wheel. docs/model, section 5."""

from __future__ import annotations

from rfly_common.kernels.arcs import tan
from rfly_common.kernels.jit import inlined_kernel


@inlined_kernel
def wheel_direction(
    sign: float, wheel_y: float, per_lever: float, tan_steering: float
) -> tuple[float, float]:
    """Return (along, across) of one wheel's heading, of any length, from the virtual wheel's.

    The tangent of its angle is across / along. `sign`: 1 for a wheel that turns with the virtual
    wheel, -1 against it, 0 for one that does not steer. `wheel_y` (m): to the left of the middle.
    `per_lever` (1/m): inverse of the lever from the steered axle to the centre of the turn, along
    the vehicle. Eq. 5.1.
    """
    return 1.0 - wheel_y * per_lever * tan_steering, sign * tan_steering


@inlined_kernel
def trimmed_direction(along: float, across: float, trim: float) -> tuple[float, float]:
    """Return a `wheel_direction` that is turned by `trim`, rad."""
    more = tan(trim)
    return along - across * more, across + along * more
