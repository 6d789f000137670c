# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled kernels: Reeds' and Shepp's paths, the shortest of a car that can reverse.

A word is a row of arcs (C, to the left L or to the right R) and straights (S); a bar marks a change
between forwards and backwards. Nine families of words contain a shortest path between any two
poses. `_solved` lists the forms that are computed; each one begins with a left turn forwards.
Driving backwards, mirroring, and looking from the goal give all others.

The solvers work in the frame of the start, in turning radii: x ahead, y to the left, phi the turn
to the goal's heading. Pieces are angles, or lengths of straights; negative means backwards.

J. A. Reeds and L. A. Shepp, Optimal paths for a car that goes both forwards and backwards, Pacific
J. Math. 145 (1990). Numbers in parentheses are its formulas.
"""

from __future__ import annotations

import math

from rfly_common.kernels.jit import inlined_kernel, kernel

Word = tuple[float, float, float, float, float, float, float, float, float, float]
"""Lengths of five pieces, m, negative backwards; then their turns: 1 left, 0 straight, -1 right."""
_Five = tuple[float, float, float, float, float]
"""One number for each piece of a word."""

_ROUNDING = 1e-10
"""Angles and lengths, in radii, that count as equal."""
_QUARTER = -0.5 * math.pi
"""Angle of the arcs of 90° that some words contain, driven backwards."""
_NO_WORD = (math.nan, 0.0, 0.0, 0.0, 0.0)

# forms of words, named by their turns
_LSL = 0
_LSR = 1
_LRL = 2
_LRSL = 3
_LRSR = 4
_LRLR_ONE_CUSP = 5
_LRLR_TWO_CUSPS = 6
_LRSLR = 7

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
"""Turns of the pieces of each form."""
_SEARCHED = (
    (_LSL, False),
    (_LSR, False),
    (_LRL, False),
    (_LRSL, False),
    (_LRSR, False),
    (_LRLR_ONE_CUSP, False),
    (_LRLR_TWO_CUSPS, False),
    (_LRSLR, False),
    (_LRL, True),
    (_LRSL, True),
    (_LRSR, True),
)
"""Forms in the order of the search, and whether they are looked at from the goal. Of equally cheap
words the first one is taken.
"""


@kernel
def word_price(lengths: _Five, backward_cost: float, cusp_cost: float) -> float:
    """Return the cost of a word with these lengths on the best ground.

    The costs are those of `shortest_reeds_shepp`, in the unit of the lengths.
    """
    total = 0.0
    previous = 0.0
    for length in lengths:
        if length != 0.0:
            total += length if length > 0.0 else -backward_cost * length
            if previous * length < 0.0:
                total += cusp_cost
            previous = length
    return total


@kernel
def shortest_reeds_shepp(
    ahead: float, left: float, turn: float, r: float, backward_cost: float, cusp_cost: float
) -> Word:
    """Return the cheapest word to a pose `ahead` and `left`, m, turned by `turn`, rad.

    Arcs have the radius `r`, m. A metre backwards counts as `backward_cost` metres, a change of
    direction as `cusp_cost` metres. With 1 and 0 the word is the shortest path.
    """
    x = ahead / r
    y = left / r
    cos_turn = math.cos(turn)
    sin_turn = math.sin(turn)
    goal_x = x * cos_turn + y * sin_turn
    goal_y = x * sin_turn - y * cos_turn

    best_price = math.inf
    best = _NO_WORD
    turns = _TURNS[0]
    for form, from_goal in _SEARCHED:
        for flip in range(4):  # in time, left and right: the text before (8.1)
            time = 1.0 - 2.0 * (flip & 1)
            side = 1.0 - (flip & 2)
            if from_goal:
                word = _solved(form, time * goal_x, side * goal_y, time * side * turn)
            else:
                word = _solved(form, time * x, side * y, time * side * turn)
            if math.isnan(word[0]):
                continue

            word = _scaled(time, _cleared(word))
            price = word_price(word, backward_cost, cusp_cost / r)
            if price < best_price - _ROUNDING:
                best_price = price
                best = word
                turns = _scaled(side, _TURNS[form])
                if from_goal:
                    best = _reversed(form, best)
                    turns = _reversed(form, turns)
    return (*_scaled(r, best), *turns)


@inlined_kernel
def _solved(form: int, x: float, y: float, phi: float) -> _Five:
    """Return the pieces of the word of a form that leads to a pose.

    The first piece is NaN if no such word does.
    """
    if form == _LSL:
        return _lsl(x, y, phi)
    if form == _LSR:
        return _lsr(x, y, phi)
    if form == _LRL:
        return _lrl(x, y, phi)
    if form == _LRSL:
        return _lrsl(x, y, phi)
    if form == _LRSR:
        return _lrsr(x, y, phi)
    if form == _LRLR_ONE_CUSP:
        return _lrlr_one_cusp(x, y, phi)
    if form == _LRLR_TWO_CUSPS:
        return _lrlr_two_cusps(x, y, phi)
    return _lrslr(x, y, phi)


@inlined_kernel
def _lsl(x: float, y: float, phi: float) -> _Five:
    """CSC: L+ S+ L+ (8.1)."""
    ahead, left, distance = _left_centre(x, y, phi)
    t = _wrapped(math.atan2(left, ahead)) if distance > _ROUNDING else 0.0
    v = _wrapped(phi - t)
    return _valid(v >= -_ROUNDING, (t, distance, v, 0.0, 0.0))


@inlined_kernel
def _lsr(x: float, y: float, phi: float) -> _Five:
    """CSC: L+ S+ R+ (8.2)."""
    ahead, left, distance = _right_centre(x, y, phi)
    u = _root(distance)
    t = _wrapped(math.atan2(left, ahead) + math.atan2(2.0, u))
    v = _wrapped(t - phi)
    return _valid(distance >= 2.0 and v >= -_ROUNDING, (t, u, v, 0.0, 0.0))


@inlined_kernel
def _lrl(x: float, y: float, phi: float) -> _Five:
    """C|CC and C|C|C: L+ R- L± (8.3), (8.4)."""
    ahead, left, distance = _left_centre(x, y, phi)
    u = -2.0 * math.asin(min(0.25 * distance, 1.0))
    t = _wrapped(math.atan2(left, ahead) + 0.5 * u + math.pi)
    v = _wrapped(phi - t + u)
    return _valid(distance <= 4.0, (t, u, v, 0.0, 0.0))


@inlined_kernel
def _lrlr_one_cusp(x: float, y: float, phi: float) -> _Five:
    """CC|CC with equal inner arcs: L+ R+ L- R- (8.7)."""
    ahead, left, distance = _right_centre(x, y, phi)
    u = math.acos(min(0.25 * (2.0 + distance), 1.0))
    t, v = _outer_turns(u, -u, ahead, left, phi)
    return _valid(distance <= 2.0 and v <= _ROUNDING, (t, u, -u, v, 0.0))


@inlined_kernel
def _lrlr_two_cusps(x: float, y: float, phi: float) -> _Five:
    """C|CC|C with equal inner arcs: L+ R- L- R+ (8.8)."""
    ahead, left, distance = _right_centre(x, y, phi)
    cosine = (20.0 - distance * distance) / 16.0
    u = -math.acos(min(max(cosine, 0.0), 1.0))
    t, v = _outer_turns(u, u, ahead, left, phi)
    return _valid(0.0 <= cosine <= 1.0 and v >= -_ROUNDING, (t, u, u, v, 0.0))


@inlined_kernel
def _lrsl(x: float, y: float, phi: float) -> _Five:
    """C|CSC: L+ R-90° S- L- (8.9)."""
    ahead, left, distance = _left_centre(x, y, phi)
    root = _root(distance)
    t = _wrapped(math.atan2(left, ahead) + math.atan2(root, -2.0))
    u = 2.0 - root
    v = _wrapped(phi - 0.5 * math.pi - t)
    fits = distance >= 2.0 and u <= _ROUNDING and v <= _ROUNDING
    return _valid(fits, (t, _QUARTER, u, v, 0.0))


@inlined_kernel
def _lrsr(x: float, y: float, phi: float) -> _Five:
    """C|CSC: L+ R-90° S- R- (8.10)."""
    ahead, left, distance = _right_centre(x, y, phi)
    t = _wrapped(math.atan2(ahead, -left))
    u = 2.0 - distance
    v = _wrapped(t + 0.5 * math.pi - phi)
    return _valid(u <= _ROUNDING and v <= _ROUNDING, (t, _QUARTER, u, v, 0.0))


@inlined_kernel
def _lrslr(x: float, y: float, phi: float) -> _Five:
    """C|CSC|C: L+ R-90° S- L-90° R+ (8.11)."""
    ahead, left, distance = _right_centre(x, y, phi)
    u = 4.0 - _root(distance)
    t = _wrapped(math.atan2((4.0 - u) * ahead - 2.0 * left, -2.0 * ahead + (u - 4.0) * left))
    v = _wrapped(t - phi)
    fits = distance >= 2.0 and u <= _ROUNDING and v >= -_ROUNDING
    return _valid(fits, (t, _QUARTER, u, _QUARTER, v))


@inlined_kernel
def _left_centre(x: float, y: float, phi: float) -> tuple[float, float, float]:
    """Return (ahead, left, distance) from the start's left circle to the goal's left one."""
    ahead = x - math.sin(phi)
    left = y - 1.0 + math.cos(phi)
    return ahead, left, math.sqrt(ahead * ahead + left * left)


@inlined_kernel
def _right_centre(x: float, y: float, phi: float) -> tuple[float, float, float]:
    """Return (ahead, left, distance) from the start's left circle to the goal's right one."""
    ahead = x + math.sin(phi)
    left = y - 1.0 - math.cos(phi)
    return ahead, left, math.sqrt(ahead * ahead + left * left)


@inlined_kernel
def _root(distance: float) -> float:
    """Return the length of the inner tangent of two circles; 0 where they overlap."""
    return math.sqrt(max(distance * distance - 4.0, 0.0))


@inlined_kernel
def _outer_turns(u: float, v: float, ahead: float, left: float, phi: float) -> tuple[float, float]:
    """Return τ and ω of (8.6), the first and the last turn about two inner ones."""
    delta = u - v
    a = math.sin(u) - math.sin(delta)
    b = math.cos(u) - math.cos(delta) - 1.0
    turn = math.atan2(left * a - ahead * b, ahead * a + left * b)
    if 2.0 * (math.cos(delta) - math.cos(v) - math.cos(u)) + 3.0 < 0.0:
        turn += math.pi
    turn = _wrapped(turn)
    return turn, _wrapped(turn - u + v - phi)


@inlined_kernel
def _wrapped(angle: float) -> float:
    """Return the same angle in (-π, π]; a rounded -π becomes π."""
    angle -= 2.0 * math.pi * math.floor((angle + math.pi) / (2.0 * math.pi))
    return angle + 2.0 * math.pi if angle < _ROUNDING - math.pi else angle


@inlined_kernel
def _valid(fits: bool, word: _Five) -> _Five:
    """Return the word where it fits and begins forwards, else the one that leads nowhere."""
    return word if fits and word[0] >= -_ROUNDING else _NO_WORD


@inlined_kernel
def _cleared(word: _Five) -> _Five:
    """Return the word without pieces that only rounding made."""
    a, b, c, d, e = word
    return (
        0.0 if abs(a) < _ROUNDING else a,
        0.0 if abs(b) < _ROUNDING else b,
        0.0 if abs(c) < _ROUNDING else c,
        0.0 if abs(d) < _ROUNDING else d,
        0.0 if abs(e) < _ROUNDING else e,
    )


@inlined_kernel
def _scaled(factor: float, five: _Five) -> _Five:
    """Return factor · each of the five numbers."""
    a, b, c, d, e = five
    return factor * a, factor * b, factor * c, factor * d, factor * e


@inlined_kernel
def _reversed(form: int, five: _Five) -> _Five:
    """Return lengths or turns of a word of three (LRL) or four pieces from last to first."""
    a, b, c, d, e = five
    if form == _LRL:
        return c, b, a, d, e
    return d, c, b, a, e
