# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kernels of the environments' sensors: what they measure, and what a vehicle sees by them.

Each treats a vehicle as if it were alone. Random numbers follow from the episode's key, the step
and the place of a number: neither the size of a batch nor other sensors change them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.dynamics.wind import hashed
from rfly_amphibious.sensors.sensor_kernels import (
    JointGeometry,
    let_drift,
    reading,
    wheel_turn,
)
from rfly_amphibious.vehicle.ackermann import virtual_tangent
from rfly_amphibious.vehicle.state_layout import ROTOR_SPEED
from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.atmosphere import pressure_at_temperature, standard_temperature
from rfly_common.kernels.jit import callable_in_kernels, inlined_kernel, kernel
from rfly_common.kernels.record_vectors import quaternion, vector
from rfly_common.kernels.vectors import (
    Matrix,
    Vector,
    cross,
    matrix_at,
    quat_multiply,
    quat_of_rotation_vector,
    rotated,
    rotated_back,
    rotation_matrix,
    set_matrix,
    subtract,
    vector_at,
)
from rfly_common.physics import pressure_altitude
from rfly_lab.learning.episode_kernels import put, way_to, within_limits
from rfly_lab.learning.episodes import EpisodeLayout, Episodes
from rfly_lab.learning.tasks import Task

callable_in_kernels(hashed)
callable_in_kernels(pressure_altitude)
callable_in_kernels(virtual_tangent)

# places of the sensors in arrays with a number for each
IMU = 0
GPS = 1
BAROMETER = 2
HEIGHT = 3
ENCODERS = 4
WHEEL_LOADS = 5
SENSORS = 6

MOST_CHANNELS = 1000
"""Channels of a sensor for which there are random numbers, at most."""
SLACK = 1e-9
"""Share of a period by which a measurement may come before its time."""


class Suite(NamedTuple):
    """Sensors of a vehicle, as kernels take them. SI units."""

    period: float
    """Period of the observations, s."""
    first: Ints
    """First channel of each sensor, (SENSORS,); -1: there is none."""
    channels: Ints
    """Number of channels of each sensor, (SENSORS,)."""
    sample: Floats
    """Periods of the sensors, s, (SENSORS,)."""
    place: Ints
    """Place of each channel among those of all sensors that a set may have, (channels,)."""
    noise: Any
    """Coefficients of the errors, (channels,), `sensor_kernels.CHANNEL_NOISE`."""
    beginning: Floats
    """Bias, its deviation, and the Gauss–Markov error's deviation at the start, (channels, 3)."""
    latency: int
    """Observations from a GPS fix to its delivery."""
    mounting: Any
    """Mounting, (1,), `sensor_kernels.MOUNTING`."""
    altitude: float
    """Altitude of the world's origin above sea level, m."""
    min_height: float
    max_height: float
    wheel_count: float
    """Angle of a count of the wheels' encoders, rad; 0: they are exact."""
    steering_count: float
    """That of the steering encoders."""
    joints: JointGeometry


class Truth(NamedTuple):
    """Readings of ideal sensors of k vehicles."""

    x: Floats
    """States, (k, states)."""
    sensed: Any
    """Readings by sensor, (k,), `sensor_kernels.TRUTH`."""
    height: Floats
    """Heights of the height sensors above the ground, m, (k,)."""
    loads: Floats
    """Loads of the wheels, N, (k, wheels)."""


class SensorMemory(NamedTuple):
    """What the sensors of n vehicles have read last, and their errors; kernels change it."""

    readings: Floats
    """Last readings, (n, channels)."""
    measured: Ints
    """Step of the episode at which each was measured, (n, SENSORS)."""
    errors: Any
    """Errors of the next readings, (n, channels), `sensor_kernels.CHANNEL_ERRORS`."""
    attitude: Floats
    """Last attitude by the IMU, x y z w, body -> world, (n, 4)."""
    fixes: Floats
    """GPS fixes on their way, (n, fixes, 6)."""
    sent: Ints
    """Steps at which these were measured, (n, fixes); -1: none."""
    steering: Floats
    """Last steering angle of the virtual wheel by the encoders, rad, (n,)."""
    spin: Floats
    """Last spins of the wheels by the encoders, rad/s, (n, wheels)."""
    turning: Floats
    """True spins of the wheels against the body at the last step, rad/s, (n, wheels)."""
    angle: Floats
    """Their angles, rad, (n, wheels)."""
    counted: Floats
    """Their angles when they were measured last, rad, (n, wheels)."""


# random numbers


@inlined_kernel
def step_key(key: Any, step: int) -> Any:
    """Return the key of the random numbers of a step."""
    return hashed(hashed(key) + np.uint64(step))


@inlined_kernel
def uniform(key: Any, i: int) -> float:
    """Return number i of a key, uniform between 0 and 1."""
    bits = hashed(key + np.uint64(i)) >> np.uint64(11)
    return (np.float64(bits) + 0.5) / 2.0**53


@inlined_kernel
def normal(key: Any, i: int) -> float:
    """Return unit normal number i of a key, by Box and Muller."""
    radius = math.sqrt(-2.0 * math.log(uniform(key, 2 * i)))
    return radius * math.cos(2.0 * math.pi * uniform(key, 2 * i + 1))


# measurements


@inlined_kernel
def is_due(step: int, sample: float, period: float) -> bool:
    """Return whether a sensor measures at a step: a multiple of its period has come since the last.

    At step 0, with which an episode begins, all do.
    """
    per_step = period / sample
    now = math.floor(step * per_step + SLACK)
    before = math.floor((step - 1) * per_step + SLACK)
    return step == 0 or now > before


@kernel
def measure(
    which: Ints, steps: Ints, keys: Any, suite: Suite, truth: Truth, memory: SensorMemory
) -> None:
    """Let the sensors of the vehicles (k,) measure that are due.

    `steps`, `keys` (n,): steps of the episodes until now, and keys of their random numbers. `truth`
    has k rows.
    """
    ideal = np.empty(suite.noise.shape[0])
    for k in range(which.shape[0]):
        v = which[k]
        step = steps[v]
        key = step_key(keys[v], step)
        if step == 0:
            begin(v, key, suite, memory)
        write_ideal(k, truth, suite, ideal)
        turn_wheels(v, k, step, truth.x, suite, memory)

        for s in range(SENSORS):
            first = suite.first[s]
            if first < 0 or not is_due(step, suite.sample[s], suite.period):
                continue
            for c in range(first, first + suite.channels[s]):
                disturb(v, c, key, suite, ideal, memory)
            if s == GPS:
                send(v, step, first, ideal, memory)
            else:
                memory.measured[v, s] = step
                for c in range(first, first + suite.channels[s]):
                    memory.readings[v, c] = ideal[c]
            if s == IMU:
                turn_attitude(v, truth.sensed[k], suite, memory)
        deliver(v, step, suite, memory)


@inlined_kernel
def begin(v: int, key: Any, suite: Suite, memory: SensorMemory) -> None:
    """Begin an episode of vehicle v: draw the errors of its first readings, forget fixes."""
    for c in range(suite.noise.shape[0]):
        error = memory.errors[v, c]
        error.bias = suite.beginning[c, 0]
        error.walk = 0.0
        error.markov = 0.0
        if suite.beginning[c, 1] > 0.0:
            error.bias += suite.beginning[c, 1] * normal(key, 5 * suite.place[c] + 3)
        if suite.beginning[c, 2] > 0.0:
            error.markov = suite.beginning[c, 2] * normal(key, 5 * suite.place[c] + 4)
    for f in range(memory.sent.shape[1]):
        memory.sent[v, f] = -1
    memory.measured[v, GPS] = -1


@inlined_kernel
def write_ideal(k: int, truth: Truth, suite: Suite, ideal: Floats) -> None:
    """Write what ideal sensors read, row k of the truth, to (channels,)."""
    sensed = truth.sensed[k]
    for c in range(suite.channels[IMU]):
        ideal[suite.first[IMU] + c] = sensed.imu[c]
    for c in range(suite.channels[GPS]):
        ideal[suite.first[GPS] + c] = sensed.gps[c]
    if suite.channels[BAROMETER]:
        temperature = standard_temperature(sensed.barometer_z + suite.altitude)
        ideal[suite.first[BAROMETER]] = pressure_at_temperature(temperature)
    if suite.channels[HEIGHT]:
        ideal[suite.first[HEIGHT]] = truth.height[k]
    for j in range(suite.channels[ENCODERS]):
        ideal[suite.first[ENCODERS] + j] = truth.x[k, ROTOR_SPEED + j]
    for i in range(suite.channels[WHEEL_LOADS]):
        ideal[suite.first[WHEEL_LOADS] + i] = truth.loads[k, i]


@inlined_kernel
def disturb(v: int, c: int, key: Any, suite: Suite, values: Floats, memory: SensorMemory) -> None:
    """Turn the truth in channel c into a reading, and let its error drift until the next."""
    channel = suite.noise[c]
    error = memory.errors[v, c]
    first = 5 * suite.place[c]
    white = normal(key, first) if channel.white > 0.0 else 0.0
    values[c] = reading(channel, error, values[c], white)
    walk = normal(key, first + 1) if channel.walk > 0.0 else 0.0
    markov = normal(key, first + 2) if channel.markov > 0.0 else 0.0
    let_drift(channel, error, walk, markov)


@inlined_kernel
def send(v: int, step: int, first: int, values: Floats, memory: SensorMemory) -> None:
    """Put a GPS fix on its way, in a free place."""
    for f in range(memory.sent.shape[1]):
        if memory.sent[v, f] < 0:
            memory.sent[v, f] = step
            for c in range(memory.fixes.shape[2]):
                memory.fixes[v, f, c] = values[first + c]
            return


@inlined_kernel
def deliver(v: int, step: int, suite: Suite, memory: SensorMemory) -> None:
    """Deliver the GPS fixes that have come; the one at the start comes at once."""
    for f in range(memory.sent.shape[1]):
        sent = memory.sent[v, f]
        if sent < 0 or (step > 0 and step - sent < suite.latency):
            continue
        memory.sent[v, f] = -1
        if sent > memory.measured[v, GPS]:
            memory.measured[v, GPS] = sent
            for c in range(memory.fixes.shape[2]):
                memory.readings[v, suite.first[GPS] + c] = memory.fixes[v, f, c]


@inlined_kernel
def turn_attitude(v: int, sensed: Any, suite: Suite, memory: SensorMemory) -> None:
    """Turn the true attitude by the IMU's error of it, and into that of the body."""
    first = suite.first[IMU] + 6
    turn = quat_of_rotation_vector(vector_at(memory.readings, v, first))
    attitude = quat_multiply(turn, quaternion(sensed.attitude))
    x, y, z, w = quaternion(suite.mounting[0].imu_quat)
    body = quat_multiply(attitude, (-x, -y, -z, w))
    for c in range(4):
        memory.attitude[v, c] = body[c]


@inlined_kernel
def turn_wheels(v: int, k: int, step: int, x: Floats, suite: Suite, memory: SensorMemory) -> None:
    """Turn the wheels' encoders since the last step, and read them where they are due."""
    has_encoders = suite.first[ENCODERS] >= 0
    due = has_encoders and is_due(step, suite.sample[ENCODERS], suite.period)
    sample = suite.sample[ENCODERS]
    joints = suite.joints
    wheels = memory.angle.shape[1]
    tangent = math.tan(x[k, ROTOR_SPEED + joints.rotor_spin.size])

    steered = 0
    steering = 0.0
    for i in range(wheels):
        own, rate = wheel_turn(i, x[k], tangent, joints)
        if step == 0:
            memory.angle[v, i] = 0.0
            memory.turning[v, i] = rate
        before = memory.turning[v, i]
        memory.turning[v, i] = rate
        if step > 0:
            memory.angle[v, i] += 0.5 * suite.period * (before + rate)
        if not due:
            continue

        # counts since the sample before, which is between two steps for a quick encoder
        angle = memory.angle[v, i]
        if step == 0 or sample <= suite.period:
            since = sample
            last = angle - since * (rate - 0.5 * (rate - before) * since / suite.period)
        else:
            since = (step - memory.measured[v, ENCODERS]) * suite.period
            last = memory.counted[v, i]
        memory.counted[v, i] = angle
        if suite.wheel_count > 0.0:
            counts = np.floor(angle / suite.wheel_count) - np.floor(last / suite.wheel_count)
            rate = counts * suite.wheel_count / since
        memory.spin[v, i] = rate

        # steering
        if suite.steering_count > 0.0:
            counts = np.rint(math.atan(own) / suite.steering_count)
            own = math.tan(counts * suite.steering_count)
        sign = joints.steering_sign[i]
        if sign != 0.0:
            steering += math.atan(
                virtual_tangent(sign, joints.wheel_y[i], joints.steering_lever, own)
            )
            steered += 1
    if due:
        memory.steering[v] = steering / steered if steered else 0.0


# observations


class Navigation(NamedTuple):
    """What a vehicle knows of its motion by IMU and GPS, without any filter."""

    attitude: Matrix
    """Rotation body -> world."""
    rates: Vector
    """Angular velocity, rad/s, body axes."""
    position: Vector
    """Position of the body's origin at the last fix, m, world."""
    velocity: Vector
    """Its velocity then, m/s, world."""


@inlined_kernel
def navigation(v: int, suite: Suite, memory: SensorMemory) -> Navigation:
    """Return what vehicle v knows of its motion. The antenna is where it is now in the body."""
    mount = suite.mounting[0]
    x, y, z, w = quaternion(memory.attitude[v])
    attitude = rotation_matrix(x, y, z, w)
    own_rates = vector_at(memory.readings, v, suite.first[IMU] + 3)
    rates = rotated(matrix_at(mount.imu_rotation), own_rates)

    antenna = vector(mount.gps)
    fix = vector_at(memory.readings, v, suite.first[GPS])
    fix_velocity = vector_at(memory.readings, v, suite.first[GPS] + 3)
    position = subtract(fix, rotated(attitude, antenna))
    velocity = subtract(fix_velocity, rotated(attitude, cross(rates, antenna)))
    return Navigation(attitude, rates, position, velocity)


@kernel
def navigate(suite: Suite, memory: SensorMemory, rotations: Floats, motion: Floats) -> None:
    """Write attitudes (n, 3, 3), body -> world, and positions and velocities (n, 2, 3), world."""
    for v in range(memory.attitude.shape[0]):
        now = navigation(v, suite, memory)
        set_matrix(rotations[v], now.attitude)
        for c in range(3):
            motion[v, 0, c] = now.position[c]
            motion[v, 1, c] = now.velocity[c]


@kernel
def observe_by_sensors(
    task: Task,
    suite: Suite,
    memory: SensorMemory,
    layout: EpisodeLayout,
    episodes: Episodes,
    seen: Any,
) -> None:
    """Write what each vehicle sees by its sensors to (n, numbers), named by `sensor_names`."""
    mount = suite.mounting[0]
    for v in range(memory.attitude.shape[0]):
        own = seen[v]
        readings = memory.readings[v]
        now = navigation(v, suite, memory)
        rotation = now.attitude

        # targets and motion
        last = episodes.targets.shape[1] - 1
        target = episodes.targets[v, episodes.target[v]]
        after = episodes.targets[v, min(episodes.target[v] + 1, last)]
        put(own, 0, rotated_back(rotation, way_to(target, now.position, task)))
        put(own, 3, rotated_back(rotation, way_to(after, now.position, task)))
        put(own, 6, rotated_back(rotation, now.velocity))
        put(own, 9, (rotation[6], rotation[7], rotation[8]))
        put(own, 12, now.rates)
        force = vector_at(memory.readings, v, suite.first[IMU])
        put(own, 15, rotated(matrix_at(mount.imu_rotation), force))
        k = 18

        # heights
        if suite.channels[BAROMETER]:
            altitude = pressure_altitude(readings[suite.first[BAROMETER]]) - suite.altitude
            altitude -= rotated(rotation, vector(mount.barometer))[2]
            own[k] = within_limits(target[2] - altitude)
            k += 1
        if suite.channels[HEIGHT]:
            height = readings[suite.first[HEIGHT]]
            own[k] = within_limits(min(max(height, suite.min_height), suite.max_height))
            k += 1

        # rotors and wheels
        if suite.first[ENCODERS] >= 0:
            own[k] = within_limits(memory.steering[v])
            k += 1
            for j in range(suite.channels[ENCODERS]):
                speed = readings[suite.first[ENCODERS] + j]
                own[k] = within_limits(speed / layout.max_rotor_speed)
                k += 1
            for i in range(memory.spin.shape[1]):
                own[k] = within_limits(memory.spin[v, i] * layout.rolling_radius[i])
                k += 1
        for i in range(suite.channels[WHEEL_LOADS]):
            load = readings[suite.first[WHEEL_LOADS] + i]
            own[k] = within_limits(load / layout.static_load[i])
            k += 1

        # ages
        for s in range(SENSORS):
            if suite.first[s] >= 0:
                own[k] = (episodes.steps[v] - memory.measured[v, s]) * suite.period
                k += 1
