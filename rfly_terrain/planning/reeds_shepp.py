"""Compiled kernels: Reeds' and Shepp's paths, the shortest of a car that drives forwards and
backwards.

J. A. Reeds and L. A. Shepp, Optimal paths for a car that goes both forwards and backwards, Pacific
J. Math. 145 (1990); its formulas (8.1)-(8.11) are named where they stand, in radii and in the frame
of the first pose.
"""

from __future__ import annotations

import math

from rfly_common.kernels.jit import kernel

Word = tuple[float, float, float, float, float, float, float, float, float, float]
"""lengths (m, negative: backwards) of five pieces, one after the other, then their turns: 1 left, 0
none, -1 right
"""

_ROUNDING = 1e-10
_TURNS = (
    (1.0, 0.0, 1.0, 0.0, 0.0),
    (1.0, 0.0, -1.0, 0.0, 0.0),
    (1.0, -1.0, 1.0, 0.0, 0.0),
    (1.0, -1.0, 0.0, 1.0, 0.0),
    (1.0, -1.0, 0.0, -1.0, 0.0),
    (1.0, -1.0, 1.0, -1.0, 0.0),
    (1.0, -1.0, 1.0, -1.0, 0.0),
    (1.0, -1.0, 0.0, 1.0, -1.0),
)
"""of the pieces of each form"""
_SEEN_FROM_END = 3
"""forms 2, 3 and 4 are also looked at from the goal, as numbers 8, 9 and 10"""


@kernel
def _wrapped(angle: float) -> float:
    """In (-π, π], where a rounded -π is π."""
    angle -= 2.0 * math.pi * math.floor((angle + math.pi) / (2.0 * math.pi))
    return angle + 2.0 * math.pi if angle < _ROUNDING - math.pi else angle


@kernel
def _outer_turns(u: float, v: float, ahead: float, left: float, phi: float) -> tuple[float, float]:
    """τ and ω of (8.6), the first and the last turn about two in between."""
    delta = u - v
    a = math.sin(u) - math.sin(delta)
    b = math.cos(u) - math.cos(delta) - 1.0
    turn = math.atan2(left * a - ahead * b, ahead * a + left * b)
    if 2.0 * (math.cos(delta) - math.cos(v) - math.cos(u)) + 3.0 < 0.0:
        turn += math.pi
    turn = _wrapped(turn)
    return turn, _wrapped(turn - u + v - phi)


@kernel
def _solved(form: int, x: float, y: float, phi: float) -> tuple[float, float, float]:
    """(t, u, v) of a form that begins with a left turn forwards, t ≥ 0; t is NaN where it leads
    nowhere.
    """
    none = (math.nan, 0.0, 0.0)
    if form in (0, 2, 3):
        ahead = x - math.sin(phi)
        left = y - 1.0 + math.cos(phi)
    else:
        ahead = x + math.sin(phi)
        left = y - 1.0 - math.cos(phi)
    far = math.sqrt(ahead * ahead + left * left)
    angle = math.atan2(left, ahead)
    root = math.sqrt(max(far * far - 4.0, 0.0))
    if form == 0:  # L+ S+ L+ (8.1)
        t = _wrapped(angle) if far > _ROUNDING else 0.0
        u = far
        v = _wrapped(phi - t)
        good = v >= -_ROUNDING
    elif form == 1:  # L+ S+ R+ (8.2)
        t = _wrapped(angle + math.atan2(2.0, root))
        u = root
        v = _wrapped(t - phi)
        good = far >= 2.0 and v >= -_ROUNDING
    elif form == 2:  # L+ R- L± (8.3), (8.4)
        u = -2.0 * math.asin(min(0.25 * far, 1.0))
        t = _wrapped(angle + 0.5 * u + math.pi)
        v = _wrapped(phi - t + u)
        good = far <= 4.0
    elif form == 3:  # L+ R-π/2 S- L- (8.9)
        t = _wrapped(angle + math.atan2(root, -2.0))
        u = 2.0 - root
        v = _wrapped(phi - 0.5 * math.pi - t)
        good = far >= 2.0 and u <= _ROUNDING and v <= _ROUNDING
    elif form == 4:  # L+ R-π/2 S- R- (8.10)
        t = _wrapped(math.atan2(ahead, -left))
        u = 2.0 - far
        v = _wrapped(t + 0.5 * math.pi - phi)
        good = u <= _ROUNDING and v <= _ROUNDING
    elif form == 5:  # L+ R+u L-u R- (8.7)
        u = math.acos(min(0.25 * (2.0 + far), 1.0))
        t, v = _outer_turns(u, -u, ahead, left, phi)
        good = far <= 2.0 and v <= _ROUNDING
    elif form == 6:  # L+ R-u L-u R+ (8.8)
        square = (20.0 - far * far) / 16.0
        u = -math.acos(min(max(square, 0.0), 1.0))
        t, v = _outer_turns(u, u, ahead, left, phi)
        good = 0.0 <= square <= 1.0 and v >= -_ROUNDING
    else:  # L+ R-π/2 S- L-π/2 R+ (8.11)
        u = 4.0 - root
        t = _wrapped(math.atan2((4.0 - u) * ahead - 2.0 * left, -2.0 * ahead + (u - 4.0) * left))
        v = _wrapped(t - phi)
        good = far >= 2.0 and u <= _ROUNDING and v >= -_ROUNDING
    return (t, u, v) if good and t >= -_ROUNDING else none


@kernel
def _cleared(part: float) -> float:
    """0 where rounding made it."""
    return 0.0 if abs(part) < _ROUNDING else part


@kernel
def _pieces(form: int, t: float, u: float, v: float) -> tuple[float, float, float, float, float]:
    """Angles, or for a straight one the length, of the pieces of a form; those that rounding made
    are 0.
    """
    t = _cleared(t)
    u = _cleared(u)
    v = _cleared(v)
    quarter = -0.5 * math.pi
    if form < 3:
        return t, u, v, 0.0, 0.0
    if form < 5:
        return t, quarter, u, v, 0.0
    if form == 7:
        return t, quarter, u, quarter, v
    return t, u, -u if form == 5 else u, v, 0.0


@kernel
def word_price(
    lengths: tuple[float, float, float, float, float], backward_cost: float, cusp_cost: float
) -> float:
    """What the lengths of a word cost on the best ground; the arguments are those of
    `shortest_reeds_shepp`.
    """
    total = 0.0
    before = 0.0
    for length in lengths:
        if length != 0.0:
            total += length if length > 0.0 else -backward_cost * length
            if before * length < 0.0:
                total += cusp_cost
            before = length
    return total


@kernel
def shortest_reeds_shepp(
    ahead: float, left: float, turn: float, r: float, backward_cost: float, cusp_cost: float
) -> Word:
    """The cheapest of Reeds' and Shepp's words to a pose `ahead` and `left` (m), turned by `turn`
    (rad); arcs of `r`.

    A metre backwards counts as `backward_cost`, a change of direction `cusp_cost` metres; with 1
    and 0 it is the shortest path there is.
    """
    best = math.inf
    best_number = 0
    best_flip = 0
    t = 0.0
    u = 0.0
    v = 0.0
    x0 = ahead / r
    y0 = left / r
    c = math.cos(turn)
    s = math.sin(turn)
    for number in range(8 + _SEEN_FROM_END):
        form = number if number < 8 else number - 6
        x, y = (x0, y0) if number < 8 else (x0 * c + y0 * s, x0 * s - y0 * c)
        for flip in range(4):  # time, and left and right: the text before (8.1)
            back = 1.0 - 2.0 * (flip & 1)
            mirror = 1.0 - (flip & 2)
            found = _solved(form, back * x, mirror * y, back * mirror * turn)
            if math.isnan(found[0]):
                continue
            a, b, d, e, f = _pieces(form, found[0], found[1], found[2])
            price = word_price(
                (back * a, back * b, back * d, back * e, back * f), backward_cost, cusp_cost / r
            )
            if price < best - _ROUNDING:
                best = price
                best_number = number
                best_flip = flip
                t, u, v = found
    form = best_number if best_number < 8 else best_number - 6
    back = r * (1.0 - 2.0 * (best_flip & 1))
    mirror = 1.0 - (best_flip & 2)
    a, b, d, e, f = _pieces(form, t, u, v)
    k, m, n, o, p = _TURNS[form]
    if best_number >= 8:
        if form == 2:
            a, d, k, n = d, a, n, k
        else:
            a, b, d, e, k, m, n, o = e, d, b, a, o, n, m, k
    a = back * a
    b = back * b
    d = back * d
    e = back * e
    f = back * f
    return a, b, d, e, f, mirror * k, mirror * m, mirror * n, mirror * o, mirror * p
