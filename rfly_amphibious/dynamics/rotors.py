# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rotors: thrust with inflow and ground effect, drag, torque and speed. docs/model, section 4.

Velocities at a rotor are relative to v_h, the velocity that it induces in hover at its present
speed, wherever they are called ratios; then no equation of the torque holds a dimension.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_amphibious.dynamics.arguments import Inputs
from rfly_amphibious.dynamics.body_motion import BodyMotion
from rfly_amphibious.dynamics.body_points import first_rotor
from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.lanes import any_lane, lanes_of, where
from rfly_common.kernels.vectors import Vector, add, cross

STEEPEST_DESCENT = -1.5
"""Climb, relative to the thrust's v_h, below which momentum theory has several solutions."""
INFLOW_STEPS = 3
"""Steps of Halley's method after which the induced velocity is exact to rounding. Eq. 4.15."""
TINY = 1e-300
"""Number that keeps divisors from 0."""
PROFILE_LINEAR = -0.0216 * 0.1 / 0.01054
"""Share of the blades' drag in hover that grows with the angle of attack. Eq. 4.17."""
PROFILE_SQUARE = 0.400 * 0.1**2 / 0.01054
"""Share of the blades' drag in hover that grows with its square. Eq. 4.17."""


@inlined_kernel
def hover_inflow(p: Any) -> float:
    """Return v_h, the velocity that a rotor induces in hover, per rad/s of its speed. Eq. 4.14."""
    thrust_speed = math.sqrt(p.thrust_coefficient / (2.0 * math.pi * p.air_density))
    return thrust_speed / p.rotor_radius


@inlined_kernel
def vortex_inflow(speed: float, climb: float, level_square: float, p: Any) -> float:
    """Return the induced velocity of a rotor beyond that of hover, m/s. Eq. 4.14.

    The rotor turns at `speed` (rad/s) and moves at `climb` (m/s, < 0) along its axis; the square of
    its velocity in its plane is `level_square` (m²/s²).
    """
    hover = speed * hover_inflow(p)
    sink = where(climb > -2.0 * hover, climb / hover, 0.0)
    more = sink * (-1.125 + sink * (-1.372 + sink * (-1.718 - 0.655 * sink)))
    return max(hover - math.sqrt(level_square), 0.0) * more


@inlined_kernel
def free_thrust(speed: float, climb: float, level_square: float, density: float, p: Any) -> float:
    """Return the thrust of a rotor far from the ground, N. Eq. 4.3.

    The rotor turns at `speed` (rad/s) and moves at `climb` (m/s) along its axis; the square of its
    velocity in its plane is `level_square` (m²/s²). `density` is k_ρ.
    """
    if p.vortex_ring > 0.0:
        inflow = p.vortex_ring * vortex_inflow(speed, climb, level_square, p)
        climb += where(climb < 0.0, inflow, 0.0)

    static = p.thrust_coefficient * density * speed * speed
    loss = p.inflow_coefficient * density * speed * climb
    return min(max(static - loss, 0.0), 1.5 * static)


@inlined_kernel
def ground_gain(height: float, p: Any) -> float:
    """Return k_GE, the factor of a rotor's thrust `height` m above the ground. Eq. 4.6."""
    far = 4.0 * max(height, 0.5 * p.rotor_radius)
    return far * far / (far * far - p.rotor_radius * p.rotor_radius)


@inlined_kernel
def torque_ratio(
    thrust: float,
    climb: float,
    across: float,
    merit: float,
    profile_growth: float,
    drag_work: float,
    fastest_level: float,
) -> float:
    """Return a rotor's torque relative to that of hover at the same speed. Eq. 4.15–4.17.

    `thrust` is relative to that of hover at this speed, `climb` is a ratio and `across` the square
    of that in the rotor's plane. `merit`: figure of merit. The other arguments are constants of the
    vehicle's record.
    """
    # induced velocity: root of f(ν) = ν² (η² + (ξ + ν)²) - λ², by Halley's method
    steepest = STEEPEST_DESCENT * math.sqrt(thrust)
    steepest = where(climb > steepest, climb, steepest)
    spread = math.sqrt(steepest * steepest + 4.0 * (thrust + across))
    induced = 2.0 * thrust / (steepest + spread + TINY)
    for _ in range(INFLOW_STEPS):
        through = steepest + induced
        square = across + through * through
        error = induced * induced * square - thrust * thrust
        slope = 2.0 * induced * (square + induced * through)
        bend = 2.0 * (square + induced * (4.0 * through + induced))
        induced -= 2.0 * error * slope / (2.0 * slope * slope - error * bend + TINY)

    # work on the air and the blades' drag
    momentum = thrust * (climb + induced)
    more_thrust = thrust - 1.0
    more_drag = more_thrust * (PROFILE_LINEAR + PROFILE_SQUARE * (thrust + 1.0))

    # forward flight: the blades' drag grows, and the vehicle works against the drag in the plane
    flow = min(across, fastest_level * fastest_level)
    forward = flow * (profile_growth * (1.0 + more_drag) - drag_work)
    return 1.0 + merit * (momentum - 1.0) + (1.0 - merit) * more_drag + forward


@inlined_kernel
def rotor_acceleration(
    speed: float, resistance: float, command: float, torques: bool, p: Any
) -> float:
    """Return ϖ̇, rad/s², for a commanded speed (Eq. 4.9) or torque (Eq. 4.10).

    A torque acts against the `resistance` of the air, N m.
    """
    by_speed = (min(max(command, 0.0), p.max_rotor_speed) - speed) * p.per_rotor_lag
    if not any_lane(torques):
        return by_speed
    torque = min(max(command, -p.max_rotor_torque), p.max_rotor_torque)
    by_torque = (torque - resistance) * p.per_rotor_inertia
    stands = (speed <= 0.0) & (by_torque < 0.0)
    return where(torques, where(stands, 0.0, by_torque), by_speed)


@inlined_kernel
def air_at_rotors(x: Any, motion: BodyMotion, p: Any, rotors: Any) -> None:
    """Fill `rotors`: the air's velocity, thrust in free air, torque ratio. Eq. 4.2, 4.3, 4.15."""
    density = motion.density_ratio
    inflow = hover_inflow(p)
    per_static = inflow * inflow / (p.thrust_coefficient * density)
    turning = False
    for j in range(p.rotors):
        point = first_rotor(p) + j
        hub = (p.point_x[point], p.point_y[point], p.point_z[point])
        velocity = add(motion.air_velocity, cross(motion.rates, hub))
        rotors.velocity_x[j] = velocity[0]
        rotors.velocity_y[j] = velocity[1]
        rotors.thrust[j] = 0.0
        rotors.torque_ratio[j] = 1.0
        if any_lane(x.rotor_speed[j] != 0.0):
            turning = True
            turning_rotor(x, j, velocity, density, inflow, per_static, p, rotors)

    # one loop over all rotors becomes vector instructions
    if turning:
        merit = p.figure_of_merit
        growth = p.profile_growth
        work = p.rotor_drag_work
        fastest = p.fastest_level
        count = p.rotors if lanes_of(rotors) > 1 else p.rotor_slots
        for j in range(count):
            rotors.torque_ratio[j] = torque_ratio(
                rotors.thrust_ratio[j],
                rotors.climb_ratio[j],
                rotors.level_square[j],
                merit,
                growth,
                work,
                fastest,
            )


@inlined_kernel
def turning_rotor(
    x: Any,
    j: int,
    velocity: Vector,
    density: float,
    inflow: float,
    per_static: float,
    p: Any,
    rotors: Any,
) -> None:
    """Set thrust and ratios of rotor j in `rotors`; its hub's `velocity` is relative to the air.

    `inflow`: `hover_inflow`; `per_static`: its square per thrust of a rotor of 1 rad/s in hover.
    """
    speed = x.rotor_speed[j]
    level_square = velocity[0] * velocity[0] + velocity[1] * velocity[1]
    thrust = free_thrust(speed, velocity[2], level_square, density, p)
    rotors.thrust[j] = thrust

    # a rotor that does not turn has no torque, whatever its ratio
    per_hover = 1.0 / max(speed * inflow, 1e-9)
    rotors.thrust_ratio[j] = thrust * per_static * per_hover * per_hover
    rotors.climb_ratio[j] = velocity[2] * per_hover
    rotors.level_square[j] = level_square * per_hover * per_hover


@inlined_kernel
def rotor_forces(
    x: Any,
    inputs: Inputs,
    motion: BodyMotion,
    p: Any,
    points: Any,
    solids: Any,
    dx: Any,
    rotors: Any,
    outputs: Any,
) -> tuple[Vector, Vector]:
    """Return (force, moment) of all rotors on the body, N and N m, body axes.

    Set the rotors' accelerations in `dx`. Eq. 4.2–4.17, 7.2.
    """
    air_at_rotors(x, motion, p, rotors)
    force = (0.0, 0.0, 0.0)
    moment = (0.0, 0.0, 0.0)
    density = motion.density_ratio
    power = 0.0
    fastest_down = -1.0
    down = -1.0
    lost = -1.0
    for j in range(p.rotors):
        point = first_rotor(p) + j
        hub = (p.point_x[point], p.point_y[point], p.point_z[point])
        height = points.height[point]
        speed = x.rotor_speed[j]

        # thrust and drag
        thrust = rotors.thrust[j]
        if p.ground_effect:
            thrust *= ground_gain(height, p)
        drag = -p.rotor_drag_coefficient * density * speed
        rotor_force = (drag * rotors.velocity_x[j], drag * rotors.velocity_y[j], thrust)
        outputs.thrust[j] = thrust

        # shaft
        resistance = p.torque_coefficient * density * speed * abs(speed) * rotors.torque_ratio[j]
        command = inputs.controls.rotor[j]
        acceleration = rotor_acceleration(speed, resistance, command, inputs.torques, p)
        shaft_torque = resistance + p.rotor_inertia * acceleration
        outputs.rotor_torque[j] = shaft_torque
        dx.rotor_speed[j] = acceleration
        power += shaft_torque * speed

        force = add(force, rotor_force)
        reaction = (0.0, 0.0, -p.rotor_spin[j] * shaft_torque)
        moment = add(add(moment, cross(hub, rotor_force)), reaction)

        # the fastest rotor that touches something, and one that something solid has broken
        struck = solids.rotor_touches[j] > 0.0
        faster = ((height < 0.0) | struck) & (speed > fastest_down)
        fastest_down = where(faster, speed, fastest_down)
        down = where(faster, float(j), down)
        broken = struck & (speed > p.max_strike_speed * p.max_rotor_speed)
        lost = where(broken, float(j), lost)
    outputs.rotor_power = power
    outputs.rotor_down_speed = fastest_down
    outputs.rotor_down = down
    outputs.rotor_lost = lost
    return force, moment
