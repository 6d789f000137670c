"""Setpoints of each flight mode: the flight controller's column of the table in docs/model, section
9.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.control.attitude_controller import (
    AttitudeController,
    AttitudeLoop,
    AttitudeSetpoint,
)
from rfly_amphibious.control.modes import TOUCHED_SHARE, Mode, ModeLogic
from rfly_amphibious.control.position_controller import PositionController
from rfly_amphibious.estimation.estimate import EstimatedMotion
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.physics import GRAVITY

RAMP_SHARE = 0.5
RAMP_TIME = 2.0
"""of the weight; s: how the thrust rises before lift-off"""
CLIMB_SPEED = 0.75
SLOW_DESCENT = 0.5
FAST_DESCENT = 1.5
SLOW_BELOW = 5.0
SPOOL_TIME = 0.3
LAND_TILT = math.radians(10.0)
TURN_RATE = 0.5
"""rad/s, of the heading that is held"""
TURN_ABOVE = 1.0
"""m of clearance, below which a landing keeps its heading"""
MAX_LEAD = 2.0
"""m, by which the position setpoint may be ahead of a vehicle that flies by velocity"""


class TrajectorySetpoint(NamedTuple):
    """Where to fly, or how fast."""

    position: ArrayLike | None = None
    """(3,) m, world; None: from where it is, by velocity"""
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """m/s: with which the position moves on, world axes; without one forward, left and up by the
    heading, and near the ground down no faster than a landing
    """
    yaw: float | None = None
    """rad, to be turned to in flight and above the place of the landing; None: as it is"""
    yaw_rate: float = 0.0
    """rad/s, without a yaw"""
    attitude: Floats | None = None
    """(3, 3) body -> world, to be turned to instead of flying anywhere"""
    thrust: float = 0.0
    """N, with an attitude"""


class FlightModes:
    """Position and attitude loop under a mode, from setpoints to rotor speeds.

    `update`, for each estimate, says where the thrust is to point; `rotor_speeds`, for each sample
    of the IMU, lets the attitude loop turn the vehicle there. `logic` is its owner's: it tells the
    time in the mode and the wheels' contact.
    """

    def __init__(
        self, params: VehicleParameters, logic: ModeLogic, attitude_loop: AttitudeLoop | None = None
    ) -> None:
        self.params = params
        self.logic = logic
        self.attitude_loop: AttitudeLoop = (
            AttitudeController(params) if attitude_loop is None else attitude_loop
        )
        self.position_controller = PositionController(params, self.attitude_loop.level_gains)
        self.position = np.zeros(3)
        self.yaw = 0.0
        """(3,) m, world, and rad: what is held"""
        self.attitude: Floats = np.eye(3)
        """(3, 3) body -> world, at the begin of the mode"""
        self.thrust = 0.0
        """N"""
        self.touched = False
        """whether the wheels have touched the ground since an abort"""
        self.failed_rotors: frozenset[int] = frozenset()
        """from 0"""
        self._acceleration: Floats | None = None
        self._moment_share = 1.0
        self._yaw_rate = 0.0
        self._off = True

    def set_failed_rotors(self, failed: frozenset[int]) -> None:
        """These rotors (from 0) turn no more: the others do what they can."""
        self.failed_rotors = failed
        self.attitude_loop.set_failed_rotors(failed)

    def enter(self, mode: Mode, now: EstimatedMotion) -> None:
        """A mode begins: position, heading and attitude are held as they are."""
        self.position = np.array(now.position)
        self.yaw = math.atan2(now.rotation[1, 0], now.rotation[0, 0])
        self.attitude = now.rotation
        self.touched = False
        if mode is Mode.TAKEOFF:
            self.position_controller.reset()
        if mode is Mode.DRIVE:
            self.thrust = 0.0

    def update(
        self,
        mode: Mode,
        now: EstimatedMotion,
        clearance: float,
        setpoint: TrajectorySetpoint | None,
        dt: float,
    ) -> None:
        """The position loop, dt seconds after it was called last. `clearance`: m, of the lowest
        wheel.
        """
        self._off = mode in (Mode.DISARMED, Mode.DRIVE)
        self._acceleration = None
        self._moment_share = 1.0
        self._yaw_rate = 0.0
        if self._off:
            return
        if mode is Mode.TAKEOFF and self.logic.since < RAMP_TIME:
            self.thrust = RAMP_SHARE * self.params.mass * GRAVITY * self.logic.since / RAMP_TIME
        elif mode is Mode.TAKEOFF:
            self.position[2] += dt * CLIMB_SPEED
            self._fly(now, (0.0, 0.0, CLIMB_SPEED), dt)
        elif mode is Mode.FLIGHT and setpoint is not None and setpoint.attitude is not None:
            self.position = np.array(now.position)
            self.yaw = math.atan2(now.rotation[1, 0], now.rotation[0, 0])
            self.attitude = setpoint.attitude
            self.thrust = setpoint.thrust
        elif mode is Mode.FLIGHT:
            self._fly(now, self._follow(now, clearance, setpoint, dt), dt)
        elif mode is Mode.SPOOL_DOWN:
            self.thrust *= math.exp(-dt / SPOOL_TIME)
            self._moment_share = max(0.0, 1.0 - self.logic.contact.load_share)
        else:
            high = mode is Mode.LAND and clearance > SLOW_BELOW
            if mode is Mode.LAND and clearance > TURN_ABOVE and setpoint is not None:
                self._turn(setpoint.yaw, dt)
            sink = FAST_DESCENT if high else SLOW_DESCENT
            self.touched |= mode is Mode.ABORT and self.logic.contact.load_share > TOUCHED_SHARE
            if self.touched:  # no second flight where it bounces
                self.thrust *= math.exp(-dt / SPOOL_TIME)
                self._moment_share = 0.0
            else:
                self.position[2] = min(self.position[2] - dt * sink, now.position[2] + 0.5)
                self._fly(now, (0.0, 0.0, -sink), dt, LAND_TILT)

    def rotor_speeds(self, now: EstimatedMotion) -> Floats:
        """(rotors,) rad/s, of the attitude loop."""
        if self._off:
            return self.attitude_loop.rotor_speeds(None, now)
        if self._acceleration is not None:
            self.thrust = self.params.mass * float(self._acceleration @ now.rotation[:, 2])
        setpoint = AttitudeSetpoint(
            self.thrust,
            self._acceleration,
            self.yaw,
            self._yaw_rate,
            self.attitude,
            self._moment_share,
        )
        return self.attitude_loop.rotor_speeds(setpoint, now)

    def _follow(
        self, now: EstimatedMotion, clearance: float, setpoint: TrajectorySetpoint | None, dt: float
    ) -> tuple[float, float, float]:
        """The velocity with which the position setpoint moves on."""
        if setpoint is None:
            return (0.0, 0.0, 0.0)
        if setpoint.position is not None:
            self.position = np.array(setpoint.position, float)
            self._turn(setpoint.yaw, dt)
            return setpoint.velocity
        if setpoint.yaw is not None:
            self._turn(setpoint.yaw, dt)
        else:
            self._yaw_rate = setpoint.yaw_rate
            self.yaw = math.remainder(self.yaw + dt * setpoint.yaw_rate, math.tau)
        forward, left, up = setpoint.velocity
        if clearance < TURN_ABOVE:
            up = max(up, -SLOW_DESCENT)
        c = math.cos(self.yaw)
        s = math.sin(self.yaw)
        ahead = (c * forward - s * left, s * forward + c * left, up)
        self.position = self.position + dt * np.array(ahead)
        lead = self.position - now.position
        distance = float(np.linalg.norm(lead))
        if distance > MAX_LEAD and any(ahead):
            self.position = now.position + lead * (MAX_LEAD / distance)
        # what turns the velocity is fed forward as well
        gain = self._yaw_rate / self.params.velocity_gain
        return (ahead[0] - gain * ahead[1], ahead[1] + gain * ahead[0], up)

    def _turn(self, yaw: float | None, dt: float) -> None:
        """The heading that is held goes towards the one that is wanted."""
        if yaw is not None:
            error = math.remainder(yaw - self.yaw, math.tau)
            self.yaw += min(max(error, -TURN_RATE * dt), TURN_RATE * dt)

    def _fly(
        self,
        now: EstimatedMotion,
        ahead: tuple[float, float, float],
        dt: float,
        max_tilt: float | None = None,
    ) -> None:
        if self.failed_rotors:  # no rotor can be spared for a heading
            self.yaw = math.atan2(now.rotation[1, 0], now.rotation[0, 0])
        frozen = self.logic.contact.wheels_down >= 2.0
        self._acceleration = self.position_controller.acceleration(
            self.position - now.position, now.velocity, ahead, dt, frozen, max_tilt
        )
