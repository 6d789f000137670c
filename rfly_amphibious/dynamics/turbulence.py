# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Dryden's turbulence below 1,000 ft: MIL-F-8785C (1980), sections 3.7.1.2 and 3.7.3.4. Eq. 3.6."""

from __future__ import annotations

import math
from typing import Any

from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.record_vectors import set_vector, vector
from rfly_common.kernels.vectors import Vector, dot, subtract
from rfly_terrain.height_map.bilinear import altitude

FOOT = 0.3048
"""Foot, m."""
LOWEST = 10.0
"""Height, ft, below which lengths and strengths are those of this height."""
HIGHEST = 1000.0
"""Height, ft, above which lengths and strengths are those of this height."""


@inlined_kernel
def next_turbulence(
    x: Any, memory: Any, mean: Vector, noise: Vector, wind_at_6_m: float, period: float, ground: Any
) -> None:
    """Replace the gust in `memory` by that of one period (s) later.

    u lies along the mean wind (east, where there is none), w upwards. The airspeed turns white
    noise in space into white noise in time; u has passed one lag since, v and w have passed
    (1 + √3 T s) / (1 + T s)², T = length / airspeed.
    """
    # lengths and strengths
    above_ground = x.position[2] - altitude(ground, x.position[0], x.position[1])
    h = min(max(above_ground / FOOT, LOWEST), HIGHEST)
    shape = 0.177 + 0.000823 * h
    sigma_w = 0.1 * wind_at_6_m
    sigma_u = sigma_w / shape**0.4
    length_u = h / shape**1.2 * FOOT
    length_w = h * FOOT

    # filters
    air_velocity = subtract(vector(x.velocity), mean)
    way = math.sqrt(dot(air_velocity, air_velocity)) * period
    filters = memory.turbulence
    u = lagged(filters[0], noise[0], way / length_u)
    filters[0] = u
    v = sigma_u * twice_lagged(filters, 1, noise[1], way / length_u)
    w = sigma_w * twice_lagged(filters, 3, noise[2], way / length_w)

    # along the mean wind
    speed = math.sqrt(mean[0] * mean[0] + mean[1] * mean[1])
    c = 1.0
    s = 0.0
    if speed > 0.0:
        c = mean[0] / speed
        s = mean[1] / speed
    set_vector(memory.gust, (c * sigma_u * u - s * v, s * sigma_u * u + c * v, w))


@inlined_kernel
def lagged(state: float, noise: float, share: float) -> float:
    """Return the next output, of variance 1, of a lag of white noise.

    `share`: time that has passed, relative to the lag's time constant.
    """
    keep = math.exp(-share)
    return keep * state + math.sqrt(1.0 - keep * keep) * noise


@inlined_kernel
def twice_lagged(filters: Any, k: int, noise: float, share: float) -> float:
    """Return the next output, of variance 1, of white noise through (1 + √3 T s) / (1 + T s)².

    The filter's states are in `filters`: after one lag at k, after two at k + 1.
    """
    keep = math.exp(-share)
    before = filters[k]
    filters[k] = lagged(before, noise, share)
    filters[k + 1] = keep * filters[k + 1] + (1.0 - keep) * 0.5 * (before + filters[k])
    root = math.sqrt(3.0)
    return (root * filters[k] + (1.0 - root) * filters[k + 1]) / math.sqrt(2.0)
