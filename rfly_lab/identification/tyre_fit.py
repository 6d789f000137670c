# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fit of the tyres and the inertia in yaw to a vehicle that drives, brakes, turns and slides.

The Magic Formula of docs/model, section 5, with measured loads and slips; the forces of the wheels
follow by Newton and Euler from the body's motion. Nonlinear least squares.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_lab.identification.flight_fit import airborne, drag, inertial_wrench, sprung_inertia
from rfly_lab.identification.regression import PRIOR, Estimated, comparable, inside, redundancy
from rfly_lab.identification.vehicle_log import LoggedMotion

SLOWEST = 1.0
"""Speed of a wheel below which its slip is not well defined, m/s."""
DRIVING = 3.0
"""Speed of a wheel below which it does not count, m/s."""
MARGIN = 0.2
"""Time about what does not count that does not count either, s."""
LEAST = 4.0
"""Least time of driving, s."""
_FIELDS = {
    "slip_stiffness": ("K_x / F_z", "tyre.slip_stiffness"),
    "friction_x": ("μ_x", "tyre.friction_x"),
    "shape_x": ("C_x", "tyre.shape_x"),
    "cornering_stiffness_per_rad": ("p_K1", "tyre.cornering_stiffness_per_rad"),
    "cornering_factor_front": ("λ_K, front", "tyre.cornering_factor_front"),
    "friction_y": ("μ_y", "tyre.friction_y"),
    "shape_y": ("C_y", "tyre.shape_y"),
    "cornering_load_ratio": ("p_K2", "tyre.cornering_load_ratio"),
    "relaxation_x": ("σ_κ", "tyre.relaxation_x_m"),
    "relaxation_y": ("σ_α", "tyre.relaxation_y_m"),
    "friction_load_loss": ("c_μ", "tyre.friction_load_loss"),
    "curvature_x": ("E_x", "tyre.curvature_x"),
    "curvature_y": ("E_y", "tyre.curvature_y"),
}
"""Identified parameters with symbol and key."""
_UNITS = {"cornering_stiffness_per_rad": "1/rad", "relaxation_x": "m", "relaxation_y": "m"}
_SHIFTED = ("curvature_x", "curvature_y")
"""Parameters that are fitted as a difference from the given value, not as a share of it."""


class TyreContact(NamedTuple):
    """Contact of a log's wheels with the ground, in axes of the body."""

    forward: Floats
    """Directions along the ground, unit vectors, (k, 4, 3)."""
    left: Floats
    up: Floats
    """Normal of the ground, (k, 1, 3)."""
    lever: Floats
    """Positions from the body's centre, m, (k, 4, 3)."""
    slip_speed: Floats
    """Speeds of the contact forward and to the left, m/s, for the given radius, (k, 4, 2)."""
    speed: Floats
    """Speeds of the hubs, forward, m/s, (k, 4)."""
    roll_speed: Floats
    """Speeds of the treads, m/s, (k, 4)."""
    load: Floats
    """Loads, N, (k, 4)."""


def contact(p: VehicleParameters, m: LoggedMotion) -> TyreContact:
    """Return the contact in the measured motion; docs/model, section 5.2."""
    up = m.up[:, None, :]
    axle = np.stack([-np.sin(m.steering), np.cos(m.steering), np.zeros_like(m.steering)], axis=-1)
    forward = np.cross(axle, up)
    forward /= np.linalg.norm(forward, axis=-1, keepdims=True)
    left = np.cross(up, forward)

    # speeds
    w = m.rates[:, None, :]
    hub = m.velocity[:, None] + np.cross(w, m.hub) + m.strut_rate[..., None] * (0.0, 0.0, 1.0)
    pressed = m.load / p.tyre_stiffness
    down = -(p.wheel_radius - pressed)[..., None] * up
    rolling = (p.wheel_radius - pressed / 3.0) * (m.wheel_speed + (axle * w).sum(axis=-1))
    speed = (hub * forward).sum(axis=-1)
    aside = ((hub + np.cross(w, down)) * left).sum(axis=-1)
    slip = np.stack([speed - rolling, aside], axis=-1)
    return TyreContact(forward, left, up, m.hub + down, slip, speed, rolling, m.load)


def tyre_forces(
    p: VehicleParameters, load: Floats, slip_x: Floats, slip_y: Floats, factor: Floats
) -> tuple[Floats, Floats]:
    """Return the forces F_x and F_y (N) of slips κ and tan α, all (…, wheels). Eq. 5.9 to 5.13.

    `factor`: λ_K of each wheel.
    """
    fz = np.maximum(load, 1e-6 * p.nominal_load)
    loss = p.friction_load_loss * (fz - p.nominal_load) / p.nominal_load
    friction = np.maximum(0.2, 1.0 - loss) * fz
    peak_x = p.friction_x * friction
    peak_y = p.friction_y * friction

    # normalised slips
    bend = 2.0 * np.arctan(fz / (p.cornering_load_ratio * p.nominal_load))
    stiff_y = factor * p.cornering_stiffness_per_rad * p.nominal_load * np.sin(bend)
    x = p.slip_stiffness * fz * slip_x / peak_x
    y = stiff_y * slip_y / peak_y
    slip = np.maximum(np.hypot(x, y), 1e-9)

    def curve(shape: float, curvature: float) -> Floats:
        z = slip / shape
        return np.sin(shape * np.arctan(z - curvature * (z - np.arctan(z)))) / slip

    fx = peak_x * x * curve(p.shape_x, p.curvature_x)
    fy = peak_y * y * curve(p.shape_y, p.curvature_y)
    return fx, fy


def lagged(slip_speed: Floats, speed: Floats, step: float, length: float) -> Floats:
    """Return the slip (k, wheels) that follows −V_s/|V| over a relaxation length, m. Eq. 5.6.

    It is 0 below SLOWEST.
    """
    distance = np.maximum(np.abs(speed), SLOWEST)
    target = np.where(np.abs(speed) >= SLOWEST, -slip_speed / distance, 0.0)
    passed = distance * step / length
    keep = np.exp(-passed)
    # exact for a target that changes evenly from sample to sample
    rest = (1.0 - keep) / passed
    gain = (1.0 - rest) * target
    gain[1:] += (rest - keep)[1:] * target[:-1]

    slip = np.empty_like(gain)
    now = np.zeros(gain.shape[1])
    for k in range(len(gain)):
        now = keep[k] * now + gain[k]
        slip[k] = now
    return slip


def unchecked(p: VehicleParameters, **values: Any) -> VehicleParameters:
    """Return a copy with other values, which need not be a possible vehicle yet."""
    changed = copy.copy(p)
    for name, value in values.items():
        object.__setattr__(changed, name, value)
    return changed


@dataclass(frozen=True)
class TyreFit:
    """Result of a fit of the tyres, and its data."""

    params: VehicleParameters
    """Parameters with the identified tyres and inertia in yaw."""
    estimated: list[Estimated]
    slips: tuple[Floats, Floats]
    """Slips κ and tan α of the rows that counted, (n, 4)."""
    left_over: Floats
    """Residual forces along and across, N, and moments in yaw, N m, (n, 3)."""


class _Drive:
    """Residuals of a log under tyre parameters."""

    def __init__(self, p: VehicleParameters, m: LoggedMotion) -> None:
        self.given = p
        self.contact = contact(p, m)
        self._step = float(m.time[1] - m.time[0])

        # rows that count
        slowest = np.abs(self.contact.speed).min(axis=1)
        rotors = m.rotor_speed.max(axis=1)
        on_wheels = (slowest > DRIVING) & (rotors < 0.05 * p.hover_speed) & ~airborne(p, m)
        self.keep = inside(on_wheels, MARGIN)

        # what the tyres have to explain
        force, moment = inertial_wrench(p, m)
        without_yaw = p.inertia_matrix - np.diag((0.0, 0.0, p.inertia[2]))
        moment = moment + sprung_inertia(p, m, without_yaw)
        axle = np.cross(self.contact.up, self.contact.forward)
        spins = p.wheel_inertia * (self.contact.roll_speed / p.rolling_radius)[..., None] * axle
        moment = moment + np.cross(m.rates, spins.sum(axis=1))
        self._needed = np.column_stack([(force - drag(p, m))[:, :2], moment[:, 2]])
        self._per_yaw = np.column_stack([np.zeros((m.time.size, 2)), m.rate_change[:, 2]])

        self._slips: dict[tuple[float, float, float], tuple[Floats, Floats]] = {}
        self._names = [*_FIELDS]

    @property
    def seconds(self) -> float:
        """Time of driving that counts, s."""
        return float(self.keep.mean()) * self._step * len(self._needed)

    @property
    def size(self) -> int:
        """Number of unknowns: _FIELDS, inertia in yaw, share of the given rolling radius."""
        return len(self._names) + 2

    def params(self, shares: Floats) -> VehicleParameters:
        """Return the parameters of shares of the given ones."""
        p = self.given
        values = {
            name: getattr(p, name) + share - 1.0 if name in _SHIFTED else getattr(p, name) * share
            for name, share in zip(self._names, shares, strict=False)
        }
        return unchecked(p, **{name: float(value) for name, value in values.items()})

    def slips(self, p: VehicleParameters, radius: float) -> tuple[Floats, Floats]:
        """Return κ and tan α, (k, 4), for a share `radius` of the given rolling radius."""
        key = (p.relaxation_x, p.relaxation_y, radius)
        if key not in self._slips:
            touch = self.contact
            along = touch.slip_speed[..., 0] - (radius - 1.0) * touch.roll_speed
            aside = touch.slip_speed[..., 1]
            kappa = lagged(along, touch.speed, self._step, p.relaxation_x)
            alpha = lagged(aside, touch.speed, self._step, p.relaxation_y)
            self._slips = dict([*self._slips.items()][-4:])
            self._slips[key] = (kappa, alpha)
        return self._slips[key]

    def left_over(self, shares: Floats) -> Floats:
        """Return what the parameters do not explain, (n, 3)."""
        p = self.params(shares)
        touch = self.contact
        factor = np.array([p.cornering_factor_front] * 2 + [p.cornering_factor_rear] * 2)
        fx, fy = tyre_forces(p, touch.load, *self.slips(p, shares[-1]), factor)
        forces = fx[..., None] * touch.forward + fy[..., None] * touch.left
        forces = forces + touch.load[..., None] * touch.up
        yaw = np.cross(touch.lever, forces)[..., 2].sum(axis=1)
        explained = np.column_stack([forces.sum(axis=1)[:, :2], yaw])
        inertia = self.given.inertia[2] * shares[-2]
        return comparable(self._needed + inertia * self._per_yaw - explained)[self.keep]


def fit_tyres(p: VehicleParameters, m: LoggedMotion) -> TyreFit | None:
    """Fit cornering stiffness, Magic Formula, relaxation and inertia in yaw.

    λ_K of the rear axle stays as given: only its product with p_K1 shows. Returns None if the
    vehicle did not drive long enough.
    """
    from scipy.optimize import least_squares

    if np.isnan(m.load[:, 0]).any():
        return None
    moving = np.flatnonzero(np.abs(m.velocity[:, 0]) > SLOWEST)
    if not moving.size:
        return None
    drive = _Drive(p, m.part(max(moving[0] - 100, 0), moving[-1] + 100))
    if drive.seconds < LEAST:
        return None

    # bounds of the shares
    before = np.full(drive.size, PRIOR)
    before[-1] = 0.03  # a tape measures the radius
    shares = np.ones(drive.size)
    low = np.full(drive.size, 0.1)
    high = np.full(drive.size, 10.0)
    for k, name in enumerate(_FIELDS):
        if name.startswith("shape"):
            low[k] = 1.01 / getattr(p, name)
            high[k] = 1.99 / getattr(p, name)
        elif name in _SHIFTED:
            low[k] = -9.0
            high[k] = 1.99 - getattr(p, name)

    # least squares, with the scatter of the first for the second
    scatter = _scatter(drive.left_over(shares))
    for _ in range(2):

        def residuals(x: Floats, scatter: Floats = scatter) -> Floats:
            return np.concatenate([(drive.left_over(x) / scatter).ravel(), (x - 1.0) / before])

        result = least_squares(
            residuals, shares, bounds=(low, high), x_scale=0.1, loss="soft_l1", xtol=1e-5, ftol=1e-5
        )
        shares = result.x
        scatter = np.maximum(_scatter(drive.left_over(shares)), 1e-6 * p.nominal_load)

    # results
    repeats = redundancy(drive.left_over(shares)).max()
    covariance = np.linalg.inv(result.jac.T @ result.jac) * repeats
    fitted = drive.params(shares)
    inertia = (*p.inertia[:2], p.inertia[2] * float(shares[-2]), *p.inertia[3:])
    fitted = unchecked(fitted, inertia=inertia)
    kappa, aside = (comparable(slip)[drive.keep] for slip in drive.slips(fitted, float(shares[-1])))
    return TyreFit(
        fitted,
        _estimates(p, fitted, np.sqrt(np.diag(covariance)), covariance),
        (kappa, aside),
        drive.left_over(shares),
    )


def _scatter(left: Floats) -> Floats:
    """Return the standard deviation (r,) of residuals (n, r) by their median.

    Hence moments in which wheels lock don't count.
    """
    return 1.4826 * np.median(np.abs(left), axis=0)


def _estimates(
    p: VehicleParameters, fitted: VehicleParameters, sigma: Floats, covariance: Floats
) -> list[Estimated]:
    names = [*_FIELDS]
    estimated = []
    for k, (name, (symbol, key)) in enumerate(_FIELDS.items()):
        given = getattr(p, name)
        value = getattr(fitted, name)
        scale = 1.0 if name in _SHIFTED else given
        estimated.append(
            Estimated(symbol, _UNITS.get(name, ""), value, float(sigma[k] * scale), given, key)
        )

    inertia = p.inertia[2]
    estimated.append(
        Estimated(
            "I_zz",
            "kg m²",
            fitted.inertia[2],
            float(sigma[-2] * inertia),
            inertia,
            "inertia.zz_kgm2",
        )
    )

    # axles: cornering stiffness times factor
    cornering, factor = (
        names.index(name) for name in ("cornering_stiffness_per_rad", "cornering_factor_front")
    )
    both = covariance[np.ix_((cornering, factor), (cornering, factor))].sum()
    for axle, spread in (("front", float(np.sqrt(both))), ("rear", float(sigma[cornering]))):
        given = axle_stiffness(p, axle)
        estimated.append(
            Estimated(
                f"C_{axle[0]}, cornering, {axle} axle",
                "N/rad",
                axle_stiffness(fitted, axle),
                given * spread,
                given,
            )
        )
    return estimated


def axle_stiffness(p: VehicleParameters, axle: str) -> float:
    """Return N/rad of both wheels of the front or rear axle under their static load. Eq. 5.9."""
    wheel = 2
    factor = p.cornering_factor_rear
    if axle == "front":
        wheel = 0
        factor = p.cornering_factor_front
    bend = 2.0 * np.arctan(p.static_load[wheel] / (p.cornering_load_ratio * p.nominal_load))
    return float(2.0 * factor * p.cornering_stiffness_per_rad * p.nominal_load * np.sin(bend))
