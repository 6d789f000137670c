"""Ground vehicles on four wheels: height and attitude from the ground under each wheel.

In the heading frame of `attitude` (x along the way, y left) the wheels' plane is z = q x + p y about the vehicle's
origin, with a = √(1+q²) and b = √(a²+p²). The body's axes are x_body = (1, 0, q)/a and y_body = (-pq, a², p)/(ab), so
the wheel (s, t), each ±1, stands at the origin plus s·wheelbase/2·x_body + t·track/2·y_body.

Of heights h at the four wheels the least-squares plane rises by α = Σ s·h / (2 wheelbase) along x_body and by
β = Σ t·h / (2 track) along y_body, from which q = α/√(1-α²) and p = a·u/√(1-u²) with u = a·β. Where the wheels stand
depends on q and p: a few fixed-point steps settle it. Then the plane is raised until no wheel, and not the origin, is
below the ground. On level, evenly sloping and rolling ground all wheels touch; on twisted ground two do, and the
others are in the air by a gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rfly_terrain.height_map import HeightMap

Floats = NDArray[np.float64]

_FORE = np.array([1.0, 1.0, -1.0, -1.0])
_LEFT = np.array([1.0, -1.0, 1.0, -1.0])
_STEPS = 3
_STEEPEST = 0.99
"""of α and u: a plane that stands upright has no slope"""


class Contact(NamedTuple):
    """k vehicles on their wheels."""

    altitude: Floats
    """(k,) of the wheels' plane at the origin, m"""
    slope: Floats
    """(k, 2) q along the way and p to its left"""
    climb_rate: Floats
    """(k,) m/s"""
    slope_rate: Floats
    """(k, 2) 1/s"""
    gap: Floats
    """(k,) of the wheel that is farthest above the ground, m"""


class _Arms(NamedTuple):
    """From the origin to the wheels, seen from above in the heading frame, per metre of half wheelbase and track."""

    fore: Floats
    left_x: Floats
    left_y: Floats


def stand(
    terrain: HeightMap, wheelbase: Floats, track: Floats, points: Floats, speed: Floats, slope: Floats, height: Floats
) -> Contact:
    """Contact of k vehicles with wheelbase and track (k,) [m] at points (k, 6) as `path_points` gives them.

    speed (k,) m/s; slope (k, 2) is a first guess; height (k,) [m] is that of the origin above the wheels' plane.
    """
    q, p = slope.T
    for _ in range(_STEPS):
        x, y, _, _ = _wheels(wheelbase, track, points, _arms(q, p))
        h = _altitude(terrain, x, y)
        alpha, beta, q, p = _plane(h, wheelbase, track)
    arms = _arms(q, p)
    x, y, ahead, left = _wheels(wheelbase, track, points, arms)
    h = _altitude(terrain, x, y)
    above_origin = 0.5 * (alpha * wheelbase)[:, None] * _FORE + 0.5 * (beta * track)[:, None] * _LEFT
    needed = h - above_origin
    lowest = np.argmax(needed, axis=1)
    rows = np.arange(len(lowest))
    altitude = needed[rows, lowest]

    rates = _rates(terrain, wheelbase, track, points, speed, (q, p), (x, y, ahead, left))
    alpha_rate, beta_rate, h_rate, q_rate, p_rate = rates
    climb = (
        h_rate[rows, lowest] - 0.5 * alpha_rate * wheelbase * _FORE[lowest] - 0.5 * beta_rate * track * _LEFT[lowest]
    )
    middle = np.asarray(terrain.altitude(points[:, 0].copy(), points[:, 1].copy()), float) - height
    on_belly = middle > altitude
    if on_belly.any():
        altitude = np.where(on_belly, middle, altitude)
        gradient = terrain.gradient(points[:, 0].copy(), points[:, 1].copy())
        climb = np.where(on_belly, speed * (gradient * points[:, 2:4]).sum(axis=1), climb)
    gap = (altitude[:, None] + above_origin - h).max(axis=1)
    return Contact(altitude, np.stack([q, p], -1), climb, np.stack([q_rate, p_rate], -1), gap)


def _arms(q: Floats, p: Floats) -> _Arms:
    a = np.sqrt(1.0 + q * q)
    b = np.sqrt(a * a + p * p)
    return _Arms(1.0 / a, -p * q / (a * b), a / b)


def _wheels(wheelbase: Floats, track: Floats, points: Floats, arms: _Arms) -> tuple[Floats, Floats, Floats, Floats]:
    """(k, 4) x and y in map, and how far ahead and left of the origin that is."""
    fore, side = 0.5 * wheelbase[:, None] * _FORE, 0.5 * track[:, None] * _LEFT
    ahead = fore * arms.fore[:, None] + side * arms.left_x[:, None]
    left = side * arms.left_y[:, None]
    tx, ty = points[:, 2, None], points[:, 3, None]
    x = points[:, 0, None] + tx * ahead - ty * left
    y = points[:, 1, None] + ty * ahead + tx * left
    return x, y, ahead, left


def _altitude(terrain: HeightMap, x: Floats, y: Floats) -> Floats:
    return np.asarray(terrain.altitude(x.reshape(-1), y.reshape(-1)), float).reshape(x.shape)


def _plane(h: Floats, wheelbase: Floats, track: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """α, β, q and p of the least-squares plane through the heights (k, 4)."""
    alpha = np.clip((h @ _FORE) / (2.0 * wheelbase), -_STEEPEST, _STEEPEST)
    a = 1.0 / np.sqrt(1.0 - alpha * alpha)
    u = np.clip(a * (h @ _LEFT) / (2.0 * track), -_STEEPEST, _STEEPEST)
    return alpha, u / a, alpha * a, a * u / np.sqrt(1.0 - u * u)


def _rates(
    terrain: HeightMap,
    wheelbase: Floats,
    track: Floats,
    points: Floats,
    speed: Floats,
    slope: tuple[Floats, Floats],
    wheels: tuple[Floats, Floats, Floats, Floats],
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Rates of α, β, of the heights (k, 4), of q and p. Twice: how the wheels move depends on how the body turns."""
    q, p = slope
    x, y, ahead, left = wheels
    gradient = terrain.gradient(x.reshape(-1), y.reshape(-1)).reshape(*x.shape, 2)
    tx, ty = points[:, 2, None], points[:, 3, None]
    along = gradient[..., 0] * tx + gradient[..., 1] * ty
    across = gradient[..., 1] * tx - gradient[..., 0] * ty
    yaw_rate = (points[:, 4] * speed)[:, None]
    fore, side = 0.5 * wheelbase[:, None] * _FORE, 0.5 * track[:, None] * _LEFT
    a = np.sqrt(1.0 + q * q)
    b = np.sqrt(a * a + p * p)
    u = p / b
    q_rate, p_rate = np.zeros_like(q), np.zeros_like(p)
    for _ in range(2):
        a_rate = q * q_rate / a
        b_rate = (a * a_rate + p * p_rate) / b
        fore_rate = -a_rate / a**2
        left_x_rate = (-(p_rate * q + p * q_rate) + p * q * (a_rate / a + b_rate / b)) / (a * b)
        left_y_rate = a_rate / b - a * b_rate / b**2
        ahead_rate = speed[:, None] - yaw_rate * left + fore * fore_rate[:, None] + side * left_x_rate[:, None]
        aside_rate = yaw_rate * ahead + side * left_y_rate[:, None]
        h_rate = along * ahead_rate + across * aside_rate
        alpha_rate, beta_rate = (h_rate @ _FORE) / (2.0 * wheelbase), (h_rate @ _LEFT) / (2.0 * track)
        q_rate = a**3 * alpha_rate
        a_rate = q * q_rate / a
        u_rate = beta_rate * a + u / a * a_rate
        root = np.sqrt(1.0 - u * u)
        p_rate = a_rate * u / root + a * u_rate / root**3
    return alpha_rate, beta_rate, h_rate, q_rate, p_rate
