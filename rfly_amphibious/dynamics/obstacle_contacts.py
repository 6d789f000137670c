# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contact of hull, wheels and rotors with what stands on the ground. docs/model, section 6.2.

The hull is a few ellipsoids with two equal axes (`vehicle_record`), a wheel is one about its axle,
a rotor a flat one about its shaft. Each is a ball in a metric that is stretched along one axis, so
one function finds the nearest point of a convex part for all of them. Conventions as in
`equations_of_motion.py`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rfly_amphibious.dynamics.body_dynamics import SLIDING_SPEED, BodyMotion
from rfly_amphibious.dynamics.obstacles import STEP_MARGIN, Parts
from rfly_amphibious.dynamics.tyres import MIN_UPRIGHT, steering_tangent, wheel_axle
from rfly_amphibious.vehicle.state_layout import FIRST_ROTOR
from rfly_common.arrays import Floats
from rfly_common.kernels.jit import inlined_kernel, inner_kernel, kernel
from rfly_common.kernels.lanes import vectors
from rfly_common.kernels.record_vectors import row, set_column, vector
from rfly_common.kernels.vectors import (
    Vector,
    add,
    cross,
    dot,
    rotated,
    rotated_back,
    scaled,
    subtract,
)

TYRE_FLATNESS = 0.09
"""Flatness of the ellipsoid that is a tyre: its half width is 0.3 of the radius. Eq. 6.6."""
ROTOR_FLATNESS = 0.01
"""Flatness of a turning blade: its disc is 0.1 of the radius thick above and below the hub."""
ON_FACE = 1e-7
"""Distance by which a point of a face may lie outside the part, m."""


class Ellipsoid(NamedTuple):
    """Ellipsoid about an axis, to which it is shorter by the root of `flatness`. Eq. 6.6."""

    centre: Vector
    """Centre, m, world."""
    axis: Vector
    """Unit vector, world."""
    flatness: float
    """Half axis along `axis` relative to `radius`, squared."""
    radius: float
    """Half axes across `axis`, m."""


@inner_kernel
def nearest(ellipsoid: Ellipsoid, parts: Parts, part: int) -> tuple[float, Vector]:
    """Return (distance, its gradient) of an ellipsoid's centre from a convex part. Eq. 6.7.

    Both are in the ellipsoid's metric: m, and world axes, out of the part. The distance is negative
    within the part, where the nearest face counts, and inf beyond the radius.
    """
    if is_out_of_reach(ellipsoid, parts.bounds, part):
        return math.inf, ellipsoid.axis
    face, distance, size = nearest_plane(ellipsoid, parts, part)
    normal = row(parts.faces, face)
    if distance >= ellipsoid.radius:
        return math.inf, normal
    if distance <= 0.0 or foot_is_on_face(ellipsoid, normal, distance / size, parts, part):
        return distance, scaled(1.0 / size, normal)
    return nearest_edge(ellipsoid, normal, parts, part)


@inlined_kernel
def is_out_of_reach(ellipsoid: Ellipsoid, bounds: Floats, part: int) -> bool:
    """Return whether an ellipsoid lies outside the bounds of a part."""
    centre = ellipsoid.centre
    reach = ellipsoid.radius * max(1.0, math.sqrt(ellipsoid.flatness))
    for c in range(3):
        if centre[c] + reach < bounds[part, c] or centre[c] - reach > bounds[part, 3 + c]:
            return True
    return False


@inlined_kernel
def nearest_plane(ellipsoid: Ellipsoid, parts: Parts, part: int) -> tuple[int, float, float]:
    """Return (row of the face, distance from its plane, length of its normal) in the metric.

    The face is the one from whose plane the centre is farthest out.
    """
    centre, axis, flatness, _ = ellipsoid
    planes = parts.faces
    face = parts.first[part, 0]
    distance = -math.inf
    size = 1.0

    # the length of a normal in the metric scales the distance
    for k in range(parts.first[part, 0], parts.first[part, 1]):
        normal = row(planes, k)
        along = dot(normal, axis)
        length = math.sqrt(1.0 - (1.0 - flatness) * along * along)
        outside = (dot(normal, centre) - planes[k, 3]) / length
        if outside > distance:
            face = k
            distance = outside
            size = length
    return face, distance, size


@inlined_kernel
def foot_is_on_face(
    ellipsoid: Ellipsoid, normal: Vector, length: float, parts: Parts, part: int
) -> bool:
    """Return whether the nearest point of a face's plane belongs to the part.

    `length` is the distance from the plane over the length of its normal, both in the metric.
    """
    centre, axis, flatness, _ = ellipsoid
    planes = parts.faces
    stretched = add(normal, scaled(-(1.0 - flatness) * dot(normal, axis), axis))
    foot = add(centre, scaled(-length, stretched))
    on_face = True
    for k in range(parts.first[part, 0], parts.first[part, 1]):
        on_face &= dot(row(planes, k), foot) < planes[k, 3] + ON_FACE
    return on_face


@inlined_kernel
def nearest_edge(
    ellipsoid: Ellipsoid, normal: Vector, parts: Parts, part: int
) -> tuple[float, Vector]:
    """Return (distance, its gradient) of the centre from the nearest edge of a part.

    The distance is inf, and the gradient `normal`, where no edge is within the radius.
    """
    centre, axis, flatness, radius = ellipsoid
    edges = parts.faces
    steep = 1.0 / flatness - 1.0
    least = radius * radius
    away = normal
    stretch = 0.0
    for k in range(parts.first[part, 1], parts.first[part + 1, 0]):
        begin = row(edges, k)
        end = (edges[k, 3], edges[k, 4], edges[k, 5])
        side = subtract(end, begin)
        offset = subtract(centre, begin)

        # the nearest point of the edge
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
    """Return the vector from an ellipsoid's centre to the nearest point, m: -D Q∇D. Eq. 6.7.

    `length` is D·|∇D|.
    """
    return scaled(-length, add(normal, scaled(-(1.0 - flatness) * dot(normal, axis), axis)))


@inlined_kernel
def parts_near(obstacles: Any, place: Vector) -> tuple[int, int]:
    """Return (begin, end) in `obstacles.lists` of the standing parts near a place."""
    i = (place[0] - obstacles.origin_x) / obstacles.cell
    j = (place[1] - obstacles.origin_y) / obstacles.cell
    if 0.0 <= i < obstacles.rows and 0.0 <= j < obstacles.columns:
        cell = int(i) * obstacles.columns + int(j)
        return obstacles.lists[cell], obstacles.lists[cell + 1]
    return 0, 0


@inlined_kernel
def may_touch(x: Any, dt: float, p: Any, obstacles: Any) -> bool:
    """Return whether a vehicle may be near any part within a step of dt seconds."""
    place = vector(x.position)
    begin, end = parts_near(obstacles, place)
    for m in range(begin, end):
        if is_near(place, p.reach + STEP_MARGIN, obstacles.parts, obstacles.lists[m]):
            return True
    if obstacles.velocity.shape[0] > 0:
        return True
    velocity = vector(x.velocity)
    return not 2.0 * dt * math.sqrt(dot(velocity, velocity)) < STEP_MARGIN


@inlined_kernel
def no_contacts(p: Any, solids: Any) -> Any:
    """Fill and return `solids`: nothing is touched."""
    solids.hull_contacts = 0.0
    for i in range(vectors(solids, p.wheels)):
        solids.distance[i] = math.inf
        solids.hub_height[i] = math.inf
        solids.side_push[i] = 0.0
        solids.side_compression[i] = 0.0
    for j in range(vectors(solids, p.rotors)):
        solids.rotor_touches[j] = 0.0
    return solids


@inner_kernel
def obstacle_contacts(
    x: Any, motion: BodyMotion, p: Any, obstacles: Any, since: float, points: Any, solids: Any
) -> tuple[Vector, Vector]:
    """Return (force, moment) of all parts on hull and sides of wheels, N and N m, body axes.

    Add to `solids`, which is empty, what wheels and rotors touch: the part that each wheel may roll
    on, and which rotors are struck. Lower the heights of rotor hubs, and the clearance, in `points`
    where a part lies between them and the ground. Eq. 6.8, 6.10.
    """
    force = (0.0, 0.0, 0.0)
    moment = (0.0, 0.0, 0.0)
    position = vector(x.position)

    # parts of the cell, then those that move
    begin, end = parts_near(obstacles, position)
    for m in range(begin, end + obstacles.velocity.shape[0]):
        if m < end:
            k = obstacles.lists[m]
            velocity = (0.0, 0.0, 0.0)
        else:
            k = obstacles.standing + m - end
            velocity = row(obstacles.velocity, m - end)

        # seen from the part
        place = subtract(position, scaled(since, velocity))
        if is_near(place, p.reach, obstacles.parts, k):
            carried = rotated_back(motion.rotation, velocity)
            relative = seen_from(carried, motion)
            pressed, turned = part_contact(
                x, place, carried, relative, p, obstacles, k, points, solids
            )
            force = add(force, pressed)
            moment = add(moment, turned)

    for i in range(p.wheels):
        points.clearance = min(points.clearance, solids.hub_height[i] - p.wheel_radius)
    return force, moment


@inlined_kernel
def seen_from(carried: Vector, motion: BodyMotion) -> BodyMotion:
    """Return the motion relative to a part that moves at `carried`, m/s, body axes. Eq. 6.11."""
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
    """Return whether a body at a place may be next to or above part k."""
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
    x: Any,
    place: Vector,
    carried: Vector,
    motion: BodyMotion,
    p: Any,
    obstacles: Any,
    k: int,
    points: Any,
    solids: Any,
) -> tuple[Vector, Vector]:
    """Return (force, moment) of part k on the body at a place, m, world; body axes.

    Add to `solids`, and lower in `points`, what else it touches. `carried`: the velocity of the
    part, m/s, body axes; `motion` is relative to it.
    """
    force = (0.0, 0.0, 0.0)
    moment = (0.0, 0.0, 0.0)
    parts = obstacles.parts
    if place[2] - p.reach <= parts.bounds[k, 5]:
        pressed, turned = hull_contact(place, motion, p, obstacles, k, solids)
        force = add(force, pressed)
        moment = add(moment, turned)
        rotor_contact(place, motion, p, parts, k, solids)
        pressed, turned = wheel_contact_with_part(x, place, carried, motion, p, parts, k, solids)
        force = add(force, pressed)
        moment = add(moment, turned)

    # heights of hubs and rotors above the part
    for i in range(p.wheels):
        raised = p.point_z[i] + x.strut[i]
        hub = in_world(place, motion, (p.point_x[i], p.point_y[i], raised))
        solids.hub_height[i] = min(solids.hub_height[i], height_above(hub, parts, k))
    if p.ground_effect:
        for point in range(FIRST_ROTOR, FIRST_ROTOR + p.rotors):
            hub = in_world(place, motion, (p.point_x[point], p.point_y[point], p.point_z[point]))
            points.height[point] = min(points.height[point], height_above(hub, parts, k))
    return force, moment


@inner_kernel
def in_world(place: Vector, motion: BodyMotion, point: Vector) -> Vector:
    """Return a point of the body at a place, m, world."""
    return add(place, rotated(motion.rotation, point))


@inner_kernel
def hull_contact(
    place: Vector, motion: BodyMotion, p: Any, obstacles: Any, k: int, solids: Any
) -> tuple[Vector, Vector]:
    """Return (force, moment) of part k on the hull, body axes. Eq. 6.8."""
    force = (0.0, 0.0, 0.0)
    moment = (0.0, 0.0, 0.0)
    up = (motion.rotation[2], motion.rotation[5], motion.rotation[8])
    for e in range(obstacles.hull.size):
        ellipsoid = obstacles.hull[e]
        centre = vector(ellipsoid.centre)
        radius = ellipsoid.radius
        flatness = ellipsoid.flatness
        placed = Ellipsoid(in_world(place, motion, centre), up, flatness, radius)
        distance, gradient = nearest(placed, obstacles.parts, k)
        if distance >= radius:
            continue
        solids.hull_contacts += 1.0

        # where it touches, and how fast it approaches
        slope = math.sqrt(dot(gradient, gradient))
        normal = rotated_back(motion.rotation, scaled(1.0 / slope, gradient))
        to_part = to_contact(distance * slope, normal, (0.0, 0.0, 1.0), flatness)
        touched = add(centre, to_part)
        velocity = add(motion.velocity, cross(motion.rates, touched))
        approach = dot(velocity, normal)

        # spring, damper and friction
        spring = slope * ellipsoid.stiffness * (radius - distance)
        damper = slope * slope * ellipsoid.damping * approach
        push = max(0.0, spring - damper)
        sliding = add(velocity, scaled(-approach, normal))
        speed = math.sqrt(dot(sliding, sliding))
        friction = p.body_friction * push * math.tanh(speed / SLIDING_SPEED) / max(speed, 1e-12)
        pressed = add(scaled(push, normal), scaled(-friction, sliding))
        force = add(force, pressed)
        moment = add(moment, cross(touched, pressed))
    return force, moment


@inner_kernel
def rotor_contact(
    place: Vector, motion: BodyMotion, p: Any, parts: Parts, k: int, solids: Any
) -> None:
    """Add to `solids` the rotors whose discs part k reaches into."""
    up = (motion.rotation[2], motion.rotation[5], motion.rotation[8])
    for j in range(p.rotors):
        point = FIRST_ROTOR + j
        centre = in_world(place, motion, (p.point_x[point], p.point_y[point], p.point_z[point]))
        distance, _ = nearest(Ellipsoid(centre, up, ROTOR_FLATNESS, p.rotor_radius), parts, k)
        if distance < p.rotor_radius:
            solids.rotor_touches[j] = 1.0


@inner_kernel
def wheel_contact_with_part(
    x: Any,
    place: Vector,
    carried: Vector,
    motion: BodyMotion,
    p: Any,
    parts: Parts,
    k: int,
    solids: Any,
) -> tuple[Vector, Vector]:
    """Return (force, moment) on the body of wheels at part k, where it is too steep to roll on.

    Add to `solids` the forces along their struts, and the nearest part that each wheel may roll on.
    Eq. 6.10.
    """
    force = (0.0, 0.0, 0.0)
    moment = (0.0, 0.0, 0.0)
    tan_steering = steering_tangent(x)
    for i in range(p.wheels):
        hub = (p.point_x[i], p.point_y[i], p.point_z[i] + x.strut[i])
        axle = wheel_axle(x, i, tan_steering, p)
        centre = in_world(place, motion, hub)
        tyre = Ellipsoid(centre, rotated(motion.rotation, axle), TYRE_FLATNESS, p.wheel_radius)
        distance, gradient = nearest(tyre, parts, k)
        if distance >= p.wheel_radius:
            continue
        slope = math.sqrt(dot(gradient, gradient))
        normal = rotated_back(motion.rotation, scaled(1.0 / slope, gradient))

        # the wheel rolls on it
        if normal[2] > MIN_UPRIGHT:
            if distance < solids.distance[i]:
                solids.distance[i] = distance
                solids.slope[i] = slope
                set_column(solids.normal, i, normal)
                set_column(solids.velocity, i, carried)
            continue

        # its side is pressed
        compression = p.wheel_radius - distance
        solids.hull_contacts += 1.0
        solids.side_compression[i] = max(solids.side_compression[i], compression)
        touched = add(hub, to_contact(distance * slope, normal, axle, TYRE_FLATNESS))
        velocity = add(motion.velocity, cross(motion.rates, touched))
        approach = dot(velocity, normal) + x.strut_rate[i] * normal[2]
        push = slope * (p.tyre_stiffness * compression - slope * p.tyre_damping * approach)
        pressed = scaled(max(0.0, push), normal)

        # along the strut it moves the wheel, whose strut passes on its own force
        solids.side_push[i] += pressed[2]
        passed = (pressed[0], pressed[1], 0.0)
        couple = cross(subtract(touched, hub), pressed)
        force = add(force, passed)
        moment = add(moment, add(cross(hub, passed), couple))
    return force, moment


@inner_kernel
def height_above(point: Vector, parts: Parts, part: int) -> float:
    """Return the height of a point above a convex part, m.

    It is 0 within the part, and inf where the part does not lie below the point.
    """
    planes = parts.faces
    bounds = parts.bounds
    enter = 0.0
    leave = math.inf
    for c in range(2):
        if point[c] < bounds[part, c] or point[c] > bounds[part, 3 + c]:
            return math.inf

    # where the vertical enters and leaves the part
    for k in range(parts.first[part, 0], parts.first[part, 1]):
        outside = dot(row(planes, k), point) - planes[k, 3]
        if planes[k, 2] > 0.0:
            enter = max(enter, outside / planes[k, 2])
        elif planes[k, 2] < 0.0:
            leave = min(leave, outside / planes[k, 2])
        elif outside > 0.0:
            leave = -1.0
    return enter if enter <= leave else math.inf


@kernel
def lower_to_roofs(points: Floats, obstacles: Any, heights: Floats) -> None:
    """Lower heights (n,) of points (n, 3) above the ground to those above parts in between, m."""
    for n in range(points.shape[0]):
        point = row(points, n)
        begin, end = parts_near(obstacles, point)
        for m in range(begin, end):
            above_part = height_above(point, obstacles.parts, obstacles.lists[m])
            heights[n] = min(heights[n], above_part)
