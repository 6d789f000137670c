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
from rfly_amphibious.dynamics.body_dynamics import BodyMotion
from rfly_amphibious.vehicle.state_layout import FIRST_ROTOR
from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.lanes import (
    any_lane,
    first_vector,
    plain,
    rough_inverse_root,
    rough_quotient,
    rough_root,
    vectors,
    where,
)
from rfly_common.kernels.record_vectors import column, set_column
from rfly_common.kernels.vectors import Vector, add, cross

STEEPEST_DESCENT = -1.5
"""Climb, relative to the thrust's v_h, below which momentum theory has several solutions."""
FASTEST_FLOW = 1e6
"""Flow, relative to the same, in which a rotor induces nothing that counts."""
LEAST_SQUARE = 1e-20
"""Least square of the velocity that a thrust would induce in hover, m²/s², for divisors."""
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
def inverse_root(square: float, rough: float) -> float:
    """Return 1 / √square to rounding, from a rough one by a step of third order."""
    error = 1.0 - square * rough * rough
    return rough + rough * error * (0.5 + 0.375 * error)


@inlined_kernel
def householder_step(induced: float, climb: float, across: float) -> tuple[float, float]:
    """Return (over, under): less over / under, ν is nearer to the root of Eq. 4.15's f."""
    through = climb + induced
    square = across + through * through
    error = induced * induced * square - 1.0
    slope = induced * (square + induced * through)  # half of f'
    bend = error * (square + induced * (4.0 * through + induced))  # half of f · f''
    third = error * error * (through + induced)  # a twelfth of f² · f‴
    steep = 4.0 * slope * slope
    return 0.5 * error * (steep - bend), slope * (steep - 2.0 * bend) + third


@inlined_kernel
def rough_induced_velocity(climb: float, level: float) -> float:
    """Return the induced velocity ν within 15 %, exactly without flow across the disc. Eq. 4.15.

    Velocities are relative to v_T, which the rotor would induce in hover at its present thrust.
    """
    climb = min(max(climb, STEEPEST_DESCENT), FASTEST_FLOW)
    level = min(level, FASTEST_FLOW)
    descent = 6.0 * min(climb, 0.0) * max(level - 0.7, 0.0)
    spread = rough_root(climb * climb + 4.0 * (1.0 + level * level) - descent)
    return rough_quotient(2.0, climb + spread)


@inlined_kernel
def induced_velocity(rough: float, climb: float, across: float) -> float:
    """Return the velocity ν that a rotor induces, relative to v_T, from a rough one. Eq. 4.15.

    The rotor climbs at `climb` v_T, and the square of its velocity across the disc is `across`
    v_T². ν is the root of f(ν) = ν² (η² + (ξ + ν)²) - 1, by two of Householder's steps of third
    order; only the last has to be exact.
    """
    climb = min(max(climb, STEEPEST_DESCENT), FASTEST_FLOW)
    across = min(across, FASTEST_FLOW * FASTEST_FLOW)
    over, under = householder_step(rough, climb, across)
    induced = rough - rough_quotient(over, under)
    over, under = householder_step(induced, climb, across)
    return induced - over / under


@inlined_kernel
def torque_ratio(
    thrust: float,
    through: float,
    across: float,
    merit: float,
    profile_growth: float,
    drag_work: float,
    fastest_level: float,
) -> float:
    """Return a rotor's torque relative to that of hover at the same speed. Eq. 4.15–4.17.

    `thrust` is relative to that of hover, `through` is the velocity of the air through the disc,
    and `across` the square of that in its plane, as ratios. `merit`: figure of merit. The other
    arguments are constants of the vehicle's record.
    """
    # work on the air and the blades' drag
    momentum = thrust * through
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
    for j in range(vectors(rotors, p.rotors)):
        turning |= any_lane(x.rotor_speed[j] != 0.0)

    # two loops are compiled, each without a branch
    if turning and p.vortex_ring > 0.0:
        air_at_turning_rotors(x, motion, p, True, rotors)
    elif turning:
        air_at_turning_rotors(x, motion, p, False, rotors)
    else:
        for j in range(vectors(rotors, p.rotors)):
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
    for j in range(vectors(rotors, p.rotors)):
        hub = (p.rotor_x[j], p.rotor_y[j], p.rotor_z[j])
        velocity = add(motion.air_velocity, cross(motion.rates, hub))
        across = velocity[0] * velocity[0] + velocity[1] * velocity[1]
        rotors.velocity_x[j] = velocity[0]
        rotors.velocity_y[j] = velocity[1]

        # thrust
        speed = x.rotor_speed[j]
        climb = velocity[2]
        if vortex_ring:
            inflow = p.vortex_ring * vortex_inflow(speed, climb, math.sqrt(across), p)
            climb += where(climb < 0.0, inflow, 0.0)
        thrust = free_thrust(speed, climb, p)
        rotors.thrust[j] = motion.density_ratio * thrust

        # velocity that it induces
        square = thrust * p.inflow_square
        guarded = max(square, LEAST_SQUARE)
        rough = rough_inverse_root(guarded)
        start = rough_induced_velocity(velocity[2] * rough, rough_root(across) * rough)
        per_root = inverse_root(guarded, rough)
        induced = induced_velocity(start, velocity[2] * per_root, across * per_root * per_root)
        through = velocity[2] + induced * guarded * per_root

        # torque
        per_hover = 1.0 / max(speed * p.hover_inflow, 1e-9)
        rotors.torque_ratio[j] = torque_ratio(
            square * per_hover * per_hover,
            through * per_hover,
            across * per_hover * per_hover,
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
    first = first_vector(rotors, FIRST_ROTOR)
    density = motion.density_ratio
    some_touch = False
    for j in range(vectors(rotors, p.rotors)):
        height = points.height[first + j]
        speed = x.rotor_speed[j]

        # thrust and drag
        thrust = rotors.thrust[j]
        if p.ground_effect:
            thrust *= ground_gain(height, p)
        drag = -p.rotor_drag_coefficient * density * speed
        rotor_force = (drag * rotors.velocity_x[j], drag * rotors.velocity_y[j], thrust)
        set_column(rotors.force, j, rotor_force)
        outputs.thrust[j] = thrust

        # shaft
        resistance = p.torque_coefficient * density * speed * abs(speed) * rotors.torque_ratio[j]
        command = inputs.controls.rotor[j]
        acceleration = rotor_acceleration(speed, resistance, command, inputs.torques, p)
        shaft_torque = resistance + p.rotor_inertia * acceleration
        outputs.rotor_torque[j] = shaft_torque
        dx.rotor_speed[j] = acceleration
        rotors.power[j] = shaft_torque * speed
        rotors.momentum[j] = p.rotor_inertia * p.rotor_spin[j] * speed

        turned = cross((p.rotor_x[j], p.rotor_y[j], p.rotor_z[j]), rotor_force)
        reaction = (0.0, 0.0, -p.rotor_spin[j] * shaft_torque)
        set_column(rotors.moment, j, add(turned, reaction))
        some_touch |= any_lane((height < 0.0) | (solids.rotor_touches[j] > 0.0))

    # sums in the same order for one vehicle and for a batch
    each = plain(rotors)
    force = (0.0, 0.0, 0.0)
    moment = (0.0, 0.0, 0.0)
    power = 0.0
    for j in range(p.rotors):
        force = add(force, column(each.force, j))
        moment = add(moment, column(each.moment, j))
        power += each.power[j]
    outputs.rotor_power = power
    outputs.rotor_down_speed = -1.0
    outputs.rotor_down = -1.0
    outputs.rotor_lost = -1.0
    if some_touch:
        rotor_touches(plain(x), p, plain(points), plain(solids), outputs)
    return force, moment


@inlined_kernel
def rotor_touches(x: Any, p: Any, points: Any, solids: Any, outputs: Any) -> None:
    """Find the fastest rotor that touches something, and one that something solid has broken."""
    fastest_down = -1.0
    down = -1.0
    lost = -1.0
    for j in range(p.rotors):
        speed = x.rotor_speed[j]
        struck = solids.rotor_touches[j] > 0.0
        faster = ((points.height[FIRST_ROTOR + j] < 0.0) | struck) & (speed > fastest_down)
        fastest_down = where(faster, speed, fastest_down)
        down = where(faster, float(j), down)
        broken = struck & (speed > p.max_strike_speed * p.max_rotor_speed)
        lost = where(broken, float(j), lost)
    outputs.rotor_down_speed = fastest_down
    outputs.rotor_down = down
    outputs.rotor_lost = lost
