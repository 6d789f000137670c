# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rotors: thrust with inflow and ground effect, drag, torque and speed. docs/model, section 4."""

from __future__ import annotations

import math
from typing import Any

from rfly_amphibious.dynamics.arguments import Inputs
from rfly_amphibious.dynamics.body_motion import BodyMotion
from rfly_amphibious.dynamics.body_points import first_rotor
from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.lanes import any_lane, where
from rfly_common.kernels.vectors import Vector, add, cross


@inlined_kernel
def vortex_inflow(speed: float, climb: float, level: float, p: Any) -> float:
    """Return the induced velocity of a rotor beyond that of hover, m/s. Eq. 4.14.

    The rotor turns at `speed` (rad/s) and moves at `climb` (m/s, < 0) along its axis and at `level`
    (m/s) in its plane.
    """
    thrust_speed = math.sqrt(p.thrust_coefficient / (2.0 * math.pi * p.air_density))
    hover = speed * thrust_speed / p.rotor_radius
    sink = where(climb > -2.0 * hover, climb / hover, 0.0)
    more = sink * (-1.125 + sink * (-1.372 + sink * (-1.718 - 0.655 * sink)))
    return max(hover - level, 0.0) * more


@inlined_kernel
def rotor_thrust(
    speed: float, climb: float, level: float, height: float, density: float, p: Any
) -> float:
    """Return the thrust of a rotor, T, N. Eq. 4.3, 4.6.

    The rotor turns at `speed` (rad/s), moves at `climb` (m/s) along its axis and at `level` (m/s)
    in its plane, and is `height` m above the ground. `density` is k_ρ.
    """
    if p.vortex_ring > 0.0:
        inflow = p.vortex_ring * vortex_inflow(speed, climb, level, p)
        climb += where(climb < 0.0, inflow, 0.0)

    static = p.thrust_coefficient * density * speed * speed
    loss = p.inflow_coefficient * density * speed * climb
    thrust = min(max(static - loss, 0.0), 1.5 * static)
    if p.ground_effect:
        nearness = p.rotor_radius / (4.0 * max(height, 0.5 * p.rotor_radius))
        thrust /= 1.0 - nearness * nearness
    return thrust


@inlined_kernel
def rotor_acceleration(
    speed: float, resistance: float, command: float, torques: bool, p: Any
) -> float:
    """Return ϖ̇, rad/s², for a commanded speed (Eq. 4.9) or torque (Eq. 4.10).

    A torque acts against the `resistance` of the air, N m.
    """
    by_speed = (min(max(command, 0.0), p.max_rotor_speed) - speed) / p.rotor_lag
    if not any_lane(torques):
        return by_speed
    torque = min(max(command, -p.max_rotor_torque), p.max_rotor_torque)
    by_torque = (torque - resistance) / p.rotor_inertia
    stands = (speed <= 0.0) & (by_torque < 0.0)
    return where(torques, where(stands, 0.0, by_torque), by_speed)


@inlined_kernel
def rotor_forces(
    x: Any,
    inputs: Inputs,
    motion: BodyMotion,
    p: Any,
    points: Any,
    solids: Any,
    dx: Any,
    outputs: Any,
) -> tuple[Vector, Vector]:
    """Return (force, moment) of all rotors on the body, N and N m, body axes.

    Set the rotors' accelerations in `dx`. Eq. 4.2–4.11, 7.2.
    """
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
        velocity = add(motion.air_velocity, cross(motion.rates, hub))
        level = math.hypot(velocity[0], velocity[1]) if p.vortex_ring > 0.0 else 0.0
        thrust = rotor_thrust(speed, velocity[2], level, height, density, p)
        drag = -p.rotor_drag_coefficient * density * speed
        rotor_force = (drag * velocity[0], drag * velocity[1], thrust)
        outputs.thrust[j] = thrust

        # shaft
        resistance = p.torque_coefficient * density * speed * abs(speed)
        command = inputs.controls.rotor[j]
        acceleration = rotor_acceleration(speed, resistance, command, inputs.torques, p)
        shaft_torque = resistance + p.rotor_inertia * acceleration
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
