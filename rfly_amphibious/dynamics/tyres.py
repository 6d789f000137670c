# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tyres: steering, contact, transient slip, Pacejka's magic formula, rolling and spin.

docs/model, section 5.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_amphibious.dynamics.body_dynamics import BodyMotion
from rfly_amphibious.dynamics.environment import ground_friction, ground_normal
from rfly_amphibious.vehicle.state_layout import PARTS
from rfly_common.kernels.arcs import atan, sin, tan
from rfly_common.kernels.jit import inlined_kernel, pasted_kernel
from rfly_common.kernels.lanes import any_lane, first_vector, plain, vectors, where
from rfly_common.kernels.record_vectors import column, set_column
from rfly_common.kernels.vectors import (
    Vector,
    add,
    chosen,
    cross,
    dot,
    only_where,
    rotated_back,
    scaled,
    subtract,
)

THIRD = 1.0 / 3.0
"""Share of a tyre's compression by which its rolling radius is smaller. Eq. 5.5."""
MIN_UPRIGHT = 0.2
"""Least n_B·ẑ with which a tyre acts. Eq. 5.3."""


@inlined_kernel
def wheel_direction(
    sign: float, wheel_y: float, per_lever: float, tan_steering: float
) -> tuple[float, float]:
    """Return (along, across) of one wheel's heading, of any length, from the virtual wheel's.

    The tangent of its angle is across / along. `sign`: 1 for a wheel that turns with the virtual
    wheel, -1 against it, 0 for one that does not steer. `wheel_y` (m): to the left of the middle.
    `per_lever` (1/m): inverse of the lever from the steered axle to the centre of the turn, along
    the vehicle. Eq. 5.1.
    """
    return 1.0 - wheel_y * per_lever * tan_steering, sign * tan_steering


@inlined_kernel
def trimmed_direction(along: float, across: float, trim: float) -> tuple[float, float]:
    """Return a `wheel_direction` that is turned by `trim`, rad."""
    more = tan(trim)
    return along - across * more, across + along * more


@pasted_kernel
def magic_formula(slip: float, shape: float, per_shape: float, curvature: float) -> float:
    """Return f(ρ; C, E) for ρ ≥ 0: slope 1 at 0, maximum 1. `per_shape` is 1/C. Eq. 5.11."""
    z = slip * per_shape
    return sin(shape * atan(z - curvature * (z - atan(z))))


@inlined_kernel
def steering_tangent(x: Any) -> float:
    """Return the tangent of the virtual wheel's angle, at once where it is 0, as in flight."""
    if any_lane(x.steering != 0.0):
        return tan(x.steering)
    return x.steering


@inlined_kernel
def wheel_axle(x: Any, i: int, tan_steering: float, p: Any) -> Vector:
    """Return a, the axle of wheel i, body axes, to the left. Eq. 5.1."""
    trim = x.steering_trim[i]
    sign = p.steering_sign[i]
    turned = any_lane(sign != 0.0) and any_lane(tan_steering != 0.0)
    if not turned and not any_lane(trim != 0.0):
        return 0.0, 1.0, 0.0

    along, across = wheel_direction(sign, p.point_y[i], p.per_steering_lever, tan_steering)
    if any_lane(trim != 0.0):
        along, across = trimmed_direction(along, across, trim)
    scale = 1.0 / math.sqrt(along * along + across * across)
    # a wheel that is straight has 0.0, as above, not -0.0
    oblique = (sign != 0.0) | (trim != 0.0)
    return where(oblique, 0.0 - across * scale, 0.0), where(oblique, along * scale, 1.0), 0.0


@inlined_kernel
def hub_velocity(i: int, velocity: Vector, rates: Vector, strut_rate: float, wheels: Any) -> Vector:
    """Return v_h, the velocity of a hub relative to what the wheel rolls on. Eq. 5.2, 6.11.

    m/s, body axes, as the body's velocity and rates.
    """
    relative = subtract(velocity, column(wheels.ground_velocity, i))
    return add(add(relative, cross(rates, column(wheels.hub, i))), (0.0, 0.0, strut_rate))


@inlined_kernel
def slip_velocities(
    i: int, hub_velocity: Vector, rates: Vector, spin: float, wheels: Any
) -> Vector:
    """Return (V_x, V_sx, V_sy), m/s, of wheel i in contact, which turns at `spin`. Eq. 5.5."""
    to_contact = scaled(-wheels.hub_distance[i], column(wheels.normal, i))
    along = dot(hub_velocity, column(wheels.heading, i))
    across = dot(add(hub_velocity, cross(rates, to_contact)), column(wheels.left, i))
    return along, along - wheels.rolling_radius[i] * spin, across


@inlined_kernel
def wheel_contacts(
    x: Any,
    motion: BodyMotion,
    p: Any,
    ground: Any,
    obstacles: Any,
    points: Any,
    solids: Any,
    dx: Any,
    wheels: Any,
) -> Any:
    """Fill and return `wheels`: places, axles, loads, slips and slip curves. Eq. 5.1–5.11.

    Set the rates of the tyre deflections in `dx`.
    """
    tan_steering = steering_tangent(x)
    least_height = (points.clearance + p.wheel_radius) * ground.least_normal_z
    touching = least_height < p.wheel_radius
    if obstacles is not None:
        for i in range(p.wheels):
            touching |= plain(solids).distance[i] < p.wheel_radius
    some_touch = any_lane(touching)

    lateral = first_vector(wheels, PARTS)
    for i in range(vectors(wheels, p.wheels)):
        set_column(wheels.hub, i, (p.point_x[i], p.point_y[i], p.point_z[i] + x.strut[i]))
        set_column(wheels.axle, i, wheel_axle(x, i, tan_steering, p))
        wheels.load[i] = 0.0
        wheels.compression[i] = 0.0
        wheels.slip[i] = 0.0
        wheels.slip_ratio[i] = 0.0
        wheels.slip_tangent[i] = 0.0
        dx.tyre_x[i] = 0.0
        dx.tyre_y[i] = 0.0
        if some_touch:
            wheel_contact(x, i, motion, p, ground, obstacles, points, solids, dx, wheels)

    if some_touch:
        for i in range(vectors(wheels, p.wheels)):
            slip = wheels.slip[i]
            along = magic_formula(slip, p.shape_x, p.per_shape_x, p.curvature_x)
            wheels.slip_curve[i] = along
            across = magic_formula(slip, p.shape_y, p.per_shape_y, p.curvature_y)
            wheels.slip_curve[lateral + i] = across
    return wheels


@inlined_kernel
def wheel_contact(
    x: Any,
    i: int,
    motion: BodyMotion,
    p: Any,
    ground: Any,
    obstacles: Any,
    points: Any,
    solids: Any,
    dx: Any,
    wheels: Any,
) -> None:
    """Find load, contact frame and slips of wheel i on the ground or a solid part.

    Eq. 5.2–5.10, 6.9.
    """
    # the nearer of the ground and the part
    world_normal = ground_normal(ground, points, i)
    normal = rotated_back(motion.rotation, world_normal)
    distance = points.height[i] * world_normal[2]
    slope = 1.0
    ground_velocity = (0.0, 0.0, 0.0)
    if obstacles is not None:
        on_part = (solids.distance[i] < distance) | (normal[2] <= MIN_UPRIGHT)
        distance = where(on_part, solids.distance[i], distance)
        normal = chosen(on_part, column(solids.normal, i), normal)
        slope = where(on_part, solids.slope[i], 1.0)
        ground_velocity = only_where(on_part, column(solids.velocity, i))
    set_column(wheels.ground_velocity, i, ground_velocity)
    touches = (distance < p.wheel_radius) & (normal[2] > MIN_UPRIGHT)
    touches &= p.has_wheel[i] > 0.0
    if not any_lane(touches):
        return
    distance = where(touches, distance, p.wheel_radius)

    # spring and damper of the tyre
    velocity = hub_velocity(i, motion.velocity, motion.rates, x.strut_rate[i], wheels)
    compression = p.wheel_radius - distance
    load = p.tyre_stiffness * compression - slope * p.tyre_damping * dot(velocity, normal)
    load = where(touches, max(0.0, slope * load), 0.0)
    wheels.load[i] = load
    wheels.compression[i] = where(touches, compression, 0.0)
    pressed = load > 0.0
    if not any_lane(pressed):
        return

    # contact frame
    heading = cross(column(wheels.axle, i), normal)
    heading = scaled(1.0 / math.sqrt(dot(heading, heading)), heading)
    set_column(wheels.heading, i, heading)
    set_column(wheels.left, i, cross(normal, heading))
    set_column(wheels.normal, i, normal)
    wheels.hub_distance[i] = distance
    wheels.rolling_radius[i] = p.wheel_radius - THIRD * compression

    # transient slip
    along, slide_x, slide_y = slip_velocities(i, velocity, motion.rates, x.wheel_speed[i], wheels)
    speed = abs(along)
    wheels.hub_speed[i] = speed
    rate_x = -slide_x - speed * x.tyre_x[i] * p.per_relaxation_x
    rate_y = -slide_y - speed * x.tyre_y[i] * p.per_relaxation_y
    dx.tyre_x[i] = where(pressed, rate_x, 0.0)
    dx.tyre_y[i] = where(pressed, rate_y, 0.0)
    tyre_slip(x, i, slide_x, slide_y, ground_friction(ground, points, i), p, wheels)


@inlined_kernel
def tyre_slip(
    x: Any, i: int, slide_x: float, slide_y: float, grip: float, p: Any, wheels: Any
) -> None:
    """Find the dimensionless slip of wheel i and its friction along and across.

    `grip`: the ground's factor on the friction. Eq. 5.7, 5.9, 5.10.
    """
    # friction falls with the load
    load = wheels.load[i]
    guarded = max(load, 1e-6 * p.nominal_load)
    overload = (guarded - p.nominal_load) * p.per_nominal_load
    friction = grip * max(0.2, 1.0 - p.friction_load_loss * overload) * guarded
    peak_x = p.friction_x * friction
    peak_y = p.friction_y * friction

    # slip stiffnesses; sin(2 atan r) = 2 r / (1 + r²)
    ratio = guarded * (p.per_nominal_load / p.cornering_load_ratio)
    cornering = p.cornering_stiffness[i] * 2.0 * ratio
    level = 1.0 + ratio * ratio
    share = 1.0 / (level * friction)
    per_peak_x = p.per_friction_x * (level * share)
    gain_x = p.slip_stiffness * guarded * (p.per_relaxation_x * per_peak_x)
    gain_y = cornering * (p.per_relaxation_y * p.per_friction_y * share)
    slip_x = gain_x * x.tyre_x[i]
    slip_y = gain_y * x.tyre_y[i]
    wheels.slip_ratio[i] = where(load > 0.0, x.tyre_x[i] * p.per_relaxation_x, 0.0)
    wheels.slip_tangent[i] = where(load > 0.0, x.tyre_y[i] * p.per_relaxation_y, 0.0)

    # damping at low speed
    speed = wheels.hub_speed[i]
    slow = speed < p.low_speed
    if any_lane(slow):
        fading = sin(0.5 * math.pi * min(speed * p.per_low_speed, 1.0))
        damping = 1.0 - fading * fading
        damping = where(slow, damping * (p.low_speed_damping * load * p.per_nominal_load), 0.0)
        slip_x -= damping * slide_x * per_peak_x
        slip_y -= damping * slide_y * (p.per_friction_y * (level * share))

    slip = math.sqrt(slip_x * slip_x + slip_y * slip_y)
    per_slip = 1.0 / max(slip, 1e-300)
    lateral = first_vector(wheels, PARTS) + i
    wheels.slip_gain_x[i] = gain_x
    wheels.slip_gain_y[i] = gain_y
    wheels.slip[i] = slip
    wheels.force_limit[i] = peak_x * slip_x * per_slip
    wheels.force_limit[lateral] = peak_y * slip_y * per_slip


@inlined_kernel
def tyre_force(
    x: Any, i: int, motor_torque: float, p: Any, wheels: Any, dx: Any, outputs: Any
) -> tuple[Vector, Vector]:
    """Return (F_t, c): the force of tyre i, N, and its moment about the hub, N m, body axes.

    Set the rate of the wheel's spin in `dx`. Eq. 5.13–5.15, 7.3.
    """
    load = wheels.load[i]
    pressed = load > 0.0
    if not any_lane(pressed):
        outputs.tyre_force_x[i] = 0.0
        outputs.tyre_force_y[i] = 0.0
        dx.wheel_speed[i] = motor_torque * p.per_wheel_inertia
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)

    lateral = first_vector(wheels, PARTS) + i
    force_x = where(pressed, wheels.force_limit[i] * wheels.slip_curve[i], 0.0)
    force_y = where(pressed, wheels.force_limit[lateral] * wheels.slip_curve[lateral], 0.0)
    along = scaled(force_x, column(wheels.heading, i))
    across = scaled(force_y, column(wheels.left, i))
    normal = column(wheels.normal, i)
    force = add(add(along, across), scaled(load, normal))
    couple = cross(scaled(-wheels.hub_distance[i], normal), force)

    # rolling resistance: at rest it holds against other torques as far as it reaches
    radius = wheels.rolling_radius[i]
    driving = motor_torque - radius * force_x
    most = p.rolling_resistance * load * radius
    resistance = driving + most * radius * x.wheel_speed[i] * p.per_rolling_speed
    resistance = min(max(resistance, -most), most)

    dx.wheel_speed[i] = (driving - resistance) * p.per_wheel_inertia
    outputs.tyre_force_x[i] = force_x
    outputs.tyre_force_y[i] = force_y
    return only_where(pressed, force), only_where(pressed, couple)
