"""Struts, and what wheels pass to the body through them. docs/model, sections 6 and 7.1."""

from __future__ import annotations

from typing import Any

from rfly_amphibious.dynamics.body_motion import BodyMotion
from rfly_amphibious.dynamics.tyres import row, tyre_force
from rfly_amphibious.dynamics.wheel_columns import drive_of, state_of
from rfly_amphibious.dynamics.wheels import wheel_count
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.lanes import where
from rfly_common.kernels.vectors import Vector, add, cross, dot, scaled


@inlined_kernel
def strut_force(x: Any, i: int, p: Any) -> float:
    """F_s, N: spring, damper, stops and anti-roll bar of wheel i; positive pushes the body up. Eq.
    6.2.
    """
    strut = x[state_of(at.STRUT, i, p.rotors)]
    rate = x[state_of(at.STRUT_RATE, i, p.rotors)]
    other = x[state_of(at.STRUT, i ^ 1, p.rotors)]
    force = max(0.0, p.spring_load[i] + p.spring[i] * strut)
    force += where(rate > 0.0, p.bump_damping, p.rebound_damping) * rate
    bump = max(0.0, p.bump_stop_stiffness * (strut - p.bump_stop) + p.stop_damping * rate)
    rebound = min(0.0, p.rebound_stop_stiffness * (strut - p.rebound_stop) + p.stop_damping * rate)
    force += where(strut > p.bump_stop, bump, where(strut < p.rebound_stop, rebound, 0.0))
    return force + p.anti_roll[i] * (strut - other)


@inlined_kernel
def hub_acceleration(hub: Vector, strut_rate: float, rates: Vector) -> Vector:
    """b, m/s², body axes: of a hub beside the acceleration of the body's origin, ω̇ × ρ and s̈. Eq.
    7.5.
    """
    centripetal = add(scaled(dot(rates, hub), rates), scaled(-dot(rates, rates), hub))
    return add(centripetal, (2.0 * strut_rate * rates[1], -2.0 * strut_rate * rates[0], 0.0))


@inlined_kernel
def wheel_forces(
    x: Any, inputs: Any, motion: BodyMotion, p: Any, dx: Any, scratch: Any
) -> tuple[Vector, Vector]:
    """(ΣΦ, Σ ρ × Φ + C): what all wheels pass to the body, N and N m, body axes. Eq. 5.13–5.15,
    6.2, 7.3, 7.5, 7.6.

    Their spins, and of the struts' accelerations what does not depend on the body's (Eq. 7.8) ->
    dx.
    """
    force = (0.0, 0.0, 0.0)
    moment = (0.0, 0.0, 0.0)
    gravity = motion.gravity
    mass = p.mass_unsprung
    for i in range(wheel_count(p)):
        moving = state_of(at.STRUT_RATE, i, p.rotors)
        hub = row(scratch.hub, i)
        axle = row(scratch.axle, i)
        strut_rate = x[moving]
        motor_torque = x[drive_of(i, p.rotors)] + inputs.brake_acting[i]
        tyre, couple = tyre_force(x, i, motor_torque, p, dx, scratch)
        strut = strut_force(x, i, p)
        apart = hub_acceleration(hub, strut_rate, motion.rates)
        passed = (
            tyre[0] + mass * (gravity[0] - apart[0]),
            tyre[1] + mass * (gravity[1] - apart[1]),
            strut,
        )
        couple = add(couple, scaled(-dot(couple, axle) - motor_torque, axle))
        force = add(force, passed)
        moment = add(add(moment, cross(hub, passed)), couple)
        dx[state_of(at.STRUT, i, p.rotors)] = strut_rate
        dx[moving] = gravity[2] + (tyre[2] - strut) / mass - apart[2]
        scratch.strut_force[i] = strut
    return force, moment
