# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The vehicle's equations of motion; `stepping` integrates them. docs/model, section 7.

In this module and those of its parts `x` is the record of a state and `dx` that of its derivative,
`p` the vehicle's parameters (`vehicle_record`), `ground` a `ground.GroundGrid`, and `obstacles` an
`obstacles.Obstacles` or None, for which numba compiles code without them. `points`, `solids`,
`wheels`, `rotors` and `outputs` are results of one evaluation (`records`). No fastmath: a vehicle
alone and one of a batch get the same bits.
"""

from __future__ import annotations

from typing import Any

from rfly_amphibious.dynamics.arguments import Inputs
from rfly_amphibious.dynamics.body_dynamics import (
    BodyMotion,
    body_contact_forces,
    body_motion,
    place_points,
    weight_and_drag,
)
from rfly_amphibious.dynamics.obstacle_contacts import no_contacts, obstacle_contacts
from rfly_amphibious.dynamics.rotors import air_at_rotors, rotor_forces
from rfly_amphibious.dynamics.suspension import wheel_forces
from rfly_amphibious.dynamics.tyres import wheel_contacts
from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_common.kernels.lanes import plain, vectors, where
from rfly_common.kernels.record_vectors import (
    column,
    quaternion,
    quaternion_rate,
    set_vector,
    vector,
)
from rfly_common.kernels.vectors import Vector, add, cross, rotated, subtract


@kernel
def state_derivative(
    x: Any, inputs: Inputs, p: Any, ground: Any, obstacles: Any, since: float, dx: Any, results: Any
) -> None:
    """Set ẋ of the state x in `dx`, and the results of the evaluation in `results`.

    The obstacles were `since` seconds ago where they are said to be. docs/model, section 7.3.
    """
    # where the body is and what it touches; air first: a processor solves it beside the rest
    motion = body_motion(x, inputs.wind, p)
    rotors = air_at_rotors(x, motion, p, results.rotors)
    points = place_points(x, motion.rotation, p, ground, results.points)
    solids = no_contacts(p, results.solids)
    solid_force = (0.0, 0.0, 0.0)
    solid_moment = (0.0, 0.0, 0.0)
    if obstacles is not None:
        solid_force, solid_moment = obstacle_contacts(
            plain(x), motion, plain(p), obstacles, since, plain(points), plain(solids)
        )
    wheels = wheel_contacts(x, motion, p, ground, obstacles, points, solids, dx, results.wheels)

    # forces
    outputs = results.outputs
    force, moment = weight_and_drag(motion, p)
    wheel_force, wheel_moment = wheel_forces(x, inputs, motion, p, wheels, solids, dx, outputs)
    rotor_force, rotor_moment = rotor_forces(
        x, inputs, motion, p, points, solids, rotors, dx, outputs
    )
    contact_force, contact_moment = body_contact_forces(motion, p, ground, points, solids, outputs)
    force = add(add(force, wheel_force), add(rotor_force, contact_force))
    moment = add(add(moment, wheel_moment), add(rotor_moment, contact_moment))
    if obstacles is not None:
        force = add(force, solid_force)
        moment = add(moment, solid_moment)

    # accelerations
    spin = angular_momentum(motion.rates, p, plain(wheels), plain(rotors))
    moment = add(moment, cross(spin, motion.rates))
    acceleration, angular_acceleration = body_accelerations(force, moment, p, plain(wheels))
    set_vector(outputs.specific_force, subtract(acceleration, motion.gravity))
    body_rates(x, motion, acceleration, angular_acceleration, p, wheels, dx)
    actuator_rates(x, inputs.controls, p, dx)


@inlined_kernel
def inertia(p: Any) -> tuple[float, float, float, float, float, float]:
    """Return the body's moments and products of inertia: xx, yy, zz, xy, xz, yz, kg m²."""
    j = p.inertia
    return j[0], j[1], j[2], j[3], j[4], j[5]


@inlined_kernel
def angular_momentum(rates: Vector, p: Any, wheels: Any, rotors: Any) -> Vector:
    """Return J ω + H, N m s, body axes. Eq. 7.4, 7.6.

    It is that of the body, and of wheels and rotors about their own axes.
    """
    jxx, jyy, jzz, jxy, jxz, jyz = inertia(p)
    hx = jxx * rates[0] + jxy * rates[1] + jxz * rates[2]
    hy = jxy * rates[0] + jyy * rates[1] + jyz * rates[2]
    hz = jxz * rates[0] + jyz * rates[1] + jzz * rates[2]
    for i in range(p.wheels):
        hx += wheels.momentum[0, i]
        hy += wheels.momentum[1, i]
    for j in range(p.rotors):
        hz += rotors.momentum[j]
    return hx, hy, hz


@inlined_kernel
def body_accelerations(force: Vector, moment: Vector, p: Any, wheels: Any) -> tuple[Vector, Vector]:
    """Return (A, ω̇), m/s² and rad/s², body axes: the solution of Eq. 7.6 by Eq. 7.7."""
    # sums over the hubs
    sum_x = sum_y = sum_z = 0.0
    sum_xx = sum_yy = sum_zz = 0.0
    sum_xz = sum_yz = 0.0
    for i in range(p.wheels):
        x, y, z = column(wheels.hub, i)
        sum_x = sum_x + x
        sum_y = sum_y + y
        sum_z = sum_z + z
        sum_xx = sum_xx + x * x
        sum_yy = sum_yy + y * y
        sum_zz = sum_zz + z * z
        sum_xz = sum_xz + x * z
        sum_yz = sum_yz + y * z

    # symmetric matrix and right side of the equations for ω̇
    mass = p.mass_unsprung
    share = mass * p.per_mass
    jxx, jyy, jzz, jxy, jxz, jyz = inertia(p)
    a00 = jxx + mass * (sum_zz - share * sum_z * sum_z)
    a11 = jyy + mass * (sum_zz - share * sum_z * sum_z)
    a22 = jzz + mass * (sum_xx + sum_yy - share * (sum_x * sum_x + sum_y * sum_y))
    a01 = jxy
    a02 = jxz - mass * (sum_xz - share * sum_x * sum_z)
    a12 = jyz - mass * (sum_yz - share * sum_y * sum_z)
    mx = moment[0] + share * sum_z * force[1]
    my = moment[1] - share * sum_z * force[0]
    mz = moment[2] + share * (sum_y * force[0] - sum_x * force[1])

    # Cramer's rule
    c00 = a11 * a22 - a12 * a12
    c01 = a02 * a12 - a01 * a22
    c02 = a01 * a12 - a02 * a11
    c11 = a00 * a22 - a02 * a02
    c12 = a01 * a02 - a00 * a12
    c22 = a00 * a11 - a01 * a01
    per_determinant = 1.0 / (a00 * c00 + a01 * c01 + a02 * c02)
    turn_x = (c00 * mx + c01 * my + c02 * mz) * per_determinant
    turn_y = (c01 * mx + c11 * my + c12 * mz) * per_determinant
    turn_z = (c02 * mx + c12 * my + c22 * mz) * per_determinant

    acceleration = (
        force[0] * p.per_mass - share * (sum_z * turn_y - sum_y * turn_z),
        force[1] * p.per_mass - share * (sum_x * turn_z - sum_z * turn_x),
        force[2] * p.per_mass_sprung,
    )
    return acceleration, (turn_x, turn_y, turn_z)


@inlined_kernel
def body_rates(
    x: Any,
    motion: BodyMotion,
    acceleration: Vector,
    angular_acceleration: Vector,
    p: Any,
    wheels: Any,
    dx: Any,
) -> None:
    """Set the rates of position, velocity, attitude, angular velocity and struts in `dx`.

    Eq. 7.8–7.10.
    """
    set_vector(dx.position, vector(x.velocity))
    set_vector(dx.velocity, rotated(motion.rotation, acceleration))
    set_vector(dx.rates, angular_acceleration)
    turning = quaternion_rate(quaternion(x.quaternion), motion.rates)
    for k in range(4):
        dx.quaternion[k] = turning[k]
    for i in range(vectors(wheels, p.wheels)):
        at_hub = cross(angular_acceleration, column(wheels.hub, i))
        rate = dx.strut_rate[i] - (acceleration[2] + at_hub[2])
        dx.strut_rate[i] = where(p.has_wheel[i] > 0.0, rate, 0.0)


@inlined_kernel
def actuator_rates(x: Any, controls: Any, p: Any, dx: Any) -> None:
    """Set the rates of steering and its trims (Eq. 2.1) and of drive torques (Eq. 2.2) in `dx`."""
    steering = min(max(controls.steering, -p.max_steering), p.max_steering)
    rate = (steering - x.steering) * p.per_steering_lag
    dx.steering = min(max(rate, -p.max_steering_rate), p.max_steering_rate)
    for i in range(vectors(x, p.wheels)):
        # trims of steered wheels
        most = abs(p.steering_sign[i]) * p.max_steering
        trim = min(max(controls.steering_trim[i], -most), most)
        rate = (trim - x.steering_trim[i]) * p.per_steering_lag
        dx.steering_trim[i] = min(max(rate, -p.max_steering_rate), p.max_steering_rate)

        # drive torques
        at_full_power = p.drive_power / max(abs(x.wheel_speed[i]), 1e-3)
        limit = p.driven[i] * min(p.max_drive_torque, at_full_power)
        torque = min(max(controls.drive_torque[i], -limit), limit)
        dx.drive_torque[i] = (torque - x.drive_torque[i]) * p.per_drive_lag
