"""Geometric attitude controller: attitude setpoints to rotor speeds. docs/model, section 10.1.

After T. Lee, M. Leok and N. H. McClamroch (2010). World axes ENU, body axes FLU, SI.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.control.mixer import Mixer
from rfly_amphibious.estimation.estimate import Motion
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats

YAW_FREQUENCY_SHARE = 0.4


class AttitudeSetpoint(NamedTuple):
    """Where the rotors' thrust is to point, and how strong it is to be."""

    thrust: float
    """N, along the body's z axis"""
    acceleration: Floats | None
    """(3,) m/s², specific thrust, world axes: its direction is that of the body's z axis; None: hold `attitude`"""
    yaw: float = 0.0
    """rad, with an acceleration"""
    yaw_rate: float = 0.0
    """rad/s, with which the yaw goes on turning"""
    attitude: Floats | None = None
    """(3, 3) body -> world, without an acceleration"""
    moment_share: float = 1.0
    """0 … 1: of the moments that turn the body: less while the wheels carry it"""


class AttitudeLoop(Protocol):
    """Strategy of the inner loop of a `FlightController`: this package's own law, or firmware outside.

    It takes samples of the sensors, and answers an attitude setpoint with rotor speeds.
    """

    level_gains: tuple[float, float]
    """1/s: gains of position and velocity across the ground that this loop is fast enough for"""

    def reset(self) -> None:
        """To the initial state."""

    def sense(self, samples: SensorSamples) -> None:
        """What came in since the last step."""

    def set_failed_rotors(self, failed: Collection[int]) -> None:
        """Rotors (from 0) that turn no more: the others do what they can."""

    def rotor_speeds(self, setpoint: AttitudeSetpoint | None, motion: Motion | None) -> Floats:
        """(rotors,) rad/s for a setpoint in a motion; None: there is none, the rotors are to stand still."""


class AttitudeController:
    """The `AttitudeLoop` of this package.

    `frequency` (rad/s) other than the parameters' is for loops with delay: (τ_m + delay) · frequency ≤ 0.45.
    """

    def __init__(self, params: VehicleParameters, frequency: float | None = None) -> None:
        self.params, self.mixer = params, Mixer(params)
        self.level_gains = params.position_gain, params.velocity_gain
        frequency = params.attitude_frequency if frequency is None else frequency
        self.frequency = frequency * np.array((1.0, 1.0, YAW_FREQUENCY_SHARE))
        """(3,) rad/s, of roll, pitch and yaw"""
        self._inertia = params.total_inertia
        self._still = np.zeros(params.rotors)

    def reset(self) -> None:
        """All rotors turn again; it remembers nothing else."""
        self.mixer = Mixer(self.params)

    def sense(self, samples: SensorSamples) -> None:
        """Needs no samples: the motion of each setpoint has them in it."""

    def set_failed_rotors(self, failed: Collection[int]) -> None:
        """Rotors (from 0) that turn no more: the others do what they can."""
        self.mixer = Mixer(self.params, failed)

    def rotor_speeds(self, setpoint: AttitudeSetpoint | None, motion: Motion | None) -> Floats:
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

    def wrench(self, wanted: Floats, motion: Motion, thrust: float, yaw_rate: float = 0.0) -> Floats:
        """(4,) the thrust (N), and moments (N m) that turn the body to the attitude `wanted` (3, 3).

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
