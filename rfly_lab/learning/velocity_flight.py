# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flight by velocity for a batch: the laws of the flight controller, for all vehicles at once.

They know the truth, not an estimate, and lack the controller's observer of unknown moments.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.dynamics.wind import GUST_PERIOD
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.rotor_wrench import rotor_matrix
from rfly_amphibious.vehicle.state_layout import CLEARANCE, POSITION, QUATERNION, RATES, VELOCITY
from rfly_autonomy.control import flight_laws
from rfly_autonomy.control.attitude_controller import YAW_FREQUENCY_SHARE
from rfly_autonomy.control.flight_laws import (
    attitude_frequency,
    attitude_of,
    led_position,
    specific_thrust,
    squares_within,
    turn_towards,
)
from rfly_autonomy.control.position_controller import INTEGRAL_SHARE, MAX_SPEED
from rfly_autonomy.control.teleop import TeleopLimits
from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import callable_in_kernels, inlined_kernel, kernel
from rfly_common.kernels.vectors import Vector, dot, matrix_column, matrix_row, rotation_matrix
from rfly_lab.learning.episode_kernels import heading, limited, three

for _law in (
    flight_laws._columns,
    flight_laws._share,
    flight_laws._thrusts,
    attitude_of,
    led_position,
    specific_thrust,
    squares_within,
    turn_towards,
):
    callable_in_kernels(_law)

TICK = GUST_PERIOD
"""Longest time between two commands of the rotors, s."""
STANDS = 2
"""Wheels with a load from which on the vehicle learns nothing of its flight."""


class FlightLaw(NamedTuple):
    """Constants of the laws for one kind of vehicle, as kernels take them."""

    dt: float
    """Time from command to command, s."""
    most: tuple[float, float, float, float]
    """Velocity of an action of 1: forward, left, up, m/s, and yaw rate, rad/s."""
    mass: float
    inertia: Floats
    """Inertia of the whole vehicle, (3, 3), kg m²."""
    position_gain: float
    velocity_gain: float
    max_tilt: float
    frequency: tuple[float, float, float]
    """Frequencies of roll, pitch and yaw, rad/s."""
    damping: float
    mixing: Floats
    """Squares of the rotors' speeds for one N and one N m about each axis, (rotors, 4)."""
    largest: float
    """Largest square of a rotor's speed, rad²/s²."""
    rotor_columns: Ints
    """Columns of the rotors in a row of commands, (rotors,)."""
    load_columns: Ints
    """Columns of the wheels' loads in a row of outputs, (wheels,)."""


class FlightMemory(NamedTuple):
    """What the laws of n vehicles keep from command to command."""

    position: Floats
    """Held position, (n, 3), m, world."""
    yaw: Floats
    """Held heading, (n,), rad."""
    integral: Floats
    """Integral of the velocity error, (n, 3), m/s²."""

    def copy(self) -> FlightMemory:
        """Return a copy with arrays of its own."""
        return FlightMemory(*(array.copy() for array in self))


def flight_memory(vehicles: int) -> FlightMemory:
    """Return the memory of vehicles that have not begun to fly."""
    return FlightMemory(np.zeros((vehicles, 3)), np.zeros(vehicles), np.zeros((vehicles, 3)))


def flight_law(p: VehicleParameters, dt: float) -> FlightLaw:
    """Return the constants of the laws for commands every dt seconds."""
    limits = TeleopLimits()
    tilting = attitude_frequency(p.attitude_frequency, p.rotor_lag, dt)
    rotors = state_layout.control_columns(p.rotors, len(p.wheels))["rotor"]
    loads = state_layout.output_columns(len(p.wheels))["wheel_load"]

    return FlightLaw(
        dt=dt,
        most=(limits.fly_speed, limits.fly_speed, limits.climb_speed, limits.yaw_rate),
        mass=p.mass,
        inertia=p.total_inertia,
        position_gain=p.position_gain,
        velocity_gain=p.velocity_gain,
        max_tilt=p.max_tilt,
        frequency=(tilting, tilting, YAW_FREQUENCY_SHARE * tilting),
        damping=p.attitude_damping,
        mixing=np.asarray(np.linalg.pinv(rotor_matrix(p)), np.float64),
        largest=p.max_rotor_speed**2,
        rotor_columns=np.arange(state_layout.controls_size(p.rotors, len(p.wheels)))[rotors],
        load_columns=np.arange(state_layout.reported(len(p.wheels)))[loads],
    )


def steps_of_tick(steps: int, dt: float) -> int:
    """Return the steps of `dt` seconds between two commands: they divide a period of `steps`.

    They are a whole period of the gusts, where the period is.
    """
    most = max(1, round(TICK / dt))
    return max(n for n in range(1, min(most, steps) + 1) if steps % n == 0)


@kernel
def begin_flight(which: Ints, states: Floats, memory: FlightMemory) -> None:
    """Let vehicles (k,) of states (n, states) hold their place and heading."""
    for k in range(which.shape[0]):
        v = which[k]
        memory.yaw[v] = heading(states[v])
        for c in range(3):
            memory.position[v, c] = states[v, POSITION + c]
            memory.integral[v, c] = 0.0


@kernel
def fly_by_velocity(
    actions: Any,
    law: FlightLaw,
    memory: FlightMemory,
    states: Floats,
    outputs: Floats,
    rows: Floats,
) -> None:
    """Write the rotors' speeds for actions (n, numbers) to rows (n, controls).

    The first four numbers are forward, left, up and turn, of the largest velocity each.
    """
    for v in range(actions.shape[0]):
        x = states[v]
        w = x[QUATERNION]
        rotation = rotation_matrix(x[QUATERNION + 1], x[QUATERNION + 2], x[QUATERNION + 3], w)
        yaw_rate = law.most[3] * limited(actions[v, 3])
        memory.yaw[v] = wrapped(memory.yaw[v] + law.dt * yaw_rate)
        thrust = wanted_thrust(v, actions[v], law, memory, x, outputs[v], yaw_rate)

        # turn the body
        wanted = attitude_of(thrust, memory.yaw[v])
        up = matrix_row(rotation, 2)
        rates = (
            x[RATES] - yaw_rate * up[0],
            x[RATES + 1] - yaw_rate * up[1],
            x[RATES + 2] - yaw_rate * up[2],
        )
        turn = turn_towards(wanted, rotation, rates, law.frequency, law.damping)
        roll = dot(three(law.inertia[0]), turn)
        pitch = dot(three(law.inertia[1]), turn)
        yaw = dot(three(law.inertia[2]), turn)

        # rotors
        force = law.mass * dot(thrust, matrix_column(rotation, 2))
        for_thrust = law.mixing[:, 0]
        tilting = law.mixing[:, 1] * roll + law.mixing[:, 2] * pitch
        turning = law.mixing[:, 3] * yaw
        squares = squares_within(
            force * for_thrust + tilting, turning, tilting, for_thrust, force, law.largest
        )
        for j in range(law.rotor_columns.shape[0]):
            rows[v, law.rotor_columns[j]] = math.sqrt(squares[j])


@inlined_kernel
def wanted_thrust(
    v: int,
    action: Any,
    law: FlightLaw,
    memory: FlightMemory,
    x: Floats,
    outputs: Floats,
    yaw_rate: float,
) -> Vector:
    """Return the specific thrust that vehicle v needs, world, m/s², and go on with its memory."""
    velocity = (
        law.most[0] * limited(action[0]),
        law.most[1] * limited(action[1]),
        law.most[2] * limited(action[2]),
    )
    position = (x[POSITION], x[POSITION + 1], x[POSITION + 2])
    held, ahead = led_position(
        three(memory.position[v]),
        position,
        velocity,
        memory.yaw[v],
        yaw_rate,
        outputs[CLEARANCE],
        law.velocity_gain,
        law.dt,
    )
    error = (
        by_place(law, held[0] - position[0]) + ahead[0] - x[VELOCITY],
        by_place(law, held[1] - position[1]) + ahead[1] - x[VELOCITY + 1],
        by_place(law, held[2] - position[2]) + ahead[2] - x[VELOCITY + 2],
    )
    integral = three(memory.integral[v])
    thrust, is_limited = specific_thrust(error, integral, law.velocity_gain, law.max_tilt)

    # learn only in free flight
    loaded = 0
    for i in range(law.load_columns.shape[0]):
        loaded += outputs[law.load_columns[i]] > 0.0
    learns = not is_limited and loaded < STANDS
    for c in range(3):
        memory.position[v, c] = held[c]
        if learns:
            memory.integral[v, c] += law.dt * INTEGRAL_SHARE * law.velocity_gain * error[c]
    return thrust


@inlined_kernel
def by_place(law: FlightLaw, error: float) -> float:
    """Return the velocity that the error of a position demands, m/s."""
    return min(max(law.position_gain * error, -MAX_SPEED), MAX_SPEED)


@inlined_kernel
def wrapped(angle: float) -> float:
    """Return an angle within ±π, rad."""
    return angle - 2.0 * math.pi * math.floor(angle / (2.0 * math.pi) + 0.5)
