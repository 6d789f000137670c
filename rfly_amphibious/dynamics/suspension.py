# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Struts, and what wheels pass to the body through them. docs/model, sections 6 and 7.1."""

from __future__ import annotations

from typing import Any

from rfly_amphibious.dynamics.arguments import Inputs
from rfly_amphibious.dynamics.body_dynamics import BodyMotion
from rfly_amphibious.dynamics.tyres import tyre_force
from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.lanes import other_side, plain, vectors, where
from rfly_common.kernels.record_vectors import column, set_column
from rfly_common.kernels.vectors import Vector, add, cross, dot, scaled


@inlined_kernel
def strut_force(x: Any, i: int, p: Any, outputs: Any) -> float:
    """Return the force of strut i on the body, F_s, N, positive upwards. Eq. 6.2.

    Set those of its spring and its damper in `outputs`.
    """
    travel = x.strut[i]
    rate = x.strut_rate[i]

    # spring and damper
    spring = max(0.0, p.spring_load[i] + p.spring[i] * travel)
    damper = where(rate > 0.0, p.bump_damping, p.rebound_damping) * rate
    outputs.spring_force[i] = spring
    outputs.damper_force[i] = damper
    force = spring + damper

    # end stops only push
    bump = max(0.0, p.bump_stop_stiffness * (travel - p.bump_stop) + p.stop_damping * rate)
    rebound = min(0.0, p.rebound_stop_stiffness * (travel - p.rebound_stop) + p.stop_damping * rate)
    rebound = where(travel < p.rebound_stop, rebound, 0.0)
    force += where(travel > p.bump_stop, bump, rebound)

    # anti-roll bar
    return force + p.anti_roll[i] * (travel - other_side(outputs, x.strut, i))


@inlined_kernel
def hub_acceleration(hub: Vector, strut_rate: float, rates: Vector) -> Vector:
    """Return b, m/s², body axes. Eq. 7.5.

    It is the part of a hub's acceleration that depends on neither the acceleration of the body's
    origin nor ω̇ nor s̈.
    """
    centripetal = add(scaled(dot(rates, hub), rates), scaled(-dot(rates, rates), hub))
    coriolis = (2.0 * strut_rate * rates[1], -2.0 * strut_rate * rates[0], 0.0)
    return add(centripetal, coriolis)


@inlined_kernel
def wheel_forces(
    x: Any,
    inputs: Inputs,
    motion: BodyMotion,
    p: Any,
    wheels: Any,
    solids: Any,
    dx: Any,
    outputs: Any,
) -> tuple[Vector, Vector]:
    """Return (ΣΦ, Σ ρ × Φ + C): what all wheels pass to the body, N and N m, body axes.

    Set the rates of the wheels' spins and of the struts in `dx`; of the struts' accelerations only
    what does not depend on the body's (Eq. 7.8). Eq. 5.13–5.15, 6.2, 7.3, 7.5, 7.6.
    """
    gravity = motion.gravity
    mass = p.mass_unsprung
    for i in range(vectors(wheels, p.wheels)):
        hub = column(wheels.hub, i)
        axle = column(wheels.axle, i)
        motor_torque = x.drive_torque[i] + inputs.brake_acting[i]
        tyre, couple = tyre_force(x, i, motor_torque, p, wheels, dx, outputs)
        strut = strut_force(x, i, p, outputs)
        own = hub_acceleration(hub, x.strut_rate[i], motion.rates)

        # the wheel passes on all but the force along the strut, and no moment about its axle
        passed = (
            tyre[0] + mass * (gravity[0] - own[0]),
            tyre[1] + mass * (gravity[1] - own[1]),
            strut,
        )
        couple = add(couple, scaled(-dot(couple, axle) - motor_torque, axle))
        set_column(wheels.force, i, passed)
        set_column(wheels.moment, i, add(cross(hub, passed), couple))
        set_column(wheels.momentum, i, scaled(p.wheel_inertia * x.wheel_speed[i], axle))

        dx.strut[i] = x.strut_rate[i]
        dx.strut_rate[i] = (
            gravity[2] + (tyre[2] + solids.side_push[i] - strut) * p.per_mass_unsprung - own[2]
        )
        outputs.strut_force[i] = strut

    # sums in the same order for one vehicle and for a batch
    each = plain(wheels)
    force = (0.0, 0.0, 0.0)
    moment = (0.0, 0.0, 0.0)
    for i in range(p.wheels):
        force = add(force, column(each.force, i))
        moment = add(moment, column(each.moment, i))
    return force, moment
