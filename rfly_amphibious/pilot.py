"""A pilot who sees the truth: both control laws under the mode table, for scenarios and tests of the dynamics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.chassis_control import HOLD_SHARE, ChassisController
from rfly_amphibious.flight_control import FlightController, rotation_matrix
from rfly_amphibious.mixer import Mixer
from rfly_amphibious.model import AmphibiousModel, Controls, ModelState, Outputs
from rfly_amphibious.modes import TOUCHED_SHARE, Mode, ModeLogic, Situation
from rfly_amphibious.parameters import GRAVITY

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


class Order(NamedTuple):
    """From `time` on (s): a mode to be requested, the speed to drive, the steering, the place to fly to."""

    time: float
    mode: Mode | None = None
    speed: float = 0.0
    steering: float = 0.0
    target: tuple[float, float, float] | None = None
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """m/s, with which the target moves on"""
    yaw: float | None = None
    """rad, to be turned to in flight and above the place of the landing; None: as it is"""


class Pilot:
    """Flies and drives by a list of orders; for `AmphibiousModel.run`, asked every `period` seconds."""

    def __init__(
        self, model: AmphibiousModel, orders: Sequence[Order], mode: Mode = Mode.DRIVE, period: float = 0.004
    ) -> None:
        self.model, self.period = model, period
        self.flight, self.chassis = FlightController(model.params), ChassisController(model.params)
        self.logic = ModeLogic(mode)
        self.modes = [mode]
        """in the order in which they came"""
        self._orders, self._next = list(orders), 0
        self._order = Order(0.0)
        self._wanted_mode: Mode | None = None
        self._place, self._yaw, self._attitude = np.zeros(3), 0.0, np.eye(3)
        self._collective, self._clearance = 0.0, 0.0
        self._down = False
        self._fresh = True
        self._controls = Controls()
        self._failed: frozenset[int] = frozenset()

    def __call__(self, state: ModelState, outputs: Outputs | None = None) -> Controls:
        """The commands from a state on; `outputs`: those of the last step, where the caller has them."""
        rotation = rotation_matrix(state.quaternion)
        situation = self._situation(state, rotation, outputs)
        self._choose(state, rotation, situation)
        before = self.logic.mode
        if self._wanted_mode is not None and self.logic.request(self._wanted_mode, situation):
            self._wanted_mode = None
        mode = self.logic.update(situation, self.period)
        if mode is not before or self._fresh:
            self._enter(mode, state, rotation)
            if mode is not before:
                self.modes.append(mode)
            self._fresh = False
        self._controls = self._act(mode, state, rotation)
        return self._controls

    def lose_rotor(self, rotor: int) -> None:
        """Rotor (from 0) turns no more: off the ground the flight is aborted, on it there is no take-off any more."""
        self._failed |= {rotor}
        self.flight.mixer = Mixer(self.model.params, self._failed)
        if self.logic.mode not in (Mode.DISARMED, Mode.DRIVE):
            self._wanted_mode = Mode.ABORT

    def _choose(self, state: ModelState, rotation: Floats, now: Situation) -> None:
        """What is to be done: here what the list of orders says."""
        while self._next < len(self._orders) and self._orders[self._next].time <= state.time + 1e-9:
            self._order = self._orders[self._next]
            self._wanted_mode = self._order.mode
            self._next += 1

    def _situation(self, state: ModelState, rotation: Floats, outputs: Outputs | None) -> Situation:
        out = self.model.outputs(state, self._controls) if outputs is None else outputs
        self._clearance = float(out.clearance)
        load = out.wheel_load
        slope = math.acos(min(1.0, rotation[2, 2]))
        share = float(load.sum()) / (self.model.params.mass * GRAVITY)
        speed = float(np.linalg.norm(state.velocity))
        return Situation(int((load > 0.0).sum()), share, self._clearance, speed, slope)

    def _enter(self, mode: Mode, state: ModelState, rotation: Floats) -> None:
        self._place = np.array(state.position)
        self._yaw = math.atan2(rotation[1, 0], rotation[0, 0])
        self._attitude, self._down = rotation, False
        if mode is Mode.TAKEOFF:
            self.flight.reset()
        if mode is Mode.DRIVE:
            self.chassis.reset()

    def _act(self, mode: Mode, state: ModelState, rotation: Floats) -> Controls:
        p, dt = self.model.params, self.period
        if mode is Mode.DISARMED:
            return Controls(brake_torque=HOLD_SHARE * p.max_brake_torque)
        if mode is Mode.DRIVE:
            speed = float(rotation[:, 0] @ state.velocity)
            grade = math.asin(max(-1.0, min(1.0, rotation[2, 0])))
            drive, brake = self.chassis.torques(self._order.speed, speed, dt, grade)
            limit = self.chassis.steering_limit(speed)
            return Controls(
                steering=min(max(self._order.steering, -limit), limit), drive_torque=drive, brake_torque=brake
            )
        hold = 0.0
        if mode is Mode.TAKEOFF and self.logic.since < RAMP_TIME:
            thrust = RAMP_SHARE * p.mass * GRAVITY * self.logic.since / RAMP_TIME
            wrench = self.flight.moments(self._attitude, rotation, state.rates, thrust)
            hold = p.max_brake_torque
        elif mode is Mode.TAKEOFF:
            self._place[2] += dt * CLIMB_SPEED
            hold = p.max_brake_torque if self.logic.wheels > 0.5 else 0.0
            wrench = self._fly(state, rotation, (0.0, 0.0, CLIMB_SPEED), self.logic.wheels >= 2.0)
        elif mode is Mode.FLIGHT:
            if self._order.target is not None:
                self._place = np.array(self._order.target)
            self._turn()
            wrench = self._fly(state, rotation, self._order.velocity, False)
        elif mode is Mode.SPOOL_DOWN:
            self._collective *= math.exp(-dt / SPOOL_TIME)
            wrench = self.flight.moments(self._attitude, rotation, state.rates, self._collective)
            wrench[1:] *= max(0.0, 1.0 - self.logic.share)
            hold = HOLD_SHARE * p.max_brake_torque
        else:
            high = mode is Mode.LAND and self._clearance > SLOW_BELOW
            if mode is Mode.LAND and self._clearance > TURN_ABOVE:
                self._turn()
            sink = FAST_DESCENT if high else SLOW_DESCENT
            self._down |= mode is Mode.ABORT and self.logic.share > TOUCHED_SHARE
            if self._down:  # no second flight where it bounces
                self._collective *= math.exp(-dt / SPOOL_TIME)
                wrench = np.array((self._collective, 0.0, 0.0, 0.0))
                hold = p.max_brake_torque
            else:
                self._place[2] = min(self._place[2] - dt * sink, state.position[2] + 0.5)
                wrench = self._fly(state, rotation, (0.0, 0.0, -sink), self.logic.wheels >= 2.0, LAND_TILT)
                self._collective = wrench[0]
        return Controls(rotor_speed=self.flight.mixer.rotor_speeds(wrench), brake_torque=hold)

    def _turn(self) -> None:
        """The heading that is held goes towards the one that is ordered."""
        if self._order.yaw is not None:
            error = math.remainder(self._order.yaw - self._yaw, math.tau)
            self._yaw += min(max(error, -TURN_RATE * self.period), TURN_RATE * self.period)

    def _fly(
        self,
        state: ModelState,
        rotation: Floats,
        ahead: tuple[float, float, float],
        frozen: bool,
        max_tilt: float | None = None,
    ) -> Floats:
        if self._failed:  # no rotor can be spared for a heading
            self._yaw = math.atan2(rotation[1, 0], rotation[0, 0])
        wanted = self.flight.acceleration(
            self._place - state.position, state.velocity, ahead, self.period, frozen, max_tilt
        )
        return self.flight.wrench(wanted, self._yaw, rotation, state.rates)
