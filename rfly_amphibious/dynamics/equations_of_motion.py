"""The vehicle's equations of motion, compiled; `stepping.py` integrates them.
docs/model, section 7.

In this module and those of its parts `x` is a state and `dx` its derivative in the order of
`state_layout`, `p` a `vehicle_record`, `ground` a `ground.GroundGrid`, `obstacles` an
`obstacles.Obstacles` or None, for which numba compiles code without them, `scratch` a record of
`scratch.new_scratch`. No fastmath: a vehicle alone and one of a batch get the same bits.
"""

from __future__ import annotations

from typing import Any

from rfly_amphibious.dynamics.arguments import Inputs
from rfly_amphibious.dynamics.body_forces import body_contact_forces, weight_and_drag
from rfly_amphibious.dynamics.body_motion import BodyMotion, body_motion, place_points
from rfly_amphibious.dynamics.obstacle_contacts import obstacle_contacts
from rfly_amphibious.dynamics.rotors import rotor_forces
from rfly_amphibious.dynamics.suspension import wheel_forces
from rfly_amphibious.dynamics.tyres import wheel_contacts
from rfly_amphibious.dynamics.wheel_columns import command_of, drive_of, state_of
from rfly_amphibious.dynamics.wheels import wheel_count
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_common.kernels.vectors import Vector, add, cross, rotated


@kernel
def state_derivative(
    x: Any, inputs: Inputs, p: Any, ground: Any, obstacles: Any, dx: Any, scratch: Any
) -> None:
    """ẋ of the state x -> dx, and what was met on the way -> scratch. docs/model, section 7.3."""
    motion = body_motion(x, inputs.wind, p)
    place_points(x, motion.rotation, p, ground, scratch)
    solid_force = (0.0, 0.0, 0.0)
    solid_moment = (0.0, 0.0, 0.0)
    if obstacles is not None:
        solid_force, solid_moment = obstacle_contacts(x, motion, p, obstacles, scratch)
    wheel_contacts(x, motion, p, ground, obstacles, dx, scratch)
    force, moment = weight_and_drag(motion, p)
    wheel_force, wheel_moment = wheel_forces(x, inputs, motion, p, dx, scratch)
    rotor_force, rotor_moment = rotor_forces(x, inputs, motion, p, dx, scratch)
    contact_force, contact_moment = body_contact_forces(motion, p, ground, scratch)
    force = add(add(force, wheel_force), add(rotor_force, contact_force))
    moment = add(add(moment, wheel_moment), add(rotor_moment, contact_moment))
    if obstacles is not None:
        force = add(force, solid_force)
        moment = add(moment, solid_moment)
        scratch.body_points_down += scratch.hull_contacts
    moment = add(moment, cross(angular_momentum(x, motion.rates, p, scratch), motion.rates))
    acceleration, angular_acceleration = body_accelerations(force, moment, p, scratch)
    body_rates(x, motion, acceleration, angular_acceleration, p, dx, scratch)
    actuator_rates(x, inputs.command, p, dx)


@inlined_kernel
def angular_momentum(x: Any, rates: Vector, p: Any, scratch: Any) -> Vector:
    """J ω + H, N m s, body axes: of the body, and of wheels and rotors about their own axes. Eq.
    7.4, 7.6.
    """
    jxx = p.inertia[0]
    jyy = p.inertia[1]
    jzz = p.inertia[2]
    jxy = p.inertia[3]
    jxz = p.inertia[4]
    jyz = p.inertia[5]
    hx = jxx * rates[0] + jxy * rates[1] + jxz * rates[2]
    hy = jxy * rates[0] + jyy * rates[1] + jyz * rates[2]
    hz = jxz * rates[0] + jyz * rates[1] + jzz * rates[2]
    for i in range(wheel_count(p)):
        spin = x[state_of(at.WHEEL_SPEED, i, p.rotors)]
        hx += p.wheel_inertia * spin * scratch.axle[i, 0]
        hy += p.wheel_inertia * spin * scratch.axle[i, 1]
    for j in range(p.rotors):
        hz += p.rotor_inertia * p.rotor_spin[j] * x[at.ROTOR_SPEED + j]
    return hx, hy, hz


@inlined_kernel
def body_accelerations(
    force: Vector, moment: Vector, p: Any, scratch: Any
) -> tuple[Vector, Vector]:
    """(A, ω̇), m/s² and rad/s², body axes: the solution of Eq. 7.6 by Eq. 7.7."""
    mass = p.mass_unsprung
    sum_x = sum_y = sum_z = sum_xx = sum_yy = sum_zz = sum_xz = sum_yz = 0.0
    for i in range(wheel_count(p)):
        x = scratch.hub[i, 0]
        y = scratch.hub[i, 1]
        z = scratch.hub[i, 2]
        sum_x = sum_x + x
        sum_y = sum_y + y
        sum_z = sum_z + z
        sum_xx = sum_xx + x * x
        sum_yy = sum_yy + y * y
        sum_zz = sum_zz + z * z
        sum_xz = sum_xz + x * z
        sum_yz = sum_yz + y * z
    jxx = p.inertia[0]
    jyy = p.inertia[1]
    jzz = p.inertia[2]
    jxy = p.inertia[3]
    jxz = p.inertia[4]
    jyz = p.inertia[5]
    share = mass / p.mass
    mx = moment[0] + share * sum_z * force[1]
    my = moment[1] - share * sum_z * force[0]
    mz = moment[2] + share * (sum_y * force[0] - sum_x * force[1])
    a00 = jxx + mass * (sum_zz - share * sum_z * sum_z)
    a11 = jyy + mass * (sum_zz - share * sum_z * sum_z)
    a22 = jzz + mass * (sum_xx + sum_yy - share * (sum_x * sum_x + sum_y * sum_y))
    a01 = jxy
    a02 = jxz - mass * (sum_xz - share * sum_x * sum_z)
    a12 = jyz - mass * (sum_yz - share * sum_y * sum_z)
    c00 = a11 * a22 - a12 * a12
    c01 = a02 * a12 - a01 * a22
    c02 = a01 * a12 - a02 * a11
    c11 = a00 * a22 - a02 * a02
    c12 = a01 * a02 - a00 * a12
    c22 = a00 * a11 - a01 * a01
    determinant = a00 * c00 + a01 * c01 + a02 * c02
    turn_x = (c00 * mx + c01 * my + c02 * mz) / determinant
    turn_y = (c01 * mx + c11 * my + c12 * mz) / determinant
    turn_z = (c02 * mx + c12 * my + c22 * mz) / determinant
    acceleration = (
        force[0] / p.mass - share * (sum_z * turn_y - sum_y * turn_z),
        force[1] / p.mass - share * (sum_x * turn_z - sum_z * turn_x),
        force[2] / p.mass_sprung,
    )
    return acceleration, (turn_x, turn_y, turn_z)


@inlined_kernel
def body_rates(
    x: Any,
    motion: BodyMotion,
    acceleration: Vector,
    angular_acceleration: Vector,
    p: Any,
    dx: Any,
    scratch: Any,
) -> None:
    """Rates of position, velocity, attitude, angular velocity and struts -> dx; specific force. Eq.
    7.8–7.10.
    """
    qw = x[at.QUATERNION]
    qx = x[at.QUATERNION + 1]
    qy = x[at.QUATERNION + 2]
    qz = x[at.QUATERNION + 3]
    wx, wy, wz = motion.rates
    world_acceleration = rotated(motion.rotation, acceleration)
    for k in range(3):
        dx[at.POSITION + k] = x[at.VELOCITY + k]
        dx[at.VELOCITY + k] = world_acceleration[k]
        dx[at.RATES + k] = angular_acceleration[k]
        scratch.specific_force[k] = acceleration[k] - motion.gravity[k]
    dx[at.QUATERNION] = -0.5 * (qx * wx + qy * wy + qz * wz)
    dx[at.QUATERNION + 1] = 0.5 * (qw * wx + qy * wz - qz * wy)
    dx[at.QUATERNION + 2] = 0.5 * (qw * wy + qz * wx - qx * wz)
    dx[at.QUATERNION + 3] = 0.5 * (qw * wz + qx * wy - qy * wx)
    for i in range(wheel_count(p)):
        turned = (
            angular_acceleration[0] * scratch.hub[i, 1]
            - angular_acceleration[1] * scratch.hub[i, 0]
        )
        dx[state_of(at.STRUT_RATE, i, p.rotors)] -= acceleration[2] + turned


@inlined_kernel
def actuator_rates(x: Any, command: Any, p: Any, dx: Any) -> None:
    """Rates of the steering angle (Eq. 2.1) and of the drive torques (Eq. 2.2) -> dx."""
    steering = at.ROTOR_SPEED + p.rotors
    wanted = min(max(command[at.STEERING_COMMAND], -p.max_steering), p.max_steering)
    rate = (wanted - x[steering]) / p.steering_lag
    dx[steering] = min(max(rate, -p.max_steering_rate), p.max_steering_rate)
    for i in range(wheel_count(p)):
        drive = drive_of(i, p.rotors)
        spin = x[state_of(at.WHEEL_SPEED, i, p.rotors)]
        limit = p.driven[i] * min(p.max_drive_torque, p.drive_power / max(abs(spin), 1e-3))
        asked = command[command_of(at.DRIVE_COMMAND, i, p.rotors)]
        dx[drive] = (min(max(asked, -limit), limit) - x[drive]) / p.drive_lag
