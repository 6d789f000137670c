# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Laws of flight: velocity errors to a thrust, attitude errors to a turn, both to rotors.

docs/model, section 10.1. World axes ENU, body axes FLU, SI. The controllers of a vehicle call these
functions with plain numbers. They call nothing but `math`, NumPy and each other, so kernels that
fly many vehicles compile them too (`jit.callable_in_kernels`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.physics import GRAVITY

Vector = tuple[float, float, float]
Matrix = tuple[float, float, float, float, float, float, float, float, float]
"""3 x 3, row by row."""

MIN_VERTICAL = 0.3
"""Least upward acceleration, as a share of gravity: it keeps the direction of thrust defined."""

SLOW_DESCENT = 0.5
"""Sink rate near the ground and after an abort, m/s."""

SLOW_NEAR = 1.0
"""Clearance below which a vehicle that flies by velocity sinks slowly, m."""

MAX_LEAD = 2.0
"""Largest distance of the position setpoint from a vehicle that flies by velocity, m."""

STABLE_LAG = 0.45
"""Largest product of the attitude loop's frequency and its lag (motors and delay)."""

TOLERANCE = 1e-12
"""Tolerance of the limits of squared rotor speeds, as a share of the largest."""


def led_position(
    held: Sequence[float],
    position: Sequence[float],
    velocity: Sequence[float],
    yaw: float,
    yaw_rate: float,
    clearance: float,
    velocity_gain: float,
    dt: float,
) -> tuple[Vector, Vector]:
    """Return a held position dt seconds later, and the velocity to feed forward, m/s, world.

    `held`: it before, m. `position`: of the vehicle. `velocity`: wanted, forward, left and up by
    the heading `yaw`, which turns at `yaw_rate`. `clearance`: of the lowest wheel, m.
    """
    forward, left, up = velocity
    if clearance < SLOW_NEAR:
        up = max(up, -SLOW_DESCENT)
    cosine = math.cos(yaw)
    sine = math.sin(yaw)
    x = cosine * forward - sine * left
    y = sine * forward + cosine * left

    led = (held[0] + dt * x, held[1] + dt * y, held[2] + dt * up)

    # the held position does not run away
    lead_x = led[0] - position[0]
    lead_y = led[1] - position[1]
    lead_z = led[2] - position[2]
    distance = math.sqrt(lead_x * lead_x + lead_y * lead_y + lead_z * lead_z)
    if distance > MAX_LEAD and (x != 0.0 or y != 0.0 or up != 0.0):
        share = MAX_LEAD / distance
        led = (
            position[0] + share * lead_x,
            position[1] + share * lead_y,
            position[2] + share * lead_z,
        )

    # feed forward the turning of the velocity
    gain = yaw_rate / velocity_gain
    return led, (x - gain * y, y + gain * x, up)


def specific_thrust(
    error: Sequence[float], integral: Sequence[float], velocity_gain: float, max_tilt: float
) -> tuple[Vector, bool]:
    """Return the wanted specific thrust, world, m/s², and whether the tilt limits it. Eq. 10.2.

    `error`: of the velocity, m/s, by the position too. `integral`: m/s².
    """
    x = velocity_gain * error[0] + integral[0]
    y = velocity_gain * error[1] + integral[1]
    z = velocity_gain * error[2] + integral[2]
    z = max(z + GRAVITY, MIN_VERTICAL * GRAVITY)

    # no more tilt than allowed
    most = z * math.tan(max_tilt)
    level = math.hypot(x, y)
    is_limited = level > most
    if is_limited:
        x *= most / level
        y *= most / level
    return (x, y, z), is_limited


def attitude_of(acceleration: Sequence[float], yaw: float) -> Matrix:
    """Return the attitude with z along an acceleration and x towards a yaw. Eq. 10.3.

    It is body -> world.
    """
    x, y, z = acceleration
    size = math.sqrt(x * x + y * y + z * z)
    up = (x / size, y / size, z / size)

    # left is across the thrust and the heading
    left_x = -up[2] * math.sin(yaw)
    left_y = up[2] * math.cos(yaw)
    left_z = up[0] * math.sin(yaw) - up[1] * math.cos(yaw)
    size = math.sqrt(left_x * left_x + left_y * left_y + left_z * left_z)
    left = (left_x / size, left_y / size, left_z / size)
    ahead = (
        left[1] * up[2] - left[2] * up[1],
        left[2] * up[0] - left[0] * up[2],
        left[0] * up[1] - left[1] * up[0],
    )
    return (ahead[0], left[0], up[0], ahead[1], left[1], up[1], ahead[2], left[2], up[2])


def turn_towards(
    wanted: Sequence[float],
    rotation: Sequence[float],
    rates: Sequence[float],
    frequency: Sequence[float],
    damping: float,
) -> Vector:
    """Return the angular acceleration that turns a body to an attitude, body axes, rad/s².

    Eq. 10.4, after Lee, Leok and McClamroch (2010). `wanted`, `rotation`: body -> world, row by
    row. `rates`: body rates less the wanted ones, rad/s.
    """
    w = wanted
    r = rotation
    error = (
        0.5 * (_columns(w, 2, r, 1) - _columns(r, 2, w, 1)),
        0.5 * (_columns(w, 0, r, 2) - _columns(r, 0, w, 2)),
        0.5 * (_columns(w, 1, r, 0) - _columns(r, 1, w, 0)),
    )
    return (
        -frequency[0] * (frequency[0] * error[0] + 2.0 * damping * rates[0]),
        -frequency[1] * (frequency[1] * error[1] + 2.0 * damping * rates[1]),
        -frequency[2] * (frequency[2] * error[2] + 2.0 * damping * rates[2]),
    )


def _columns(a: Sequence[float], i: int, b: Sequence[float], j: int) -> float:
    """Return the product of column i of a matrix with column j of another one."""
    return a[i] * b[j] + a[3 + i] * b[3 + j] + a[6 + i] * b[6 + j]


def attitude_frequency(frequency: float, rotor_lag: float, delay: float) -> float:
    """Return the frequency of a loop in roll and pitch, rad/s: lower if rotors or delay are slow.

    `rotor_lag` and `delay`: s.
    """
    return min(frequency, STABLE_LAG / (rotor_lag + delay))


# rotors


def squares_within(
    squares: Floats,
    turning: Floats,
    tilting: Floats,
    for_thrust: Floats,
    thrust: float,
    largest: float,
) -> Floats:
    """Return squares of the rotors' speeds that the rotors can have, (rotors,), rad²/s².

    `squares`: for thrust and tilting; `turning`, `tilting`: those that a yaw moment, and roll and
    pitch moments add; `for_thrust`: those of 1 N. What the rotors cannot do is given up in this
    order: yaw moment, thrust, then roll and pitch together.
    """
    squares = squares + _share(squares, turning, largest) * turning
    slack = TOLERANCE * largest
    if np.min(squares) < -slack or np.max(squares) > largest + slack:
        low, high = _thrusts(tilting, for_thrust, largest)
        if low <= high:
            squares = min(max(thrust, low), high) * for_thrust + tilting
        else:
            # another thrust, then less roll and pitch
            low, high = _thrusts(0.0 * tilting, for_thrust, largest)
            middle = min(max(thrust, low), high) * for_thrust
            squares = middle + _share(middle, tilting, largest) * tilting
    return np.minimum(np.maximum(squares, 0.0), largest)


def _share(base: Floats, addition: Floats, largest: float) -> float:
    """Return the largest share, 0 … 1, of an addition that keeps all squares within limits."""
    divisor = np.where(addition != 0.0, np.abs(addition), 1.0)
    room = np.where(addition > 0.0, largest - base, base) / divisor
    share = float(np.min(np.where(addition != 0.0, room, 1.0)))
    return min(max(share, 0.0), 1.0)


def _thrusts(tilting: Floats, for_thrust: Floats, largest: float) -> tuple[float, float]:
    """Return the least and the largest thrust that keep the squares within their limits.

    If no thrust does, the least exceeds the largest.
    """
    lifts = for_thrust > 0.0
    divisor = np.where(lifts, for_thrust, 1.0)
    low = float(np.max(np.where(lifts, -tilting / divisor, 0.0)))
    high = float(np.min(np.where(lifts, (largest - tilting) / divisor, np.inf)))
    return max(low, 0.0), high
