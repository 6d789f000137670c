"""Tyres: steering, contact, transient slip, Pacejka's magic formula, rolling and spin. docs/model,
section 5.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_amphibious.dynamics.body_motion import BodyMotion
from rfly_amphibious.dynamics.environment import ground_normal
from rfly_amphibious.dynamics.wheel_columns import state_of
from rfly_amphibious.dynamics.wheels import wheel_count
from rfly_amphibious.vehicle import state_layout as at
from rfly_amphibious.vehicle.steering import wheel_tangent
from rfly_common.kernels.arcs import atan, sin
from rfly_common.kernels.jit import inlined_kernel, pasted_kernel
from rfly_common.kernels.lanes import any_lane, where
from rfly_common.kernels.vectors import (
    Vector,
    add,
    cross,
    dot,
    only_where,
    rotated_back,
    scaled,
)

MIN_UPRIGHT = 0.2
"""n_B·ẑ below which a tyre does not act. Eq. 5.3"""


@pasted_kernel
def magic_formula(slip: float, shape: float, curvature: float) -> float:
    """f(ρ; C, E) for ρ ≥ 0: slope 1 at 0, maximum 1. Eq. 5.11."""
    z = slip / shape
    return sin(shape * atan(z - curvature * (z - atan(z))))


@inlined_kernel
def row(array: Any, i: int) -> Vector:
    """Row i of an (n, 3) array."""
    return array[i, 0], array[i, 1], array[i, 2]


@inlined_kernel
def set_row(array: Any, i: int, vector: Vector) -> None:
    """Row i of an (n, 3) array becomes the vector."""
    array[i, 0], array[i, 1], array[i, 2] = vector


@inlined_kernel
def wheel_axle(i: int, tan_steering: float, p: Any) -> Vector:
    """a, body axes, to the left, of wheel i. Eq. 5.1."""
    tangent = wheel_tangent(p.steering_sign[i], p.point_y[i], p.steering_lever, tan_steering)
    cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
    return -tangent * cosine, cosine, 0.0


@inlined_kernel
def hub_velocity(
    i: int, velocity: Vector, rates: Vector, strut_rate: float, scratch: Any
) -> Vector:
    """v_h, m/s, body axes, from the body's velocity and rates, beside what the wheel rolls on. Eq.
    5.2, 6.11.
    """
    beside = add(velocity, scaled(-1.0, row(scratch.contact_velocity, i)))
    return add(add(beside, cross(rates, row(scratch.hub, i))), (0.0, 0.0, strut_rate))


@inlined_kernel
def slip_velocities(
    i: int, hub_velocity: Vector, rates: Vector, spin: float, scratch: Any
) -> Vector:
    """(V_x, V_sx, V_sy), m/s, of wheel i in contact, which turns at `spin`. Eq. 5.5."""
    to_contact = scaled(-scratch.hub_distance[i], row(scratch.normal, i))
    along = dot(hub_velocity, row(scratch.heading, i))
    across = dot(add(hub_velocity, cross(rates, to_contact)), row(scratch.left, i))
    return along, along - scratch.rolling_radius[i] * spin, across


@inlined_kernel
def wheel_contacts(
    x: Any, motion: BodyMotion, p: Any, ground: Any, obstacles: Any, dx: Any, scratch: Any
) -> None:
    """Places, axles, loads, slips and slip curves of all wheels; rates of the tyre deflections ->
    dx. Eq. 5.1–5.11.
    """
    tan_steering = math.tan(x[at.ROTOR_SPEED + p.rotors])
    least_height = (scratch.clearance + p.wheel_radius) * ground.least_normal_z
    touching = least_height < p.wheel_radius
    if obstacles is not None:
        for i in range(wheel_count(p)):
            touching |= scratch.part_distance[i] < p.wheel_radius
    some_touch = any_lane(touching)
    for i in range(wheel_count(p)):
        set_row(
            scratch.hub,
            i,
            (p.point_x[i], p.point_y[i], p.point_z[i] + x[state_of(at.STRUT, i, p.rotors)]),
        )
        set_row(scratch.axle, i, wheel_axle(i, tan_steering, p))
        scratch.wheel_load[i] = 0.0
        scratch.tyre_compression[i] = 0.0
        scratch.slip[i] = 0.0
        scratch.slip[wheel_count(p) + i] = 0.0
        dx[state_of(at.TYRE_X, i, p.rotors)] = 0.0
        dx[state_of(at.TYRE_Y, i, p.rotors)] = 0.0
        if some_touch:
            wheel_contact(x, i, motion, p, ground, obstacles, dx, scratch)
    if some_touch:
        for k in range(
            p.slips
        ):  # a constant number would be unrolled, which keeps vector instructions away
            scratch.slip_curve[k] = magic_formula(scratch.slip[k], p.shapes[k], p.curvatures[k])


@inlined_kernel
def wheel_contact(
    x: Any, i: int, motion: BodyMotion, p: Any, ground: Any, obstacles: Any, dx: Any, scratch: Any
) -> None:
    """Load, contact frame and slips of wheel i, where it stands on the ground or a solid part. Eq.
    5.2–5.10, 6.9.
    """
    world_normal = ground_normal(ground, i, scratch)
    normal = rotated_back(motion.rotation, world_normal)
    distance = scratch.point_height[i] * world_normal[2]
    slope = 1.0
    if obstacles is not None:
        set_row(scratch.contact_velocity, i, (0.0, 0.0, 0.0))
        if scratch.part_distance[i] < distance or normal[2] <= MIN_UPRIGHT:
            distance = scratch.part_distance[i]
            normal = row(scratch.part_normal, i)
            slope = scratch.part_slope[i]
            set_row(scratch.contact_velocity, i, row(scratch.part_velocity, i))
    touches = (distance < p.wheel_radius) & (normal[2] > MIN_UPRIGHT)
    if not any_lane(touches):
        return
    strut_rate = x[state_of(at.STRUT_RATE, i, p.rotors)]
    spin = x[state_of(at.WHEEL_SPEED, i, p.rotors)]
    velocity = hub_velocity(i, motion.velocity, motion.rates, strut_rate, scratch)
    compression = p.wheel_radius - distance
    load = p.tyre_stiffness * compression - slope * p.tyre_damping * dot(velocity, normal)
    load = where(touches, max(0.0, load if slope == 1.0 else slope * load), 0.0)
    scratch.wheel_load[i] = load
    scratch.tyre_compression[i] = where(touches, compression, 0.0)
    pressed = load > 0.0
    if not any_lane(pressed):
        return
    heading = cross(row(scratch.axle, i), normal)
    heading = scaled(1.0 / math.sqrt(dot(heading, heading)), heading)
    set_row(scratch.heading, i, heading)
    set_row(scratch.left, i, cross(normal, heading))
    set_row(scratch.normal, i, normal)
    scratch.hub_distance[i] = distance
    scratch.rolling_radius[i] = p.wheel_radius - compression / 3.0
    along, slide_x, slide_y = slip_velocities(i, velocity, motion.rates, spin, scratch)
    speed = abs(along)
    scratch.hub_speed[i] = speed
    tyre_x = state_of(at.TYRE_X, i, p.rotors)
    tyre_y = state_of(at.TYRE_Y, i, p.rotors)
    dx[tyre_x] = where(pressed, -slide_x - speed * x[tyre_x] / p.relaxation_x, 0.0)
    dx[tyre_y] = where(pressed, -slide_y - speed * x[tyre_y] / p.relaxation_y, 0.0)
    tyre_slip(x, i, slide_x, slide_y, p, scratch)


@inlined_kernel
def tyre_slip(x: Any, i: int, slide_x: float, slide_y: float, p: Any, scratch: Any) -> None:
    """Dimensionless slip of wheel i from its deflections, and the friction along and across. Eq.
    5.7, 5.9, 5.10.
    """
    load = scratch.wheel_load[i]
    speed = scratch.hub_speed[i]
    guarded = max(load, 1e-6 * p.nominal_load)
    ratio = guarded / (p.cornering_load_ratio * p.nominal_load)
    friction = (
        max(0.2, 1.0 - p.friction_load_loss * (guarded - p.nominal_load) / p.nominal_load) * guarded
    )
    peak_x = p.friction_x * friction
    peak_y = p.friction_y * friction
    gain_x = p.slip_stiffness * guarded / (p.relaxation_x * peak_x)
    # sin(2 atan r) = 2 r / (1 + r²)
    gain_y = (
        p.cornering_stiffness[i] * 2.0 * ratio / ((1.0 + ratio * ratio) * (p.relaxation_y * peak_y))
    )
    slip_x = gain_x * x[state_of(at.TYRE_X, i, p.rotors)]
    slip_y = gain_y * x[state_of(at.TYRE_Y, i, p.rotors)]
    slow = speed < p.low_speed
    if any_lane(slow):
        damping = 0.5 * (1.0 + math.cos(math.pi * speed / p.low_speed))
        damping = where(slow, damping * (p.low_speed_damping * load / p.nominal_load), 0.0)
        slip_x -= damping * slide_x / peak_x
        slip_y -= damping * slide_y / peak_y
    slip = math.sqrt(slip_x * slip_x + slip_y * slip_y)
    share = 1.0 / max(slip, 1e-300)
    scratch.slip_gain_x[i] = gain_x
    scratch.slip_gain_y[i] = gain_y
    scratch.slip[i] = slip
    scratch.slip[wheel_count(p) + i] = slip
    scratch.force_limit[i] = peak_x * slip_x * share
    scratch.force_limit[wheel_count(p) + i] = peak_y * slip_y * share


@inlined_kernel
def tyre_force(
    x: Any, i: int, motor_torque: float, p: Any, dx: Any, scratch: Any
) -> tuple[Vector, Vector]:
    """(F_t, c): force of tyre i, N, and its moment about the hub, N m, body axes; the wheel's spin
    -> dx.

    Eq. 5.13–5.15, 7.3.
    """
    turning = state_of(at.WHEEL_SPEED, i, p.rotors)
    load = scratch.wheel_load[i]
    spin = x[turning]
    pressed = load > 0.0
    if not any_lane(pressed):
        scratch.tyre_force_x[i] = 0.0
        scratch.tyre_force_y[i] = 0.0
        dx[turning] = motor_torque / p.wheel_inertia
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    normal = row(scratch.normal, i)
    radius = scratch.rolling_radius[i]
    force_x = where(pressed, scratch.force_limit[i] * scratch.slip_curve[i], 0.0)
    force_y = where(
        pressed,
        scratch.force_limit[wheel_count(p) + i] * scratch.slip_curve[wheel_count(p) + i],
        0.0,
    )
    along = scaled(force_x, row(scratch.heading, i))
    across = scaled(force_y, row(scratch.left, i))
    force = add(add(along, across), scaled(load, normal))
    rolling = radius * spin / p.rolling_speed
    slow = abs(rolling) < 20.0  # beyond it tanh is 1 to the last bit
    if any_lane(slow):
        rolling = where(slow, math.tanh(rolling), rolling)
    resistance = p.rolling_resistance * load * radius * min(max(rolling, -1.0), 1.0)
    dx[turning] = (motor_torque - radius * force_x - resistance) / p.wheel_inertia
    scratch.tyre_force_x[i] = force_x
    scratch.tyre_force_y[i] = force_y
    couple = cross(scaled(-scratch.hub_distance[i], normal), force)
    return only_where(pressed, force), only_where(pressed, couple)
