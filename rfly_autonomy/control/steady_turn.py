# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Steering of a steady turn, with all that acts on the vehicle in it. Eq. 10.17–10.19."""

from __future__ import annotations

import functools

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.drive_laws import TurnTable, turn_steering
from rfly_autonomy.control.speed_controller import steering_lever
from rfly_common.arrays import Floats
from rfly_common.physics import AIR_DENSITY, GRAVITY

MOST_LATERAL = 0.7
"""Share of the tyres' lateral friction up to which the table reaches."""
SPEEDS = np.geomspace(1.0, 40.0, 10)
"""Speeds of the table, m/s; slower and faster turns are steered as the first and the last."""
LATERALS = 8
"""Lateral accelerations of the table."""
SECANT_STEPS = 4
"""Steps by which the tyres' stiffnesses approach the secants of their curves."""


@functools.lru_cache(maxsize=8)
def steady_turn(params: VehicleParameters) -> SteadyTurn:
    """Return the steering of a vehicle, whose table each kind of vehicle makes once."""
    return SteadyTurn(params)


class SteadyTurn:
    """The steering of a vehicle's steady turns on level ground, from a table made once."""

    def __init__(self, params: VehicleParameters) -> None:
        p = params
        self.params = p
        self.lever = steering_lever(p)
        """tan(steering) over the curvature of a slow path, m."""
        self._x = p.axles - p.center_x
        self._sign = p.steering_sign[::2]
        driven = p.is_driven[::2]
        self._drive_share = driven / max(driven.sum(), 1.0)

        # roll stiffness of springs, bars and tyres in series, of each axle
        struts = p.track**2 * (p.spring[::2] / 2.0 + p.anti_roll[::2])
        tyres = p.track**2 * p.tyre_stiffness / 2.0
        self._roll_stiffness = 1.0 / (1.0 / struts + 1.0 / tyres)
        hub_depth = -float(p.hub_position[:, 2].mean())
        hub_height = p.origin_height - hub_depth
        masses = p.mass_sprung * p.origin_height + len(p.wheels) * p.mass_unsprung * hub_height
        upright = float(self._roll_stiffness.sum()) - p.mass_sprung * GRAVITY * hub_depth
        self._roll_per_lateral = masses / upright

        # load that an axle gains, for both its wheels, from a moment that lowers the nose
        heave = 1.0 / (1.0 / p.spring[::2] + 1.0 / p.tyre_stiffness)
        lever = p.axles - heave @ p.axles / heave.sum()
        self._load_per_moment = heave * lever / (heave @ lever**2)

        most = MOST_LATERAL * p.friction_y * GRAVITY
        laterals = np.linspace(1e-3, most, LATERALS)
        gradients = np.zeros((len(SPEEDS), LATERALS))
        if p.steered != "none":
            gradients[:] = [[self._gradient(v, a) for a in laterals] for v in SPEEDS]
        self.table = TurnTable(self.lever, SPEEDS, laterals, gradients)
        """Table of the turns."""

    def steering(self, curvature: float, speed: float) -> float:
        """Return the steering of the virtual wheel, rad, for a path's curvature, 1/m, at a speed.

        Positive is to the left. Beyond what the tyres hold the gradient is that of their limit.
        """
        return turn_steering(self.table, curvature, speed)

    def _gradient(self, speed: float, lateral: float) -> float:
        """Return the steering beyond that of a slow turn, over the lateral acceleration, rad s²/m.

        Eq. 10.19.
        """
        curvature = lateral / speed**2
        loads = self._loads(speed, lateral)
        stiffness, friction = self._tyres(loads)
        bent = stiffness.sum(axis=1)
        for _ in range(SECANT_STEPS):
            steering, slip = self._balance(curvature, speed, lateral, loads, bent)
            slips = np.abs(self._sign * steering - slip - self._x * curvature)[:, None]
            bent = (stiffness * self._secant(stiffness * slips / friction)).sum(axis=1)
        steering, _ = self._balance(curvature, speed, lateral, loads, bent)
        return (steering - self.lever * curvature) / lateral

    def _loads(self, speed: float, lateral: float) -> Floats:
        """Return the loads of the wheels, (axles, left and right), N. Eq. 10.17."""
        p = self.params
        rest = p.static_load[::2]
        rolling = p.rolling_resistance * rest @ p.rolling_radius[::2]
        nose_up = self._air(speed) * p.origin_height + 2.0 * rolling
        level = rest - 0.5 * nose_up * self._load_per_moment
        moved = self._roll_per_lateral * self._roll_stiffness / p.track * lateral
        loads = np.stack([level - moved, level + moved], axis=1)
        return np.asarray(np.maximum(loads, 1e-3 * rest[:, None]))

    def _air(self, speed: float) -> float:
        """Return the drag along the body, N."""
        p = self.params
        return p.linear_drag[0] * speed + 0.5 * AIR_DENSITY * p.drag_area[0] * speed**2

    def _tyres(self, loads: Floats) -> tuple[Floats, Floats]:
        """Return (K_y, N/rad, D_y, N) of wheels with these loads. Eq. 5.9, 5.10."""
        p = self.params
        ratio = loads / (p.cornering_load_ratio * p.nominal_load)
        of_load = 2.0 * ratio / (1.0 + ratio**2)
        factor = p.cornering_factor[::2, None] * p.cornering_stiffness_per_rad * p.nominal_load
        overload = (loads - p.nominal_load) / p.nominal_load
        friction = np.maximum(0.2, 1.0 - p.friction_load_loss * overload)
        return factor * of_load, p.friction_y * friction * loads

    def _secant(self, slip: Floats) -> Floats:
        """Return f(ρ)/ρ of the tyres' curve. Eq. 5.11."""
        p = self.params
        z = np.maximum(slip, 1e-6) / p.shape_y
        curve = np.sin(p.shape_y * np.arctan(z - p.curvature_y * (z - np.arctan(z))))
        return np.asarray(curve / (z * p.shape_y))

    def _balance(
        self, curvature: float, speed: float, lateral: float, loads: Floats, stiffness: Floats
    ) -> tuple[float, float]:
        """Return (δ, β), rad, of forces and moments that balance. Eq. 10.18.

        `stiffness`: of both wheels of each axle, N/rad.
        """
        p = self.params
        x = self._x
        sign = self._sign

        # resistances, which the driven wheels overcome
        rolling = p.rolling_resistance * loads
        pull = (rolling.sum() + self._air(speed)) * self._drive_share - rolling.sum(axis=1)
        yaw = 0.5 * p.track * (rolling[:, 1] - rolling[:, 0]).sum()
        yaw += p.rotational_drag[2] * curvature * speed

        # drag across the body, at the sprung centre of mass
        across = (p.linear_drag[1] + 0.5 * AIR_DENSITY * p.drag_area[1] * speed) * speed
        side = stiffness + pull
        unknown = np.array(
            (
                (side @ sign, -stiffness.sum() - across),
                (side @ (sign * x), -stiffness @ x + across * p.center_x),
            )
        )
        known = (
            p.mass * lateral + stiffness @ x * curvature,
            yaw + stiffness @ x**2 * curvature,
        )
        steering, slip = np.linalg.solve(unknown, known).tolist()
        return steering, slip
