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
INFLOW_STEPS = 2
"""Steps after which the induced velocity is exact to rounding. Eq. 4.15."""
TINY = 1e-300
"""Number that keeps divisors from 0."""
PROFILE_LINEAR = -0.0216 * 0.1 / 0.01054
"""Share of the blades' drag in hover that grows with the angle of attack. Eq. 4.17."""
PROFILE_SQUARE = 0.400 * 0.1**2 / 0.01054
"""Share of the blades' drag in hover that grows with its square. Eq. 4.17."""


@inlined_kernel
def vortex_inflow(speed: float, climb: float, level: float, p: Any) -> float:
    """Return the induced velocity of a rotor beyond that of hover, m/s. Eq. 4.14.

    The rotor turns at `speed` (rad/s) and moves at `climb` (m/s, < 0) along its axis and at `level`
    (m/s) in its plane.
    """
    hover = speed * p.hover_inflow
    sink = where(climb > -2.0 * hover, climb / hover, 0.0)
    more = sink * (-1.125 + sink * (-1.372 + sink * (-1.718 - 0.655 * sink)))
    return max(hover - level, 0.0) * more


@inlined_kernel
def free_thrust(speed: float, climb: float, p: Any) -> float:
    """Return the thrust of a rotor far from the ground at k_ρ = 1, N. Eq. 4.3.

    The rotor turns at `speed` (rad/s) and moves at `climb` (m/s) along its axis.
    """
    static = p.thrust_coefficient * speed * speed
    loss = p.inflow_coefficient * speed * climb
    return min(max(static - loss, 0.0), 1.5 * static)


@inlined_kernel
def ground_gain(height: float, p: Any) -> float:
    """Return k_GE, the factor of a rotor's thrust `height` m above the ground. Eq. 4.6."""
    far = 4.0 * max(height, 0.5 * p.rotor_radius)
    return far * far / (far * far - p.rotor_radius * p.rotor_radius)


@inlined_kernel
def induced_velocity(root: float, climb: float, level: float) -> float:
    """Return the velocity that a rotor induces, a ratio. Eq. 4.15.

    `root` is the root of the thrust, relative to that of hover at this speed; `climb` and `level`
    are ratios. It is the root of f(ν) = ν² (η² + (ξ + ν)²) - λ² by Householder's method of third
    order. The first value, within 15 % of it, is exact without flow across the disc.
    """
    thrust = root * root
    across = level * level
    climb = max(climb, STEEPEST_DESCENT * root)
    excess = 4.0 * (thrust + across) - 6.0 * min(climb, 0.0) * max(level - 0.7 * root, 0.0)
    induced = 2.0 * thrust / (climb + math.sqrt(climb * climb + excess) + TINY)
    for _ in range(INFLOW_STEPS):
        through = climb + induced
        square = across + through * through
        error = induced * induced * square - thrust * thrust
        slope = induced * (square + induced * through)  # half of f'
        bend = error * (square + induced * (4.0 * through + induced))  # half of f · f''
        third = error * error * (through + induced) + TINY  # a twelfth of f² · f‴
        steep = 4.0 * slope * slope
        induced -= 0.5 * error * (steep - bend) / (slope * (steep - 2.0 * bend) + third)
    return induced


@inlined_kernel
def torque_ratio(
    root: float,
    climb: float,
    level: float,
    merit: float,
    profile_growth: float,
    drag_work: float,
    fastest_level: float,
) -> float:
    """Return a rotor's torque relative to that of hover at the same speed. Eq. 4.15–4.17.

    `root`, `climb` and `level` as in `induced_velocity`. `merit`: figure of merit. The other
    arguments are constants of the vehicle's record.
    """
    thrust = root * root
    across = level * level
    induced = induced_velocity(root, climb, level)

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
def air_at_rotors(x: Any, motion: BodyMotion, p: Any, rotors: Any) -> Any:
    """Fill and return `rotors`: the air's velocity, thrust in free air, torque ratio.

    Eq. 4.2, 4.3, 4.15.
    """
    turning = False
    for j in range(p.rotors):
        turning |= any_lane(x.rotor_speed[j] != 0.0)

    # two loops are compiled, each without a branch
    if turning and p.vortex_ring > 0.0:
        air_at_turning_rotors(x, motion, p, True, rotors)
    elif turning:
        air_at_turning_rotors(x, motion, p, False, rotors)
    else:
        for j in range(p.rotors):
            rotors.velocity_x[j] = 0.0
            rotors.velocity_y[j] = 0.0
            rotors.thrust[j] = 0.0
            rotors.torque_ratio[j] = 1.0
    return rotors


@inlined_kernel
def air_at_turning_rotors(
    x: Any, motion: BodyMotion, p: Any, vortex_ring: bool, rotors: Any
) -> None:
    """Fill `rotors` where some rotors turn; those that do not have some torque ratio."""
    merit = p.figure_of_merit
    growth = p.profile_growth
    work = p.rotor_drag_work
    fastest = p.fastest_level

    # one loop over all rotors becomes vector instructions
    for j in range(p.rotors if lanes_of(rotors) > 1 else p.rotor_slots):
        hub = (p.rotor_x[j], p.rotor_y[j], p.rotor_z[j])
        velocity = add(motion.air_velocity, cross(motion.rates, hub))
        level = math.sqrt(velocity[0] * velocity[0] + velocity[1] * velocity[1])
        rotors.velocity_x[j] = velocity[0]
        rotors.velocity_y[j] = velocity[1]

        # thrust
        speed = x.rotor_speed[j]
        climb = velocity[2]
        if vortex_ring:
            inflow = p.vortex_ring * vortex_inflow(speed, climb, level, p)
            climb += where(climb < 0.0, inflow, 0.0)
        thrust = free_thrust(speed, climb, p)
        rotors.thrust[j] = motion.density_ratio * thrust

        # torque
        per_hover = 1.0 / max(speed * p.hover_inflow, 1e-9)
        rotors.torque_ratio[j] = torque_ratio(
            math.sqrt(thrust * p.inflow_square) * per_hover,
            velocity[2] * per_hover,
            level * per_hover,
            merit,
            growth,
            work,
            fastest,
        )


@inlined_kernel
def rotor_forces(
    x: Any,
    inputs: Inputs,
    motion: BodyMotion,
    p: Any,
    points: Any,
    solids: Any,
    rotors: Any,
    dx: Any,
    outputs: Any,
) -> tuple[Vector, Vector]:
    """Return (force, moment) of all rotors on the body, N and N m, body axes.

    Set the rotors' accelerations in `dx`. Eq. 4.2–4.17, 7.2.
    """
    force = (0.0, 0.0, 0.0)
    moment = (0.0, 0.0, 0.0)
    density = motion.density_ratio
    power = 0.0
    fastest_down = -1.0
    down = -1.0
    lost = -1.0
    for j in range(p.rotors):
        hub = (p.rotor_x[j], p.rotor_y[j], p.rotor_z[j])
        height = points.height[first_rotor(p) + j]
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
