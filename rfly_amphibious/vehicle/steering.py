# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ackermann geometry: the steering angle of each wheel. docs/model, section 5."""

from __future__ import annotations

import math

from rfly_common.kernels.jit import inlined_kernel


@inlined_kernel
def wheel_tangent(sign: float, wheel_y: float, lever: float, tan_steering: float) -> float:
    """Return the tangent of one wheel's steering angle, from that of the virtual wheel. Eq. 5.1.

    `sign`: 1 for a wheel that turns with the virtual wheel, -1 against it, 0 for one that does not
    steer. `wheel_y` (m): to the left of the middle. `lever` (m): from the steered axle to the
    centre of the turn, along the vehicle.
    """
    return sign * tan_steering / (1.0 - wheel_y * tan_steering / lever)


@inlined_kernel
def trimmed_tangent(tangent: float, trim: float) -> float:
    """Return the tangent of an angle that exceeds the one of this `tangent` by `trim`, rad."""
    more = math.tan(trim)
    return (tangent + more) / (1.0 - tangent * more)
