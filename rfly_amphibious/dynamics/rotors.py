"""Rotors: thrust with inflow and ground effect, drag, torque and speed. docs/model, section 4."""

from __future__ import annotations

import math
from typing import Any

from rfly_amphibious.dynamics.body_motion import BodyMotion
from rfly_amphibious.dynamics.wheels import first_rotor
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.lanes import any_lane, where
from rfly_common.kernels.vectors import Vector, add, cross


@inlined_kernel
def vortex_inflow(speed: float, climb: float, level: float, p: Any) -> float:
    """Induced velocity beyond that of hover, m/s, of a rotor at `speed` (rad/s) that moves at
    `climb` (m/s, < 0) along its axis and at `level` (m/s) in its plane. Eq. 4.14.
    """
    hover = (
        speed * math.sqrt(p.thrust_coefficient / (2.0 * math.pi * p.air_density)) / p.rotor_radius
    )
    sink = where(climb > -2.0 * hover, climb / hover, 0.0)
    more = sink * (-1.125 + sink * (-1.372 + sink * (-1.718 - 0.655 * sink)))
    return max(hover - level, 0.0) * more


@inlined_kernel
def rotor_thrust(
    speed: float, climb: float, level: float, height: float, density: float, p: Any
) -> float:
    """T, N, of a rotor at `speed` (rad/s) that moves at `climb` (m/s) along its axis and at `level`
    (m/s) in its plane, `height` m above the ground.

    Eq. 4.3, 4.6; `density` is k_ρ.
    """
    if p.vortex_ring > 0.0:
        climb += where(climb < 0.0, p.vortex_ring * vortex_inflow(speed, climb, level, p), 0.0)
    static = p.thrust_coefficient * density * speed * speed
    inflow = p.inflow_coefficient * density * speed * climb
    thrust = min(max(static - inflow, 0.0), 1.5 * static)
    if p.ground_effect:
        nearness = p.rotor_radius / (4.0 * max(height, 0.5 * p.rotor_radius))
        thrust /= 1.0 - nearness * nearness
    return thrust


@inlined_kernel
def rotor_acceleration(
    speed: float, resistance: float, command: float, torques: bool, p: Any
) -> float:
    """ϖ̇, rad/s², for a commanded speed (Eq. 4.9), or torque (Eq. 4.10) against the `resistance` of
    the air.
    """
    by_speed = (min(max(command, 0.0), p.max_rotor_speed) - speed) / p.rotor_lag
    if not any_lane(torques):
        return by_speed
    torque = min(max(command, -p.max_rotor_torque), p.max_rotor_torque)
    acceleration = (torque - resistance) / p.rotor_inertia
    return where(torques, where((speed <= 0.0) & (acceleration < 0.0), 0.0, acceleration), by_speed)


@inlined_kernel
def rotor_forces(
    x: Any, inputs: Any, motion: BodyMotion, p: Any, dx: Any, scratch: Any
) -> tuple[Vector, Vector]:
    """(force, moment) of all rotors on the body, N and N m, body axes; their accelerations -> dx.
    Eq. 4.2–4.11, 7.2.
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
        speed = x[at.ROTOR_SPEED + j]
        height = scratch.point_height[point]
        velocity = add(motion.air_velocity, cross(motion.rates, hub))
        level = math.hypot(velocity[0], velocity[1]) if p.vortex_ring > 0.0 else 0.0
        thrust = rotor_thrust(speed, velocity[2], level, height, density, p)
        drag = -p.rotor_drag_coefficient * density * speed
        rotor_force = (drag * velocity[0], drag * velocity[1], thrust)
        resistance = p.torque_coefficient * density * speed * abs(speed)
        acceleration = rotor_acceleration(
            speed, resistance, inputs.command[at.ROTOR_COMMAND + j], inputs.torques, p
        )
        shaft_torque = resistance + p.rotor_inertia * acceleration
        force = add(force, rotor_force)
        moment = add(
            add(moment, cross(hub, rotor_force)), (0.0, 0.0, -p.rotor_spin[j] * shaft_torque)
        )
        dx[at.ROTOR_SPEED + j] = acceleration
        scratch.thrust[j] = thrust
        power += shaft_torque * speed
        struck = scratch.rotor_touches[j] > 0.0
        faster = ((height < 0.0) | struck) & (speed > fastest_down)
        fastest_down = where(faster, speed, fastest_down)
        down = where(faster, float(j), down)
        lost = where(struck & (speed > p.max_strike_speed * p.max_rotor_speed), float(j), lost)
    scratch.rotor_power = power
    scratch.rotor_down_speed = fastest_down
    scratch.rotor_down = down
    scratch.rotor_lost = lost
    return force, moment
