# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Dubins paths: shortest paths between two poses for a forward-driving vehicle with a turn radius.

A word is three pieces: arcs to the left (L) or right (R) and straight lines (S). Right turns are
left turns in the mirror, so three families of words cover all six. The functions take plain numbers
and call nothing but `math` and each other, so kernels can compile them too
(`jit.callable_in_kernels`).

Source: A. M. Shkel and V. Lumelsky, Classification of the Dubins set, Robotics and Autonomous
Systems 34 (2001), equations (11)-(16). Distances there are in radii, and the x axis runs from one
point to the other.
"""

from __future__ import annotations

import math

Word = tuple[float, float, float, float, float, float]
"""Lengths of three pieces, m or radii, then their turns: 1 left, 0 straight on, -1 right."""

Pieces = tuple[float, float, float]
"""Lengths of three pieces, radii; t, p and q in the source."""

Turns = tuple[float, float, float]
"""Turns of three pieces: 1 left, 0 straight on, -1 right."""

LSL: Turns = (1.0, 0.0, 1.0)
RSR: Turns = (-1.0, 0.0, -1.0)
LSR: Turns = (1.0, 0.0, -1.0)
RSL: Turns = (-1.0, 0.0, 1.0)
LRL: Turns = (1.0, -1.0, 1.0)
RLR: Turns = (-1.0, 1.0, -1.0)

WHOLE_TURN = 2.0 * math.pi
"""Angle of a whole turn, rad."""

ROUNDING = 1e-9
"""Angle, rad, or length, radii, that rounding alone can make."""

NO_PIECES: Pieces = (0.0, math.inf, 0.0)
"""Pieces of a word that does not join the two poses."""

NO_WORD: Word = (0.0, math.inf, 0.0, 0.0, 0.0, 0.0)
"""Word that is longer than any other."""


Ends = tuple[float, float, float, float, float, float, float, float]
"""Two poses on the x axis: distance d, radii, headings a and b, rad, sin a, cos a, sin b, cos b,
cos(a - b). A plain tuple, as Python makes one in a fifth of the time of a named one.
"""


def shortest_dubins(
    x: float, y: float, heading: float, to_x: float, to_y: float, to_heading: float, r: float
) -> Word:
    """Return the shortest of the six Dubins words from one pose to another.

    Coordinates and the radius `r` of the arcs are in metres, headings in radians counter-clockwise
    from x. The length of the path is the sum of the first three numbers; a piece may have the
    length 0. Of words equally long the first in the order of this function is returned.
    """
    ends, mirrored = between(x, y, heading, to_x, to_y, to_heading, r)
    best = shorter(NO_WORD, same_turns(ends), LSL)
    best = shorter(best, same_turns(mirrored), RSR)
    best = shorter(best, opposite_turns(ends), LSR)
    best = shorter(best, opposite_turns(mirrored), RSL)
    best = shorter(best, three_turns(ends), LRL)
    best = shorter(best, three_turns(mirrored), RLR)
    return best[0] * r, best[1] * r, best[2] * r, best[3], best[4], best[5]


def between(
    x: float, y: float, heading: float, to_x: float, to_y: float, to_heading: float, r: float
) -> tuple[Ends, Ends]:
    """Return two poses on the x axis, and their mirror images, from coordinates in metres."""
    along = math.atan2(to_y - y, to_x - x)
    d = math.sqrt((to_x - x) * (to_x - x) + (to_y - y) * (to_y - y)) / r
    a = heading - along
    b = to_heading - along
    sin_a = math.sin(a)
    cos_a = math.cos(a)
    sin_b = math.sin(b)
    cos_b = math.cos(b)
    cos_ab = math.cos(a - b)
    ends = (d, a, b, sin_a, cos_a, sin_b, cos_b, cos_ab)
    mirrored = (d, -a, -b, -sin_a, cos_a, -sin_b, cos_b, cos_ab)
    return ends, mirrored


def same_turns(ends: Ends) -> Pieces:
    """Return the pieces of LSL: a straight line between two arcs to the left."""
    d, a, b, sin_a, cos_a, sin_b, cos_b, _ = ends
    ahead = d + sin_a - sin_b
    aside = cos_b - cos_a
    p = math.sqrt(ahead * ahead + aside * aside)

    # both arcs on one circle: the line has no direction, and one arc is enough
    if p < ROUNDING:
        return b - a, 0.0, 0.0

    angle = math.atan2(aside, ahead)
    return angle - a, p, b - angle


def opposite_turns(ends: Ends) -> Pieces:
    """Return the pieces of LSR: a straight line between an arc to the left and one to the right."""
    d, a, b, sin_a, cos_a, sin_b, cos_b, cos_ab = ends
    square = -2.0 + d * d + 2.0 * cos_ab + 2.0 * d * (sin_a + sin_b)

    # the two circles may just touch
    if square < -ROUNDING:
        return NO_PIECES

    p = math.sqrt(max(square, 0.0))
    angle = math.atan2(-cos_a - cos_b, d + sin_a + sin_b) - math.atan2(-2.0, p)
    return angle - a, p, angle - b


def three_turns(ends: Ends) -> Pieces:
    """Return the pieces of LRL: an arc to the right between two arcs to the left."""
    d, a, b, sin_a, cos_a, sin_b, cos_b, cos_ab = ends
    cosine = (6.0 - d * d + 2.0 * cos_ab - 2.0 * d * (sin_a - sin_b)) / 8.0
    if abs(cosine) > 1.0:
        return NO_PIECES

    p = WHOLE_TURN - math.acos(cosine)
    t = math.atan2(cos_b - cos_a, d + sin_a - sin_b) - a + p / 2.0
    return t, p, b - a - t + p


def shorter(best: Word, pieces: Pieces, turns: Turns) -> Word:
    """Return the word of these pieces and turns if it is shorter than the best, else the best."""
    t, p, q = pieces
    t %= WHOLE_TURN
    q %= WHOLE_TURN

    # rounding can turn an angle of 0 into a whole turn
    if WHOLE_TURN - t < ROUNDING:
        t = 0.0
    if WHOLE_TURN - q < ROUNDING:
        q = 0.0

    if t + p + q < best[0] + best[1] + best[2] - 1e-12:
        return t, p, q, turns[0], turns[1], turns[2]
    return best
