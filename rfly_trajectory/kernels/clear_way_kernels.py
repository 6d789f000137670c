# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Room between ways of vehicles, and between a way and what stands still. For `avoidance_kernels`.

A way is places (m, 3) at common instants. Room is the level distance that is left between bodies,
m, where they are at the same height; it is negative where they meet.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import inner_kernel
from rfly_terrain.height_map.bilinear import gradient
from rfly_trajectory.kernels.tables import GROUND, AbilityTable, Prisms, Strangers

ROOMY = 1e9
"""Room of vehicles that never are at the same height, m."""
WASH_SPREAD = 0.2
"""Growth of a multirotor's downwash, m of radius for each metre of depth.

A free round jet's half-width grows by about 0.1 m/m and its edge by about twice that (Pope,
Turbulent Flows, 2000, section 5.1).
"""
CIRCLE_PLACES = 16
"""Places of a fixed wing's circle at which the ground below it is looked up."""
SLACK = 0.02
"""Room that is kept beyond the bodies, m: between instants arcs are longer than their chords."""

Body = tuple[float, float, float, float, bool]
"""Radius, below, above, downwash, whether it flies."""


@inner_kernel
def body_of(able: AbilityTable, i: int) -> Body:
    """Return the body of vehicle i."""
    flies = able.kind[i] != GROUND
    return able.radius[i], able.below[i], able.above[i], able.wash[i], flies


@inner_kernel
def stranger_body(strangers: Strangers, k: int) -> Body:
    """Return the body of stranger k."""
    return (
        strangers.radius[k],
        strangers.below[k],
        strangers.above[k],
        strangers.wash[k],
        strangers.flies[k],
    )


@inner_kernel
def segment_distance(ax: float, ay: float, bx: float, by: float) -> float:
    """Return the distance of the origin from the line between two points, m."""
    dx = bx - ax
    dy = by - ay
    square = dx * dx + dy * dy
    share = 0.0
    if square > 0.0:
        share = min(max(-(ax * dx + ay * dy) / square, 0.0), 1.0)
    return math.hypot(ax + share * dx, ay + share * dy)


@inner_kernel
def level_need(one: Body, other: Body, rise: float, rise_after: float) -> float:
    """Return the level distance that two bodies need, m; -1: none, as one is high enough above.

    `rise` is the height of the first above the other, at both ends of a time.
    """
    low = min(rise, rise_after)
    high = max(rise, rise_after)
    needed = -1.0
    if low < one[1] + other[2] and high > -(other[1] + one[2]):
        needed = one[0] + other[0]

    # the air below a multirotor, for aircraft
    if one[3] > 0.0 and other[4] and high > 0.0 and low < one[3]:
        needed = max(needed, one[0] + other[0] + WASH_SPREAD * min(high, one[3]))
    if other[3] > 0.0 and one[4] and low < 0.0 and high > -other[3]:
        needed = max(needed, one[0] + other[0] + WASH_SPREAD * min(-low, other[3]))
    return needed


@inner_kernel
def room_between(
    one: Floats, one_last: int, body: Body, other: Floats, other_last: int, other_body: Body
) -> float:
    """Return the least room between two ways of vehicles that end where the ways end."""
    least = ROOMY
    for k in range(max(one_last, other_last, 1)):
        a = min(k, one_last)
        b = min(k + 1, one_last)
        c = min(k, other_last)
        d = min(k + 1, other_last)

        # height that keeps them apart
        needed = level_need(body, other_body, one[a, 2] - other[c, 2], one[b, 2] - other[d, 2])
        if needed < 0.0:
            continue

        # distance in the plane
        distance = segment_distance(
            one[a, 0] - other[c, 0],
            one[a, 1] - other[c, 1],
            one[b, 0] - other[d, 0],
            one[b, 1] - other[d, 1],
        )
        least = min(least, distance - needed)
    return least


@inner_kernel
def circles_apart(one: Floats, one_circle: float, other: Floats, other_circle: float) -> float:
    """Return the least level distance of two fixed wings that circle, m.

    Places 1 are those at which they begin, and places 2 the centres; the signed radii are positive
    to the left. On equal circles the two turn as one body, with a constant difference between their
    places on the circles.
    """
    x = one[2, 0] - other[2, 0]
    y = one[2, 1] - other[2, 1]
    apart = math.hypot(x, y)
    if abs(one_circle - other_circle) < 1e-6:
        turned_x = one[1, 0] - one[2, 0] - (other[1, 0] - other[2, 0])
        turned_y = one[1, 1] - one[2, 1] - (other[1, 1] - other[2, 1])
        together = abs(apart - math.hypot(turned_x, turned_y))
        return max(together, apart - abs(one_circle) - abs(other_circle))
    return apart - abs(one_circle) - abs(other_circle)


@inner_kernel
def room_of_fallbacks(
    one: Floats,
    one_last: int,
    one_circle: float,
    body: Body,
    other: Floats,
    other_last: int,
    other_circle: float,
    other_body: Body,
) -> float:
    """Return the least room between two ways, one or both of which end in a circle.

    The signed radius of the circle is 0 for a vehicle that stops. After place 1 a fixed wing may be
    anywhere on its circle, whose centre the next places are.
    """
    needed = level_need(body, other_body, one[0, 2] - other[0, 2], one[1, 2] - other[1, 2])
    least = ROOMY
    if needed >= 0.0:
        distance = segment_distance(
            one[0, 0] - other[0, 0],
            one[0, 1] - other[0, 1],
            one[1, 0] - other[1, 0],
            one[1, 1] - other[1, 1],
        )
        least = distance - needed

    both = one_circle != 0.0 and other_circle != 0.0
    apart = circles_apart(one, one_circle, other, other_circle) if both else 0.0
    for k in range(1, max(one_last, other_last)):
        a = min(k, one_last)
        b = min(k + 1, one_last)
        c = min(k, other_last)
        d = min(k + 1, other_last)
        needed = level_need(body, other_body, one[a, 2] - other[c, 2], one[b, 2] - other[d, 2])
        if needed < 0.0:
            continue
        if both:
            least = min(least, apart - needed)
            continue
        # the centre stays where it is
        one_from = b if one_circle != 0.0 else a
        other_from = d if other_circle != 0.0 else c
        distance = segment_distance(
            one[one_from, 0] - other[other_from, 0],
            one[one_from, 1] - other[other_from, 1],
            one[b, 0] - other[d, 0],
            one[b, 1] - other[d, 1],
        )
        least = min(least, distance - needed - abs(one_circle) - abs(other_circle))
    return least


@inner_kernel
def reach_grown(strangers: Strangers, k: int, seconds: float) -> float:
    """Return how far stranger k may be from where its velocity leads after some seconds, m."""
    time = strangers.age[k] + seconds
    return min(0.5 * strangers.unrest[k] * time * time, strangers.most[k] * time)


@inner_kernel
def room_beside_stranger(
    one: Floats,
    one_last: int,
    one_circle: float,
    body: Body,
    stranger: Floats,
    strangers: Strangers,
    k: int,
    times: tuple[float, float, int],
) -> float:
    """Return the least room between a way and stranger k, who may be anywhere within its reach.

    `stranger` is its place now and its velocity, (6,). `times` are the time of the way's first
    place, s from now, the time between places, s, and the number of steps that count.
    """
    other_body = stranger_body(strangers, k)
    least = ROOMY
    first, step, steps = times
    for n in range(steps):
        a = min(n, one_last)
        b = min(n + 1, one_last)
        begin = first + n * step
        end = begin + step

        # height that keeps them apart
        rise = one[a, 2] - stranger[2] - begin * stranger[5]
        rise_after = one[b, 2] - stranger[2] - end * stranger[5]
        grown = reach_grown(strangers, k, end)
        if rise * rise_after > 0.0:  # it may rise or sink too
            nearer = min(abs(rise), abs(rise_after))
            away = math.copysign(max(nearer - grown, 0.0), rise)
            rise = away
            rise_after = away
        needed = level_need(body, other_body, rise, rise_after)
        if needed < 0.0:
            continue

        # distance in the plane
        circle = abs(one_circle) if n >= 1 else 0.0
        a = b if circle > 0.0 else a
        distance = segment_distance(
            one[a, 0] - stranger[0] - begin * stranger[3],
            one[a, 1] - stranger[1] - begin * stranger[4],
            one[b, 0] - stranger[0] - end * stranger[3],
            one[b, 1] - stranger[1] - end * stranger[4],
        )
        least = min(least, distance - needed - circle - grown)
    return least


@inner_kernel
def outline_distance(prisms: Prisms, p: int, x: float, y: float) -> float:
    """Return the distance of a point from outline p, m; negative within it."""
    begin = prisms.first[p]
    end = prisms.first[p + 1]
    nearest = np.inf
    within = end - begin > 2
    for n in range(begin, end):
        after = n + 1 if n + 1 < end else begin
        ax = prisms.corners[n, 0] - x
        ay = prisms.corners[n, 1] - y
        bx = prisms.corners[after, 0] - x
        by = prisms.corners[after, 1] - y
        nearest = min(nearest, segment_distance(ax, ay, bx, by))
        within = within and ax * by - ay * bx > 0.0
    return -nearest if within else nearest


@inner_kernel
def step_to(way: Floats, k: int, circle: float) -> float:
    """Return the level distance of place k from the one before, m; 0 for the centre of a circle."""
    if circle != 0.0 and k >= 2:
        return 0.0
    return math.hypot(way[k, 0] - way[k - 1, 0], way[k, 1] - way[k - 1, 1])


@inner_kernel
def corner_distance(prisms: Prisms, p: int, way: Floats, k: int) -> float:
    """Return the least distance of a corner of outline p from the step to place k, m."""
    least = ROOMY
    for n in range(prisms.first[p], prisms.first[p + 1]):
        x = prisms.corners[n, 0]
        y = prisms.corners[n, 1]
        distance = segment_distance(
            way[k - 1, 0] - x, way[k - 1, 1] - y, way[k, 0] - x, way[k, 1] - y
        )
        least = min(least, distance)
    return least


@inner_kernel
def room_among_prisms(
    way: Floats,
    begin: int,
    last: int,
    circle: float,
    body: Body,
    prisms: Prisms,
    near: Ints,
    count: int,
) -> float:
    """Return the least room between places begin … last of a way and `count` near objects.

    With a circle, of signed radius `circle`, places from 2 on are its centre. On a step of length L
    between places at distances d and e from an object no point is nearer than ½ (d + e - L). Where
    that is too little, the step's ends and the corners of the outline tell exactly.
    """
    least = ROOMY
    for n in range(count):
        p = near[n]
        before = -1.0  # distance of the place before; negative where it does not count
        for k in range(begin, last + 1):
            on_circle = circle != 0.0 and k >= 2
            step = step_to(way, k, circle) if k > begin else 0.0
            step_after = step_to(way, k + 1, circle) if k < last else 0.0
            reach = body[0] + (abs(circle) if on_circle else max(step, step_after))

            # above or below: only the half step from the place before counts
            if way[k, 2] - body[1] >= prisms.top[p] or way[k, 2] + body[2] <= prisms.bottom[p]:
                if before >= 0.0:
                    least = min(least, before - 0.5 * step - body[0])
                before = -1.0
                continue

            # farther away than `reach`
            if (
                way[k, 0] < prisms.low[p, 0] - reach
                or way[k, 0] > prisms.high[p, 0] + reach
                or way[k, 1] < prisms.low[p, 1] - reach
                or way[k, 1] > prisms.high[p, 1] + reach
            ):
                if before >= 0.0:
                    least = min(least, 0.5 * (before + reach - step) - body[0])
                before = -1.0
                continue

            distance = outline_distance(prisms, p, way[k, 0], way[k, 1])
            if on_circle:
                least = min(least, distance - reach)
                continue
            nearest = distance - 0.5 * step
            if before >= 0.0:
                nearest = min(distance, 0.5 * (before + distance - step))
                # near enough to look exactly; a positive bound says that they don't cross
                if 0.0 < nearest < body[0] + SLACK:
                    nearest = min(before, distance, corner_distance(prisms, p, way, k))
            least = min(least, nearest - body[0])
            before = max(distance, 0.0)
    return least


@inner_kernel
def room_over_ground(
    able: AbilityTable, i: int, ground: Any, way: Floats, begin: int, last: int, circle: float
) -> float:
    """Return the least room over the ground at places begin … last of a way, m.

    For an aircraft it is the height above the ground, on a circle above CIRCLE_PLACES of it. A
    ground vehicle is put onto the ground; its room is what is left to the steepest slope, and
    negative where the map ends.
    """
    least = ROOMY
    for k in range(begin, last + 1):
        x = way[k, 0]
        y = way[k, 1]

        # a ground vehicle is put onto the ground
        if able.kind[i] == GROUND:
            z, along_x, along_y, _, _ = gradient(ground, x, y, False)
            way[k, 2] = z
            slope = math.hypot(along_x, along_y)
            outside = max(ground.x_min - x, x - ground.x_max, ground.y_min - y, y - ground.y_max)
            least = min(least, able.steepest[i] - slope, -outside)
        elif circle != 0.0 and k > 1:
            for n in range(CIRCLE_PLACES):
                angle = 2.0 * math.pi * n / CIRCLE_PLACES
                px = x + circle * math.cos(angle)
                py = y + circle * math.sin(angle)
                z, _, _, _, _ = gradient(ground, px, py, False)
                least = min(least, way[k, 2] - able.below[i] - z)
        else:
            z, _, _, _, _ = gradient(ground, x, y, False)
            least = min(least, way[k, 2] - able.below[i] - z)
    return least
