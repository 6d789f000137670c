# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Laws of driving: speed errors to motors and brakes, slips to less torque, turns to steering.

docs/model, sections 10.2 to 10.4. Body axes FLU, SI. The controllers of a vehicle call these
functions with the constants of the vehicle and with what was kept from the last command. They call
nothing but `math`, NumPy and each other, so kernels that drive many vehicles compile them too
(`jit.callable_in_kernels`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.physics import AIR_DENSITY, GRAVITY

SPEED_GAIN = 1.5
"""Gain of the speed error, 1/s."""

STOP_GAIN = 20.0
"""Gain of the speed while the brakes stop the vehicle, 1/s: they cannot push it back."""

BRAKING_SHARE = 0.88
"""Share of the friction, and of the force that lifts the rear wheels, that braking may use."""

OBSERVER_GAIN = 2.0
"""Gain of the observer of the force that the model does not know, 1/s."""

LOAD_TRANSFER_TIME = 0.1
"""Time in which the springs move load to the front wheels, s."""

CREEPING = 0.3
"""Speed below which brakes may hold wheels with less than their torque, m/s."""

HOLD_SPEED = 0.05
"""Speed below which the brakes hold a vehicle that is to stand, m/s."""

HOLD_SHARE = 0.3
"""Share of the largest brake torque that holds a standing vehicle."""

MAX_LATERAL = 0.6
"""Share of the friction that steering may use up."""

SLOWEST_TURN = 0.05
"""Speed below which steered wheels cannot turn the vehicle, m/s."""

SLIPS = 1.5
"""Slip beyond which a wheel's torque is cut, as a multiple of the slip of the largest force."""

LEFT = 0.8
"""Factor of the torque after CUT_TIME of slip."""

BACK = 0.05
"""Share of the whole torque that comes back in CUT_TIME without slip."""

BACK_OF_REST = 0.2
"""Largest share of what is left that comes back in CUT_TIME: else it is too much on ice."""

CUT_TIME = 0.01
"""Time to which LEFT and BACK refer, s."""

SLOW_BRAKING = 3.0
"""Speed below which braking wheels keep their torque, m/s: they slip only for a moment.

A wheel that a torque spins faster than the ground passes does not brake: the vehicle slides back.
"""

LEAST_SHARE = 0.05
"""Smallest share of the torque that a wheel keeps."""

SKID_INTEGRAL = 4.0
"""Integral gain of the loop that holds the speed difference between the sides, 1/s."""

ON_THE_SPOT = 0.3
"""Speed below which the loop is stiffer, m/s: all tyres slide there, and with a soft loop the
vehicle turns about its heavier axle."""

STIFFER = 0.7
"""Share by which the loop is stiffer at a standstill."""

SKID_YAW_GAIN = 3.0
"""Share of the yaw rate's error by which the wheels turn faster."""

MOST_SKID_YAW = 0.5
"""Largest such change, as a share of the wanted yaw rate."""

LEAST_SKID_YAW = 0.2
"""The same at least, and at least that of the integral, rad/s: slow turns stick and slip."""

SKID_YAW_INTEGRAL = 2.0
"""Gain of the integral of the yaw rate's error, 1/s."""


class DriveLaw(NamedTuple):
    """Constants of the laws for one kind of vehicle. Arrays of the wheels are (wheels,)."""

    mass: float
    effective_mass: float
    """Mass with the wheels' spin, kg."""
    wheelbase: float
    front_axle: float
    """Distance of the front axle from the sprung centre of mass, m."""
    rear_axle: float
    center_x: float
    center_height: float
    friction_x: float
    friction_y: float
    rolling_resistance: float
    rolling_speed: float
    linear_drag: float
    drag_area: float
    max_drive_torque: float
    max_drive_power: float
    max_brake_torque: float
    drive_lag: float
    low_speed: float
    peak_slip: float
    """Slip κ at which a tyre pulls most."""
    most_steering: float
    """Largest angle of the virtual wheel, rad."""
    motors: float
    """Number of wheels with a motor."""
    driven: Floats
    """1 for a wheel with a motor, else 0."""
    rolling_radius: Floats
    mean_radius: float
    hub_x: Floats
    hub_y: Floats
    static_load: Floats
    load_shift: Floats
    """Load that a wheel gains for each N of braking; empty for two axles. Eq. 10.16."""


class SpeedMemory(NamedTuple):
    """What the speed law keeps from command to command."""

    momentum: float
    """Momentum of the observer, kg m/s; NaN before it has begun."""
    unknown: float
    """Force along the path that the model does not know, N, positive forward."""
    motor_torque: Floats
    """Torques of the motors, behind their commands by their lag, (wheels,), N m."""
    braking_force: float
    """Force of braking to which springs have moved the load, N."""
    holds: bool
    """True while the brakes hold a vehicle that stands."""
    known: float
    """Sum of all forces of the model, N; NaN if the brakes may hold the wheels."""


class TurnTable(NamedTuple):
    """Steering of steady turns. Eq. 10.17 to 10.19."""

    lever: float
    """tan(steering) over the curvature of a slow path, m."""
    speeds: Floats
    """Speeds of the table, m/s."""
    laterals: Floats
    """Lateral accelerations of the table, m/s²."""
    gradients: Floats
    """Steering beyond that of a slow turn, over the lateral acceleration, rad s²/m."""


class SkidLaw(NamedTuple):
    """Constants of a vehicle that steers by its motors. Eq. 10.13."""

    radius: float
    """Mean rolling radius, m."""
    lever: float
    """Half of the speed difference of the sides over the yaw rate."""
    scrub: float
    """Torque of each wheel against which all tyres slide, that is fed forward, N m."""
    scrub_lever: float
    """Speed over the yaw rate at which the tyres' slip angle is that of the friction, m."""
    low_speed: float
    """Speed below which the tyres' slip angle grows no further, m/s."""
    gain: float
    """Gain of the speed difference's error, N m s."""
    sides: Floats
    """-1 for a wheel on the left, 1 on the right, (wheels,)."""
    driven: Floats
    """1 for a wheel with a motor, else 0, (wheels,)."""
    most: float
    """Largest torque of a motor, N m."""


# speed


def fresh_speed(wheels: int) -> SpeedMemory:
    """Return the memory of a speed law that has learned nothing."""
    return SpeedMemory(math.nan, 0.0, np.zeros(wheels), 0.0, False, 0.0)


def observed_force(
    momentum: float, force: float, mass: float, gain: float, speed: float, known: float, dt: float
) -> tuple[float, float]:
    """Return the observer's momentum, kg m/s, and the force that it finds, N, dt seconds later.

    `momentum`, `force`: the last ones. `mass`: kg, `gain`: 1/s. `speed`: now, m/s. `known`: sum of
    the known forces since then, N.
    """
    if math.isnan(momentum):
        momentum = mass * speed
    momentum += dt * (known + force)
    return momentum, gain * (mass * speed - momentum)


def speed_torques(
    law: DriveLaw,
    memory: SpeedMemory,
    wanted: float,
    speed: float,
    dt: float,
    grade: float,
    hold: bool,
    yaw_rate: float,
    share: Floats,
    acceleration: float,
) -> tuple[Floats, Floats, SpeedMemory]:
    """Return drive and brake torques, (wheels,), N m, and what is kept. Eq. 10.5 to 10.7.

    `wanted`, `speed`: m/s. `grade`: slope of the path, rad, positive uphill. `hold`: whether brakes
    stop a vehicle that is to stand, and hold it. `yaw_rate`: rad/s. `share`: of the torques that
    each wheel keeps, (wheels,). `acceleration`: of the wanted speed, m/s².
    """
    wheels = len(law.driven)
    stops = hold and wanted == 0.0
    if stops and abs(speed) < (CREEPING if memory.holds else HOLD_SPEED):
        # springs and tyres rock it
        held = HOLD_SHARE if abs(speed) < HOLD_SPEED else 1.0
        brakes = np.full(wheels, held * law.max_brake_torque)
        rest = SpeedMemory(math.nan, 0.0, np.zeros(wheels), 0.0, True, 0.0)
        return np.zeros(wheels), brakes, rest

    # forces that the model does not know
    unknown = memory.unknown
    if math.isnan(memory.known):
        momentum = law.effective_mass * speed - unknown / OBSERVER_GAIN
    else:
        momentum, unknown = observed_force(
            memory.momentum,
            unknown,
            law.effective_mass,
            OBSERVER_GAIN,
            speed,
            memory.known,
            dt,
        )

    # force along the path
    moving = speed if abs(speed) > HOLD_SPEED else wanted
    against_motion = resistance(law, moving, grade)
    gain = STOP_GAIN if stops else SPEED_GAIN
    pull = law.effective_mass * (gain * (wanted - speed) + acceleration)
    pull += against_motion - unknown
    direction = math.copysign(1.0, speed if abs(speed) > HOLD_SPEED else pull)

    # torques
    most = motor_torque(law, speed)
    braking_force = memory.braking_force
    if stops:
        limit = braking_limit(law, grade, speed * yaw_rate)
        braking = min(-direction * pull, limit)
        moved = 1.0 - math.exp(-dt / LOAD_TRANSFER_TIME)
        braking_force += moved * (max(braking, 0.0) - braking_force)
    if stops and braking > 0.0:
        shares = brake_shares(law, memory.braking_force)
        drive, brake = stopping(law, memory.motor_torque, braking, shares, direction, most)
    else:
        drive, brake = driving(law, pull, direction, most)
    drive = drive * share
    brake = brake * share
    lag = 1.0 - math.exp(-dt / law.drive_lag)
    motors = memory.motor_torque + lag * (drive - memory.motor_torque)

    # what acts on the vehicle until the next time
    known = math.nan
    if not brake.any() or abs(speed) > CREEPING:
        force = float(((motors - direction * brake) / law.rolling_radius).sum())
        grip = law.friction_x * law.mass * GRAVITY
        known = min(max(force, -grip), grip) - against_motion
    return drive, brake, SpeedMemory(momentum, unknown, motors, braking_force, False, known)


def driving(law: DriveLaw, pull: float, direction: float, most: float) -> tuple[Floats, Floats]:
    """Return drive and brake torques, (wheels,), N m, of a pull (N).

    The motors (at most `most` each) take the whole force as a driving one, the brakes what exceeds
    their braking.
    """
    force = most * law.motors / law.mean_radius
    by_motors = min(max(pull, -force), force)
    drive = by_motors * law.rolling_radius * law.driven / max(law.motors, 1.0)
    braking = max(-direction * (pull - by_motors), 0.0)
    brake = brake_shares(law, braking) * braking * law.rolling_radius
    return drive, np.minimum(brake, law.max_brake_torque)


def stopping(
    law: DriveLaw,
    motors: Floats,
    braking: float,
    shares: Floats,
    direction: float,
    most: float,
) -> tuple[Floats, Floats]:
    """Return the torques, (wheels,), N m, that stop by a force (N), each wheel's by its share.

    `most`: of a motor. Motors brake first. The brakes do the rest, and what the motors, whose
    torques are now `motors`, do not do yet.
    """
    torque = shares * braking * law.rolling_radius
    drive = -direction * np.minimum(torque, most) * law.driven
    done = np.minimum(np.maximum(-direction * motors, 0.0), torque)
    return drive, np.minimum(torque - done, law.max_brake_torque)


def braking_limit(law: DriveLaw, grade: float, lateral: float) -> float:
    """Return the largest force of braking, N, on a slope (rad) with a side acceleration, m/s².

    Friction limits it, as far as the side force leaves some, and the load on the rear wheels.
    """
    used = min(abs(lateral) / (law.friction_y * GRAVITY), 0.9)
    friction = law.friction_x * math.sqrt(1.0 - used**2)
    tipping = (law.front_axle - law.center_x) / law.center_height
    return BRAKING_SHARE * min(friction, tipping) * law.mass * GRAVITY * math.cos(grade)


def brake_shares(law: DriveLaw, force: float) -> Floats:
    """Return each wheel's share of a braking force (N), (wheels,). Eq. 10.7; six wheels: 10.16.

    The force moves load to the front, which then brakes more.
    """
    if not len(law.load_shift):
        shift = law.center_height * force / (law.mass * GRAVITY)
        front = min(max((law.rear_axle + shift) / law.wheelbase, 0.0), 1.0)
        return 0.5 * np.array((front, front, 1.0 - front, 1.0 - front))
    load = np.maximum(law.static_load + force * law.load_shift, 0.0)
    return load / load.sum()


def resistance(law: DriveLaw, speed: float, grade: float) -> float:
    """Return the resistance of rolling, air and slope at a speed, N. Eq. 10.6."""
    weight = law.mass * GRAVITY
    rolling = law.rolling_resistance * weight * math.tanh(speed / law.rolling_speed)
    air = law.linear_drag * speed + 0.5 * AIR_DENSITY * law.drag_area * speed * abs(speed)
    return rolling + air + weight * math.sin(grade)


def motor_torque(law: DriveLaw, speed: float) -> float:
    """Return the torque that each motor has at a speed, driving or braking, N m.

    The power of all motors together is limited too.
    """
    spin = abs(speed) / law.mean_radius
    return min(
        law.max_drive_torque,
        law.max_drive_power / max(law.motors, 1.0) / max(spin, 1e-3),
    )


# turns


def steering_limit(law: DriveLaw, speed: float) -> float:
    """Return the steering angle beyond which the turn would use up the friction, rad. Eq. 10.12."""
    lateral = MAX_LATERAL * law.friction_y * GRAVITY
    return min(law.most_steering, math.atan(law.wheelbase * lateral / max(speed**2, 0.1)))


def twist_curvature(speed: float, yaw_rate: float) -> float:
    """Return the curvature of the path, 1/m, at a wanted speed, m/s, and yaw rate, rad/s.

    Steered wheels cannot turn a vehicle that stands.
    """
    return yaw_rate / speed if abs(speed) > SLOWEST_TURN else 0.0


def turn_steering(table: TurnTable, curvature: float, speed: float) -> float:
    """Return the steering of the virtual wheel, rad, for a path's curvature, 1/m, at a speed.

    Positive is to the left. Beyond what the tyres hold the gradient is that of their limit.
    """
    lateral = speed * speed * curvature
    by_speed = np.empty(len(table.speeds))
    for k in range(len(table.speeds)):
        by_speed[k] = np.interp(abs(lateral), table.laterals, table.gradients[k])
    gradient = float(np.interp(abs(speed), table.speeds, by_speed))
    return math.atan(table.lever * curvature) + gradient * lateral


def skid_torques(
    law: SkidLaw,
    rate_integral: float,
    torque_integral: float,
    wanted: float,
    yaw_rate: float,
    speed: float,
    wheel_rate: Floats,
    dt: float,
) -> tuple[Floats, float, float]:
    """Return the torques for a yaw rate, (wheels,), N m, and both integrals, rad/s and N m.

    The torques are added to those that drive. `wanted`, `yaw_rate`: rad/s; `speed`: m/s;
    `wheel_rate`: present spins, (wheels,), rad/s. Eq. 10.13.
    """
    # yaw rate's error and its integral
    most = max(abs(wanted), LEAST_SKID_YAW)
    rate = rate_integral + dt * SKID_YAW_INTEGRAL * (wanted - yaw_rate)
    rate = min(max(rate, -most), most)
    most = max(MOST_SKID_YAW * abs(wanted), LEAST_SKID_YAW)
    faster = min(max(SKID_YAW_GAIN * (wanted - yaw_rate), -most), most)

    # speed difference of the sides
    due = speed / law.radius + law.lever * (wanted + rate + faster) * law.sides
    errors = due - wheel_rate
    gain = law.gain * (1.0 + STIFFER * max(0.0, 1.0 - abs(speed) / ON_THE_SPOT))
    change = dt * SKID_INTEGRAL * gain * float((errors * law.sides).sum()) / len(errors)
    torque = min(max(torque_integral + change, -law.most), law.most)

    # tyres that go aside against the turn, by their slip angle
    aside = law.scrub_lever * wanted / max(abs(speed), law.low_speed)
    torques = gain * errors + (law.scrub * math.tanh(aside) + torque) * law.sides
    return np.minimum(np.maximum(torques, -law.most), law.most) * law.driven, rate, torque


# traction


def wheel_velocities(
    law: DriveLaw,
    steering: Floats,
    velocity: Sequence[float] | Floats,
    rates: Sequence[float] | Floats,
) -> tuple[Floats, Floats]:
    """Return the speeds of hubs along and across their wheels, (wheels,), m/s.

    The arguments are those of `traction`.
    """
    ahead = velocity[0] - rates[2] * law.hub_y
    aside = velocity[1] + rates[2] * law.hub_x
    cosine = np.cos(steering)
    sine = np.sin(steering)
    return ahead * cosine + aside * sine, aside * cosine - ahead * sine


def traction(
    law: DriveLaw,
    share: Floats,
    wheel_rate: Floats,
    steering: Floats,
    velocity: Sequence[float] | Floats,
    rates: Sequence[float] | Floats,
    torque: Floats,
    dt: float,
) -> tuple[Floats, Floats]:
    """Return slips κ and shares of the torque that wheels keep, (wheels,), dt later. Eq. 10.8.

    `share`: the last ones. `wheel_rate`: spins against the body, (wheels,), rad/s. `steering`:
    (wheels,), rad. `velocity` and `rates`: (3,), body axes, m/s and rad/s. `torque`: of motors and
    brakes, (wheels,), N m. A wheel slips by its torque if slip and torque have the same sign.
    """
    # slip of each wheel on the ground
    ground, _ = wheel_velocities(law, steering, velocity, rates)
    rolling = law.rolling_radius * (wheel_rate + rates[1])
    slip = (rolling - ground) / np.maximum(np.abs(ground), law.low_speed)

    # cut the torque, or give it back
    slips = slip * np.sign(torque) > SLIPS * law.peak_slip
    if abs(velocity[0]) < SLOW_BRAKING:
        spins = (torque * rolling > 0.0) & (np.abs(rolling) > np.abs(ground))
        slips = slips & (spins | (torque * velocity[0] >= 0.0))
    steps = dt / CUT_TIME
    back = np.minimum(BACK, BACK_OF_REST * share)
    kept = np.where(slips, share * LEFT**steps, share + back * steps)
    return slip, np.minimum(np.maximum(kept, LEAST_SHARE), 1.0)
