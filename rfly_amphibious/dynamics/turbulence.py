"""Dryden's turbulence below 1,000 ft: MIL-F-8785C (1980), sections 3.7.1.2 and 3.7.3.4. Eq. 3.6."""

from __future__ import annotations

import math
from typing import Any

from rfly_amphibious.vehicle import state_layout as at
from rfly_common.kernels.jit import inlined_kernel
from rfly_terrain.height_map.bilinear import altitude

FOOT = 0.3048
"""m"""
LOWEST = 10.0
HIGHEST = 1000.0
"""ft: between them the lengths and strengths depend on the height; beyond, they are those of the
nearer limit
"""


@inlined_kernel
def next_turbulence(
    x: Any, memory: Any, mean: Any, noise: Any, wind_at_6_m: float, period: float, ground: Any
) -> None:
    """The gust in `memory` <- that of one period (s) later. x, memory: of one vehicle; mean, noise
    (3,).

    u lies along the mean wind (east, where there is none), w upwards. What is white noise in space
    becomes one in time by the airspeed; u has passed one lag since, v and w have passed (1 + √3 T
    s) / (1 + T s)², T = length / airspeed.
    """
    px = x[at.POSITION]
    py = x[at.POSITION + 1]
    pz = x[at.POSITION + 2]
    h = min(max((pz - altitude(ground, px, py)) / FOOT, LOWEST), HIGHEST)
    shape = 0.177 + 0.000823 * h
    sigma_w = 0.1 * wind_at_6_m
    sigma_u = sigma_w / shape**0.4
    length_u = h / shape**1.2 * FOOT
    length_w = h * FOOT
    dx = x[at.VELOCITY] - mean[0]
    dy = x[at.VELOCITY + 1] - mean[1]
    dz = x[at.VELOCITY + 2] - mean[2]
    way = math.sqrt(dx * dx + dy * dy + dz * dz) * period
    u = lagged(memory[at.TURBULENCE], noise[0], way / length_u)
    memory[at.TURBULENCE] = u
    v = sigma_u * twice_lagged(memory, at.TURBULENCE + 1, noise[1], way / length_u)
    w = sigma_w * twice_lagged(memory, at.TURBULENCE + 3, noise[2], way / length_w)
    speed = math.sqrt(mean[0] * mean[0] + mean[1] * mean[1])
    c, s = (mean[0] / speed, mean[1] / speed) if speed > 0.0 else (1.0, 0.0)
    memory[at.GUST] = c * sigma_u * u - s * v
    memory[at.GUST + 1] = s * sigma_u * u + c * v
    memory[at.GUST + 2] = w


@inlined_kernel
def lagged(state: float, noise: float, share: float) -> float:
    """White noise through a lag, of variance 1; `share`: of the lag's time constant that has
    passed.
    """
    keep = math.exp(-share)
    return keep * state + math.sqrt(1.0 - keep * keep) * noise


@inlined_kernel
def twice_lagged(memory: Any, k: int, noise: float, share: float) -> float:
    """White noise through (1 + √3 T s) / (1 + T s)², of variance 1; memory: after a lag, after two,
    from k on.
    """
    keep = math.exp(-share)
    before = memory[k]
    memory[k] = lagged(before, noise, share)
    memory[k + 1] = keep * memory[k + 1] + (1.0 - keep) * 0.5 * (before + memory[k])
    root = math.sqrt(3.0)
    return (root * memory[k] + (1.0 - root) * memory[k + 1]) / math.sqrt(2.0)
