"""Contact of hull, wheels and rotors with what stands on the ground. docs/model, section 6.2.

The hull is a few ellipsoids with two equal axes (`vehicle_record`), a wheel is one about its axle,
a rotor a flat one about its shaft: each is a ball in a metric that is stretched along one axis, so
that one function finds the nearest point of a convex part for all of them. Conventions as in
`equations_of_motion.py`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rfly_amphibious.dynamics.body_forces import SLIDING_SPEED
from rfly_amphibious.dynamics.body_motion import BodyMotion
from rfly_amphibious.dynamics.obstacles import STEP_MARGIN, Parts
from rfly_amphibious.dynamics.tyres import MIN_UPRIGHT, row, set_row, wheel_axle
from rfly_amphibious.dynamics.wheel_columns import state_of
from rfly_amphibious.dynamics.wheels import first_rotor, wheel_count
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.arrays import Floats
from rfly_common.kernels.jit import inlined_kernel, inner_kernel, kernel
from rfly_common.kernels.vectors import Vector, add, cross, dot, rotated, rotated_back, scaled

TYRE_FLATNESS = 0.09
"""of the ellipsoid that is a tyre: its half width is 0.3 of the radius. Eq. 6.6"""
ROTOR_FLATNESS = 0.01
"""of a turning blade: its disc is 0.1 of the radius thick above and below the hub"""
ON_FACE = 1e-7
"""m by which a point of a face may lie outside the part"""


class Ellipsoid(NamedTuple):
    """About `axis` (unit vector, world), to which it is shorter by the root of `flatness`. Eq. 6.6."""

    centre: Vector
    axis: Vector
    flatness: float
    radius: float
    """m, across the axis"""


@inner_kernel
def nearest(ellipsoid: Ellipsoid, parts: Parts, part: int) -> tuple[float, Vector]:
    """(distance, its gradient) in the ellipsoid's metric, of its centre from a convex part; inf
    beyond the radius.

    m, and world axes, out of the part. Below 0 within it, by the nearest face. Eq. 6.7.
    """
    centre, axis, flatness, radius = ellipsoid
    planes = edges = parts.faces
    bounds = parts.bounds
    reach = radius * max(1.0, math.sqrt(flatness))
    for c in range(3):
        if centre[c] + reach < bounds[part, c] or centre[c] - reach > bounds[part, 3 + c]:
            return math.inf, axis
    begin = parts.first[part, 0]
    end = parts.first[part, 1]
    best = -math.inf
    length = 1.0
    face = begin
    for k in range(begin, end):
        normal = (planes[k, 0], planes[k, 1], planes[k, 2])
        along = dot(normal, axis)
        size = math.sqrt(1.0 - (1.0 - flatness) * along * along)
        outside = (dot(normal, centre) - planes[k, 3]) / size
        if outside > best:
            best = outside
            length = size
            face = k
    normal = (planes[face, 0], planes[face, 1], planes[face, 2])
    if best >= radius:
        return math.inf, normal
    on_face = True
    if best > 0.0:
        stretched = add(normal, scaled(-(1.0 - flatness) * dot(normal, axis), axis))
        foot = add(centre, scaled(-best / length, stretched))
        for k in range(begin, end):
            on_face &= (
                planes[k, 0] * foot[0] + planes[k, 1] * foot[1] + planes[k, 2] * foot[2]
                < planes[k, 3] + ON_FACE
            )
    if on_face:
        return best, scaled(1.0 / length, normal)
    least = radius * radius
    steep = 1.0 / flatness - 1.0
    away = normal
    stretch = 0.0
    for k in range(end, parts.first[part + 1, 0]):
        side = (edges[k, 3] - edges[k, 0], edges[k, 4] - edges[k, 1], edges[k, 5] - edges[k, 2])
        offset = (centre[0] - edges[k, 0], centre[1] - edges[k, 1], centre[2] - edges[k, 2])
        up = dot(side, axis)
        over = dot(offset, axis)
        share = (dot(offset, side) + steep * over * up) / (dot(side, side) + steep * up * up)
        share = min(max(share, 0.0), 1.0)
        apart = add(offset, scaled(-share, side))
        over -= share * up
        square = dot(apart, apart) + steep * over * over
        if square < least:
            least = square
            away = apart
            stretch = steep * over
    if least >= radius * radius:
        return math.inf, normal
    distance = math.sqrt(least)
    return distance, scaled(1.0 / max(distance, 1e-12), add(away, scaled(stretch, axis)))


@inner_kernel
def to_contact(length: float, normal: Vector, axis: Vector, flatness: float) -> Vector:
    """From an ellipsoid's centre to the nearest point, m: -D Q∇D, with `length` D·|∇D|. Eq. 6.7."""
    return scaled(-length, add(normal, scaled(-(1.0 - flatness) * dot(normal, axis), axis)))


@inlined_kernel
def may_touch(x: Any, dt: float, p: Any, obstacles: Any) -> bool:
    """Whether a vehicle may be near any part within a step of dt seconds."""
    place = (x[at.POSITION], x[at.POSITION + 1], x[at.POSITION + 2])
    i = (place[0] - obstacles.origin_x) / obstacles.cell
    j = (place[1] - obstacles.origin_y) / obstacles.cell
    if 0.0 <= i < obstacles.rows and 0.0 <= j < obstacles.columns:
        cell = int(i) * obstacles.columns + int(j)
        for m in range(obstacles.lists[cell], obstacles.lists[cell + 1]):
            if is_near(place, p.reach + STEP_MARGIN, obstacles.parts, obstacles.lists[m]):
                return True
    vx = x[at.VELOCITY]
    vy = x[at.VELOCITY + 1]
    vz = x[at.VELOCITY + 2]
    return (
        obstacles.velocity.shape[0] > 0
        or not 2.0 * dt * math.sqrt(vx * vx + vy * vy + vz * vz) < STEP_MARGIN
    )


@inlined_kernel
def no_contacts(p: Any, scratch: Any) -> None:
    """Nothing is touched -> scratch."""
    scratch.hull_contacts = 0
    for i in range(wheel_count(p)):
        scratch.part_distance[i] = math.inf
        scratch.part_below[i] = math.inf
        scratch.side_compression[i] = 0.0
        set_row(scratch.contact_velocity, i, (0.0, 0.0, 0.0))
    for j in range(p.rotors):
        scratch.rotor_touches[j] = 0.0


@inner_kernel
def obstacle_contacts(
    x: Any, motion: BodyMotion, p: Any, obstacles: Any, scratch: Any
) -> tuple[Vector, Vector]:
    """(force, moment) of all parts on hull and sides of wheels, N and N m, body axes. Eq. 6.8,
    6.10.

    What wheels and rotors touch -> scratch: the part that each wheel may roll on, and which rotors
    are struck; the height of each rotor's hub is that above a part, where one lies between it and
    the ground.
    """
    force = (0.0, 0.0, 0.0)
    moment = (0.0, 0.0, 0.0)
    no_contacts(p, scratch)
    px = x[at.POSITION]
    py = x[at.POSITION + 1]
    pz = x[at.POSITION + 2]
    begin = end = 0
    i = (px - obstacles.origin_x) / obstacles.cell
    j = (py - obstacles.origin_y) / obstacles.cell
    if 0.0 <= i < obstacles.rows and 0.0 <= j < obstacles.columns:
        cell = int(i) * obstacles.columns + int(j)
        begin = obstacles.lists[cell]
        end = obstacles.lists[cell + 1]
    for m in range(begin, end + obstacles.velocity.shape[0]):
        if m < end:
            k = obstacles.lists[m]
            velocity = (0.0, 0.0, 0.0)
        else:
            k = obstacles.standing + m - end
            velocity = row(obstacles.velocity, m - end)
        place = add((px, py, pz), scaled(-scratch.since, velocity))
        if is_near(place, p.reach, obstacles.parts, k):
            carried = rotated_back(motion.rotation, velocity)
            set_row(scratch.carried, 0, carried)
            pressed, turned = part_contact(
                x, place, seen_from(carried, motion), p, obstacles.parts, k, scratch
            )
            force = add(force, pressed)
            moment = add(moment, turned)
    for i in range(wheel_count(p)):
        scratch.clearance = min(scratch.clearance, scratch.part_below[i] - p.wheel_radius)
    return force, moment


@inlined_kernel
def seen_from(carried: Vector, motion: BodyMotion) -> BodyMotion:
    """The motion beside something that moves evenly, m/s, body axes. Eq. 6.11."""
    velocity = add(motion.velocity, scaled(-1.0, carried))
    return BodyMotion(
        motion.rotation,
        velocity,
        motion.air_velocity,
        motion.rates,
        motion.gravity,
        motion.density_ratio,
    )


@inlined_kernel
def is_near(place: Vector, reach: float, parts: Parts, k: int) -> bool:
    """Whether a body at a place may be beside or above part k."""
    bounds = parts.bounds
    return not (
        place[0] + reach < bounds[k, 0]
        or place[0] - reach > bounds[k, 3]
        or place[1] + reach < bounds[k, 1]
        or place[1] - reach > bounds[k, 4]
        or place[2] + reach < bounds[k, 2]
    )


@inner_kernel
def part_contact(
    x: Any, place: Vector, motion: BodyMotion, p: Any, parts: Parts, k: int, scratch: Any
) -> tuple[Vector, Vector]:
    """(force, moment) of part k on the body at a place, m, world; body axes. What it touches
    otherwise -> scratch.
    """
    force = (0.0, 0.0, 0.0)
    moment = (0.0, 0.0, 0.0)
    if place[2] - p.reach <= parts.bounds[k, 5]:
        pressed, turned = hull_contact(place, motion, p, parts, k, scratch)
        force = add(force, pressed)
        moment = add(moment, turned)
        rotor_contact(place, motion, p, parts, k, scratch)
        pressed, turned = wheel_contact_with_part(x, place, motion, p, parts, k, scratch)
        force = add(force, pressed)
        moment = add(moment, turned)
    for i in range(wheel_count(p)):
        raised = p.point_z[i] + x[state_of(at.STRUT, i, p.rotors)]
        hub = in_world(place, motion, (p.point_x[i], p.point_y[i], raised))
        scratch.part_below[i] = min(scratch.part_below[i], height_above(hub, parts, k))
    if p.ground_effect:
        for point in range(first_rotor(p), first_rotor(p) + p.rotors):
            hub = in_world(place, motion, (p.point_x[point], p.point_y[point], p.point_z[point]))
            scratch.point_height[point] = min(
                scratch.point_height[point], height_above(hub, parts, k)
            )
    return force, moment


@inner_kernel
def in_world(place: Vector, motion: BodyMotion, point: Vector) -> Vector:
    """A point of the body at a place, m, world."""
    return add(place, rotated(motion.rotation, point))


@inner_kernel
def hull_contact(
    place: Vector, motion: BodyMotion, p: Any, parts: Parts, k: int, scratch: Any
) -> tuple[Vector, Vector]:
    """(force, moment) of part k on the hull, body axes. Eq. 6.8."""
    force = (0.0, 0.0, 0.0)
    moment = (0.0, 0.0, 0.0)
    up = (motion.rotation[2], motion.rotation[5], motion.rotation[8])
    for e in range(p.hull_parts):
        point = row(p.hull_centre, e)
        radius = p.hull_radius[e]
        ellipsoid = Ellipsoid(in_world(place, motion, point), up, p.hull_flatness[e], radius)
        distance, gradient = nearest(ellipsoid, parts, k)
        if distance >= radius:
            continue
        scratch.hull_contacts += 1
        slope = math.sqrt(dot(gradient, gradient))
        normal = rotated_back(motion.rotation, scaled(1.0 / slope, gradient))
        touched = add(
            point, to_contact(distance * slope, normal, (0.0, 0.0, 1.0), p.hull_flatness[e])
        )
        velocity = add(motion.velocity, cross(motion.rates, touched))
        approach = dot(velocity, normal)
        push = (
            slope * p.hull_stiffness[e] * (radius - distance)
            - slope * slope * p.hull_damping[e] * approach
        )
        push = max(0.0, push)
        sliding = add(velocity, scaled(-approach, normal))
        speed = math.sqrt(dot(sliding, sliding))
        friction = p.body_friction * push * math.tanh(speed / SLIDING_SPEED) / max(speed, 1e-12)
        pressed = add(scaled(push, normal), scaled(-friction, sliding))
        force = add(force, pressed)
        moment = add(moment, cross(touched, pressed))
    return force, moment


@inner_kernel
def rotor_contact(
    place: Vector, motion: BodyMotion, p: Any, parts: Parts, k: int, scratch: Any
) -> None:
    """Which rotors' discs part k reaches into -> scratch."""
    up = (motion.rotation[2], motion.rotation[5], motion.rotation[8])
    for j in range(p.rotors):
        point = first_rotor(p) + j
        centre = in_world(place, motion, (p.point_x[point], p.point_y[point], p.point_z[point]))
        distance, _ = nearest(Ellipsoid(centre, up, ROTOR_FLATNESS, p.rotor_radius), parts, k)
        if distance < p.rotor_radius:
            scratch.rotor_touches[j] = 1.0


@inner_kernel
def wheel_contact_with_part(
    x: Any, place: Vector, motion: BodyMotion, p: Any, parts: Parts, k: int, scratch: Any
) -> tuple[Vector, Vector]:
    """(force, moment) on the body where a wheel touches a part that is too steep to roll on. Eq.
    6.10.

    The nearest part that it may roll on -> scratch.
    """
    force = (0.0, 0.0, 0.0)
    moment = (0.0, 0.0, 0.0)
    tan_steering = math.tan(x[at.ROTOR_SPEED + p.rotors])
    for i in range(wheel_count(p)):
        point = (p.point_x[i], p.point_y[i], p.point_z[i] + x[state_of(at.STRUT, i, p.rotors)])
        axle = wheel_axle(i, tan_steering, p)
        tyre = Ellipsoid(
            in_world(place, motion, point),
            rotated(motion.rotation, axle),
            TYRE_FLATNESS,
            p.wheel_radius,
        )
        distance, gradient = nearest(tyre, parts, k)
        if distance < p.wheel_radius:
            slope = math.sqrt(dot(gradient, gradient))
            normal = rotated_back(motion.rotation, scaled(1.0 / slope, gradient))
            if normal[2] <= MIN_UPRIGHT:
                compression = p.wheel_radius - distance
                scratch.hull_contacts += 1
                scratch.side_compression[i] = max(scratch.side_compression[i], compression)
                touched = add(point, to_contact(distance * slope, normal, axle, TYRE_FLATNESS))
                approach = dot(add(motion.velocity, cross(motion.rates, touched)), normal)
                push = slope * (p.tyre_stiffness * compression - slope * p.tyre_damping * approach)
                pressed = scaled(max(0.0, push), normal)
                force = add(force, pressed)
                moment = add(moment, cross(touched, pressed))
            elif distance < scratch.part_distance[i]:
                scratch.part_distance[i] = distance
                scratch.part_slope[i] = slope
                set_row(scratch.part_normal, i, normal)
                set_row(scratch.part_velocity, i, row(scratch.carried, 0))
    return force, moment


@inner_kernel
def height_above(point: Vector, parts: Parts, part: int) -> float:
    """m from a point straight down to a convex part; 0 within it, inf where it does not lie below."""
    planes = parts.faces
    bounds = parts.bounds
    enter = 0.0
    leave = math.inf
    for c in range(2):
        if point[c] < bounds[part, c] or point[c] > bounds[part, 3 + c]:
            return math.inf
    for k in range(parts.first[part, 0], parts.first[part, 1]):
        outside = (
            planes[k, 0] * point[0]
            + planes[k, 1] * point[1]
            + planes[k, 2] * point[2]
            - planes[k, 3]
        )
        if planes[k, 2] > 0.0:
            enter = max(enter, outside / planes[k, 2])
        elif planes[k, 2] < 0.0:
            leave = min(leave, outside / planes[k, 2])
        elif outside > 0.0:
            leave = -1.0
    return enter if enter <= leave else math.inf


@kernel
def lower_to_roofs(points: Floats, obstacles: Any, heights: Floats) -> None:
    """Heights (n,) of points (n, 3) above the ground -> above the parts that lie between, m."""
    for n in range(points.shape[0]):
        point = row(points, n)
        i = (point[0] - obstacles.origin_x) / obstacles.cell
        j = (point[1] - obstacles.origin_y) / obstacles.cell
        if 0.0 <= i < obstacles.rows and 0.0 <= j < obstacles.columns:
            cell = int(i) * obstacles.columns + int(j)
            for m in range(obstacles.lists[cell], obstacles.lists[cell + 1]):
                heights[n] = min(
                    heights[n], height_above(point, obstacles.parts, obstacles.lists[m])
                )
