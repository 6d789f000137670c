"""Geometric attitude controller and mixer: attitude setpoints to rotor speeds. docs/model, section
10.1.

After T. Lee, M. Leok and N. H. McClamroch (2010). World axes ENU, body axes FLU, SI.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.estimation.estimate import EstimatedMotion
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats

YAW_FREQUENCY_SHARE = 0.4


_TOLERANCE = 1e-12


class Mixer:
    """Allocates (T, τ_x, τ_y, τ_z): thrust N, moments N m in body axes, about the total centre of
    mass.

    docs/model, section 4.5.

    `failed`: indices of rotors that turn no more. The others then carry the weight and the tilting
    moments first, and cancel the yaw moment that this leaves only as far as their limits let them.
    """

    def __init__(self, params: VehicleParameters, failed: Collection[int] = ()) -> None:
        x, y, _ = params.rotor_position.T
        thrust = params.thrust_coefficient
        torque = params.torque_coefficient
        spin = np.array(params.rotor_spin, float)
        self.matrix: Floats = np.array(
            (
                np.full(params.rotors, thrust),
                thrust * y,
                -thrust * (x - params.center_x),
                -torque * spin,
            )
        )
        """(4, rotors) B: (T, τ) = B ϖ²"""
        self.matrix[:, list(failed)] = 0.0
        self.inverse = np.asarray(np.linalg.pinv(self.matrix), np.float64)
        self._failed = bool(failed)
        if failed:
            rows = np.abs(self.matrix).max(axis=1, keepdims=True)
            spare = (
                rows.all()
                and np.linalg.matrix_rank(self.matrix / np.where(rows, rows, 1.0), tol=1e-9) == 4
            )
            turning = self.inverse[:, 3:] if spare else np.zeros((params.rotors, 1))
            self.inverse = np.hstack([np.linalg.pinv(self.matrix[:3]), turning])
            self.inverse[list(failed)] = 0.0
        self._largest = params.max_rotor_speed**2

    def wrench(self, rotor_speed: ArrayLike) -> Floats:
        """(4,) T, τ_x, τ_y, τ_z of rotors (rotors,) rad/s that stand still in the air."""
        return self.matrix @ np.square(np.asarray(rotor_speed, float))

    def rotor_speeds(self, wrench: ArrayLike) -> Floats:
        """(rotors,) rad/s for (4,) T, τ_x, τ_y, τ_z.

        What the rotors can't do is given up in this order: yaw moment, thrust, then roll and pitch
        together.
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
        """Least and largest thrust with which the squares stay within their limits; least >
        largest: none does.
        """
        for_thrust = self.inverse[:, 0]
        some = for_thrust > 0.0
        low = np.max(-tilting[some] / for_thrust[some], initial=0.0)
        return float(low), float(
            np.min((self._largest - tilting[some]) / for_thrust[some], initial=np.inf)
        )


class AttitudeSetpoint(NamedTuple):
    """Where the rotors' thrust is to point, and how strong it is to be."""

    thrust: float
    """N, along the body's z axis"""
    acceleration: Floats | None
    """(3,) m/s², specific thrust, world axes: its direction is that of the body's z axis; None:
    hold `attitude`
    """
    yaw: float = 0.0
    """rad, with an acceleration"""
    yaw_rate: float = 0.0
    """rad/s, with which the yaw goes on turning"""
    attitude: Floats | None = None
    """(3, 3) body -> world, without an acceleration"""
    moment_share: float = 1.0
    """0 … 1: of the moments that turn the body: less while the wheels carry it"""


class AttitudeLoop(Protocol):
    """Strategy of the inner loop of a `FlightController`: this package's own law, or firmware
    outside.

    It takes samples of the sensors, and answers an attitude setpoint with rotor speeds.
    """

    level_gains: tuple[float, float]
    """1/s: gains of position and velocity across the ground that this loop is fast enough for"""

    def reset(self) -> None:
        """To the initial state."""

    def set_gains(self, params: VehicleParameters, frequency: float) -> None:
        """From now on these parameters' gains, and this frequency (rad/s) in roll and pitch, as far
        as they are its.
        """

    def sense(self, samples: SensorSamples) -> None:
        """What came in since the last step."""

    def set_failed_rotors(self, failed: Collection[int]) -> None:
        """Rotors (from 0) that turn no more: the others do what they can."""

    def rotor_speeds(
        self, setpoint: AttitudeSetpoint | None, motion: EstimatedMotion | None
    ) -> Floats:
        """(rotors,) rad/s for a setpoint in a motion; None: there is none, the rotors are to stand
        still.
        """


class AttitudeController:
    """The `AttitudeLoop` of this package.

    `frequency` (rad/s) other than the parameters' is for loops with delay: (τ_m + delay) ·
    frequency ≤ 0.45.
    """

    def __init__(self, params: VehicleParameters, frequency: float | None = None) -> None:
        self.mixer = Mixer(params)
        self.set_gains(params, params.attitude_frequency if frequency is None else frequency)
        self._inertia = params.total_inertia
        self._still = np.zeros(params.rotors)

    def reset(self) -> None:
        """All rotors turn again; it remembers nothing else."""
        self.mixer = Mixer(self.params)

    def set_gains(self, params: VehicleParameters, frequency: float) -> None:
        """From now on these parameters' gains, and this frequency (rad/s) in roll and pitch."""
        self.params = params
        self.level_gains = params.position_gain, params.velocity_gain
        self.frequency = frequency * np.array((1.0, 1.0, YAW_FREQUENCY_SHARE))
        """(3,) rad/s, of roll, pitch and yaw"""

    def sense(self, samples: SensorSamples) -> None:
        """Needs no samples: the motion of each setpoint has them in it."""

    def set_failed_rotors(self, failed: Collection[int]) -> None:
        """Rotors (from 0) that turn no more: the others do what they can."""
        self.mixer = Mixer(self.params, failed)

    def rotor_speeds(
        self, setpoint: AttitudeSetpoint | None, motion: EstimatedMotion | None
    ) -> Floats:
        """(rotors,) rad/s for a setpoint in a motion; None: there is none, the rotors stand still."""
        if setpoint is None or motion is None:
            return self._still.copy()
        if setpoint.acceleration is not None:
            wanted = _attitude_of(setpoint.acceleration, setpoint.yaw)
            wrench = self.wrench(wanted, motion, setpoint.thrust, setpoint.yaw_rate)
        elif setpoint.moment_share == 0.0:
            wrench = np.array((setpoint.thrust, 0.0, 0.0, 0.0))
        else:
            assert setpoint.attitude is not None
            wrench = self.wrench(setpoint.attitude, motion, setpoint.thrust)
            wrench[1:] *= setpoint.moment_share
        return self.mixer.rotor_speeds(wrench)

    def wrench(
        self, wanted: Floats, motion: EstimatedMotion, thrust: float, yaw_rate: float = 0.0
    ) -> Floats:
        """(4,) the thrust (N), and moments (N m) that turn the body to the attitude `wanted` (3,
        3).

        `yaw_rate` (rad/s): with which it turns about the world's z.
        """
        rotation = motion.rotation
        error = wanted.T @ rotation - rotation.T @ wanted
        error_vector = 0.5 * np.array((error[2, 1], error[0, 2], error[1, 0]))
        error_rates = np.asarray(motion.rates, float)
        if yaw_rate:
            error_rates = error_rates - yaw_rate * rotation[2]
        turn = -(self.frequency**2) * error_vector
        turn -= 2.0 * self.params.attitude_damping * self.frequency * error_rates
        return np.array((thrust, *(self._inertia @ turn)))


def _attitude_of(acceleration: Floats, yaw: float) -> Floats:
    """(3, 3) body -> world with z along the acceleration (3,) and x towards the yaw (rad)."""
    up = acceleration / np.linalg.norm(acceleration)
    left = _cross(up, (math.cos(yaw), math.sin(yaw), 0.0))
    left /= np.linalg.norm(left)
    return np.array((_cross(left, up), left, up)).T


def _cross(a: ArrayLike, b: ArrayLike) -> Floats:
    """Of two (3,): NumPy's own takes ten times as long."""
    (x, y, z), (i, j, k) = np.asarray(a).tolist(), np.asarray(b).tolist()
    return np.array((y * k - z * j, z * i - x * k, x * j - y * i))
