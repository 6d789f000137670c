# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Smooth plane curves by arc length: polynomial segments with position, tangent and curvature."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_trajectory.kernels.tables import POLYNOMIAL
from rfly_trajectory.paths.path import Path, make_path

Curve = Callable[[Floats], tuple[Floats, Floats, Floats]]
"""Function of a parameter u (k,): point, first and second derivative by u, each (k, 2)."""

# quadrature of 16 points, and where a fit is compared with its curve
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_QUARTERS = (0.25, 0.5, 0.75)
_POSITION_TOLERANCE = 1e-10
"""Tolerance of the position, in lengths of the path."""
_SPEED_TOLERANCE = 1e-8
"""Largest deviation of the fitted curve's |dp/ds| from 1."""

_MAX_PIECES = 1 << 14

# quintic Hermite interpolation on [0, 1]: the polynomials (lowest power first) that belong to
# value, slope and second derivative at 0, then at 1
_HERMITE = np.array(
    [
        [1, 0, 0, -10, 15, -6],
        [0, 1, 0, -6, 8, -3],
        [0, 0, 0.5, -1.5, 1.5, -0.5],
        [0, 0, 0, 10, -15, 6],
        [0, 0, 0, -4, 7, -3],
        [0, 0, 0, 0.5, -1, 0.5],
    ]
)


class _ArcLength(NamedTuple):
    """Arc length of a curve, summed panel by panel with Gauss-Legendre quadrature."""

    curve: Curve
    edges: Floats
    """Parameters at the panels' borders, (m + 1,)."""
    sums: Floats
    """Arc lengths at the panels' borders, (m + 1,)."""

    def up_to(self, u: Floats) -> Floats:
        """Return the arc length at the parameters u (k,)."""
        panel = np.clip(np.searchsorted(self.edges, u, side="right") - 1, 0, len(self.edges) - 2)
        return self.sums[panel] + _integrate_speed(self.curve, self.edges[panel], u)

    def parameter(self, s: Floats) -> Floats:
        """Return u at arc length s: linear between the panels' borders, then Newton's method."""
        u = np.interp(s, self.sums, self.edges)
        for _ in range(8):
            step = (self.up_to(u) - s) / _speed(self.curve, u)
            u = np.clip(u - step, self.edges[0], self.edges[-1])
            if np.max(np.abs(step)) <= 1e-15 * (self.edges[-1] - self.edges[0]):
                break
        return u


def _speed(curve: Curve, u: Floats) -> Floats:
    """Return |dp/du| at the parameters u (k,)."""
    slope = curve(u)[1]
    return np.hypot(slope[:, 0], slope[:, 1])


def _integrate_speed(curve: Curve, begin: Floats, end: Floats) -> Floats:
    """Return the arc lengths between the parameters `begin` and `end` (k,)."""
    half = 0.5 * (end - begin)
    u = (0.5 * (begin + end))[:, None] + half[:, None] * _NODES
    return half * (_speed(curve, u.ravel()).reshape(u.shape) @ _WEIGHTS)


def _measure(curve: Curve, begin: float, end: float, min_pieces: int) -> _ArcLength:
    """Return the arc length of a span; its panels are halved until the length is settled."""
    last_length = np.inf
    panels = min_pieces // 2
    while panels < 4096:
        panels *= 2
        edges = np.linspace(begin, end, panels + 1)
        sums = np.concatenate(
            [np.zeros(1), np.cumsum(_integrate_speed(curve, edges[:-1], edges[1:]))]
        )
        if abs(sums[-1] - last_length) <= 1e-14 * sums[-1]:
            break
        last_length = sums[-1]
    return _ArcLength(curve, edges, sums)


def fit_path(curve: Curve, begin: float, end: float, *, closed: bool = False) -> Path:
    """Return the curve from u = begin to u = end as a path by arc length.

    The path's length is the curve's to 1e-13. Pieces have equal lengths; they are halved until the
    path is nowhere farther than 1e-10 of its length from the curve's point at the same arc length,
    and |dp/ds| is 1 to 1e-8. Position, tangent and curvature are continuous. Raises ConfigError for
    a curve with a corner or a cusp, which no number of pieces can follow.
    """
    return fit_spans(curve, np.array([begin, end]), np.zeros(2), closed=closed, pieces=32)[0]


def fit_spans(
    curve: Curve,
    knots: Floats,
    origin: Floats,
    *,
    closed: bool = False,
    pieces: int = 2,
) -> tuple[Path, Floats]:
    """Return the curve over all spans as one path, and its s at the knots (n,).

    The spans lie between the knots (n,). The curve is moved by origin (2,). Inside each span it is
    smooth in the sense of `fit_path`; at the knots position and its first two derivatives are
    continuous, the third may jump. The tolerance of position follows from the whole path's length.
    Each span has at least `pieces` pieces.
    """
    spans = [
        _measure(curve, begin, end, 2 * pieces) for begin, end in itertools.pairwise(knots.tolist())
    ]
    lengths = np.array([span.sums[-1] for span in spans])
    ends = np.cumsum(lengths)
    total = float(ends[-1])

    # pieces of each span, and the arc lengths where they begin
    values = [
        _pieces(span, length, _POSITION_TOLERANCE * total, pieces)
        for span, length in zip(spans, lengths.tolist(), strict=True)
    ]
    start = [
        before + np.linspace(0.0, length, len(rows), endpoint=False)
        for before, length, rows in zip(ends - lengths, lengths, values, strict=True)
    ]

    rows = np.concatenate(values)
    rows[:, [0, 6]] += origin
    path = make_path(np.concatenate(start), np.full(len(rows), POLYNOMIAL), rows, total, closed)
    return path, np.concatenate([np.zeros(1), ends])


def fit_between(curve: Curve, u: Floats, origin: Floats) -> tuple[Path, Floats]:
    """Return the curve with one piece between each two parameters u (n,), and its s there (n,).

    u grows; the curve is moved by origin (2,). For curves that are given by dense samples: a piece
    is the more accurate the shorter it is.
    """
    s = np.concatenate([np.zeros(1), np.cumsum(_integrate_speed(curve, u[:-1], u[1:]))])
    values = _fit(_ArcLength(curve, u, s), s)
    values[:, [0, 6]] += origin
    return make_path(s[:-1], np.full(len(values), POLYNOMIAL), values, float(s[-1]), False), s


def _pieces(measured: _ArcLength, length: float, tolerance: float, pieces: int) -> Floats:
    """Return the polynomial pieces (p, 12) of equal length, at least `pieces` of them.

    Raises ConfigError as `fit_path` does.
    """
    if not (np.isfinite(length) and length > 0.0):
        raise ConfigError(f"the curve has a length of {length!r} m, must be finite and above 0")
    while pieces <= _MAX_PIECES:
        values = _fit(measured, np.linspace(0.0, length, pieces + 1))
        if _follows(measured, values, length, tolerance):
            return values
        pieces *= 2
    raise ConfigError(
        "the curve is not smooth: it has a corner, a cusp or a turn too sharp for its length"
    )


def _fit(measured: _ArcLength, s: Floats) -> Floats:
    """Return the quintic Hermite pieces (p, 12) between the arc lengths s (p + 1,)."""
    point, slope, second = measured.curve(measured.parameter(s))
    speed = np.hypot(slope[:, 0], slope[:, 1])[:, None]
    tangent = slope / speed
    normal = (second - tangent * (second * tangent).sum(axis=1, keepdims=True)) / speed**2

    # values and derivatives at both ends, scaled to [0, 1]
    h = np.diff(s)[:, None]
    ends = np.stack(
        [
            point[:-1],
            h * tangent[:-1],
            h**2 * normal[:-1],
            point[1:],
            h * tangent[1:],
            h**2 * normal[1:],
        ],
        axis=1,
    )
    in_unit = np.einsum("pca,cn->pan", ends, _HERMITE)
    return np.asarray((in_unit / h[:, :, None] ** np.arange(6)).reshape(len(h), 12))


def _follows(measured: _ArcLength, values: Floats, length: float, tolerance: float) -> bool:
    """Return True if the pieces keep the tolerances at their quarters.

    A quintic Hermite polynomial deviates most there.
    """
    h = length / len(values)
    coefficients = values.reshape(-1, 2, 6)
    powers = np.arange(6)
    for quarter in _QUARTERS:
        offset = quarter * h
        point = coefficients @ offset**powers
        slope = coefficients[:, :, 1:] @ (powers[1:] * offset ** powers[:-1])
        s = h * np.arange(len(values)) + offset
        exact = measured.curve(measured.parameter(np.asarray(s, np.float64)))[0]
        if np.max(np.abs(point - exact)) > tolerance:
            return False
        if np.max(np.abs(np.hypot(slope[:, 0], slope[:, 1]) - 1.0)) > _SPEED_TOLERANCE:
            return False
    return True
