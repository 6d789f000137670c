"""Control allocation: thrust and moments to rotor speeds, for any layout. docs/model, section 4.5."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats

_TOLERANCE = 1e-12


class Mixer:
    """Allocates (T, τ_x, τ_y, τ_z): thrust N, moments N m in body axes, about the total centre of mass.

    `failed`: indices of rotors that turn no more. The others then carry the weight and the tilting moments first, and
    cancel the yaw moment that this leaves only as far as their limits let them.
    """

    def __init__(self, params: VehicleParameters, failed: Collection[int] = ()) -> None:
        x, y, _ = params.rotor_position.T
        thrust, torque = params.thrust_coefficient, params.torque_coefficient
        spin = np.array(params.rotor_spin, float)
        self.matrix: Floats = np.array(
            (np.full(params.rotors, thrust), thrust * y, -thrust * (x - params.center_x), -torque * spin)
        )
        """(4, rotors) B: (T, τ) = B ϖ²"""
        self.matrix[:, list(failed)] = 0.0
        self.inverse = np.asarray(np.linalg.pinv(self.matrix), np.float64)
        self._failed = bool(failed)
        if failed:
            rows = np.abs(self.matrix).max(axis=1, keepdims=True)
            spare = rows.all() and np.linalg.matrix_rank(self.matrix / np.where(rows, rows, 1.0), tol=1e-9) == 4
            turning = self.inverse[:, 3:] if spare else np.zeros((params.rotors, 1))
            self.inverse = np.hstack([np.linalg.pinv(self.matrix[:3]), turning])
            self.inverse[list(failed)] = 0.0
        self._largest = params.max_rotor_speed**2

    def wrench(self, rotor_speed: ArrayLike) -> Floats:
        """(4,) T, τ_x, τ_y, τ_z of rotors (rotors,) rad/s that stand still in the air."""
        return self.matrix @ np.square(np.asarray(rotor_speed, float))

    def rotor_speeds(self, wrench: ArrayLike) -> Floats:
        """(rotors,) rad/s for (4,) T, τ_x, τ_y, τ_z.

        What the rotors can't do is given up in this order: yaw moment, thrust, then roll and pitch together.
        """
        thrust, roll, pitch, yaw = np.asarray(wrench, float)
        for_thrust = self.inverse[:, 0]
        tilting = self.inverse[:, 1] * roll + self.inverse[:, 2] * pitch
        squares = thrust * for_thrust + tilting
        if self._failed:
            yaw = yaw - float(self.matrix[3] @ squares)
        turning = self.inverse[:, 3] * yaw
        all_of_it = squares + turning
        if all_of_it.min() >= 0.0 and all_of_it.max() <= self._largest:
            return np.sqrt(all_of_it)
        squares = squares + self._share(squares, turning) * turning
        if not self._fits(squares):
            base = thrust * for_thrust + tilting
            low, high = self._thrusts(tilting)
            if low <= high:
                base = float(np.clip(thrust, low, high)) * for_thrust + tilting
            else:
                middle = float(np.clip(thrust, *self._thrusts(np.zeros_like(tilting)))) * for_thrust
                base = middle + self._share(middle, tilting) * tilting
            squares = np.clip(base, 0.0, self._largest)
        return np.sqrt(np.clip(squares, 0.0, self._largest))

    def _fits(self, squares: Floats) -> bool:
        slack = _TOLERANCE * self._largest
        return bool((squares >= -slack).all() and (squares <= self._largest + slack).all())

    def _share(self, base: Floats, addition: Floats) -> float:
        """The largest part, 0 … 1, of the addition that keeps all squares within their limits."""
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(addition > 0.0, self._largest - base, base) / np.abs(addition)
        return float(np.clip(np.min(room[addition != 0.0], initial=1.0), 0.0, 1.0))

    def _thrusts(self, tilting: Floats) -> tuple[float, float]:
        """Least and largest thrust with which the squares stay within their limits; least > largest: none does."""
        for_thrust = self.inverse[:, 0]
        some = for_thrust > 0.0
        low = np.max(-tilting[some] / for_thrust[some], initial=0.0)
        return float(low), float(np.min((self._largest - tilting[some]) / for_thrust[some], initial=np.inf))
