"""Rotor control by mode: the flight controller's column of the table in docs/model, section 9."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_amphibious.control.geometric_controller import GeometricController
from rfly_amphibious.control.mixer import Mixer
from rfly_amphibious.control.modes import TOUCHED_SHARE, Mode, ModeLogic
from rfly_amphibious.estimation.estimate import Motion
from rfly_amphibious.vehicle.parameters import GRAVITY, VehicleParameters

Floats = NDArray[np.float64]

RAMP_SHARE, RAMP_TIME = 0.5, 2.0
"""of the weight; s: how the collective rises before lift-off"""
CLIMB_SPEED = 0.75
SLOW_DESCENT, FAST_DESCENT, SLOW_BELOW = 0.5, 1.5, 5.0
SPOOL_TIME = 0.3
LAND_TILT = math.radians(10.0)
TURN_RATE = 0.5
"""rad/s, of the heading that is held"""
TURN_ABOVE = 1.0
"""m of clearance, below which a landing keeps its heading"""
LEASH = 2.0
"""m, by which the place may be ahead of a vehicle that flies by velocity"""


class TrajectorySetpoint(NamedTuple):
    """Where to fly, or how fast."""

    position: ArrayLike | None = None
    """(3,) m, world; None: from where it is, by velocity"""
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """m/s: with which the position moves on, world axes; without one forward, left and up by the heading, and near the
    ground down no faster than a landing"""
    yaw: float | None = None
    """rad, to be turned to in flight and above the place of the landing; None: as it is"""
    yaw_rate: float = 0.0
    """rad/s, without a yaw"""


class FlightActions:
    """Both loops of the flight law under the mode table.

    `_aim`, for each estimate, says where the thrust is to point; `_rotor_speeds`, for each sample of the IMU, turns
    the vehicle there.
    """

    def __init__(self, params: VehicleParameters, mode: Mode, attitude_frequency: float | None = None) -> None:
        self.params = params
        self.flight = GeometricController(params, attitude_frequency)
        self.logic = ModeLogic(mode)
        self._place, self._yaw, self._attitude = np.zeros(3), 0.0, np.eye(3)
        self._collective, self._down = 0.0, False
        self._wanted: Floats | None = None
        """specific thrust, world axes; None: `_attitude` and `_collective` with `_tilting` of the moments"""
        self._tilting, self._turning = 1.0, 0.0
        self._off = True
        self._failed: frozenset[int] = frozenset()

    def lose_rotor(self, rotor: int) -> None:
        """Rotor (from 0) turns no more: the others do what they can."""
        self._failed |= {rotor}
        self.flight.mixer = Mixer(self.params, self._failed)

    def _enter(self, mode: Mode, now: Motion) -> None:
        self._place = np.array(now.position)
        self._yaw = math.atan2(now.rotation[1, 0], now.rotation[0, 0])
        self._attitude, self._down = now.rotation, False
        if mode is Mode.TAKEOFF:
            self.flight.reset()
        if mode is Mode.DRIVE:
            self._collective = 0.0

    def _aim(self, mode: Mode, now: Motion, clearance: float, setpoint: TrajectorySetpoint | None, dt: float) -> None:
        """The position loop, dt seconds after it was called last. `clearance`: m, of the lowest wheel."""
        self._off = mode in (Mode.DISARMED, Mode.DRIVE)
        self._wanted, self._tilting, self._turning = None, 1.0, 0.0
        if self._off:
            return
        if mode is Mode.TAKEOFF and self.logic.since < RAMP_TIME:
            self._collective = RAMP_SHARE * self.params.mass * GRAVITY * self.logic.since / RAMP_TIME
        elif mode is Mode.TAKEOFF:
            self._place[2] += dt * CLIMB_SPEED
            self._fly(now, (0.0, 0.0, CLIMB_SPEED), self.logic.contact.wheels_down >= 2.0, dt)
        elif mode is Mode.FLIGHT:
            self._fly(now, self._follow(now, clearance, setpoint, dt), self.logic.contact.wheels_down >= 2.0, dt)
        elif mode is Mode.SPOOL_DOWN:
            self._collective *= math.exp(-dt / SPOOL_TIME)
            self._tilting = max(0.0, 1.0 - self.logic.contact.load_share)
        else:
            high = mode is Mode.LAND and clearance > SLOW_BELOW
            if mode is Mode.LAND and clearance > TURN_ABOVE and setpoint is not None:
                self._turn(setpoint.yaw, dt)
            sink = FAST_DESCENT if high else SLOW_DESCENT
            self._down |= mode is Mode.ABORT and self.logic.contact.load_share > TOUCHED_SHARE
            if self._down:  # no second flight where it bounces
                self._collective *= math.exp(-dt / SPOOL_TIME)
                self._tilting = 0.0
            else:
                self._place[2] = min(self._place[2] - dt * sink, now.position[2] + 0.5)
                self._fly(now, (0.0, 0.0, -sink), self.logic.contact.wheels_down >= 2.0, dt, LAND_TILT)

    def _rotor_speeds(self, now: Motion) -> Floats | None:
        """(rotors,) rad/s, the attitude loop; None: they stand still."""
        if self._off:
            return None
        if self._wanted is not None:
            wrench = self.flight.wrench(self._wanted, self._yaw, now.rotation, now.rates, self._turning)
            self._collective = wrench[0]
        elif self._tilting == 0.0:
            wrench = np.array((self._collective, 0.0, 0.0, 0.0))
        else:
            wrench = self.flight.moments(self._attitude, now.rotation, now.rates, self._collective)
            wrench[1:] *= self._tilting
        return self.flight.mixer.rotor_speeds(wrench)

    def _follow(
        self, now: Motion, clearance: float, setpoint: TrajectorySetpoint | None, dt: float
    ) -> tuple[float, float, float]:
        """The velocity with which the place moves on."""
        if setpoint is None:
            return (0.0, 0.0, 0.0)
        if setpoint.position is not None:
            self._place = np.array(setpoint.position, float)
            self._turn(setpoint.yaw, dt)
            return setpoint.velocity
        if setpoint.yaw is not None:
            self._turn(setpoint.yaw, dt)
        else:
            self._turning = setpoint.yaw_rate
            self._yaw = math.remainder(self._yaw + dt * setpoint.yaw_rate, math.tau)
        forward, left, up = setpoint.velocity
        if clearance < TURN_ABOVE:
            up = max(up, -SLOW_DESCENT)
        c, s = math.cos(self._yaw), math.sin(self._yaw)
        ahead = (c * forward - s * left, s * forward + c * left, up)
        self._place = self._place + dt * np.array(ahead)
        away = self._place - now.position
        distance = float(np.linalg.norm(away))
        if distance > LEASH and any(ahead):
            self._place = now.position + away * (LEASH / distance)
        # what turns the velocity is fed forward as well
        gain = self._turning / self.params.velocity_gain
        return (ahead[0] - gain * ahead[1], ahead[1] + gain * ahead[0], up)

    def _turn(self, yaw: float | None, dt: float) -> None:
        """The heading that is held goes towards the one that is ordered."""
        if yaw is not None:
            error = math.remainder(yaw - self._yaw, math.tau)
            self._yaw += min(max(error, -TURN_RATE * dt), TURN_RATE * dt)

    def _fly(
        self,
        now: Motion,
        ahead: tuple[float, float, float],
        frozen: bool,
        dt: float,
        max_tilt: float | None = None,
    ) -> None:
        if self._failed:  # no rotor can be spared for a heading
            self._yaw = math.atan2(now.rotation[1, 0], now.rotation[0, 0])
        self._wanted = self.flight.acceleration(self._place - now.position, now.velocity, ahead, dt, frozen, max_tilt)
