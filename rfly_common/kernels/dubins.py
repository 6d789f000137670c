"""Dubins paths: shortest paths between two poses for a forward-driving vehicle with a turn radius.

The one function takes plain floats and calls nothing but `math`, so kernels can compile it too.
"""

from __future__ import annotations

import math

Word = tuple[float, float, float, float, float, float]
"""Lengths of three pieces, m, then their turns: 1 left, 0 straight on, -1 right."""


def shortest_dubins(
    x: float, y: float, heading: float, to_x: float, to_y: float, to_heading: float, r: float
) -> Word:
    """Return the shortest of the six Dubins words from one pose to another.

    Coordinates and the radius `r` of the arcs are in metres, headings in radians counter-clockwise
    from x. The length of the path is the sum of the first three numbers; a piece may have the
    length 0. Source: A. M. Shkel and V. Lumelsky, Classification of the Dubins set, Robotics and
    Autonomous Systems 34 (2001), equations (11)-(16). Distances there are in radii, and the x axis
    runs from one point to the other.
    """
    # distance in radii, headings relative to the line between the points
    turn = 2.0 * math.pi
    along = math.atan2(to_y - y, to_x - x)
    d = math.sqrt((to_x - x) * (to_x - x) + (to_y - y) * (to_y - y)) / r
    a = heading - along
    b = to_heading - along
    sin_a = math.sin(a)
    cos_a = math.cos(a)
    sin_b = math.sin(b)
    cos_b = math.cos(b)
    cos_ab = math.cos(a - b)

    best = math.inf
    best_t = 0.0
    best_p = 0.0
    best_q = 0.0
    first = 1.0
    middle = 0.0
    last = 1.0
    for word in range(6):
        # the first turn; right turns are left turns in the mirror
        kind = 1.0 if word % 2 == 0 else -1.0
        m_a = kind * a
        m_b = kind * b
        s_a = kind * sin_a
        s_b = kind * sin_b

        # lengths of the three pieces, in radii
        if word < 2:  # the same turn at both ends
            ahead = d + s_a - s_b
            aside = cos_b - cos_a
            p = math.sqrt(ahead * ahead + aside * aside)
            if p < 1e-9:  # both on one circle: the straight has no direction, one turn does it
                t = m_b - m_a
                p = 0.0
                q = 0.0
            else:
                angle = math.atan2(aside, ahead)
                t = angle - m_a
                q = m_b - angle
        elif word < 4:  # one turn to each side
            square = -2.0 + d * d + 2.0 * cos_ab + 2.0 * d * (s_a + s_b)
            if square < -1e-9:  # rounding: the two circles may just touch
                continue
            p = math.sqrt(max(square, 0.0))
            angle = math.atan2(-cos_a - cos_b, d + s_a + s_b) - math.atan2(-2.0, p)
            t = angle - m_a
            q = angle - m_b
        else:  # three turns
            cosine = (6.0 - d * d + 2.0 * cos_ab - 2.0 * d * (s_a - s_b)) / 8.0
            if abs(cosine) > 1.0:
                continue
            p = turn - math.acos(cosine)
            t = math.atan2(cos_b - cos_a, d + s_a - s_b) - m_a + p / 2.0
            q = m_b - m_a - t + p

        # rounding can turn an angle of 0 into a whole turn
        t %= turn
        q %= turn
        if turn - t < 1e-9:
            t = 0.0
        if turn - q < 1e-9:
            q = 0.0

        # the shortest word up to now
        if t + p + q < best - 1e-12:
            best = t + p + q
            best_t = t
            best_p = p
            best_q = q
            first = kind
            middle = 0.0 if word < 4 else -kind
            last = -kind if 2 <= word < 4 else kind

    return best_t * r, best_p * r, best_q * r, first, middle, last
